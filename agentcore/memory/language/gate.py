"""Whether a question needs memory at all. In doubt it does: passing over a search must never cost an answer.

Pure. English, as are its lists; a question in another language is searched.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

from agentcore.memory.language.rejection import is_filler, is_small_talk
from agentcore.memory.language.text import normal_form, sentences, words

JUDGED_CHARS = 300

EMPTY = "empty: it holds no words"
SMALL_TALK = "small talk: it asks nothing"
TOOL = "tool request: it says all that is needed"
GENERAL = "general knowledge: it asks nothing of anybody's own"
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

_FRAME = re.compile(
    r"(?:what|who (?:wrote|invented|discovered|painted|composed)"
    r"|where(?:'s| is| are)|when (?:was|did|is)"
    r"|how (?:many|much|tall|big|far|old|long|deep|high|fast|heavy|hot)|how do(?:es)?"
    r"|why (?:is|are|do|does)|which|explain|define|describe)\b"
)
_GLUE = """
a an the of in on at to for from by with and or is are was were be does do did has have how what's what who
who's where where's wrote when why which there that mean means stand stands work works called it's between
vs versus than explain define describe simply briefly me
"""
_GENERIC = """
capital population currency language languages flag anthem area size height depth length distance speed age
temperature boiling freezing melting point mass weight density volume formula symbol number numbers atomic
chemical definition meaning difference differences distinction comparison tallest largest biggest longest
smallest highest deepest fastest oldest hottest coldest first mountain mountains river rivers ocean oceans
lake desert island planet planets country countries continent continents city cities state states world
people many much big far old tall simple terms short brief basics introduction overview example examples
concept theory theorem law laws principle principles rule process cycle effect paradox equation hypothesis
algorithm sort search notation protocol handshake slow start congestion control flow window three-way
complexity time space stack heap tree word plural singular past tense opposite synonym antonym spelled blue
red color colour caused ended began begin end war written invented discovered painted
composed located
"""
# What anybody may ask about, with or without "the".
_WORLD = """
earth sun moon mars venus jupiter saturn mercury uranus neptune pluto solar system universe galaxy sky
europe asia africa america antarctica australia oceania atlantic pacific arctic nile amazon danube everest
alps himalayas sahara france germany spain italy portugal netherlands belgium switzerland austria poland
hungary romania greece russia ukraine sweden norway denmark finland iceland ireland england scotland wales
britain uk usa canada mexico brazil argentina chile peru colombia egypt morocco nigeria kenya ethiopia ghana
israel iran iraq arabia india pakistan bangladesh china japan korea vietnam thailand indonesia malaysia
singapore philippines zealand paris london berlin rome madrid eiffel tower pyramid pyramids colosseum
dinosaurs hamlet macbeth odyssey iliad beethoven mozart bach einstein newton darwin galileo shakespeare
napoleon renaissance revolution french american industrial roman empire medieval pythagorean fibonacci
bayesian gaussian
"""
_SUBJECTS = """
tcp udp ip http https dns tls ssh ftp smtp html css json xml yaml regex unicode utf-8 ascii sql nosql acid
cap rest graphql grpc quicksort mergesort bubblesort recursion polymorphism inheritance encapsulation
closure closures monad monads mutex semaphore deadlock hashing hash blockchain bitcoin cryptography rsa aes
photosynthesis mitosis meiosis osmosis dna rna evolution entropy gravity relativity quantum mechanics
thermodynamics electromagnetism electron proton neutron atom atoms molecule molecules hydrogen helium oxygen
carbon nitrogen gold silver iron copper uranium inflation gdp recession keynesian calculus algebra geometry
trigonometry derivative derivatives integral integrals logarithm pi pythagoras prime primes bayes markov
fourier euler eigenvalue eigenvalues eigenvector eigenvectors neural backpropagation gradient descent
overfitting transformer transformers big-o haiku sonnet limerick metaphor simile onomatopoeia oxymoron
palindrome stoicism existentialism utilitarianism vaccine vaccines antibody antibiotics virus viruses
bacteria cholesterol insulin hemoglobin volcano volcanoes earthquake earthquakes tsunami tides rainbow
rainbows eclipse greenhouse nucleus mitochondria chlorophyll light water sound
"""
_GLUE_WORDS = frozenset(_GLUE.split())
_GENERIC_WORDS = frozenset(word.removesuffix("'s") for word in [*_GENERIC.split(), *_GLUE.split()])
_WORLD_WORDS = frozenset(_WORLD.split())
_SUBJECT_WORDS = frozenset(_SUBJECTS.split())
# Of these there are many: only a name beside it says which the whole world means.
_KINDS = frozenset(["tower", "pyramid", "pyramids", "revolution", "empire", "galaxy", "system", "dinosaurs"])
_NAMES = _WORLD_WORDS - _KINDS | {"world"}
_DEFINITE = frozenset({"the", "this", "that", "these", "those"})
_LEADING_ON = frozenset({"of", "between", "for"})
_WORD = re.compile(r"[\w'-]+")


@dataclass(frozen=True, slots=True)
class Gate:
    """Whether memory is needed, and why or why not, in a short sentence for the receipt."""

    needed: bool
    reason: str


def gate(query: str, *, general_knowledge: bool = False) -> Gate:
    """Whether this question needs memory; with `general_knowledge`, such questions are passed over too.

    It is not needed where every sentence shows that: one that speaks of people, of what was before or of
    anything unknown brings the search.
    """
    if len(query) > JUDGED_CHARS:
        return Gate(True, OPEN)
    if not words(query):
        return Gate(False, EMPTY)
    reasons = [_reason(sentence) for sentence in sentences(query)]
    needed = [reason for reason in reasons if reason in (PERSONAL, OPEN)]
    if needed:
        return Gate(True, needed[0])
    if GENERAL in reasons:
        return Gate(not general_knowledge, GENERAL)
    return Gate(False, TOOL if TOOL in reasons else SMALL_TALK)


def _reason(sentence: str) -> str:
    if _is_acknowledgement(sentence):
        return SMALL_TALK
    plain = normal_form(sentence).replace("\u2019", "'").rstrip(" .!?\u2026")
    asked = plain[_opener_end(plain) :]
    if _PERSONAL.search(asked):
        return PERSONAL
    if _TOOLS.fullmatch(asked):
        return TOOL
    return GENERAL if _is_general(asked) else OPEN


def _is_acknowledgement(sentence: str) -> bool:
    said = words(sentence)
    return _ANSWERS.issuperset(said) or (is_small_talk(sentence) and not is_filler(sentence))


def _opener_end(plain: str) -> int:
    opener = _OPENER.match(plain)
    return opener.end() if opener else 0


def _is_general(asked: str) -> bool:
    said = [word.removesuffix("'s") for word in _WORD.findall(asked)]
    if _FRAME.match(asked) is None or _is_known_between(said):
        return False
    topics = set(said) - _GENERIC_WORDS
    return bool(topics) and topics <= _WORLD_WORDS | _SUBJECT_WORDS


def _is_known_between(said: Sequence[str]) -> bool:
    """Whether it speaks of "the tower", which the two know; not of the Eiffel Tower, the longest river or the
    capital of something."""
    for at, word in enumerate(said):
        if word in _DEFINITE:
            named = list(takewhile(lambda each: each not in _GLUE_WORDS, said[at + 1 :]))
            follower = said[at + 1 + len(named) : at + 2 + len(named)]
            unique = not _NAMES.isdisjoint(named) or any(each.endswith("est") for each in named)
            if not named or not (unique or (_LEADING_ON.issuperset(follower) and follower)):
                return True
    return False
