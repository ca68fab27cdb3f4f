"""Words, sentences and normal forms of texts, shared by writing, search and encoding."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Literal

from agentcore.limits import MAX_MARK_RUN

MAX_WORD_CHARS = 100

NormalForm = Literal["NFC", "NFKC", "NFKD"]

# All marks of Unicode are in these ranges.
_MARK_RANGES = (range(0x300, 0x3100), range(0xA600, 0xAC00), range(0xFB1E, 0x10000), range(0x10000, 0x1F000))
_NON_STARTERS = "".join(
    chr(code)
    for codes in _MARK_RANGES
    for code in codes
    if unicodedata.combining(unicodedata.normalize("NFKD", chr(code))[0])
)
_MARK_RUN, _MARKLESS = re.compile(f"[{_NON_STARTERS}]*"), re.compile(f"[^{_NON_STARTERS}]*")
_LONG_MARK_RUN = re.compile(f"[{_NON_STARTERS}]{{{MAX_MARK_RUN}}}(?=[{_NON_STARTERS}])")
# One C call keeps the GIL; a slice of this length takes about a millisecond.
_SLICE_CHARS = 4_096
_GRAPHEME_JOINER = "\u034f"
# Characters that NFKC expands to more than 4 stay whole: a noncharacter replaces each during normalization.
_KEPT = "㌇㌕㌖㌗㌙㌚㌠㌫㌮㌲㌴㌶㍇㍊㍖㎮㎯\ufdfa\ufdfb"
_PLACEHOLDERS = tuple((kept, chr(0xFDD0 + at)) for at, kept in enumerate(_KEPT))

_MARKS = "".join(
    chr(code)
    for code in (*range(0x300, 0x1E00), *range(0xA800, 0xAC00))
    if unicodedata.category(chr(code)) in {"Mn", "Mc"}
)
# Scripts without spaces between words (or, Korean, with attached particles) are indexed as character pairs.
UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003134f"
)
_UNSPACED_RUN = re.compile(f"([{UNSPACED}]+)")
INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u2060\ufeff]")
_ACCENTS = re.compile("[\u0300-\u036f\u0591-\u05c7\u0640\u064b-\u0652\u0670]")
_LETTERS = str.maketrans({"ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "æ": "ae", "œ": "oe", "\u0131": "i"})

# Word characters, joined by single connectors: no two parts match the same character, so it does not backtrack.
_CONNECTOR = r"(?:://|::|[.\-'\u2019@+:/&]|,(?=\d{3}(?!\d)))"
_TOKEN = re.compile(rf"[\w{_MARKS}]+(?:{_CONNECTOR}[\w{_MARKS}]+)*(?:\+\+|#(?!\w))?")
_ASCII_TOKEN = re.compile(rf"\w+(?:{_CONNECTOR}\w+)*(?:\+\+|#(?!\w))?", re.ASCII)
_SEPARATOR = re.compile(rf"[^\w{_MARKS}]+|_+")
_CASE_PART = re.compile(r"\d+|[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+")
_GROUPED_NUMBER = re.compile(r"\d{1,3}(?:,\d{3})+(?!\d)")
_MAX_CASE_PARTS = 5
_CONTRACTED = frozenset({"s", "re", "ve", "ll", "d", "m"})

_STOP_WORDS = """
a about above after again against all also am an and any are arent as at be because been before being below
between both but by can cannot cant could couldnt did didnt do does doesnt doing dont down during each few
for from further had hadnt has hasnt have havent having he her here hers herself him himself his how i if in
into is isnt it its itself just let me more most my myself no nor not now of off on once only or other our
ours ourselves out over own please same she should shouldnt so some such than that the their theirs them
themselves then there these they this those through to too under until up very was wasnt we were werent what
when where which while who whom why will with wont would wouldnt you your yours yourself yourselves
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())

# A full stop after these, or before these following a German ordinal, ends no sentence (English and German).
_SENTENCE_ENDS = {
    name: tuple(listed.split())
    for name, listed in json.loads(Path(__file__).with_name("sentence_ends.json").read_text("utf-8")).items()
}
_ABBREVIATIONS, _MONTHS_AND_FEASTS, _ORDINAL_DETERMINERS, _SENTENCE_OPENERS = (
    frozenset(_SENTENCE_ENDS[name])
    for name in ("abbreviations", "months_and_feasts", "ordinal_determiners", "sentence_openers")
)
_SUFFIXES_BEFORE_NUMBERS = _SENTENCE_ENDS["suffixes_before_numbers"]
_LETTER_BEFORE_STOP = re.compile(r"[^\W\d_]\.")
_NEXT_WORD = re.compile(r"\s+([\w-]{1,40})")
_LOOK_AROUND_CHARS = 48
_CLOSING = "\"'\u201d\u2019\u00bb"
_TERMINATOR = re.compile(rf"[.!?\u2026]+[{_CLOSING})\]*_]*|[\u3002\uff01\uff1f]+[\u300d\u300f\u201d\u2019\uff09]*")
_MARKER = re.compile(r"\s*(?:(?:[-*•+>]|#{1,6}|\d{1,3}[.)])\s+)+")
_FENCE = "```"
_WRAPPED_CHARS = 40


