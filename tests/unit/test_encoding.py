"""Encoding of a text into the fields of a record."""

# ruff: noqa: RUF001 - texts in many scripts

from __future__ import annotations

import hashlib

import pytest

from agentcore.memory.encoding import (
    EMBEDDED_CHARS,
    ENTITY_LIMIT,
    FACT_LIMIT,
    KEYWORD_LIMIT,
    SUMMARY_LIMIT_CHARS,
    action_outcomes,
    encode,
    interaction_text,
)

STORY = """
We moved the launch of Falcon to 14 March 2026 because the audit found three open issues. The audit was
run by Maria Silva. It was a long and rather tiring week for everybody in the office, with a lot of coffee.
The budget for the launch is now $48,000. People were happy in the end. Never deploy on a Friday without
asking Maria first. I think the weather might get better next week, who knows. Ticket OPS-311 tracks the
migration from MySQL to PostgreSQL 18.
"""


def test_the_summary_keeps_the_sentences_that_say_most_in_their_order() -> None:
    summary = encode(STORY).summary
    assert summary.index("14 March 2026") < summary.index("$48,000") < summary.index("Never deploy")
    assert "weather" not in summary and "coffee" not in summary
    assert len(summary) <= 0.4 * len(STORY.strip())


@pytest.mark.parametrize(
    "content", ["I live in Oslo.", "yes", "42", "👍", "- milk", "Anna's flat, third floor, no lift and a lovely view"]
)
def test_a_short_single_sentence_is_its_own_summary(content: str) -> None:
    assert encode(content).summary == content


@pytest.mark.parametrize(
    ("content", "summary"),
    [
        ("Hi! I moved to Berlin.", "I moved to Berlin."),
        ("Was it late? The train to Ulm left at 9:40.", "The train to Ulm left at 9:40."),
        ("我住在柏林。我的预算是1200欧元。", "我的预算是1200欧元。"),
        ("Run it.\n```\nrm -r build\n```", "Run it."),
    ],
)
def test_two_sentences_are_cut_to_the_one_that_says_more(content: str, summary: str) -> None:
    assert encode(content).summary == summary


@pytest.mark.parametrize(
    "content",
    [
        "so we walked along the river, past the old mill, " * 6,
        "word " * 60,
        "x" * 500,
        "👍" * 200,
        "```\n" + "value = compute(value)\n" * 40 + "```",
        "- " + "a list item that goes on and on without any end at all " * 5,
        "a" * 121,
        "a" * 201,
    ],
)
def test_a_long_single_sentence_is_cut_at_a_clause_or_a_word(content: str) -> None:
    summary = encode(content).summary
    assert 0 < len(summary) < len(content.strip())
    assert " ".join(summary.split()) in " ".join(content.split())
    assert not summary.endswith((",", " "))


def test_the_summary_of_a_very_long_text_is_short() -> None:
    assert len(encode(STORY * 40).summary) <= SUMMARY_LIMIT_CHARS


def test_facts_are_statements_about_somebody_or_something_word_by_word() -> None:
    facts = encode(STORY).facts
    assert "The audit was run by Maria Silva." in facts
    assert "The budget for the launch is now $48,000." in facts
    assert "Never deploy on a Friday without asking Maria first." in facts
    assert "People were happy in the end." not in facts


@pytest.mark.parametrize(
    "content",
    [
        "I'm allergic to peanuts.",
        "My sister lives in Oslo",
        "We decided to use PostgreSQL.",
        "Never call me before nine.",
        "Please answer in metric units.",
        "The rent is 1,150 euros a month.",
        "User: I prefer window seats.",
        "Done: 19:30 on Friday under Keller, reference R-8841.",
        "Meine Schwester wohnt in Oslo.",
        "我对花生过敏！",
    ],
)
def test_preferences_states_numbers_decisions_and_rules_are_facts(content: str) -> None:
    assert encode(content).facts == [content.removeprefix("User: ")]


@pytest.mark.parametrize(
    "content",
    [
        "Where do I live?",
        "Nice weather!",
        "That's great, Mel!",
        "Here is what I found in 2026:",
        "Some random words here and there",
        "```\nI = 5\nmy = 7\n```",
        "Action: I called the 3 shops",
        "I " + "really " * 80 + "like it.",
        "User: ?",
    ],
)
def test_questions_chatter_headings_and_code_are_no_facts(content: str) -> None:
    assert encode(content).facts == []


