"""Terms, their keys, and BM25 against manual calculation."""

from __future__ import annotations

import json
import math
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from agentcore.limits import MAX_TERMS
from agentcore.memory.lexical import (
    Bm25,
    LexicalStatistics,
    edits_at_distance_one,
    everyday_share,
    idf,
    select_query_keys,
    term_key,
    term_keys,
    terms,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The cats were running to the databases", ["cat", "run", "databas"]),
        ("what is it, and who are you?", []),
        ("follow-up followup", ["followup", "follow", "followup"]),
        ("I moved; she moves; moving", ["move", "move", "move"]),
        ("ERR_42 in GPT-4", ["err_42", "err", "42", "gpt-4", "gpt", "4"]),
        ("plan B", ["plan", "b"]),
        ("柏林", ["柏林"]),
        ("supercalifragilistic" * 3, ["supercalifragilistic" * 3]),
    ],
)
def test_terms_are_stemmed_without_stop_words_and_keep_repetition(text: str, expected: list[str]) -> None:
    assert terms(text) == expected


def test_a_question_and_its_answer_share_terms_whatever_the_inflection() -> None:
    asked = set(terms("Which hotels were booked for the trips to Lisbon?"))
    assert asked & set(terms("The hotel booking for our trip to LISBON")) == {"hotel", "book", "trip", "lisbon"}


@pytest.mark.shows("A14-U+FDFA")
def test_a_memory_has_a_limited_number_of_term_keys() -> None:
    expanded = term_keys("a", "\u3313" * MAX_TERMS)
    assert len(expanded) == MAX_TERMS
    assert len(term_keys("a", "one two " * 1_000)) == 2_000


def test_term_keys_stay_the_same_for_ever() -> None:
    assert term_key("agent-1", "berlin") == 4_951_391_731_896_313_713
    assert term_keys("agent-1", "Berlin, BERLIN") == [term_key("agent-1", "berlin")] * 2


def test_keys_of_one_agent_never_match_those_of_another() -> None:
    text = " ".join(f"word{number}" for number in range(500))
    assert set(term_keys("a", text)).isdisjoint(term_keys("b", text))


def test_keys_fit_a_signed_64_bit_column_and_take_any_agent_and_text() -> None:
    keys = term_keys("ä:\ud800/" * 100, "one two \udfff three four five six seven eight nine ten")
    assert keys and all(-(2**63) <= key < 2**63 for key in keys)


def test_stemming_in_many_threads_gives_what_one_thread_gives() -> None:
    texts = [f"thread{number} happily running organisations{number} generously" for number in range(200)]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(terms, texts)) == [terms(text) for text in texts]


def test_idf_falls_with_frequency_and_is_never_negative() -> None:
    weights = [idf(frequency, 100) for frequency in range(101)]
    assert weights == sorted(weights, reverse=True)
    assert weights[1] == pytest.approx(math.log(1 + 99.5 / 1.5))
    assert weights[100] > 0
    assert idf(200, 100) == weights[100]
    assert idf(0, 0) >= 0
    assert idf(-3, 10) == idf(0, 10)


def weights(memory_count: int, background_share: float = 0.05) -> tuple[float, float]:
    """Returns the weights of an everyday and a rare word, each in one of `memory_count` memories."""
    statistics = LexicalStatistics(memory_count, 4.0, {1: 1, 2: 1}, background_share={1: background_share})
    return statistics.weight(1), statistics.weight(2)


def test_the_weight_of_a_word_counts_three_hundred_everyday_memories_as_the_agents_own() -> None:
    assert weights(30) == pytest.approx((idf(16, 330), idf(1, 330)))
    assert LexicalStatistics(30, 4.0, {}).max_weight() == pytest.approx(idf(0, 330))
    assert LexicalStatistics(30, 4.0, {1: 40, 2: -1}).weight(1) == pytest.approx(idf(30, 330))
    assert LexicalStatistics(30, 4.0, {1: 40, 2: -1}).weight(2) == pytest.approx(idf(0, 330))


def test_what_everyone_says_tells_less_and_a_large_store_knows_better_itself() -> None:
    shares = [common / rare for common, rare in map(weights, (10, 1_000, 100_000))]
    assert shares == sorted(shares)
    assert shares[0] < 0.6
    own = LexicalStatistics(1_000_000, 4.0, {1: 20_000}, background_share={1: 0.05})
    assert own.weight(1) == pytest.approx(idf(20_000, 1_000_000), rel=0.001)


def test_a_store_is_all_new_at_first_and_less_so_with_each_memory() -> None:
    background_weights = [LexicalStatistics(count, 4.0, {}).background_weight for count in (-1, 0, 30, 300, 100_000)]
    assert background_weights == [1.0, 1.0, pytest.approx(300 / 330), 0.5, pytest.approx(0.003, abs=0.0005)]


