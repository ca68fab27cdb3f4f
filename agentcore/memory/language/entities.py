"""Finds people, places, addresses, identifiers, versions, money and dates by rules, in linear time."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from agentcore.memory.language.calendar_words import FULL_WEEKDAYS, MONTHS, WEEKDAYS

_MONTHS = (
    r"(?:January|February|March|April|May|June|July|August|September|October|November|December"
    r"|Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)"
)
_CURRENCIES = r"(?:EUR|USD|GBP|CHF|JPY|SEK|NOK|DKK|PLN|euros?|dollars?|pounds?|francs?|yen|kroner)"
_SUFFIXES = r"(?:py|md|jsonl?|ya?ml|toml|csv|pdf|docx?|xlsx?|pptx?|txt|sql|tsx?|jsx?|go|rs|sh|html|log|zip|png|jpe?g)"
_AT_WORD_START = "|".join(
    (
        r"https?://[^\s<>\"'`)\]}]{1,300}",
        r"(?<![.+-])[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,4}",
        r"\d{4}-\d\d-\d\d\b",
        r"\d{1,2}[./]\d{1,2}[./](?:\d{4}|\d\d)\b",
        rf"\d{{1,2}}(?:st|nd|rd|th)?\.? (?:of )?{_MONTHS}\b\.?(?:,? \d{{4}}\b)?",
        rf"{_MONTHS}\.? (?:\d{{4}}\b|\d{{1,2}}(?:st|nd|rd|th)?\b(?:,? \d{{4}}\b)?)",
        r"[$\u20ac\u00a3\u00a5\u20b9] ?\d[\d.,]{0,15}(?<=\d)(?: ?(?:k|m|bn|thousand|million|billion)\b)?",
        r"(?<![.,])\d[\d.,]{0,15}(?<=\d)(?:k\b| thousand| million| billion)?"
        rf"(?: ?[\u20ac\u00a3\u00a5]| ?{_CURRENCIES}\b)",
        r"v\d{1,6}(?:\.\d{1,6}){1,4}\b|(?<!\.)\d{1,6}(?:\.\d{1,6}){2,4}\b(?!\.\d)",
        rf"(?<![.-])[\w-]{{1,60}}(?:\.[\w-]{{1,60}}){{0,3}}\.{_SUFFIXES}\b",
        r"\+\d[\d ()-]{6,18}\d\b",
        r"#\d{2,10}\b",
        r"[A-Z0-9]{1,16}(?:[-_][A-Z0-9]{1,24}){1,6}\b",
        r"[A-Z]{1,8}\d{2,12}\b",
        r"[a-z][a-z0-9]{0,30}(?:_[a-z0-9]{1,30}){1,6}\b",
        r"[a-z]{1,20}(?:[A-Z][a-z0-9]{1,30}){1,6}\b(?: \d{1,3}\b)?",
        r"`[^`\n]{2,60}`",
        r"\*\*[^*\n]{2,60}\*\*",
        r"\"[^\"\n]{2,60}\"",
        r"\u201c[^\u201c\u201d\n]{2,60}\u201d",
    )
)
_STRUCTURED = re.compile(rf"(?<!\w)(?:{_AT_WORD_START})|\u300c[^\u300c\u300d\n]{{1,40}}\u300d")
_STRUCTURED_HINT = re.compile(r"[\d@_`*\"\u201c\u300c]|://|[a-z](?:[A-Z]|\.[a-z])")
_IDENTIFIER = re.compile(r"[A-Z0-9]+(?:[-_][A-Z0-9]+)+")
_DATE_CHARS = 8
_TITLE_WORDS = 8
_LOOKBEHIND_CHARS = 16
_QUOTES = '"\u201c\u201d\u300c\u300d`*'

_UPPER = "".join(chr(code) for code in (*range(0x41, 0x590), *range(0x1E00, 0x1F00)) if chr(code).isupper())
_NAME_WORD = rf"(?:(?:Dr|Mr|Mrs|Ms|Prof|St|Mt)\.|[{_UPPER}]\.(?= ?[{_UPPER}])|[{_UPPER}][\w&\u2019'-]{{0,40}})"
_NAME_PARTICLES = " (?:(?:of|de|del|della|di|da|du|la|le|van|von|der|den|zu|bin|al|the) ){0,2}"
_NUMBER = r"(?: \d{1,4}[a-z]?(?:\.\d{1,3}){0,2}\b)?"
_NAME = re.compile(rf"(?<![\w\u2019'.-]){_NAME_WORD}(?:{_NAME_PARTICLES}{_NAME_WORD}){{0,6}}{_NUMBER}")
_POSSESSIVE = re.compile("['\u2019]s?$")
_FOLLOWING = re.compile(r"(,? )([a-z]{2,12})\b")

_NEVER = "i i'm i've i'll i'd wed sat sun ok okay am pm fyi asap lol btw imo tbh faq todo tldr pto eta"
_TIMES = frozenset({*MONTHS, *WEEKDAYS, *(f"{name}s" for name in FULL_WEEKDAYS)})
NEVER_NAMES = _TIMES.union(_NEVER.split())
_OPENING = """
yes yeah yep no nope hi hello hey dear thanks thank sorry great nice cool good sure well oh wow right today
tomorrow yesterday tonight later soon recently currently finally lastly first second third next last always
never often sometimes usually maybe perhaps probably actually basically honestly additionally furthermore
moreover however meanwhile otherwise instead therefore thus hence still yet even although though since
unless whether remember note remind make keep use try call send write add set put take give get go come tell
ask show find check book buy order change update delete remove avoid choose pick consider start stop open
close read look think see know want need like love hate here everything everyone everybody nothing something
someone another one two three four five six seven eight nine ten many much several either neither every
morning evening afternoon night happy new big small old young user agent assistant action outcome system
that's let's who's there's what's coffee tea dinner lunch breakfast rent work school traffic weather music
time money life food water sleep sugar bread milk meat fish wine beer rice health homework luggage news
advice support access email mail data code tomorrow's today's yesterday's
"""
OPENING_WORDS = frozenset(_OPENING.split())
_ABSTRACT_ENDINGS = ("ing", "tion", "sion", "ment", "ness", "ity", "ance", "ence", "ship", "ism")
_PERSONAL_VERB_LIST = """
said says told tells asked asks wants wanted likes liked loves loved hates hated prefers preferred lives
lived works worked moved called calls thinks thought knows knew is was has had will and wrote sent starts
started comes came goes went takes writes drives drove speaks
"""
_PERSONAL_VERBS = frozenset(_PERSONAL_VERB_LIST.split())
_RELATIVE_WORDS = frozenset({"my", "our", "his", "her", "who"})


@dataclass(frozen=True, slots=True)
class _Named:
    at: int
    text: str
    certain: bool = True


def find_entities(
    sentences: Sequence[str], ordinary_words: Collection[str], known_names: Collection[str] = ()
) -> list[list[str]]:
    """Returns each sentence's named entities, in order, as written.

    A single capitalized word that occurs only at sentence starts is returned if it is in `known_names`, is followed by
    a verb such as "said" or "lives", or contains another capital or a digit. Lower-case `ordinary_words` are skipped
    at a sentence start.
    """
    found = [_in_sentence(sentence, ordinary_words) for sentence in sentences]
    certain = {name.casefold() for name in known_names}
    certain.update(named.text.casefold() for names in found for named in names if named.certain)
    return [[named.text for named in names if named.text.casefold() in certain] for names in found]


def _in_sentence(sentence: str, ordinary_words: Collection[str]) -> list[_Named]:
    found: list[_Named] = []

    def take(match: re.Match[str]) -> str:
        text = None if match.group() == sentence else _clean_structured(match.group())
        if text is None:
            return match.group()
        found.append(_Named(match.start(), text))
        return "|" * len(match.group())

    rest = _STRUCTURED.sub(take, sentence) if _STRUCTURED_HINT.search(sentence) else sentence
    if not _is_title_or_upper_case(sentence):
        for match in _NAME.finditer(rest):
            found += _names_in_run(match, rest, ordinary_words)
    return sorted(found, key=lambda named: named.at)


def _clean_structured(text: str) -> str | None:
    if text[0] in _QUOTES:
        bare = text.strip(_QUOTES).strip()
        if text[0] in "`\u300c":
            return bare or None
        return bare.rstrip(",;.") if _is_title(bare) else None
    if _IDENTIFIER.fullmatch(text) and not _is_identifier(text):
        return None
    return text.rstrip(".,;:!?")


def _is_title(text: str) -> bool:
    words = text.split()
    long = [word for word in words if len(word) > 3] or words
    capitals = sum(word[0].isupper() or word[0].isdigit() for word in long)
    return len(words) <= _TITLE_WORDS and text[-1:] not in ":!?" and 2 * capitals > len(long)


def _is_identifier(text: str) -> bool:
    digits = any(char.isdigit() for char in text)
    letters = any(char.isalpha() for char in text)
    dated = not letters and len(text) >= _DATE_CHARS
    return dated or (letters and (digits or "_" in text))


def _is_title_or_upper_case(sentence: str) -> bool:
    words = [word for word in sentence[:400].split() if word[0].isalpha()]
    if len(words) < 4:
        return False
    if all(word.isupper() for word in words):
        return True
    capitals = sum(word[0].isupper() for word in words)
    return capitals >= 0.7 * len(words) and "," not in sentence and sentence[-1].isalnum()


def _names_in_run(match: re.Match[str], sentence: str, ordinary_words: Collection[str]) -> Iterator[_Named]:
    before = sentence[max(0, match.start() - _LOOKBEHIND_CHARS) : match.start()]
    opening = not any(char.isalnum() for char in before.rpartition(": ")[2])
    for start, end, group in _groups(match, ordinary_words if opening else ()):
        yield from _named(group, start, end, opening and start == match.start(), sentence)


def _groups(match: re.Match[str], ordinary_words: Collection[str]) -> Iterator[tuple[int, int, list[str]]]:
    at = start = match.start()
    group: list[str] = []
    for word in match.group().split(" "):
        end = at + len(word)
        if _is_excluded(word, () if group else ordinary_words):
            yield start, at - 1, group
            group = []
        else:
            start = start if group else at
            group.append(word)
        if group and _POSSESSIVE.search(word):
            yield start, end, group
            group = []
        at = end + 1
    yield start, match.end(), group


def _is_excluded(word: str, ordinary_words: Collection[str]) -> bool:
    plain = word.casefold().replace("\u2019", "'")
    if plain in NEVER_NAMES:
        return True
    return bool(ordinary_words) and (plain in OPENING_WORDS or plain.replace("'", "") in ordinary_words)


def _named(group: list[str], start: int, end: int, opening: bool, sentence: str) -> Iterator[_Named]:
    while group and group[-1][0].islower():
        group = group[:-1]
    while group and group[0][0].islower():
        group = group[1:]
    written = " ".join(group)
    text = _POSSESSIVE.sub("", written)
    if len(text) < 2 or text.endswith("."):  # a title alone, or a letter
        return
    certain = not opening or len(group) > 1 or text != written
    yield _Named(start, text, certain or _is_like_a_name(text, sentence, end))


def _is_like_a_name(word: str, sentence: str, end: int) -> bool:
    if any(char.isupper() or char.isdigit() for char in word[1:]):
        return True
    following = _FOLLOWING.match(sentence, end)
    if following is None or word.endswith(_ABSTRACT_ENDINGS):
        return False
    if following[1] == " ":
        return following[2] in _PERSONAL_VERBS
    return following[2] in _RELATIVE_WORDS and not word.endswith("ly")