def test_entities_come_once_whatever_their_case_with_the_speaker_first() -> None:
    encoded = encode("we saw ANNA, then Anna and Ben in Ulm. Ulm is small.", speaker="Maria Silva")
    assert encoded.entities == ["Maria Silva", "ANNA", "Ben", "Ulm"]


@pytest.mark.parametrize("role", ["user", "Assistant", " agent ", "", None])
def test_a_role_is_no_name(role: str | None) -> None:
    encoded = encode("we saw Anna", speaker=role)
    assert encoded.entities == ["Anna"]
    assert encoded.embedding_text == "we saw Anna"


def test_a_named_speaker_stands_in_the_text_to_embed() -> None:
    assert encode("I like tea.", speaker="Maria").embedding_text == "Maria: I like tea."


def test_keywords_are_the_words_said_most_without_those_that_say_nothing() -> None:
    keywords = encode("The café budget! It's the café's budget, you know; a budget of ERR_42 and 1,200.").keywords
    assert keywords == ["budget", "café", "err_42", "1,200"]


def test_all_lists_are_bounded() -> None:
    encoded = encode("".join(f"I met Person{number} in Town{number} on day {number}. " for number in range(200)))
    assert len(encoded.entities) == ENTITY_LIMIT
    assert len(encoded.facts) == FACT_LIMIT
    assert len(encoded.keywords) == KEYWORD_LIMIT
    assert len(encode("long " * 10_000).embedding_text) == EMBEDDED_CHARS


def test_the_hash_is_that_of_the_normal_form() -> None:
    encoded = encode("  Straße 5\n\nin  ULM ")
    assert encoded.content == "Straße 5\n\nin  ULM"
    assert encoded.normalised == "strasse 5 in ulm"
    assert encoded.content_hash == hashlib.sha256(b"strasse 5 in ulm").hexdigest()
    assert encode("STRASSE 5 in ulm").content_hash == encoded.content_hash
    assert encode("strasse 6 in ulm").content_hash != encoded.content_hash


def test_nothing_gives_nothing() -> None:
    encoded = encode(" \n ")
    assert (encoded.content, encoded.summary, encoded.entities, encoded.facts, encoded.keywords) == ("", "", [], [], [])


def test_an_interaction_reads_as_a_dialogue_with_what_was_done() -> None:
    text = interaction_text(
        " Book a table ",
        "Done.",
        ["looked it up", {"tool": "call", "args": {"number": 5, "to": ["Enzo", "Rome"]}, "result": "ok"}, "", {}],
        {"success": True, "note": None},
    )
    assert text.splitlines() == [
        "User: Book a table",
        "Agent: Done.",
        "Action: looked it up",
        "Action: call (number: 5, to: Enzo, to: Rome)",
        "Outcome: success: yes",
    ]


@pytest.mark.parametrize(
    ("query", "response", "expected"),
    [("Hi", None, "Hi"), (None, "Hello", "Hello"), (" ", "Hello", "Hello"), (None, None, "")],
)
def test_one_side_alone_needs_no_label(query: str | None, response: str | None, expected: str) -> None:
    assert interaction_text(query, response, [], None) == expected


@pytest.mark.shows("FR-1.2")
def test_each_action_is_paired_with_its_own_result_or_the_outcome_of_all() -> None:
    actions = ["restart", {"name": "deploy", "error": "E42"}, {"text": "looked around"}, {"result": "r"}, None]
    assert action_outcomes(actions, False) == [
        {"action": "restart", "outcome": "no"},
        {"action": "deploy", "outcome": "E42"},
        {"action": "text: looked around", "outcome": "no"},
        {"action": "result: r", "outcome": "r"},
    ]
    assert action_outcomes(["a"], "done") == [{"action": "a", "outcome": "done"}]


def test_a_deep_or_large_outcome_is_shortened_without_recursion() -> None:
    deep: object = "end"
    for _ in range(100_000):
        deep = [deep]
    assert interaction_text("q", None, [], deep) == "q\nOutcome: end"
    assert len(interaction_text(None, None, [], ["long text"] * 5_000)) <= 520
