"""The gist of a text: equal for texts that say the same in nearly the same words. English; pure.

It ignores case, punctuation, articles, greetings, contractions, log time stamps, the place of a clause of
time or condition, and the order of what is liked or needed. Numbers, names, tenses and negations count.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from datetime import date, datetime, timedelta
from itertools import pairwise

from agentcore.memory.language.text import STOP_WORDS, normal_form, tokens

# Longer texts have many words to differ in: only their normal form is compared.
MOST_CHARS = 4_000
HASH_BYTES = 16
ONE_DAY = timedelta(days=1)
_END = "|"

_CLOCK = r"\d{1,2}:\d\d"
_SECONDS = r":\d\d(?:[.,]\d{1,9})?"
_ZONE = r"(?:Z\b| ?UTC\b|[+-]\d\d:?\d\d)?"
_DATE = r"(\d{4}-\d\d-\d\d)(?:T| +)"
_MONTH_NAMES = """
january february march april may june july august september october november december
"""
_MONTHS = _MONTH_NAMES.split()
_SYSLOG = rf"(?:{'|'.join(month[:3] for month in _MONTHS)}) +\d{{1,2}} +{_CLOCK}{_SECONDS}"
_PRECISE = rf"(?:(?:{_DATE})?{_CLOCK}{_SECONDS}{_ZONE}|{_SYSLOG})"
_STAMP = re.compile(rf"\s*(?:[\[(]{_PRECISE}[\])]|{_PRECISE}(?=[\s:|-]))[\s:|-]*", re.IGNORECASE)
# Without seconds it may as well be an appointment.
_MINUTE_STAMP = re.compile(rf"\s*[\[(]{_DATE}{_CLOCK}{_ZONE}[\])][\s:|-]*", re.IGNORECASE)

# Where code, markup or a formula stands, every sign counts.
_FORMAL = re.compile(r"[`{}<>=\\|\[\]^~]|::|->|\w\(")
_GROUPED = re.compile(r"(?<![\d.,])\d{1,3}(?:,\d{3})+(?![\d,]|\.\d)")
_QUOTES = str.maketrans("\u2019\u2018\u201c\u201d\u2032\u2033", "''\"\"'\"")
_SIGN = re.compile(
    r"([^\w\s.,;:!?'\"*\u2022\u2026\u2013\u2014-]+"
    r"|(?<=\w)\*(?=\w)|(?<=\d) *[-\u2013\u2014*] *(?=\d)|(?<!\w)[-\u2212](?=\d)"
    r"|(?<=\d),(?=\d)|(?<=\d)\.\.+(?=\d)|(?<=\d)['\"]|(?<![\w.])\.(?=\w)|!(?=\w)"
    r"|(?<=\bno),|(?<=\bnot),|(?<=\byes),)",
    re.IGNORECASE,
)
_BLANKS = re.compile(r"[^\S\n]+")
# Blanks stand alone by then, so that nothing looks through a run of them again and again.
_PIECES = re.compile(
    r"\n[\s*\u2022]*(?:- )?|(?<=[.!?;:]) |(?<=[^\s\d]) [-\u2013\u2014]+ | [-\u2013\u2014]+ (?=[^\s\d])"
    r"|(?<!\d)\u2014|\u2014(?!\d)"
)

_OPENING = re.compile(
    r"(?:(?:please|kindly)\b[\s,]*"
    r"|(?:hi|hello|hey|oh|well|so|fyi|btw|by the way|note|please note|reminder|remember|thanks|thank you)"
    r"(?: (?:there|all|team|everyone|everybody))?\s*[,:!.]+\s*)+",
    re.IGNORECASE,
)
_CLOSING = re.compile(r"(?: |, ?)(?:please|(?<=, )(?:many )?(?:thanks|thank you|thx))[ .!]*$", re.IGNORECASE)

_AROUND = " \"'*\u2022"

_DAYS = r"(?:mon|tues|wednes|thurs|fri|satur|sun)days?"
_SUBJECT = r"(?:i|we|he|she|they|you|it|my|our|his|her|their|the|an?)"
_FRONTED = re.compile(
    r"((?:when|if|because|after|before|while|since|until|unless|once|during|on|in|at|by)\b[^,]{1,160}(?=,)"
    rf"|(?:on )?{_DAYS}|today|tomorrow|yesterday|tonight)(?:, *|(?= {_SUBJECT}(?:'\w+)? ))(?:then )?([^,]+)",
    re.IGNORECASE,
)
# Of two clauses it would not be sure to which the one in front belongs.
_CLAUSES = re.compile(
    r"\b(?:that|to|if|when|because|before|after|while|since|until|unless|(?<!at )once|and|but|or|so"
    r"|who|which|what|say|says|said|tell|tells|told|ask|asks|asked|want|wants|wanted|know|knows|knew|think|thinks|thought)\b",
    re.IGNORECASE,
)

# Of what is named behind these as wanted, the order says nothing.
_LISTED = re.compile(
    r"\b(?:likes?|loves?|hates?|dislikes?|prefers?|enjoys?|needs?|eats?|drinks?|speaks?|allergic to) "
    r"((?:[a-z'-]{1,40}, ){0,8}[a-z'-]{1,40}),? (and|or) ([a-z'-]{1,40})[\s.!]*$",
    re.IGNORECASE,
)
_ARTICLES = frozenset({"a", "an", "the"})
# What an article changes: "a little", "the last week".
_SPARING = STOP_WORDS | {"little", "last", "next", "past", "first", "second", "third"}
# Where one of these follows, "that" points at nothing.
_CLAUSE_OPENERS = "i we he she they you it the a an my our his her their your there this these"
_OPENS_CLAUSE = frozenset(_CLAUSE_OPENERS.split())
_ONCE_MORE = frozenset({"again", "also"})
_NEGATING = "no not never none nobody nothing neither nor without hardly"
_NEGATIONS = frozenset(_NEGATING.split())
_TELLING_VERBS = """
think thinks thought know knows knew say says said believe believes believed confirm confirms confirmed
mention mentions mentioned note notes noted
"""
_TELLING = frozenset(_TELLING_VERBS.split())
_DAY = re.compile(rf"{_DAYS}|{'|'.join(_MONTHS)}")
_TIME_OF_DAY = re.compile(r"\d{1,2}(?::\d\d)(?:am|pm)?|\d{1,2}(?:am|pm)")
_CONTRACTED = {"can't": ("can", "not"), "cannot": ("can", "not"), "won't": ("will", "not")}
_ENDINGS = {"n't": "not", "'ll": "will", "'ve": "have", "'re": "are", "'m": "am"}
_IS = frozenset(["it", "he", "she", "that", "there", "here", "what", "who", "where", "how"])
# One team may be or are: the verb behind such a word tells no number.
_GROUPS = "team staff data family crew committee board police audience management"
_COLLECTIVE = frozenset(_GROUPS.split())
_SINGULAR = {"are": "is", "were": "was", "have": "has"}


def gist_hash(gist: Sequence[str], event: tuple[datetime, datetime] | None) -> bytes:
    """The digest of a gist and the time it speaks of: "yesterday" is another day, said on another day."""
    told = () if event is None else tuple(moment.isoformat() for moment in event)
    said = "\0".join((*gist, *told)).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(said, digest_size=HASH_BYTES).digest()


def gist(text: str) -> tuple[str, ...]:
    """The words and signs that say what the text says, in order; the normal form where every sign counts."""
    plain = text.strip().translate(_QUOTES)
    if len(plain) > MOST_CHARS or _FORMAL.search(plain):
        return (normal_form(plain),)
    plain = _GROUPED.sub(lambda match: match.group().replace(",", ""), _BLANKS.sub(" ", plain))
    pieces = [said for piece in _PIECES.split(plain) if (said := _said(piece))]
    found = [word for said in pieces for word in (*said, _END)]
    return tuple(found[:-1]) or (normal_form(plain),)


def without_stamp(text: str, said_at: datetime) -> str:
    """The text without a log's time stamp in front: with seconds, or in brackets the time it was said at."""
    match = _STAMP.match(text)
    if match is not None and _day(match) <= said_at.date() + ONE_DAY:
        return text[match.end() :] or text
    match = _MINUTE_STAMP.match(text)
    if match is not None and abs(_day(match) - said_at.date()) <= ONE_DAY:
        return text[match.end() :] or text
    return text


