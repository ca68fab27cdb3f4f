"""Finds times defined by an event: "before the trip", "since we moved to Berlin". Pure.

Not events: what happens every day ("before lunch"), future clauses ("before I go"), reasons ("since it is
late"), set phrases ("after all"), and durations between two events.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from itertools import islice
from typing import Literal

from agentcore.memory.language.moments.names import Stance
from agentcore.memory.language.moments.periods import DAY, Unit, moved
from agentcore.memory.language.moments.phrases import moment
from agentcore.memory.language.moments.reading import EARLIEST, LATEST
from agentcore.memory.language.moments.words import UNITS, Said, word_set

Relation = Literal["before", "until", "during", "since", "after"]
Span = tuple[datetime, datetime]

# A longer prompt asks several things, and no one time holds for all of them.
READ_CHARS = 300
MOST_ANCHORS = 2
EVENT_WORDS = 8
_STANCE = Stance(date(2000, 1, 1), named=True)
_RELATIONS: dict[str, Relation] = {
    "before": "before", "until": "until", "till": "until", "during": "during", "since": "since",
    "after": "after",
}  # fmt: skip
_RELATED = re.compile(rf"\b(?:{'|'.join(_RELATIONS)})\b", re.IGNORECASE)
_OWNERS = word_set("my our his her their your its")
_DEFINITE = _OWNERS | {"the", "that"}
_SUBJECTS = word_set("i we he she they you")
# Behind these a preposition is part of the verb: "look after the cat", "named after the river".
_VERBS_BEFORE = word_set("look looks looked looking named")
# What ends an event's words: the question goes on.
_ENDS = word_set("""
and or but so what when where which who whom whose why how did do does was were had
before after since during until till because if than as that
""")
# What says that no event stood before it, but a reason or what is to come: "since the server is down".
_PRESENT = word_set("""
is are am has have can will would should could may might must needs need wants want isn't aren't can't won't
""")
_JOINING = word_set("to in at on of with for from by about near into")
# What every day has, and what is no event at all.
_NO_EVENTS = word_set("""
lunch breakfast dinner supper noon midnight midday work school class bed bedtime sleep sunrise sunset dawn
dusk dark day days night nights morning mornings afternoon afternoons evening evenings week weeks weekend
weekends month months year years hour hours minute minutes second seconds moment moments time times while
fact end ends beginning start course process meantime future past present same rest other others one ones
way thing things question answer above following next last first latter former conversation chat journey
life lifetime career childhood youth development growth
""")
_PAST = re.compile(r"\w{2,}ed")
_PAST_FORMS = word_set("""
was were had went came got began left met took bought sold gave told said saw made found lost won broke fell
flew drove ran rode swam wrote spoke kept held sent spent built caught chose did ate drank felt forgot heard
hurt hit quit put cut set let read paid laid led fought taught thought brought understood woke wore grew threw
knew became stood sat slept swept shot sang rose moved
""")
_NO_DOINGS = word_set("anything something nothing everything during morning evening thing king spring string")
_DURATION = re.compile(
    r"\bhow (?:long|much time|old|many (?:\w+ )?(?:days|weeks|months|years|hours|minutes))\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Anchor:
    """An event that tells a time: `relation` to it, and its words, to be looked up.

    `unit`: how near to it, as in "the week before the trip"; None leaves that open.
    """

    relation: Relation
    event: str
    unit: Unit | None = None

    @property
    def phrase(self) -> str:
        """As it is told in a receipt."""
        near = "" if self.unit is None else f"the {self.unit} "
        return f"{near}{self.relation} {self.event}"


def anchors(query: str) -> tuple[Anchor, ...]:
    """The first events by which a question tells a time where no calendar does, at most `MOST_ANCHORS`."""
    if len(query) > READ_CHARS or not _RELATED.search(query) or _DURATION.search(query):
        return ()
    return tuple(islice(_anchors(Said(query)), MOST_ANCHORS))


def _anchors(said: Said) -> Iterator[Anchor]:
    at = 0
    while at < len(said):
        relation = _RELATIONS.get(said.lower(at))
        if relation is None or said.lower(at - 1) in _VERBS_BEFORE or said.ahead(at):
            at += 1
            continue
        end = _event_end(said, at + 1, relation)
        if end:
            yield Anchor(relation, said.phrase(at + 1, end), _near(said, at))
        at = max(at + 1, end)


def _near(said: Said, at: int) -> Unit | None:
    return UNITS.get(said.lower(at - 1)) if said.lower(at - 2) == "the" else None


def _event_end(said: Said, at: int, relation: Relation) -> int:
    if _is_calendar(said, at):
        return 0
    end = _end(said, at)
    if end - at < 2 or said.lower(end) in _PRESENT:
        return 0
    return end if _is_known(said, at, end, relation) else 0


def _is_known(said: Said, at: int, end: int, relation: Relation) -> bool:
    first = said.lower(at)
    if first in _SUBJECTS:
        return _is_past(said.lower(at + 2 if said.lower(at + 1).endswith("ly") else at + 1))
    if first in _DEFINITE:
        return said.lower(_head(said, at, end)) not in _NO_EVENTS
    if first.endswith("ing") and first not in _NO_DOINGS:
        return relation != "during"
    return said.capital(at) and _is_somebodys(said, at, end)


def _is_calendar(said: Said, at: int) -> bool:
    return moment(said, at, _STANCE) is not None


def _end(said: Said, at: int) -> int:
    end = at + 1 if _goes_on(said, at) else at
    while at < end < min(len(said), at + EVENT_WORDS) and _tells_on(said, at, end):
        end += 1
    return end - 1 if said.lower(end - 1) in _JOINING else end


def _tells_on(said: Said, at: int, end: int) -> bool:
    lower = said.lower(end)
    if end == at + 1 and said.lower(at) in _SUBJECTS and _is_past(lower):
        return True
    if lower in _JOINING:
        return _joins(said, end)
    return _goes_on(said, end) and lower not in _ENDS | _PRESENT and not _is_calendar(said, end)


def _joins(said: Said, at: int) -> bool:
    return said.lower(at + 1) in _DEFINITE or said.capital(at + 1)


def _goes_on(said: Said, at: int) -> bool:
    return said.lower(at)[:1].isalnum() or (said.glued(at) and said.glued(at + 1))


def _head(said: Said, at: int, end: int) -> int:
    joined = (place for place in range(at + 1, end) if said.lower(place) in _JOINING)
    return next(joined, end) - 1


def _is_past(word: str) -> bool:
    return word in _PAST_FORMS or _PAST.fullmatch(word) is not None


def _is_somebodys(said: Said, at: int, end: int) -> bool:
    owned = said.text[said.word(at).start : said.word(at).end].endswith(("'s", "\u2019s"))
    return owned or any(_is_past(said.lower(place)) for place in range(at + 1, min(end, at + 3)))


def told_times(anchor: Anchor, event: Span | None, said_at: datetime, now: datetime) -> list[Span]:
    """The times an anchor tells by a memory said at `said_at` whose event took that span, where it says so.

    An event without a time of its own was on the day it was told, a day in the zone of `now`. What happened
    during an event is told along with it, so that day belongs to it too.
    """
    with suppress(OverflowError, ValueError):
        told_on = _day(said_at, now)
        if anchor.relation == "during":
            times = [event, told_on] if event else [told_on]
        else:
            times = [_open_sided(anchor, event, (told_on[0], said_at))]
        bounded = [(max(first, EARLIEST), min(last, LATEST)) for first, last in times]
        return [(first, last) for first, last in bounded if first < last]
    return []


def _open_sided(anchor: Anchor, event: Span | None, told: Span) -> Span:
    if anchor.relation in ("before", "until"):
        last = told[1] if event is None else event[anchor.relation == "until"]
        return (EARLIEST if anchor.unit is None else _moved(last, -1, anchor.unit)), last
    first = told[0] if event is None else event[anchor.relation == "after"]
    return first, (LATEST if anchor.unit is None else _moved(first, 1, anchor.unit))


def _day(of: datetime, now: datetime) -> Span:
    first = datetime.combine(of.astimezone(now.tzinfo).date(), time.min, now.tzinfo).astimezone(UTC)
    return first, first + DAY


def _moved(of: datetime, count: int, name: Unit) -> datetime:
    return datetime.combine(moved(of.date(), count, name), of.timetz())
