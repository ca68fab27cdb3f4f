"""Reads two names of one thing from a text ("Kubernetes (k8s)") and finds them in a query. Pure.

Every pattern searches a bounded stretch of text, so the work is linear.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from agentcore.memory.language.entities import OPENING_WORDS
from agentcore.memory.language.text import STOP_WORDS, collapse, fold, tokens
from agentcore.memory.lexical import OtherForm, phrase, phrase_key, term_keys

MAX_LEARNT = 16
MAX_SIGNS = 256
MAX_READ_CHARS = 65_536
MAX_FORM_CHARS = 60
MAX_FORM_TERMS = 6
# Of a query, how many words are looked up, and by how many other forms it grows.
MAX_QUERY_WORDS = 256
MAX_OTHER_FORMS = 8
_CONTEXT_CHARS = 120

_QUOTES = "\"'`\u2018\u2019\u201c\u201d"
_AROUND = " ,;:.*_"
_QUOTED = rf"[\"'`\u2018\u201c](?P<quoted>[^{_QUOTES}\n]{{2,{MAX_FORM_CHARS}}})[\"'`\u2019\u201d]"
_ADVERB = r"(?: (?:all|also|always|internally|jokingly|just|often|simply|sometimes|usually))?"
_OTHER_NAME = (
    r"also (?:known|referred to) as|also called|otherwise known as|better known as|formerly known as"
    rf"|a\.?k\.?a\.?(?= )|nicknamed|which (?:we|they|people|everyone){_ADVERB} calls?"
)
_SHORT_FOR = r"short for|(?:is )?(?:the |an )?(?:abbreviation|acronym) (?:for|of)"
_SIGN = re.compile(
    rf"(?<=[\w{_QUOTES}]) \((?P<inside>[^()\n]{{2,90}})\)"
    rf"|\b(?i:we|they|people|everyone){_ADVERB} calls? "
    rf"(?P<thing>[^{_QUOTES}.,;:!?()\n]{{2,{MAX_FORM_CHARS}}}) {_QUOTED}"
    rf"|,? (?:is |are )?(?i:(?P<other>{_OTHER_NAME})|(?P<short>{_SHORT_FOR})|(?P<initials>stands? for)) "
)
_INSIDE = re.compile(rf"(?i:(?P<other>{_OTHER_NAME})|(?P<short>{_SHORT_FOR})) ")
_BOUNDARY = re.compile(r"[.!?](?=\s|$)|[,;:()\[\]\n]")
_IN_QUOTES_BEFORE = re.compile(_QUOTED + r"\Z")
_IN_QUOTES_AFTER = re.compile(r"(?:(?:the|our|my|a|an) )?" + _QUOTED)
_SHORT_FORM = re.compile(r"[^\W_][\w&/.-]{1,9}")
_NUMERONYM = re.compile(r"[a-z]\d{1,2}[a-z]")
_PART = re.compile(r"[^\W\d_]+|\d+")
_CASE_CHANGE = re.compile(r"(?<=[a-z])(?=[A-Z])")
_DETERMINERS = frozenset({
    "the", "our", "my", "your", "their",
    "his", "her", "its", "a", "an", "this", "that",
})
_JOINING = frozenset({
    "of", "and", "the", "for", "in", "on", "to",
    "at", "by", "with", "as", "de", "van", "von",
})
_MAX_NAME_WORDS, _MAX_PLAIN_WORDS = 6, 3
_MIN_LETTERS_OF_ONE_WORD = 3


@dataclass(frozen=True, slots=True)
class Alias:
    """One thing in two forms, as written: what it is called too, and what that means."""

    alias: str
    means: str


@dataclass(frozen=True, slots=True)
class Expansion:
    """A form that a query holds, and what it is called too: as written, and the keys of each one's terms."""

    written: str
    other: str
    held_keys: Sequence[int]
    other_keys: Sequence[int]


def checked(alias: str, means: str) -> Alias | None:
    """The pair, if both forms can be looked up by their words and differ in them."""
    pair = Alias(_bare(alias), _bare(means))
    forms = phrase(pair.alias), phrase(pair.means)
    if forms[0] == forms[1] or not all(0 < len(form) <= MAX_FORM_TERMS for form in forms):
        return None
    return pair


def learn(text: str) -> list[Alias]:
    """The pairs that the text makes evident, at most `MAX_LEARNT`, the first meaning of each alias."""
    found: dict[tuple[str, ...], Alias] = {}
    outside_code = "\n".join(text[:MAX_READ_CHARS].split("```")[::2])
    for sign in islice(_SIGN.finditer(outside_code), MAX_SIGNS):
        for alias, means in _told(outside_code, sign):
            pair = checked(alias, means) if _is_form(alias) and _is_form(means) else None
            if pair is not None:
                found.setdefault(phrase(pair.alias), pair)
    return list(found.values())[:MAX_LEARNT]