def collapse(text: str) -> str:
    return " ".join(text.split())


def normalize(form: NormalForm, text: str) -> str:
    """Returns the text in a Unicode normal form, in linear time; releases the GIL between slices.

    The only caller of `unicodedata.normalize`. A grapheme joiner breaks runs of more than `MAX_MARK_RUN` non-starters
    (Stream-Safe Text Format, UAX #15): sorting them takes quadratic time.
    """
    if text.isascii():
        return text
    for kept, placeholder in _PLACEHOLDERS:
        text = text.replace(kept, placeholder)
    # An overlong run covers one of these samples: most texts need no full scan.
    if not _MARKLESS.fullmatch(text[:: MAX_MARK_RUN + 1]):
        text = "".join(_LONG_MARK_RUN.sub(rf"\g<0>{_GRAPHEME_JOINER}", piece) for piece in _whole_runs(text))
    done = "".join(unicodedata.normalize(form, piece) for piece in _slices(form, text))
    for kept, placeholder in _PLACEHOLDERS:
        done = done.replace(placeholder, kept)
    return done


def _whole_runs(text: str) -> Iterator[str]:
    start = 0
    while start < len(text):
        run = _MARK_RUN.match(text, start + _SLICE_CHARS)
        end = run.end() if run else len(text)
        yield text[start:end]
        start = end


def _slices(form: NormalForm, text: str) -> Iterator[str]:
    start = 0
    while len(text) - start > _SLICE_CHARS:
        latest = start + _SLICE_CHARS
        earliest = latest - 2 * MAX_MARK_RUN
        end = next((at for at in range(latest, earliest, -1) if _is_boundary(form, text, at)), latest)
        yield text[start:end]
        start = end
    yield text[start:]


def _is_boundary(form: NormalForm, text: str, at: int) -> bool:
    before, after = text[at - 2 * MAX_MARK_RUN : at], text[at : at + 2 * MAX_MARK_RUN]
    apart = unicodedata.normalize(form, before) + unicodedata.normalize(form, after)
    return apart == unicodedata.normalize(form, before + after)


def normal_form(text: str) -> str:
    """Returns a form that ignores case, white space and compatibility forms (Unicode NFKC)."""
    if text.isascii():
        return collapse(text.lower())
    return collapse(normalize("NFKC", normalize("NFKC", text).casefold()))


def fold(word: str) -> str:
    """Removes case and accents: "Café" and "CAFE" become the same word."""
    if word.isascii():
        return word.lower()
    bare = _ACCENTS.sub("", normalize("NFKD", word).casefold())
    return normalize("NFC", bare).translate(_LETTERS)


def tokens(text: str) -> list[str]:
    """Returns words as written; identifiers, addresses, versions and compounds stay whole."""
    if text.isascii():
        return _ASCII_TOKEN.findall(text)
    plain = INVISIBLE.sub("", normalize("NFKC", text))
    return _TOKEN.findall(_UNSPACED_RUN.sub(r" \1 ", plain))


def words(text: str) -> list[str]:
    """Returns folded words in order, each compound followed by its parts; never stemmed.

    "getUserName" yields getusername, get, user, name; unspaced scripts yield pairs of characters.
    """
    found: list[str] = []
    for token in tokens(text):
        found += _forms(token) if len(token) <= MAX_WORD_CHARS else _long_forms(token)
    return found


def unspaced(text: str) -> bool:
    """Returns whether the text begins in a script without spaces."""
    return not text.isascii() and _UNSPACED_RUN.match(text) is not None


@lru_cache(maxsize=32_768)
def _forms(token: str) -> tuple[str, ...]:
    if token.isascii() and token.isalpha() and (token.islower() or token.istitle()):
        return (token.lower(),)
    if unspaced(token):
        return tuple(_pairs(token))
    token = _without_contraction(token.replace("\u2019", "'"))
    whole = _whole(token)
    parts = [fold(part) for part in _parts(token)]
    return tuple(form for form in dict.fromkeys((whole, *parts)) if form)


def _long_forms(token: str) -> Iterator[str]:
    if unspaced(token):
        yield from _pairs(token)
        return
    for piece in _SEPARATOR.split(token):
        if piece:
            yield fold(piece[:MAX_WORD_CHARS])[:MAX_WORD_CHARS]


def _pairs(run: str) -> Iterable[str]:
    folded = fold(run)
    return [folded[at : at + 2] for at in range(len(folded) - 1)] or [folded]


def _without_contraction(token: str) -> str:
    start, mark, end = token.rpartition("'")
    if not mark:
        return token
    if end.lower() in _CONTRACTED:
        return start
    return start + end if end.lower() == "t" else token


