"""Splitting texts into passages: complete, within the local model's limit, at good boundaries."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentcore.memory.language.passages import FIRST_TOKENS, MOST_TOKENS, PASSAGE_TOKENS, Passage, is_long, passages
from agentcore.providers import e5
from agentcore.providers.e5_file import E5File
from agentcore.providers.local_models import E5

ROOT = Path(__file__).parents[2]
PROSE = " ".join(
    f"Sentence number {number} says that the meeting about the harbor was moved to Thursday." for number in range(200)
)
texts = st.text(st.sampled_from("aB7 .\n!?中文。é🙂-\t"), max_size=3_000)


def pieces(text: str) -> list[str]:
    return [text[each.start : each.end] for each in passages(text)]


@given(texts | st.text(max_size=3_000))
def test_passages_cover_the_whole_text_and_overlap(text: str) -> None:
    cut = passages(text)
    assert (cut[0].start, cut[-1].end) == (0, len(text))
    for before, after in pairwise(cut):
        assert before.start < after.start < before.end < after.end
    assert is_long(text) == (len(cut) > 1)


def test_a_short_text_is_one_passage() -> None:
    assert passages("") == [Passage(0, 0)]
    assert passages("A short note.") == [Passage(0, 13)]


def test_passages_begin_and_end_with_sentences() -> None:
    cut = pieces(PROSE)
    assert len(cut) > 10
    assert all(each.startswith("Sentence") for each in cut)
    assert all(each.rstrip().endswith("Thursday.") for each in cut)
    # A sentence at a boundary is in both.
    assert all(after.split(".")[0] in before for before, after in pairwise(cut))


@pytest.mark.parametrize("mark", ["\nUser: ", "\n\n"])
def test_the_end_of_a_turn_or_paragraph_is_preferred(mark: str) -> None:
    said = "The pump was repaired by two people. It runs again.\nNobody knows for how long. We will see."
    cut = pieces(mark.join([said] * 40))
    assert len(cut) > 5
    assert all(each.endswith("We will see.\n" if mark.endswith(" ") else "\n\n") for each in cut[:-1])


def test_a_text_without_boundaries_is_cut_anywhere() -> None:
    cut = pieces("ab" * 5_000)
    assert len(cut) > 10
    assert all(200 < len(each) < 1_000 for each in cut[:-1])


def test_in_a_script_without_spaces_a_character_counts_as_a_token() -> None:
    cut = pieces("我们昨天在河边的仓库里讨论了新的水泵。" * 100)
    assert len(cut[0]) <= FIRST_TOKENS
    assert all(len(each) <= PASSAGE_TOKENS for each in cut[1:])
    assert all(each.endswith("。") for each in cut)


@cache
def tokenizer() -> e5.UnigramTokenizer:
    return e5.UnigramTokenizer(E5File(E5.verified_directory() / e5.WEIGHTS).vocabulary)


def samples() -> dict[str, str]:
    prompts: dict[str, list[str]] = {}
    for line in files("agentcore.memory").joinpath("off_topic.jsonl").read_text("utf-8").splitlines():
        prompt = json.loads(line)
        prompts.setdefault(prompt["language"], []).append(prompt["text"])
    found = {language: "\n".join(each * 4) for language, each in prompts.items()}
    found["markdown"] = (ROOT / "docs/operations.md").read_text("utf-8")[:40_000]
    found["code"] = (ROOT / "agentcore/memory/storage.py").read_text("utf-8")
    found["sql"] = (ROOT / "alembic/schema.sql").read_text("utf-8")
    found["numbers"] = "\n".join(f"{n * 7919 % 99991},{n * 104729 % 999983}.{n}" for n in range(500))
    found["digests"] = " ".join(f"{n * 2654435761 % 2**64:016x}" for n in range(1, 500))
    found["emoji"] = "🙂🎉 " * 500
    return found


@pytest.mark.parametrize(("name", "text"), samples().items(), ids=samples())
def test_no_passage_is_longer_than_the_local_model_reads(name: str, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(e5, "MAX_TOKENS", 10_000)
    monkeypatch.setattr(e5, "HEAD_CHARACTERS", 1_000_000)
    cut = pieces(text)
    lengths = [len(tokenizer().encode(f"passage: Maria: {each}")) for each in cut]
    assert max(lengths) <= MOST_TOKENS
    # Passages that are too short would waste time and storage.
    if len(cut) > 3:
        assert sum(lengths) / len(lengths) > MOST_TOKENS / 4