def forms(agent_id: str, text: str) -> dict[int, list[int]]:
    """What in a query may have another form: its words and their runs by key, with their terms' keys."""
    read = [
        (words, term_keys(agent_id, token))
        for token in tokens(text)[:MAX_QUERY_WORDS]
        if (words := phrase(token))
    ]
    found = {key: [key] for _, keys in read for key in keys}
    for start in range(len(read)):
        run: list[str] = []
        held: list[int] = []
        for words, keys in read[start : start + MAX_FORM_TERMS]:
            run += words
            held += keys
            found[phrase_key(agent_id, run)] = held.copy()
    return found


def expansions(
    agent_id: str, asked: Mapping[int, Sequence[int]], known: Sequence[OtherForm]
) -> list[Expansion]:
    """What the forms asked for add to a query, in its order; what it holds already is not added.

    Where the caller set what an alias means, that alone counts, whatever memories say of it.
    """
    is_set = {each.key for each in known if each.is_set and each.is_alias}
    places = {key: place for place, key in enumerate(asked)}
    chosen: dict[tuple[int, int], Expansion] = {}
    for each in sorted(known, key=lambda each: places[each.key]):
        words = phrase(each.other)
        other_key = phrase_key(agent_id, words)
        overruled = each.is_alias and not each.is_set and each.key in is_set
        if overruled or other_key in asked:
            continue
        keys = [phrase_key(agent_id, [word]) for word in words]
        chosen.setdefault(
            (each.key, other_key), Expansion(each.written, each.other, asked[each.key], keys)
        )
    return list(chosen.values())[:MAX_OTHER_FORMS]


def keyed(agent_id: str, pair: Alias) -> dict[str, str | int]:
    """The pair as it is stored: both forms, and the keys they are looked up by."""
    return {
        "alias": pair.alias,
        "means": pair.means,
        "alias_key": phrase_key(agent_id, phrase(pair.alias)),
        "means_key": phrase_key(agent_id, phrase(pair.means)),
    }


def _told(text: str, sign: re.Match[str]) -> Iterator[tuple[str, str]]:
    before = text[max(0, sign.start() - _CONTEXT_CHARS) : sign.start()]
    if sign["thing"]:
        yield sign["quoted"], sign["thing"].removesuffix(" as")
    elif sign["inside"]:
        yield from _in_parentheses(before, sign["inside"].strip())
    else:
        after = text[sign.end() : sign.end() + _CONTEXT_CHARS]
        yield from _in_words(before, after, sign)


def _in_words(before: str, after: str, sign: re.Match[str]) -> Iterator[tuple[str, str]]:
    is_short = sign["other"] is None
    first = _form_before(before, alone=is_short)
    if first is None:
        return
    second = _initials_of(first, after) if is_short else None
    # "The tree stands for deer hunting were sold."
    if second is None and not sign["initials"]:
        second = _form_after(after)
    if second is not None:
        yield (first, second) if is_short else (second, first)


def _in_parentheses(before: str, inside: str) -> Iterator[tuple[str, str]]:
    cue = _INSIDE.match(inside)
    if cue is not None:
        first = _form_before(before, alone=cue["short"] is not None)
        second = _form_after(inside[cue.end() :])
        if first is not None and second is not None:
            yield (first, second) if cue["short"] else (second, first)
        return
    words = _segment(before)
    inside = inside.strip(_QUOTES)
    if not words:
        return
    long = _long_form(inside, words)
    if long is not None:
        yield from _of_any_number(inside, long)
    elif _stands_for(words[-1].strip(_QUOTES), inside.split()):
        yield from _of_any_number(words[-1].strip(_QUOTES), inside)


def _of_any_number(short: str, long: str) -> Iterator[tuple[str, str]]:
    yield short, long
    if short.endswith("s") and short[:-1].isupper():
        yield short[:-1], long


def _long_form(short: str, words: Sequence[str]) -> str | None:
    """Returns the last words that the short form abbreviates (as Schwartz & Hearst 2003, but stricter)."""
    most = min(len(short) + 5, 2 * len(short), len(words))
    # The most words: American Animal Hospital Association (AAHA) is no Animal Hospital Association.
    for count in range(most, 0, -1):
        if words[-count].casefold() not in STOP_WORDS and _stands_for(short, words[-count:]):
            return " ".join(words[-count:])
    return None