def test_bm25_is_the_formula_worked_out_by_hand() -> None:
    statistics = LexicalStatistics(memory_count=10, mean_length=4.0, document_frequency={1: 2, 2: 5})
    length_part = 1.2 * (0.25 + 0.75 * 5 / 4)
    first, second = statistics.weight(1), statistics.weight(2)
    by_hand = first * 2 * 2.2 / (2 + length_part) + second * 1 * 2.2 / (1 + length_part)
    assert Bm25([1, 2, 3, 1], statistics)([1, 1, 2, 9, 9]) == pytest.approx(by_hand)


def test_bm25_prefers_rare_terms_more_of_them_and_shorter_texts() -> None:
    statistics = LexicalStatistics(memory_count=100, mean_length=3.0, document_frequency={1: 1, 2: 60})
    assert Bm25([1, 2], statistics)([1, 7, 7]) > Bm25([1, 2], statistics)([2, 7, 7])
    assert Bm25([1], statistics)([1, 1, 7]) > Bm25([1], statistics)([1, 7, 7])
    assert Bm25([1], statistics)([1, 7]) > Bm25([1], statistics)([1, 7, 7, 7, 7, 7])


def test_bm25_without_common_terms_statistics_or_text_is_zero_or_finite() -> None:
    nothing = LexicalStatistics(memory_count=0, mean_length=0.0, document_frequency={})
    assert Bm25([1], nothing)([2]) == 0
    assert Bm25([], nothing)([]) == 0
    assert 0 < Bm25([1], nothing)([1]) < math.inf


def test_the_rarest_query_keys_are_taken_until_the_postings_pass_the_bound() -> None:
    frequency = {1: 900, 2: 3, 3: 50, 4: 3}
    assert select_query_keys([1, 2, 3, 4, 2], frequency, 100) == [2, 4, 3]
    assert select_query_keys([1, 2, 3, 4], frequency, 10_000) == [2, 4, 3, 1]
    assert select_query_keys([3, 2], frequency, 3) == [2]


def test_at_least_one_query_key_is_taken_and_unknown_ones_are_not() -> None:
    assert select_query_keys([1, 5], {1: 900}, 10) == [1]
    assert select_query_keys([5], {1: 900}, 10) == []
    assert select_query_keys([], {}, 10) == []


@pytest.mark.parametrize(
    ("meant", "written"),
    [("scaffold", "scafold"), ("warehous", "warehuos"), ("harbour", "harbourr"), ("invoic", "imvoic")],
)
def test_a_term_is_one_slip_away_from_its_misspelling(meant: str, written: str) -> None:
    assert meant in edits_at_distance_one(written)


@pytest.mark.parametrize("term", ["cat", "err_4071", "2026", "приве́т", "x" * 40])
def test_short_terms_identifiers_and_other_scripts_are_never_read_as_another(term: str) -> None:
    assert edits_at_distance_one(term) == []


def test_a_discounted_term_counts_its_share() -> None:
    statistics = LexicalStatistics(10, 2.0, {1: 1, 2: 1})
    full, discounted = Bm25([1, 2], statistics), Bm25([1, 2], statistics, discounts={2: 0.5})
    assert discounted([2, 3]) == pytest.approx(0.5 * full([2, 3]))
    assert discounted([1, 3]) == full([1, 3])
    assert discounted.weights([1, 2, 9]) == {1: full.weights([1])[1], 2: 0.5 * full.weights([2])[2], 9: 0.0}


TALKS = Path(__file__).resolve().parents[2] / "benchmarks" / "data" / "talks.jsonl"


def share(word: str) -> float:
    """The share of background documents that contain the word."""
    [term] = terms(word)
    return everyday_share(term)


@pytest.mark.parametrize("word", ["take", "took", "run", "running", "uses", "works", "got", "needs", "lives"])
def test_light_verbs_are_everyday_words_in_each_inflection(word: str) -> None:
    assert share(word) > 0.005


@pytest.mark.parametrize("word", ["metformin", "kubernetes", "lasagne", "Hartmann", "Priya"])
def test_what_tells_something_is_none(word: str) -> None:
    assert share(word) == 0.0


def test_a_share_never_passes_one_in_twenty() -> None:
    assert 0 < max(map(share, ["take", "use", "day", "people", "teacher"])) <= 0.05


def test_words_of_most_talks_are_everyday_words() -> None:
    talks = [json.loads(line) for line in TALKS.read_text(encoding="utf-8").splitlines()]
    held = Counter(term for talk in talks for term in {each for row in talk["memories"] for each in terms(row["text"])})
    common = [term for term, count in held.items() if count >= 7 and term.isalpha()]
    unknown = [term for term in common if not everyday_share(term)]
    assert len(unknown) <= 0.05 * len(common), unknown