def _whole(token: str) -> str:
    if _GROUPED_NUMBER.fullmatch(token):
        return token.replace(",", "")
    folded = fold(token).replace("'", "").strip("_")
    if folded[:1] == "v" and folded[1:2].isdigit() and "." in folded:
        return folded[1:]
    return folded[:MAX_WORD_CHARS]


def _parts(token: str) -> list[str]:
    if _GROUPED_NUMBER.fullmatch(token):
        return []
    found: list[str] = []
    for piece in _SEPARATOR.split(token):
        cased = _CASE_PART.findall(piece) if piece.isascii() else [piece]
        # A digest such as 9f86d081884c would split into dozens of meaningless letters and digits.
        found += cased if len(cased) <= _MAX_CASE_PARTS else [piece]
    return found


def sentences(text: str) -> list[str]:
    """Returns sentences, list items and headings in order, verbatim except for list markers.

    Drops those without a letter or digit. A fenced code block is one piece (`is_code`).
    """
    found: list[str] = []
    blocks = text.split(_FENCE)
    for index, block in enumerate(blocks):
        if index % 2:
            closing = _FENCE if index + 1 < len(blocks) else ""
            found.append(f"{_FENCE}{block}{closing}")
        else:
            for paragraph in _paragraphs(block):
                found += _split(paragraph)
    return [piece for piece in found if any(char.isalnum() for char in piece)]


def is_code(sentence: str) -> bool:
    """Returns whether a piece of `sentences` is a fenced code block."""
    return sentence.startswith(_FENCE)


def _paragraphs(block: str) -> Iterator[str]:
    held: list[str] = []
    for line in block.splitlines():
        stripped = line.strip()
        if held and not (stripped and _continues(held[-1], stripped)):
            yield _without_marker(held)
            held = []
        if stripped:
            held.append(stripped)
    if held:
        yield _without_marker(held)


def _without_marker(lines: list[str]) -> str:
    paragraph = "\n".join(lines)
    marker = _MARKER.match(paragraph)
    return paragraph[marker.end() :] if marker else paragraph


def _continues(before: str, line: str) -> bool:
    return line[0].islower() and len(before) >= _WRAPPED_CHARS and before[-1] not in ".!?:;\u2026"


def _split(paragraph: str) -> Iterator[str]:
    start = 0
    for match in _TERMINATOR.finditer(paragraph):
        if _ends_sentence(paragraph, match):
            yield paragraph[start : match.end()].strip()
            start = match.end()
    rest = paragraph[start:].strip()
    if rest:
        yield rest


def _ends_sentence(paragraph: str, match: re.Match[str]) -> bool:
    following = paragraph[match.end() : match.end() + 3]
    if not following or match.group()[0] in "\u3002\uff01\uff1f":
        return True
    if not following[0].isspace():
        return False
    goes_on = following.lstrip()[:1].islower()
    if match.group()[0] not in ".\u2026":
        # "Really?" she asked: the sentence continues after the quotation.
        return not (goes_on and match.group()[-1] in _CLOSING)
    if goes_on:
        return False
    before = paragraph[max(0, match.start() - _LOOK_AROUND_CHARS) : match.start()].split()
    if not before:
        return True
    after = _NEXT_WORD.match(paragraph, match.end(), match.end() + _LOOK_AROUND_CHARS)
    return not (_abbreviated(before, after) or _is_ordinal(before, after))


def _abbreviated(before: Sequence[str], after: re.Match[str] | None) -> bool:
    bare = before[-1].lstrip("(\"'\u201c\u201e")
    word = bare.casefold()
    if word in _ABBREVIATIONS or (len(bare) == 1 and bare.isupper() and bare != "I"):
        return True
    if after is not None and after[1][0].isdigit() and word.endswith(_SUFFIXES_BEFORE_NUMBERS):
        return True
    return _is_letter_of_several(bare, before, after)


def _is_letter_of_several(bare: str, before: Sequence[str], after: re.Match[str] | None) -> bool:
    """Returns whether a letter is part of an abbreviation such as "z. b."."""
    if len(bare) != 1 or not bare.isalpha():
        return False
    begins = after is not None and _LETTER_BEFORE_STOP.match(after.string, after.start(1)) is not None
    return begins or (len(before) > 1 and _LETTER_BEFORE_STOP.fullmatch(before[-2]) is not None)


def _is_ordinal(before: Sequence[str], after: re.Match[str] | None) -> bool:
    if after is None or not (before[-1].isdecimal() and len(before[-1]) <= 2):
        return False
    following = after[1].casefold()
    if following in _MONTHS_AND_FEASTS:
        return True
    determined = len(before) > 1 and before[-2].casefold() in _ORDINAL_DETERMINERS
    return determined and following[0].isalpha() and following not in _SENTENCE_OPENERS