def _stands_for(short: str, words: Sequence[str]) -> bool:
    if not _SHORT_FORM.fullmatch(short) or not 0 < len(words) <= 2 * len(short):
        return False
    if _NUMERONYM.fullmatch(fold(short)):
        return len(words) == 1 and _numeronym(words[0]) == fold(short)
    return sum(char.isupper() for char in short) > 1 and _initials(short, words)


def _initials(short: str, words: Sequence[str]) -> bool:
    letters = "".join(_PART.findall(fold(short.removesuffix("s"))))
    parts = [fold(part) for word in words for part in _PART.findall(_CASE_CHANGE.sub(" ", word))]
    if len(parts) == 1 and not _MIN_LETTERS_OF_ONE_WORD <= len(letters) < len(parts[0]) - 1:
        return False
    return _fits(letters, parts)


def _numeronym(word: str) -> str:
    letters = fold(word.strip(_QUOTES))
    return f"{letters[:1]}{len(letters) - 2}{letters[-1:]}"


def _fits(letters: str, parts: Sequence[str]) -> bool:
    ends = {0}
    for part in parts:
        further = ends.copy() if part in STOP_WORDS else set[int]()
        for end in ends:
            if end < len(letters) and letters[end] == part[0]:
                rest = iter(part[1:])
                further.add(end := end + 1)
                while end < len(letters) and letters[end] in rest:
                    further.add(end := end + 1)
        ends = further
    return len(letters) in ends


def _initials_of(short: str, after: str) -> str | None:
    words = _BOUNDARY.split(after, maxsplit=1)[0].split()
    for count in range(1, min(len(words), 2 * len(short)) + 1):
        if words[count - 1].casefold() not in STOP_WORDS and _stands_for(short, words[:count]):
            return " ".join(words[:count])
    return None


def _segment(before: str) -> list[str]:
    return _BOUNDARY.split(before)[-1].split()


def _form_before(before: str, *, alone: bool) -> str | None:
    """Returns the form at the end of the words; `alone`: the last word is enough, whatever precedes it."""
    quoted = _IN_QUOTES_BEFORE.search(before)
    if quoted is not None:
        return quoted["quoted"]
    words = _segment(before)[-_MAX_NAME_WORDS:]
    if not words:
        return None
    if _is_named(words[-1]):
        return " ".join(_without_opening(_run(words[::-1])[::-1]))
    near = words[-_MAX_PLAIN_WORDS - 1 :]
    for count in range(1, len(near)):
        if near[-count - 1].casefold() in _DETERMINERS:
            return " ".join(near[-count:])
    return words[-1] if alone or len(words) == 1 else None


def _form_after(after: str) -> str | None:
    quoted = _IN_QUOTES_AFTER.match(after)
    if quoted is not None:
        return quoted["quoted"]
    words = _BOUNDARY.split(after, maxsplit=1)[0].split()
    begun = bool(words) and words[0].casefold() in _DETERMINERS
    words = words[1:] if begun else words
    if not words:
        return None
    if _is_named(words[0]):
        return " ".join(_run(words[:_MAX_NAME_WORDS]))
    plain = next((at for at, word in enumerate(words) if word.casefold() in STOP_WORDS), len(words))
    return " ".join(words[:plain]) if 0 < plain <= _MAX_PLAIN_WORDS - (not begun) else None


def _run(words: Sequence[str]) -> list[str]:
    length = 0
    for at, word in enumerate(words):
        if _is_named(word):
            length = at + 1
        elif word not in _JOINING:
            break
    return list(words[:length])


def _without_opening(words: list[str]) -> list[str]:
    first = next(
        (at for at, word in enumerate(words[:-1]) if word.casefold() not in STOP_WORDS | OPENING_WORDS),
        len(words) - 1,
    )
    return words[first:]


def _is_named(word: str) -> bool:
    return any(char.isupper() or char.isdigit() for char in word)


def _is_form(text: str) -> bool:
    bare = _bare(text)
    inner = {word.casefold() for word in bare.split()}
    return (
        2 <= len(bare) <= MAX_FORM_CHARS
        and any(char.isalpha() for char in bare)
        and not set(bare) & set("\"\u201c\u201d()")
        and not (inner & STOP_WORDS) - _JOINING
    )


def _bare(text: str) -> str:
    form = collapse(text).strip(_QUOTES + _AROUND)
    first, _, rest = form.partition(" ")
    return _bare(rest) if rest and first.casefold() in _DETERMINERS else form
