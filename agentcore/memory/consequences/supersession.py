"""One memory takes another's place: what is known of both, whether they meet, and how it is written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from agentcore.memory.api import Caller
from agentcore.memory.consolidation import ECHO_WINDOW, JUDGED_CHARS, echoes, told
from agentcore.memory.intake import Draft
from agentcore.memory.models import FACT_FORM, SUPERSEDES, Link
from agentcore.memory.rows.history_rows import Change
from agentcore.memory.rows.owned_rows import Row
from agentcore.memory.rows.subject_rows import Lookup
from agentcore.memory.statements.statements import Told
from agentcore.memory.storage import MemoryTransaction

# How many of the newest memories on one subject are compared.
ON_A_SUBJECT = 8
_LASTING = frozenset({"episodic", "semantic"})
# The rule by which a fact holds no longer than the memory that a model read it from.
FOLLOWS = "read from a superseded memory"
# The rule by which words that only repeat a memory hold no longer than it.
ECHOED = "repeats a superseded memory"
# So many of the newest said soon behind it are compared.
IN_ECHO_WINDOW = 32


@dataclass(frozen=True)
class Earlier:
    """A memory whose place may be taken; `version` None: it is stored in the same call.

    `takes_places` False: it was stored to stand beside whatever there is. `superseded_by`: it holds no more.
    `by_model`: a model read it from another memory.
    """

    memory_id: UUID
    told: Told
    memory_type: str
    namespace: str | None
    expires: bool
    pinned: bool
    version: int | None
    subjects: frozenset[int] = frozenset()
    takes_places: bool = True
    created_at: datetime | None = None
    superseded_by: UUID | None = None
    valid_to: datetime | None = None
    by_model: bool = False


@dataclass(frozen=True)
class Supersession:
    """One memory takes the place of another; `by_version`: as long as it still stands in that version."""

    old: Earlier
    by: UUID
    by_version: int | None
    at: datetime
    rule: str


async def take_places(
    transaction: MemoryTransaction, caller: Caller, supersessions: Sequence[Supersession]
) -> list[Row]:
    """Write supersessions with their ties and histories; a row for each that was still possible.

    What a model read from a superseded memory is superseded with it, and what only repeats it (`echoes.py`).
    """
    rows = await _written(transaction, caller, supersessions)
    taken = {row["memory_id"] for row in rows}
    repeated = await _echoes(transaction, [each for each in supersessions if each.old.memory_id in taken])
    return [*rows, *await _written(transaction, caller, repeated)]


async def _echoes(transaction: MemoryTransaction, taken: Sequence[Supersession]) -> list[Supersession]:
    stated = [each for each in taken if each.old.told.session_id and each.old.superseded_by is None]
    if not stated:
        return []
    until = [(str(each.old.told.session_id), each.old.told.timestamp + ECHO_WINDOW) for each in stated]
    lookup = Lookup([], until, ECHO_WINDOW.total_seconds(), JUDGED_CHARS)
    rows = await transaction.subjects.stated_before(lookup, limit=0, session_limit=IN_ECHO_WINDOW)
    found: dict[UUID, Supersession] = {}
    for other in from_rows(rows):
        for each in stated:
            if _repeats(other, each):
                found[other.memory_id] = Supersession(other, each.by, each.by_version, each.at, ECHOED)
    return [*found.values()]


def _repeats(other: Earlier, each: Supersession) -> bool:
    behind = (other.told.timestamp, other.memory_id) > (each.old.told.timestamp, each.old.memory_id)
    before = other.memory_id != each.by and other.told.timestamp <= each.at
    return behind and before and admits(other, each.old) and echoes(each.old.told, other.told)


async def _written(
    transaction: MemoryTransaction, caller: Caller, supersessions: Sequence[Supersession]
) -> list[Row]:
    """Writes those that are still possible; returns a row for each."""
    decided = {each.old.memory_id: each for each in supersessions}
    if not decided:
        return []
    rows = await transaction.subjects.supersede(
        [
            {
                "memory_id": each.old.memory_id,
                "version": each.old.version or 1,
                "superseded_by": each.old.superseded_by,
                "successor": each.by,
                "successor_version": each.by_version,
                "moment": each.at,
            }
            for each in decided.values()
        ]
    )
    if not rows:
        return []
    written = [(decided[row["memory_id"]], row["version"]) for row in rows]
    written += await _facts_follow(transaction, [each for each, _ in written])
    await transaction.subjects.forget([each.old.memory_id for each, _ in written])
    ties: dict[UUID, list[Link]] = {}
    changes: list[Change] = []
    for each, version in written:
        ties.setdefault(each.by, []).append(tie(each.old.memory_id, SUPERSEDES))
        changes += _changes(caller, each, version)
    await transaction.links.add_all(ties)
    await transaction.history.append_all(changes)
    return rows


async def _facts_follow(
    transaction: MemoryTransaction, taken: Sequence[Supersession]
) -> list[tuple[Supersession, int]]:
    of = {each.old.memory_id: each for each in taken}
    await transaction.facts.read_no_more([*of])
    facts = await transaction.facts.hold_with({key: each.old.superseded_by for key, each in of.items()})
    followed = []
    for row in facts:
        each = of[row["parent_memory_id"]]
        old = replace(each.old, memory_id=row["memory_id"])
        followed.append((replace(each, old=old, rule=FOLLOWS), row["version"] + 1))
    if followed:
        await transaction.facts.supersede([(each.old.memory_id, each.by, each.at) for each, _ in followed])
    return followed


def tie(target_id: UUID, relation: str) -> Link:
    """A full link; its parts are our own and need no check."""
    return Link.model_construct(target_id=target_id, relation=relation, weight=1.0)


def _changes(caller: Caller, each: Supersession, version: int) -> list[Change]:
    old = each.old
    after = {"superseded_by": str(each.by), "valid_to": each.at.isoformat(), "rule": each.rule}
    before = {
        "superseded_by": old.superseded_by and str(old.superseded_by),
        "valid_to": old.valid_to and old.valid_to.isoformat(),
    }
    source = caller.token_id, caller.trace_id
    taken = {"supersedes": str(old.memory_id), "rule": each.rule}
    return [
        Change(old.memory_id, "superseded", version, *source, before, after),
        Change(each.by, "supersede", None, *source, {}, taken),
    ]


def admits(old: Earlier, new: Earlier) -> bool:
    """Whether the two stand in one scope: before any word is compared."""
    layers = {old.memory_type, new.memory_type}
    return not old.pinned and old.namespace == new.namespace and (len(layers) == 1 or layers <= _LASTING)


def may_give_way(old: Earlier, new: Earlier) -> bool:
    """Whether the one may lose its place to the other: what was said never does to what a model read."""
    return old.by_model or not new.by_model


def from_rows(rows: Sequence[Mapping[str, Any]]) -> list[Earlier]:
    """One for each memory, with all the subjects that it was found by."""
    subjects: dict[UUID, set[int]] = {}
    for row in rows:
        subjects.setdefault(row["memory_id"], set()).update({row["subject_key"]} - {None})
    unique = {row["memory_id"]: row for row in rows}
    return [
        Earlier(
            memory_id,
            told(row),
            row["memory_type"],
            row["namespace"],
            row["expires_at"] is not None,
            row["pinned"],
            row["version"],
            frozenset(subjects[memory_id]),
            row["takes_places"],
            row["created_at"],
            row["superseded_by"],
            row["valid_to"],
            row["by_model"],
        )
        for memory_id, row in unique.items()
    ]


def from_draft(each: Draft, memory_id: UUID) -> Earlier:
    """A memory about to be stored."""
    columns = each.columns
    return Earlier(
        memory_id,
        told(columns),
        columns["memory_type"],
        columns["namespace"],
        bool(columns["ttl_seconds"]),
        columns["pinned"],
        None,
        frozenset(columns["subjects"]),
        each.params.supersede,
        by_model=columns["provenance"].get("form") == FACT_FORM,
    )
