"""Query understanding: expansion, splitting, intent, and questions about the present."""

from __future__ import annotations

import pytest

from agentcore.memory.params.memories import Turn
from agentcore.memory.query import KEY_TERMS, MAX_QUERIES, asks_for_time, asks_only_for, complete, split

HISTORY = [
    Turn(role="user", content="We are planning a vacation on Hawaii with 4 friends"),
    Turn(role="assistant", content="Nice! Waikiki?"),
    Turn(role="user", content="I really like the hotel at the beach"),
]


@pytest.mark.parametrize(
    "query",
    [
        "how much?",
        "and then?",
        "and the other one?",
        "why did it happen?",
        "what about the price?",
        "budget?",
        "which one was cheaper",
        "Really?",
        "when does it start again?",
    ],
)
@pytest.mark.shows("issue3-4-vague")
def test_a_query_that_says_too_little_is_followed_by_key_terms_of_the_turns(query: str) -> None:
    text = complete(query, HISTORY)
    assert text.startswith(f"{query} hotel beach ")
    assert {"Hawaii", "4", "vacation"} <= set(text.split())
    assert {"really", "Nice", "Waikiki?", "Waikiki"}.isdisjoint(text.split())


@pytest.mark.parametrize(
    "query",
    [
        "how much is the rent of the flat",
        "What is my favourite colour?",
        "Lisbon flat deposit",
        "When does the conference in Madrid start?",
    ],
)
def test_a_query_that_says_enough_stays(query: str) -> None:
    assert complete(query, HISTORY) == query


def test_without_turns_of_the_user_a_query_stays() -> None:
    assert complete("how much?", []) == "how much?"
    assert complete("how much?", [Turn(role="assistant", content="The flat in Lisbon")]) == "how much?"


def test_what_the_query_holds_is_not_said_again() -> None:
    turns = [Turn(content="The hotels on Hawaii, the Hawaii hotel, HOTELS!")]
    assert complete("and the hotel?", turns) == "and the hotel? Hawaii"


def test_names_and_numbers_go_before_other_words_and_the_terms_are_bounded() -> None:
    words = "apples pears plums grapes melons from Greengrocer Miller for 12 euros"
    assert complete("how much?", [Turn(content=words)]).split()[2:5] == ["Greengrocer", "Miller", "12"]
    turns = [Turn(content=f"alpha{n} beta{n} gamma{n} delta{n} epsilon{n} zeta{n}") for n in range(9)]
    added = complete("why?", turns).split()[1:]
    assert len(added) == KEY_TERMS
    assert added[0] == "alpha8"


@pytest.mark.parametrize(
    ("query", "phrases", "alone"),
    [
        ("What happened last week?", ["last week"], True),
        ("What did I do on 20 November?", ["20 November"], True),
        ("What is the weather like today?", ["today"], False),
        ("Who won the World Cup in 2018?", ["2018"], False),
        ("What happened?", [], False),
    ],
)
def test_a_query_for_a_time_alone_has_no_subject(query: str, phrases: list[str], alone: bool) -> None:
    assert asks_only_for(query, phrases) == alone


def test_a_short_prompt_is_one_query() -> None:
    for prompt in ("What is the budget?", "Hi. Which port?", ""):
        assert split(prompt) == [prompt]


@pytest.mark.shows("issue3-4-prompts")
def test_a_long_prompt_becomes_its_telling_sentences_in_order() -> None:
    prompt = (
        "Hello! I hope you are well. "
        "Yesterday the payment service of the Lisbon team failed during the rollout. "
        "Thanks! Which configuration did Anna recommend for the retry queue? It was late. "
        "The customer expects a report with the causes and the costs by Friday evening. "
        "Who approved the change of the database timeout last week, and why was it necessary?"
    )
    queries = split(prompt)
    assert queries == [
        "Yesterday the payment service of the Lisbon team failed during the rollout.",
        "Which configuration did Anna recommend for the retry queue?",
        "The customer expects a report with the causes and the costs by Friday evening.",
        "Who approved the change of the database timeout last week, and why was it necessary?",
    ]


@pytest.mark.shows("issue3-4-prompts")
def test_of_code_and_logs_the_errors_and_the_names_are_left() -> None:
    prompt = (
        "Please look at this failure of the nightly import and tell me what we changed there before.\n\n"
        "```python\nfor row in rows:\n    total = total + loadCustomer(row.customer_id)\n"
        "raise ImportFailed('no such customer 4711')\nValueError: customer 4711 was refused\n```\n"
        "2026-05-01 10:00:00 INFO worker started with 4 threads\n"
        "2026-05-01 10:00:03 ERROR worker lost the connection to warehouse-7\n"
        '  File "/srv/app/importer.py", line 12, in load\n'
        "    at com.example.Importer.load(Importer.java:12)\n"
    )
    queries = split(prompt)
    assert queries[0].startswith("Please look at this failure")
    assert "ValueError: customer 4711 was refused" in queries
    assert any("loadCustomer" in query and "row.customer_id" in query for query in queries)
    assert any("warehouse-7" in query for query in queries)
    for dropped in ("worker started", "importer.py", "java", "for row in rows"):
        assert not any(dropped in query for query in queries)


def test_the_queries_are_bounded_and_questions_stay() -> None:
    facts = [f"Fact number {n} is about subject{n} and matter{n} of department{n}." for n in range(30)]
    queries = split(" ".join([*facts, "Which department pays?"]))
    assert len(queries) == MAX_QUERIES
    assert queries[-1] == "Which department pays?"


def test_a_long_prompt_of_nothing_telling_is_its_own_query() -> None:
    prompt = "ok. " * 100
    assert split(prompt) == [prompt]


@pytest.mark.parametrize(
    ("query", "asks"),
    [
        ("When did we move?", True),
        ("what day is the party", True),
        ("how long ago was that?", True),
        ("How many guests came?", False),
        ("Who called?", False),
        ("What did I say when we met?", False),
        ("Where is the key?", False),
        ("the budget", False),
        ("", False),
    ],
)
def test_the_first_question_word_decides_whether_a_query_asks_for_a_time(query: str, asks: bool) -> None:
    assert asks_for_time(query) is asks