def _day(match: re.Match[str]) -> date:
    written = next(filter(None, match.groups()), None)
    try:
        return date.min if written is None else date.fromisoformat(written)
    except ValueError:
        return date.max


def _said(piece: str) -> list[str]:
    bare = piece.lstrip(_AROUND).rstrip()
    asks = bare.rstrip("\"'").endswith("?")
    opening = _OPENING.match(bare)
    bare = _CLOSING.sub("", bare[opening.end() :] if opening else bare)
    fronted = _FRONTED.fullmatch(bare.rstrip(".!?;: "))
    if fronted is not None and _CLAUSES.search(fronted[2]) is None:
        bare = f"{fronted[2]} {fronted[1]}"
    said = list(_kept(list(_words(_in_order(bare)))))
    return [*said, "?"] if asks else said


def _in_order(bare: str) -> str:
    listed = _LISTED.search(bare)
    if listed is None:
        return bare
    named = sorted([*listed[1].casefold().split(", "), listed[3].casefold()])
    return f"{bare[: listed.start(1)]}{listed[2]} {' '.join(named)}"


def _words(piece: str) -> Iterator[str]:
    first = True
    for place, part in enumerate(_SIGN.split(piece)):
        if place % 2:
            yield part.strip()
            continue
        for word in tokens(part):
            named = word.isupper() and (len(word) > 1 or (word == "A" and not first))
            yield from (word,) if named else _written_out(word.casefold())
            first = False


def _written_out(word: str) -> Sequence[str]:
    if "'" not in word:
        return _CONTRACTED.get(word, (word,))
    for ending, written in _ENDINGS.items():
        if word.endswith(ending) and len(word) > len(ending):
            return _CONTRACTED.get(word, (word.removesuffix(ending), written))
    start = word.removesuffix("'s")
    return (start, "is") if start in _IS and start != word else (word,)


def _kept(said: Sequence[str]) -> Iterator[str]:
    negated = not _NEGATIONS.isdisjoint(said)
    for (before, word), (_, after) in pairwise(pairwise(["", *said, ""])):
        if not _is_idle(before, word, after, negated):
            yield _SINGULAR.get(word, word) if before in _COLLECTIVE else word


def _is_idle(before: str, word: str, after: str, negated: bool) -> bool:
    if word in _ARTICLES:
        return after[:1].isalpha() and after not in _SPARING
    if word in _ONCE_MORE:
        return not negated
    if word == "that":
        return before in _TELLING and after in _OPENS_CLAUSE and not negated
    if word == "please":
        return before == "you"
    if word == "on":
        return _DAY.fullmatch(after) is not None
    return word == "at" and _TIME_OF_DAY.fullmatch(after) is not None
