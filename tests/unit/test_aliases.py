"""What a text makes evident as two forms of one thing, and what only looks like it."""

from __future__ import annotations

import pytest

from agentcore.memory.aliases import (
    MAX_LEARNT,
    MAX_OTHER_FORMS,
    Alias,
    checked,
    expansions,
    forms,
    keyed,
    learn,
)
from agentcore.memory.lexical import OtherForm, phrase, phrase_key, term_key

AGENT = "ada"


def key(form: str) -> int:
    return phrase_key(AGENT, phrase(form))


def pairs(text: str) -> list[tuple[str, str]]:
    return [(each.alias, each.means) for each in learn(text)]


@pytest.mark.parametrize(("text", "alias", "means"), [
    ("We run Kubernetes (k8s) in Frankfurt.", "k8s", "Kubernetes"),
    ("Our k8s (Kubernetes) is down.", "k8s", "Kubernetes"),
    ("Internationalization (i18n) is hard.", "i18n", "Internationalization"),
    ("The Key Performance Indicator (KPI) fell.", "KPI", "Key Performance Indicator"),
    ("the **Key Performance Indicator (KPI)** fell", "KPI", "Key Performance Indicator"),
    ("Each KPI (key performance indicator) fell.", "KPI", "key performance indicator"),
    ("over the Hypertext Transfer Protocol (HTTP)", "HTTP", "Hypertext Transfer Protocol"),
    ("in the United States of America (USA)", "USA", "United States of America"),
    ("The Bank of England (BoE) raised it.", "BoE", "Bank of England"),
    ("the American Animal Hospital Association (AAHA)", "AAHA", "American Animal Hospital Association"),
    ("plain JavaScript (JS) only", "JS", "JavaScript"),
    ("deep Q-networks (DQN) learn", "DQN", "deep Q-networks"),
    ("Electromyography (EMG) hurts.", "EMG", "Electromyography"),
    ("Robert, also known as Bob, lives in Kent.", "Bob", "Robert"),
    ("Yesterday Robert, also known as Bob, came by.", "Bob", "Robert"),
    ("My sister Elizabeth, nicknamed Liz, moved.", "Liz", "Elizabeth"),
    ("Elizabeth Ann of York (a.k.a. Liz) moved.", "Liz", "Elizabeth Ann of York"),
    ("Bob (short for Robert) lives here.", "Bob", "Robert"),
    ("The staging cluster aka the zoo is down.", "zoo", "staging cluster"),
    ("We call the staging cluster 'the zoo'.", "zoo", "staging cluster"),
    ("Everyone jokingly calls our printer \u201cold faithful\u201d.", "old faithful", "printer"),
    ("The staging cluster, which we call the zoo, is down.", "zoo", "staging cluster"),
    ("\"Project Heron\", also called \"the bird\", ships.", "bird", "Project Heron"),
    ("Restart prod (short for production) tonight.", "prod", "production"),
    ("prod is short for production and must stay up.", "prod", "production"),
    ("SLA stands for service level agreement in our contracts.", "SLA", "service level agreement"),
    ("MTTR is the abbreviation for mean time to recovery.", "MTTR", "mean time to recovery"),
    ("Meta (formerly known as Facebook) fell.", "Facebook", "Meta"),
])
def test_a_pair_that_the_text_makes_evident_is_learnt(text: str, alias: str, means: str) -> None:
    assert pairs(text) == [(alias, means)]


def test_an_abbreviation_in_the_plural_is_learnt_in_the_singular_too() -> None:
    means = "Large Language Models"
    assert pairs(f"{means} (LLMs) are slow.") == pairs(f"LLMs ({means}) are slow.") == [
        ("LLMs", means), ("LLM", means)]


