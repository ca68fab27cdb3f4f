"""Contradiction rules: which facts a new memory supersedes, which coexist, and corrections."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TypedDict, Unpack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentcore.memory.columns import RuleColumns
from agentcore.memory.contradictions import judge, rule_input, subject_keys
from agentcore.memory.statements.statements import READ_CHARS, RuleInput, read

MARCH = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)

CHANGED = [
    ("The budget is 10,000 euros.", "The budget is now 12,000."),
    ("Atlas deadline: June 5", "Atlas deadline: June 19"),
    ("max_connections = 200", "max_connections = 300"),
    ("We use Postgres.", "We switched from Postgres to MySQL."),
    ("User lives in Paris.", "User now lives in Rome."),
    ("The user prefers dark mode.", "The user prefers light mode."),
    ("Alice lives in Boston.", "Alice moved to Denver."),
    ("I work at Amazon.", "I'm working at Google now."),
    ("I have two cats.", "I have three cats now."),
    ("John's car is a Ford.", "John's car is a Tesla now."),
    ("My manager is Dana.", "My manager is Lou."),
    ("The API endpoint is https://a.example/v1.", "The API endpoint is https://a.example/v2."),
    ("I live at 4 Elm Street.", "I live at 9 Oak Avenue now."),
    ("The wedding is on June 6.", "The wedding has been postponed to July 11."),
    ("Sam's phone number is 555-0101.", "Sam's phone number is 555-0199."),
    ("Leo is unemployed.", "Leo is employed now."),
    ("The timeout for Zeta is 30 seconds.", "The timeout for Zeta is now 2 minutes."),
    ("Zeta runs on port 8000.", "Zeta now runs on port 8100."),
    ("Zeta is hosted on AWS.", "Zeta is now hosted on GCP."),
    ("Zeta uses PostgreSQL 14.", "Zeta was upgraded from PostgreSQL 14 to PostgreSQL 16."),
    ("My desk is on floor 3.", "My desk is now on floor 5."),
    ("Kim's title is Engineer.", "Kim's title is Director."),
]

STANDING = [
    ("The deadline is Friday.", "The deadline is Monday."),
    ("Alice lives in Boston.", "Alice moved to Team Blue."),
    ("Alice lives in Boston.", "Alice moved to the marketing team."),
    ("The meeting is at 3pm.", "The meeting is at 4pm."),
    ("Max is allergic to peanuts.", "Max is now allergic to penicillin."),
    ("I speak Spanish.", "I speak Italian now."),
    ("My friend lives in Oslo.", "My friend lives in Rome."),
    ("My colleague's name is Ann.", "My colleague's name is Bob."),
    ("My son is 5.", "My son is 9."),
    ("The CTO of Acme is Ann.", "The CTO of Acme Labs is Bob."),
    ("The server has 8 cores.", "The server has 32 GB of memory."),
    ("I have two cats.", "I have three dogs."),
    ("The shop opens at 9.", "The shop opens at 10 on Sundays."),
    ("The shop opens at 9 on Mondays.", "The shop opens at 10 on Sundays."),
    ("I run 5 km.", "I run 10 km on weekends."),
    ("Our team uses Slack.", "Our team uses Jira."),
    ("We use Slack.", "We use Jira now."),
    ("The ticket price is 40 euros for adults.", "The ticket price is 20 euros for children."),
    ("My brother is a doctor.", "My brother is a father."),
    ("My favourite song is Hallelujah.", "My favourite songs are Hallelujah and Yesterday."),
    ("The temperature is 20 degrees.", "The temperature is 25 degrees."),
    ("The deploy takes 5 minutes.", "The deploy takes 7 minutes."),
    ("Version 2 supports Linux.", "Version 2 supports Windows now."),
    ("My password is hunter2.", "My password for the bank is hunter3."),
    ("The report is due on Friday.", "The slides are due on Monday."),
    ("I am in Paris.", "I am in Rome."),
    ("The API returns 200.", "The API returns 404."),
    ("I drink coffee in the morning.", "I drink tea in the morning now and then."),
    ("I'm reading Dune.", "I'm reading Emma."),
    ("My appointment is on Monday.", "My appointment is on Friday."),
    ("My flight is at 9:40.", "My flight is at 18:05."),
    ("My birthday party is on May 4.", "My birthday party is on May 7."),
    ("My exam is on June 3.", "My exam is on June 20."),
    ("Today's special is soup.", "Today's special is curry."),
    ("This month's target is 40.", "This month's target is 60."),
    ("The next release is on June 3.", "The next release is on July 8."),
    ("Our next meeting is on Tuesday.", "Our next meeting is on Friday."),
    ("The winner of round 1 is Ana.", "The winner of round 2 is Bo."),
    ("The answer is 42.", "The answer is 17."),
    ("The total is 30 euros.", "The total is 55 euros."),
    ("The amount is 300 dollars.", "The amount is 120 dollars."),
    ("John's car is red.", "John's car is fast."),
    ("My sister's address is 3 Elm St.", "My address is 5 Oak St."),
    ("The table has 4 legs.", "The table has 6 drawers."),
    ("I like my job.", "I don't like my job."),
    ("My teacher is Mr. Smith.", "My teacher is Ms. Jones."),
    ("My contact at Acme is Lee.", "My contact at Beta is Kim."),
    ("I work at Amazon.", "I work at the office."),
    ("I work on Mondays.", "I work on Tuesdays."),
    ("My order is 3 apples.", "My order is 5 pears."),
    ("Room 4 is on floor 2.", "Room 5 is on floor 3."),
    ("I go to the gym at 7.", "I go to the pool at 8."),
    ("Our client is Acme.", "Our client is Beta."),
    ("Tom's daughter is 4.", "Tom's daughter is 7."),
    ("The rent for the Berlin flat is 900 euros.", "The rent for the Paris flat is 1400 euros."),
    ("Maria works at Siemens.", "Maria works at the Berlin office."),
    ("Maria works at Siemens.", "Maria works at Siemens Healthineers."),
    ("Our office is in Berlin.", "Our office is in Kreuzberg."),
    ("I live in Germany.", "I live in Munich."),
    ("I live in Portugal.", "I live in Lisbon."),
    ("Alice is based in California.", "Alice is based in San Francisco."),
    ("The event starts on Monday.", "The event starts at 10:00."),
    ("The user likes hiking.", "The user likes swimming."),
    ("The capital of the region is Metz.", "The capital of the country is Paris."),
    ("Sarah's role is engineer.", "Sarah's role on Apollo is reviewer."),
    ("My work email is a@x.example.", "My private email is b@y.example."),
    ("My mobile number is 0171 123456.", "My office number is 030 998877."),
    ("Paul owns a boat.", "Paul owns a cottage."),
    ("Paul has 3 children.", "Paul has 2 grandchildren."),
    ("The disk is 80 % full.", "The disk is 91 % full."),
    ("The tests take 4 minutes on CI.", "The tests take 2 minutes on my laptop."),
    ("My goal is to read more.", "My goal is to sleep more."),
    ("My plan is to visit Rome.", "My plan is to visit Bonn."),
    ("The issue is a memory leak.", "The issue is a race condition."),
    ("The reason is cost.", "The reason is speed."),
    ("The problem is now fixed.", "The problem is now documented."),
    ("John is now a father.", "John is now a manager."),
    ("John is at home.", "John is at work now."),
    ("The train is 5 minutes late.", "The train is 20 minutes late."),
    ("My name is Jo.", "My name is Joanna."),
    ("My language is Python.", "My language is German."),
    ("We ship to France.", "We ship to Spain now."),
    ("Ana reports to Lee.", "Ana reports weekly."),
    ("I'm a vegetarian.", "I'm a nurse now."),
    ("Nina is a nurse at Mercy.", "Nina is a mother now."),
    ("The library opens at 9:00.", "The library opens at 9."),
    ("I get up at 7.", "I get up at 9 on Sundays now."),
    ("Dr. Lee is my dentist.", "Dr. Kim is my doctor now."),
    ("The team lead is on vacation.", "The team lead is on call now."),
    ("Project Alpha uses Redis.", "Project Alpha uses Kafka now."),
    ("Server A runs Ubuntu.", "Server B runs Debian now."),
    ("My phone is an iPhone.", "My phone is broken now."),
    ("My car is a Golf.", "My car is in the garage now."),
    ("My car is a Golf.", "My car is now paid off."),
    ("The house is on Elm Street.", "The house is now painted blue."),
    ("The wedding is in Rome.", "The wedding is on June 6."),
    ("The wedding is in Rome.", "The wedding has been moved to June 6."),
    ("The limit is 10 per user.", "The limit is 100 per team."),
    ("The meeting was moved to Tuesday.", "The workshop was moved to Friday."),
    ("The price was lowered to 20 euros.", "The fee was lowered to 10 euros."),
    ("The salary is 4,000 euros net.", "The salary is 6,100 euros gross."),
    ("The budget is 10k.", "The budget is 10,000 euros."),
    ("The budget of Zeta is 10k.", "The budget of Zeta is 10,000 dollars."),
    ("The budget of Zeta is 10,000 euros.", "The budget of Zeta is 11,000 dollars."),
    ("My size is 42 in shoes.", "My size is 50 in jackets."),
    ("Emma's birthday is 3 May.", "Emma's birthday is 3 May 1990."),
    ("The deadline for Zeta is June.", "The deadline for Zeta is June 12."),
    ("The deadline for Zeta is Friday.", "The deadline for Zeta is 12 June."),
    ("The trip to Oslo is in May.", "The trip to Oslo is in June."),
    ("I'm on call this week.", "I'm not on call this week."),
    ("User: What port? Agent: The port is 80.", "User: What port? Agent: The port is 81."),
    ("I take the bus.", "I take the train now and then."),
    ("I take the bus.", "I take the car now."),
    ("I love Rome.", "I love Paris now."),
    ("My favourite team is Ajax.", "My favourite team right now in Spain is Betis."),
    ("The winner is Ana.", "The winner is Bo."),
    ("The speaker is Ana.", "The speaker is Bo."),
    ("The owner is Ana.", "The owner is Bo."),
    ("Zeta's status is blocked on legal.", "Zeta's status is blocked on infra."),
]

CORRECTIONS = [
    ("The meeting is on Tuesday.", "Sorry, I meant Wednesday."),
    ("Dinner with the investors is on Friday the 4th at Osteria Mario.", "Sorry, I meant the 11th."),
    ("The invoice for Kern is 1,200 euros and due on the 15th.", "Correction: 1,250."),
    ("The meeting is on Tuesday.", "Actually, the party is on Wednesday."),
    ("I have 3 kids.", "No, I have 2 cars."),
    ("I paid 30 euros for lunch.", "Actually, I paid 50 euros for dinner."),
    ("My son is 5.", "Actually my daughter is 7."),
    ("We need 5 chairs.", "No problem, 5 is fine, add 2 tables."),
    ("Call Anna at 5.", "Actually call Ben at 6."),
    ("Anna is tall.", "Actually Ben is tall."),
]


class Origin(TypedDict, total=False):
    speaker: str
    session_id: str
    task_id: str


def said(content: str, *, days: float = 0.0, minutes: float = 0.0, **values: Unpack[Origin]) -> RuleInput:
    """Returns a memory from March, or this much later."""
    return RuleInput(content, MARCH + timedelta(days=days, minutes=minutes), **values)


@pytest.mark.parametrize(("old", "new"), CHANGED)
@pytest.mark.shows("issue4-2-changed-facts")
def test_another_value_of_the_same_attribute_takes_the_place_of_the_first(old: str, new: str) -> None:
    assert judge(said(old), said(new, days=3)).relation == "superseding"


@pytest.mark.parametrize(("old", "new"), CHANGED)
def test_what_takes_a_place_is_found_by_its_subject(old: str, new: str) -> None:
    assert set(subject_keys(read(old))) & set(subject_keys(read(new)))


@pytest.mark.parametrize(("old", "new"), STANDING)
@pytest.mark.shows("issue4-2-changed-facts")
def test_what_only_looks_like_a_change_stands_beside_the_first(old: str, new: str) -> None:
    assert judge(said(old), said(new, days=40)).relation != "superseding"


@pytest.mark.parametrize(("old", "new"), CORRECTIONS)
def test_a_short_correction_supersedes_nothing(old: str, new: str) -> None:
    """It often changes one of several values without naming its attribute."""
    scope: Origin = {"session_id": "s", "speaker": "user"}
    assert judge(said(old, **scope), said(new, minutes=3, **scope)).relation != "superseding"


@pytest.mark.parametrize("old,new", [("The deadline is Friday.", "The deadline is Monday.")])
def test_what_has_no_name_is_the_same_thing_within_a_session_or_a_task_alone(old: str, new: str) -> None:
    assert judge(said(old), said(new, days=1)).relation == "possible"
    scopes: list[Origin] = [{"session_id": "s"}, {"task_id": "t"}]
    for scope in scopes:
        assert judge(said(old, **scope), said(new, days=1, **scope)).relation == "superseding"
    marked = "The deadline is now Monday."
    assert judge(said(old), said(marked, days=1)).relation == "superseding"
    assert judge(said(old, task_id="t"), said(marked, days=1, task_id="u")).relation != "superseding"


@pytest.mark.parametrize(
    "beside", ["I think {}", "Jan said {}", "If {} we are late.", "{} Is that right?", "Last year {}", "Maybe {}"]
)
def test_what_is_supposed_quoted_asked_or_past_states_nothing(beside: str) -> None:
    sentence = beside.format("the budget for Atlas is now 9,000 euros.")
    old = said("The budget for Atlas is 8,000 euros.")
    new = said(sentence if "Is that" not in beside else "Is the budget for Atlas now 9,000 euros?", days=1)
    assert judge(old, new).relation != "superseding"


def test_a_memory_that_says_more_than_the_changed_fact_keeps_its_place() -> None:
    old = said("The port of the gateway is 8080. Its certificates are renewed by hand.")
    assert judge(old, said("The port of the gateway is 9090.", days=1)).relation != "superseding"


def stated(content: str) -> RuleColumns:
    return RuleColumns(
        content=content,
        timestamp=MARCH,
        speaker=None,
        user_id=None,
        session_id=None,
        task_id=None,
        namespace=None,
        flagged=False,
    )


def test_an_answer_that_tells_more_keeps_its_exchange_in_its_place() -> None:
    courteous, telling = (
        rule_input(stated(f"User: My desk is on floor 3.\nAgent: {answer}"))
        for answer in ("Noted.", "Noted. The lift to floor 3 is broken.")
    )
    new = said("My desk is now on floor 5.", days=1)
    assert judge(courteous, new).relation == "superseding"
    assert judge(telling, new).relation != "superseding"


def test_an_exchange_with_actions_is_read_whole() -> None:
    content = "User: My desk is on floor 3.\nAgent: Noted.\nAction: book"
    assert rule_input(stated(content)).content == content


def test_of_a_long_text_nothing_is_read() -> None:
    assert read("The port of the gateway is 8080. " * (READ_CHARS // 20)).statements == ()


@given(st.text(max_size=200), st.text(max_size=200))
def test_any_two_texts_are_judged_and_equal_ones_are_the_same(one: str, other: str) -> None:
    assert judge(said(one), said(other, days=1)).relation in {"same", "near", "possible", "superseding", "none"}
    assert judge(said(one), said(one, days=1)).relation == "same"


@given(st.sampled_from(CHANGED))
def test_an_earlier_time_never_takes_the_place_of_a_later_one(pair: tuple[str, str]) -> None:
    old, new = pair
    assert judge(said(old, days=5), said(new)).relation != "superseding"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Zebra has note 0 of two.", "Zebra has note 1 of two."),
        ("Zebra has note 3.", "Zebra has note 4 now."),
        ("My team lives on page 3.", "My team lives on page 4."),
    ],
)
def test_a_number_that_says_which_one_is_no_value(old: str, new: str) -> None:
    assert judge(said(old), said(new, days=1)).relation != "superseding"
