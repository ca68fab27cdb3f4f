"""What needs no memory, and above all what does."""

from __future__ import annotations

import pytest

from agentcore.memory.language.gate import EMPTY, OPEN, PERSONAL, SMALL_TALK, TOOL, Gate, gate

SMALL = """
hi
Hello!
hey there
Good morning everyone
thanks!
Thank you so much for your help
thx
ok great
OK.
cool, thanks
perfect
got it
sounds good
yes
no
yep, sure
bye, see you tomorrow
Have a nice day!
How are you?
You're welcome
lol
Guten Morgen!
Merci beaucoup
Hi! How are you doing today?
yes please
"""
TOOLS = """
run the tests
Run all the unit tests now
please run the linter
can you run the test suite?
run npm install
execute pytest -q tests/unit
git status
ls -la
list the files in this directory
translate this to French
Translate the following sentence into German
translate "good morning" to Spanish
how do you say 'thank you' in Japanese?
convert 5 miles to km
100 usd to eur
how many ounces are in a pound?
what is 17 * 23?
12 + 30 =
calculate 15% of 80
what's the square root of 81
what time is it in Tokyo?
what day is it today
what's today's date?
what's the weather like in Paris?
set a timer for 10 minutes
flip a coin
generate a random password
format this JSON
count the words in this text
Hi, can you translate this to French?
ok, run the tests
"""
PERSONAL_QUESTIONS = """
hi, what did we decide about the budget?
what is my favourite colour?
explain our deployment process
What did I say about the flat?
do you remember the name of the dentist
remind me of the meeting
did we already book the flight?
run the tests again
run the same tests as before
translate it as before into French
convert my salary to euros
what is the capital of my home country?
explain TCP slow start as we discussed
hello again, where were we?
what did she say?
when is his birthday?
who told them about it
last time it worked, why?
what was the previous port?
continue
where did we leave off
tell me what I like
what did you suggest for dinner?
which one did you recommend earlier?
ok, and what about my visa?
what have I told you about my sister?
what is your name?
can you help me convert 5 miles to km
the usual, please
I prefer tea
What's the weather like in my city?
how do I deploy?
thanks! Where did we put the keys?
yes, and which of them was cheaper?
translate our slogan to French
what happened yesterday?
the same as yesterday
is the other one still open?
give me the details
"""
OPEN_QUESTIONS = """
what is the capital of France?
thanks, and which port was it?
what is the budget?
what is the deadline of the project?
explain the deployment process
explain the mutex
who is Caroline?
what is Zephyr?
when is the wedding?
how much?
and in euros?
why?
what about Lisbon?
the other
what's the weather?
what's the date?
555-1234
2023-05-07
24/7
commit the changes
deploy to production
write an email to Anna
book a table for two
recommend a restaurant
order the groceries
play some music
summarize this article
rewrite this email
what happened in Paris?
which database is used?
who wrote the report?
what is the capital of Zephyr?
how many tests are there?
how long does the build take?
run the migration
make dinner plans
cat food brand
translate the contract into French
what should be done next?
error E1042
kubectl rollout restart payments
Was hat Anna gesagt?
Hi, Anna here
again
what is a candidate?
what is the schema?
how does the cache work?
so what's the plan
where is the key
passport
open the door
thank you, that helps with the flat
how hot is the water?
how tall is the tower?
what is the height of the tower?
when did the revolution end?
how old is this empire?
how far is the lake from Berlin?
what is the cycle time in Berlin?
what is the difference between the galaxy and the system?
who is Darwin?
what color is the light?
the value of pi in the report
search for the invoice
"""


def listed(text: str) -> list[str]:
    return [line for line in text.splitlines() if line]


@pytest.mark.parametrize(("query", "reason"), [
    *((query, SMALL_TALK) for query in listed(SMALL)), *((query, TOOL) for query in listed(TOOLS)),
    ("", EMPTY), ("\U0001f44d\U0001f389", EMPTY), ("?!", EMPTY),
])
def test_what_shows_that_it_needs_no_memory_is_not_searched(query: str, reason: str) -> None:
    assert gate(query) == Gate(False, reason)


@pytest.mark.parametrize("query", listed(PERSONAL_QUESTIONS))
def test_what_speaks_of_people_or_of_the_past_is_always_searched(query: str) -> None:
    assert gate(query).needed


@pytest.mark.parametrize("query", listed(OPEN_QUESTIONS))
def test_what_may_be_in_memory_is_searched(query: str) -> None:
    assert gate(query).needed


def test_the_reason_says_what_brought_the_search() -> None:
    assert gate("hi, what did we decide about the budget?").reason == PERSONAL
    assert gate("what is the budget?").reason == OPEN


def test_one_sentence_that_needs_memory_is_enough() -> None:
    assert gate("Thanks! Run the tests. Then tell Anna.") == Gate(True, OPEN)
    assert gate("Thanks! Run the tests. What is my name?").reason == PERSONAL
    assert gate("Thanks! Run the tests.") == Gate(False, TOOL)


def test_a_long_text_is_always_searched() -> None:
    assert gate("thanks " * 100) == Gate(True, OPEN)