@pytest.mark.parametrize("text", [
    "See the appendix (see below).", "We met (2023) in May (optional).",
    "The plan (draft) went to Maria (MA).",
    "He paid 20 EUR (VAT included).", "The error (ERR_4071) came back.", "The report (PDF) is there.",
    "Anna went to the market (AM).", "a nice day in May (NY)", "The meeting is at ten (CET).",
    "We call it 'the zoo'.", "We called Anna Smith yesterday.", "He is also known as a good cook.",
    "This stands for freedom.", "The tree stands for deer hunting were sold.",
    "She, also known as the boss, left.", "call foo (int x) and bar (k8s)",
    "Kubernetes (k9s) is another tool.", "We moved to Ghent (Belgium).", "Robert (Bob) and Ann (my aunt)",
    "```\nKubernetes (k8s)\n```", "Information technology (IT) is a stop word.",
    "We call when we need 'help'.", "also known as", "(k8s)", "Acme (ACME)", "Zoo, also known as the zoo",
    "They, who work late, also known as everybody in this long list of words, left.",
])
def test_what_only_looks_like_a_pair_is_left_alone(text: str) -> None:
    assert pairs(text) == []


def test_the_first_meaning_of_an_alias_stands_and_their_number_is_bounded() -> None:
    twice = "An access control list (ACL) is no anterior cruciate ligament (ACL)."
    assert pairs(twice) == [("ACL", "access control list")]
    many = " ".join(f"Box{number}, also known as Crate{number}." for number in range(MAX_LEARNT + 9))
    assert len(learn(many)) == MAX_LEARNT


@pytest.mark.parametrize(("alias", "means", "expected"), [
    ("the zoo", " our 'staging cluster'. ", Alias("zoo", "staging cluster")),
    ("zoo", "Zoo", None), ("it", "information technology", None), ("zoo", "", None),
    ("one", "two three four five six seven eight", None),
])
def test_a_pair_is_two_forms_that_can_be_looked_up(alias: str, means: str, expected: Alias | None) -> None:
    assert checked(alias, means) == expected


def test_a_query_asks_for_its_words_their_parts_and_their_runs() -> None:
    asked = forms(AGENT, "Restart the kubernetes-cluster of k8s")
    assert {key("restart"), key("kubernetes"), key("k8s"), key("kubernetes-cluster of k8s")} <= set(asked)
    assert asked[key("k8s")] == [term_key(AGENT, term) for term in ("k8s", "k", "8", "s")]
    assert key("restart k8s") not in asked


def test_a_form_is_the_same_whatever_its_case_ending_and_stop_words() -> None:
    assert key("Key Performance Indicators") == key("the key performance indicator")
    assert key("Zoë") == key("zoe")
    assert key("cluster staging") != key("staging cluster")


def known(written: str, other: str, *, is_alias: bool = True, is_set: bool = False) -> OtherForm:
    return OtherForm(key(written), written, other, is_alias, is_set)


def test_a_form_in_the_query_brings_the_other_and_nothing_that_is_there_already() -> None:
    asked = forms(AGENT, "k8s in the zoo, that is on the staging cluster")
    found = expansions(AGENT, asked, [known("zoo", "staging cluster"), known("k8s", "Kubernetes")])
    [only] = found
    assert (only.written, only.other, list(only.other_keys)) == ("k8s", "Kubernetes", [key("Kubernetes")])


def test_what_the_caller_set_overrules_what_memories_tell_of_the_alias() -> None:
    asked = forms(AGENT, "ACL")
    told = [known("ACL", "anterior cruciate ligament", is_set=True), known("ACL", "access control list"),
            known("ACL", "Leonard", is_alias=False)]
    assert [each.other for each in expansions(AGENT, asked, told)] == [
        "anterior cruciate ligament", "Leonard"]


def test_the_number_of_other_forms_is_bounded_and_the_same_one_counts_once() -> None:
    asked = forms(AGENT, "zoo")
    same = [known("zoo", each) for each in ("Barge", "barges", "the barge")]
    assert len(expansions(AGENT, asked, same)) == 1
    many = [known("zoo", f"barge number {number}") for number in range(30)]
    assert len(expansions(AGENT, asked, many)) == MAX_OTHER_FORMS


def test_a_pair_is_stored_with_the_keys_that_a_query_finds_it_by() -> None:
    assert keyed(AGENT, Alias("KPI", "key performance indicator")) == {
        "alias": "KPI", "means": "key performance indicator",
        "alias_key": key("kpi"), "means_key": key("Key Performance Indicators"),
    }
