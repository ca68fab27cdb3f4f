"""Signs of the past: what surely asks for what held before, and, more, what does not."""

from __future__ import annotations

import pytest

from agentcore.memory.recall.looking_back import READ_CHARS, sign_of_the_past


@pytest.mark.parametrize(
    ("query", "sign"),
    [
        ("Who was my boss before Marit?", "before Marit"),
        ("Who was my boss before Marit Solberg came?", "before Marit Solberg"),
        ("Where did I live before?", "before"),
        ("What did we use before that?", "before that"),
        ("What was the rate limit before the change?", "before the change"),
        ("What was the port before we changed it?", "before we changed"),
        ("Who was my previous boss?", "previous"),
        ("Where did I previously live?", "previously"),
        ("What is the name of my former employer?", "former"),
        ("What was Twitter formerly called?", "formerly"),
        ("What is my old address?", "old"),
        ("Who used to be my boss?", "used to be"),
        ("Which gym did I say I used to visit?", "used to visit"),
        ("Where did Anna use to live?", "use to live"),
        ("Who was the owner at first?", "at first"),
        ("What was the budget originally?", "originally"),
        ("What was the original deadline?", "original"),
        ("What was my earlier address?", "earlier"),
        ("Who was my boss earlier?", "earlier"),
        ("Who is no longer on the team?", "no longer"),
        ("Which pills don't I take any more?", "any more"),
        ("Isn't Henrik my boss anymore?", "anymore"),
        ("Since when is Marit my boss?", "Since when"),
        ("How did my budget change?", "How did my budget change"),
        ("How has the rate limit changed over time?", "How has the rate limit changed over time"),
    ],
)
def test_a_query_that_asks_for_what_held_before_says_so(query: str, sign: str) -> None:
    assert sign_of_the_past(query) == sign


@pytest.mark.parametrize(
    "query",
    [
        "Who is my boss?",
        "Who is my boss now?",
        "Who was my boss?",
        "What did I eat before lunch?",
        "What must be done before Marit arrives?",
        "What was due before Friday?",
        "What was planned before March?",
        "Call me before 5 pm.",
        "Where did I put the keys before I left?",
        "What should I know before it starts?",
        "Am I used to the noise?",
        "Are we used to working late?",
        "Has the cat got used to it?",
        "Have they got used to being alone?",
        "Which key is used to sign tokens?",
        "Are they used to sign tokens?",
        "What tool did we use to deploy?",
        "Which knife did I say I used to cut the bread?",
        "Which script have we used to deploy?",
        "Earlier today I bought milk.",
        "I got up earlier than Anna.",
        "Is there an earlier train?",
        "Was it love at first sight?",
        "Show the previous message.",
        "Summarise our previous conversation.",
        "As previously agreed, book the room.",
        "Which of them, the former or the latter?",
        "How old is Anna?",
        "Who is my old friend from Bergen?",
        "Where is Bruno originally from?",
        "Who painted the original?",
        "What do I do when the app no longer starts?",
        "Do you have any more ideas?",
        "What more can I do?",
        "I can't any more.",
        "I have lived here since May.",
        "How did you change the tyre?",
        "How do I change my password?",
        "What does Anna know about the change?",
        "",
    ],
)
def test_what_only_looks_like_it_changes_nothing(query: str) -> None:
    assert sign_of_the_past(query) is None


def test_a_long_prompt_speaks_of_too_much() -> None:
    assert sign_of_the_past("Who was my previous boss? " + "x" * READ_CHARS) is None
