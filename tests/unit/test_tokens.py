"""Token counts are exact and offline; truncation never exceeds its limit."""

from __future__ import annotations

import gzip
import hashlib
import os
import socket
from pathlib import Path

import pytest
import tiktoken.registry
from hypothesis import given
from hypothesis import strategies as st

from agentcore.errors import ConfigurationError, StartupError
from agentcore.memory import tokens
from agentcore.memory.tokens import TokenCounter, encoding_for_model

SENTENCE = "The quick brown fox jumps over the lazy dog, and the dog does not mind at all."


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tokens")


@pytest.fixture(scope="module")
def counter(cache: Path) -> TokenCounter:
    return TokenCounter(cache)


@pytest.fixture
def fresh_tiktoken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Resets tiktoken as in a new process without network."""
    monkeypatch.setattr(tiktoken.registry, "ENCODINGS", {})

    def refuse(*arguments: object) -> None:
        raise AssertionError(f"the network was used: {arguments}")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


# Counts published by OpenAI's own tokenizer for these encodings.
@pytest.mark.parametrize(
    ("encoding", "text", "count"),
    [
        ("o200k_base", "", 0),
        ("o200k_base", "hello world", 2),
        ("o200k_base", "お誕生日おめでとう", 8),
        ("cl100k_base", "tiktoken is great!", 6),
        ("cl100k_base", "antidisestablishmentarianism", 6),
        ("cl100k_base", "お誕生日おめでとう", 9),
    ],
)
def test_counts_are_those_of_the_encoding(cache: Path, encoding: str, text: str, count: int) -> None:
    assert TokenCounter(cache, encoding).count(text) == count


def test_a_special_token_in_a_text_is_text(counter: TokenCounter) -> None:
    assert counter.count("<|endoftext|>") > 1


@pytest.mark.shows("issue2-11-context")
def test_counting_works_offline_in_a_new_process(tmp_path: Path, fresh_tiktoken: None) -> None:
    assert TokenCounter(tmp_path).count("hello world") == 2


def test_the_environment_is_left_as_it_was(
    tmp_path: Path, fresh_tiktoken: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TIKTOKEN_CACHE_DIR", raising=False)
    TokenCounter(tmp_path).load()
    assert "TIKTOKEN_CACHE_DIR" not in os.environ
    tiktoken.registry.ENCODINGS.clear()
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", "elsewhere")
    TokenCounter(tmp_path).load()
    assert os.environ["TIKTOKEN_CACHE_DIR"] == "elsewhere"


def test_a_damaged_table_is_unpacked_again(tmp_path: Path, fresh_tiktoken: None) -> None:
    TokenCounter(tmp_path, "cl100k_base").load()
    tiktoken.registry.ENCODINGS.clear()
    table = next(path for path in tmp_path.rglob("*") if path.is_file())
    whole = table.read_bytes()
    table.write_bytes(whole[:1_000])
    assert TokenCounter(tmp_path, "cl100k_base").count("tiktoken is great!") == 6
    assert table.read_bytes() == whole
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [table]


def test_a_table_that_nothing_carries_stops_the_start(
    tmp_path: Path, fresh_tiktoken: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tokens, "CARRIER", "no_such_package")
    with pytest.raises(StartupError, match="install the package bpe-openai"):
        TokenCounter(tmp_path).load()


DAMAGED = [b"not gzip", gzip.compress(b"not the table", mtime=0), gzip.compress(b"cut off", mtime=0)[:-4]]


@pytest.mark.parametrize("packed", DAMAGED)
def test_a_carrier_that_is_damaged_stops_the_start(
    tmp_path: Path, fresh_tiktoken: None, monkeypatch: pytest.MonkeyPatch, packed: bytes
) -> None:
    data = tmp_path / "damaged_carrier" / "data"
    data.mkdir(parents=True)
    (data.parent / "__init__.py").touch()
    (data / "o200k_base.tiktoken.gz").write_bytes(packed)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(tokens, "CARRIER", "damaged_carrier")
    with pytest.raises(StartupError, match="is damaged"):
        TokenCounter(tmp_path / "cache").load()


def test_a_cache_that_cannot_be_written_stops_the_start(tmp_path: Path, fresh_tiktoken: None) -> None:
    (tmp_path / "tiktoken").touch()
    with pytest.raises(StartupError, match="cannot be written"):
        TokenCounter(tmp_path).load()


def test_an_encoding_without_a_table_is_a_wrong_setting(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="choose cl100k_base or o200k_base"):
        TokenCounter(tmp_path, "p50k_base")


@pytest.mark.parametrize(
    ("model", "encoding"),
    [
        ("gpt-4o-mini", "o200k_base"),
        ("gpt-4", "cl100k_base"),
        ("text-embedding-3-small", "cl100k_base"),
        ("somebody's own", None),
        ("davinci", None),
        ("", None),
    ],
)
def test_a_model_has_the_encoding_it_counts_in_if_that_is_here(model: str, encoding: str | None) -> None:
    assert encoding_for_model(model) == encoding


# --- truncation ---------------------------------------------------------------------------------------------


def test_a_text_within_the_limit_is_kept_whole(counter: TokenCounter) -> None:
    assert counter.truncate(SENTENCE, counter.count(SENTENCE)) == SENTENCE


def test_a_cut_falls_between_words(counter: TokenCounter) -> None:
    text = "antidisestablishmentarianism " * 3
    cut = counter.truncate(text, counter.count(text) - 2)
    assert cut == "antidisestablishmentarianism antidisestablishmentarianism"


def test_a_word_that_does_not_end_is_cut_inside(counter: TokenCounter) -> None:
    cut = counter.truncate("x" * 5_000, 20)
    assert len(cut) > 20
    assert set(cut) == {"x"}
    assert counter.count(cut) <= 20


def test_the_first_word_is_cut_inside_where_it_alone_is_too_long(counter: TokenCounter) -> None:
    assert counter.truncate("antidisestablishmentarianism", 2) == "antidis"


def test_a_cut_is_as_long_as_its_limit_allows(counter: TokenCounter) -> None:
    text = SENTENCE * 40
    cut = counter.truncate(text, 300)
    following = text[len(cut) :].split()[0]
    assert counter.count(cut) > 300 - 5
    assert counter.count(f"{cut} {following} {text[len(cut) :].split()[1]}") > 300


def test_a_cut_that_splits_into_more_tokens_than_the_whole_is_cut_further(counter: TokenCounter) -> None:
    # At two tokens the cut ends in "I'm"; without its "m", the rest are three.
    cut = counter.truncate("''I'mx'sWER''  'EEEIRxs'dvWdlex t''", 2)
    assert cut
    assert counter.count(cut) <= 2


@pytest.mark.parametrize("limit", [0, -1])
def test_nothing_fits_no_tokens(counter: TokenCounter, limit: int) -> None:
    assert counter.truncate(SENTENCE, limit) == ""


def test_a_long_text_is_not_read_to_its_end_for_a_short_cut(counter: TokenCounter) -> None:
    assert counter.truncate("a b " * 1_000_000, 3).split() == ["a", "b", "a"]


@pytest.mark.parametrize("filler", [" ", "\t", "\u00a0", "\n", "a", "\u4e2d", "\u0301"])
def test_a_hostile_run_of_one_character_can_be_counted_and_cut(counter: TokenCounter, filler: str) -> None:
    text = "before" + filler * 1_200_000 + "after"
    assert counter.count(text) > 2
    cut = counter.truncate(text, 50)
    assert text.startswith(cut)
    assert 0 < counter.count(cut) <= 50


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=300) | st.text(
    st.sampled_from("ab A1.,'\n \té中😀\u0301ﬃ"), max_size=300
)


@given(text=TEXTS, limit=st.integers(0, 60))
def test_a_cut_is_a_start_of_the_text_within_the_limit(counter: TokenCounter, text: str, limit: int) -> None:
    cut = counter.truncate(text, limit)
    assert text.startswith(cut)
    assert counter.count(cut) <= limit
    assert cut.encode().decode() == cut


@given(text=TEXTS)
def test_counting_agrees_with_tiktoken(counter: TokenCounter, text: str) -> None:
    assert counter.count(text) == len(tiktoken.get_encoding("o200k_base").encode(text, disallowed_special=()))


def test_the_table_stands_where_tiktoken_looks_for_it(tmp_path: Path, fresh_tiktoken: None) -> None:
    TokenCounter(tmp_path, "cl100k_base").load()
    url = "https://openaipublic.blob.core.windows.net/encodings/cl100k_base.tiktoken"
    assert (tmp_path / "tiktoken" / hashlib.sha1(url.encode(), usedforsecurity=False).hexdigest()).is_file()
