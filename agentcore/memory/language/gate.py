"""Decides whether a question needs memory; in doubt it does. Pure; the word lists are English."""

from __future__ import annotations

import re
from dataclasses import dataclass

from agentcore.memory.language.rejection import is_filler, is_small_talk
from agentcore.memory.language.text import normal_form, sentences, words

JUDGED_CHARS = 300

EMPTY = "empty: it holds no words"
SMALL_TALK = "small talk: it asks nothing"
TOOL = "tool request: it says all that is needed"
PERSONAL = "personal: it speaks of people or of what was before"
OPEN = "open: nothing shows that memory is not needed"

_ANSWERING = "yes no yeah yep yup nope sure right exactly correct true fine agreed okay ok please"
_ANSWERS = frozenset(_ANSWERING.split())
_OPENER = re.compile(
    r"(?:(?:hi|hello|hey|thanks|thank you|ok|okay|great|cool|please|so|well|and|now|also|quick question)"
    r"(?: there)?[,.!:]* )*"
    r"(?:(?:can|could|would|will) you (?:please |kindly |just |quickly )*|please |just |quickly )*"
    r"(?:(?:tell me|show me|do you know|i want to know|i'd like to know|i would like to know)"
    r" (?=what|who|where|when|how|why|which))?"
)
_PERSONAL = re.compile(
    r"\b(?:i|i'm|i've|i'd|i'll|me|my|mine|myself|we|we're|we've|we'd|we'll|us|our|ours|ourselves|he|she|him"
    r"|his|her|hers|they|them|their|theirs|remember|remembered|recall|remind|forgot|forgotten|again|before"
    r"|earlier|previous|previously|last|yesterday|ago|usual|usually|already|still|always|same|so far"
    r"|back then|yet|favou?rite|prefer|preferred|your|did you|have you|the other|another|continue|resume"
    r"|go on|left off|you (?:said|told|mentioned|suggested|recommended|promised))\b"
)
_LANGUAGE = (
    r"(?:english|french|german|spanish|italian|portuguese|dutch|polish|russian|ukrainian|turkish|arabic|hebrew"
    r"|hindi|chinese|mandarin|japanese|korean|vietnamese|thai|greek|latin|swedish|norwegian|danish|finnish|czech)"
)
_UNIT = (
    r"(?:miles?|km|kilomet(?:er|re)s?|met(?:er|re)s?|m|cm|mm|centimet(?:er|re)s?|inch(?:es)?|feet|foot|ft|yards?"
    r"|pounds?|lbs?|kg|kilograms?|kilos?|grams?|g|ounces?|oz|lit(?:er|re)s?|gallons?|cups?|pints?|celsius"
    r"|fahrenheit|kelvin|degrees (?:celsius|fahrenheit)|usd|eur|gbp|dollars?|euros?|hours?|minutes?|seconds?"
    r"|days?|weeks?|bytes?|kb|mb|gb|tb|mph|kmh|km/h|knots?|acres?|hectares?)"
)
_NUMBER = r"[-+]?\d[\d.,]*"
_OPERATOR = (
    r"(?: ?[+*^×÷] ?| [-/x] | ?(?:%|percent) of | plus | minus | times | divided by | multiplied by"  # noqa: RUF001
    r"| to the power of )"
)
_TEXT = (
    r"(?:this|that|it|these|the following|the above)"
    r"(?: (?:text|sentence|paragraph|phrase|word|json|xml|file|list))?"
)
_QUOTED = r"(?:\"[^\"]*\"|'[^']*')"
_HOW_MUCH = r"(?:what(?:'s| is) |calculate |compute |convert |how much is )?"
_TOOL_REQUESTS = (
    r"(?:run|rerun|re-run|execute) (?:all )?(?:the )?(?:unit |integration |full |whole |entire )?"
    r"(?:tests?|test suite|linter|formatter|type checker|build)(?: now)?",
    r"(?:run|execute) (?:npm|yarn|pip|git|make|pytest|cargo|docker|mypy|ruff)(?: [\w./=:-]+){0,5}",
    r"git (?:status|log|diff|pull|fetch|stash)|ls(?: -\w+)?|pwd",
    r"list (?:all )?(?:the )?files(?: in (?:this|the current|the) (?:directory|folder|repo|repository))?",
    rf"translate (?:{_TEXT}|{_QUOTED}) (?:from {_LANGUAGE} )?(?:in)?to {_LANGUAGE}",
    rf"how do you say (?:{_QUOTED}|\w+) in {_LANGUAGE}",
    rf"{_HOW_MUCH}{_NUMBER} ?°?(?:[cf]|{_UNIT}) (?:in)?(?:to )?(?:[cf]|{_UNIT})",
    rf"how many {_UNIT} (?:are |is )?(?:there )?(?:in|per) (?:an? |one |{_NUMBER} ?)?{_UNIT}",
    rf"{_HOW_MUCH}{_NUMBER}(?:{_OPERATOR}{_NUMBER})+(?: ?=)?",
    rf"{_HOW_MUCH}(?:the )?square root of {_NUMBER}",
    r"what time is it(?: now| right now)?(?: in [a-z ]{2,30})?|what(?:'s| is) the (?:current )?time",
    r"what(?:'s| is) (?:today's date|the date today|the current date)|what day is (?:it|today)(?: today)?",
    r"what year is it(?: now)?",
    r"(?:what(?:'s| is) the )?weather (?:forecast )?(?:like )?(?:today |tomorrow |now )?in [a-z ]{2,30}",
    rf"set (?:a |an )?(?:timer|alarm) (?:for|at) {_NUMBER}(?: ?(?:{_UNIT}|am|pm))?",
    r"flip a coin|roll (?:a|one|two) (?:die|dice|d\d+)|pick a random number(?: between \d+ and \d+)?",
    r"generate (?:a )?(?:new )?(?:random )?(?:uuid|guid|number|string|password)(?: (?:of|with) \d+ \w+)?",
    rf"(?:format|pretty-print|pretty print|validate|minify|sort|reverse) {_TEXT}",
    rf"count the (?:words|characters|letters|lines) (?:in|of) {_TEXT}",
    rf"(?:base64|url)[- ]?(?:encode|decode) {_TEXT}",
)
_TOOLS = re.compile("|".join(f"(?:{pattern})" for pattern in _TOOL_REQUESTS))


@dataclass(frozen=True, slots=True)
class Gate:
    """Whether memory is needed, and why or why not, in a short sentence for the receipt."""

    needed: bool
    reason: str


def gate(query: str) -> Gate:
    """Returns whether a question needs memory: any sentence that may need it brings the search."""
    if len(query) > JUDGED_CHARS:
        return Gate(True, OPEN)
    if not words(query):
        return Gate(False, EMPTY)
    reasons = [_reason(sentence) for sentence in sentences(query)]
    needed = [reason for reason in reasons if reason in (PERSONAL, OPEN)]
    if needed:
        return Gate(True, needed[0])
    return Gate(False, TOOL if TOOL in reasons else SMALL_TALK)


def _reason(sentence: str) -> str:
    if _is_acknowledgement(sentence):
        return SMALL_TALK
    plain = normal_form(sentence).replace("\u2019", "'").rstrip(" .!?\u2026")
    asked = plain[_opener_end(plain) :]
    if _PERSONAL.search(asked):
        return PERSONAL
    return TOOL if _TOOLS.fullmatch(asked) else OPEN


def _is_acknowledgement(sentence: str) -> bool:
    said = words(sentence)
    return _ANSWERS.issuperset(said) or (is_small_talk(sentence) and not is_filler(sentence))


def _opener_end(plain: str) -> int:
    opener = _OPENER.match(plain)
    return opener.end() if opener else 0
