"""Writes supersessions: which memories may supersede which, the rows written, and restored memories."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from agentcore.memory.api import Caller
from agentcore.memory.columns import RuleColumns
from agentcore.memory.consolidation import ECHO_WINDOW, JUDGED_CHARS, echoes, judge, told
from agentcore.memory.intake import Draft
from agentcore.memory.models import FACT_FORM, SUPERSEDES, Link
from agentcore.memory.rows.memory_rows import Change, Lookup, Row, succession
from agentcore.memory.statements.statements import Told
from agentcore.memory.storage import MemoryTransaction

# How many of the newest memories on one subject are compared.
ON_A_SUBJECT = 8
_LASTING = frozenset({"episodic", "semantic"})
# Rule of a fact that is superseded together with its memory.
FOLLOWS = "read from a superseded memory"
# Rule of a message that only repeats a superseded one.
ECHOED = "repeats a superseded memory"
# How many of the newest messages after a superseded one are compared.
IN_ECHO_WINDOW = 32


@dataclass(frozen=True)
class Earlier:
    """A memory that may be superseded.

    `version` None: stored in the same call. `takes_places` False: stored with `supersede: false`. `by_model`:
    a fact that a model extracted.
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
    """One memory supersedes another; `by_version`: only if the successor still has this version."""

    old: Earlier
    by: UUID
    by_version: int | None
    at: datetime
    rule: str


async def write_supersessions(
    transaction: MemoryTransaction, caller: Caller, supersessions: Sequence[Supersession]
) -> list[Row]:
    """Writes supersessions with links and history; returns a row for each one that was still possible.

    Facts extracted from a superseded memory, and messages that only repeat it, are superseded with it.
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


async def _written(transaction: MemoryTransaction, caller: Caller, supersessions: Sequence[Supersession]) -> list[Row]:
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
    await transaction.facts.dequeue_read([*of])
    facts = await transaction.facts.lock_with({key: each.old.superseded_by for key, each in of.items()})
    followed = []
    for row in facts:
        each = of[row["parent_memory_id"]]
        old = replace(each.old, memory_id=row["memory_id"])
        followed.append((replace(each, old=old, rule=FOLLOWS), row["version"] + 1))
    if followed:
        await transaction.facts.supersede([(each.old.memory_id, each.by, each.at) for each, _ in followed])
    return followed


def tie(target_id: UUID, relation: str) -> Link:
    """Returns a link of weight 1, without validation."""
    return Link.model_construct(target_id=target_id, relation=relation, weight=1.0)


def _changes(caller: Caller, each: Supersession, version: int) -> list[Change]:
    old = each.old
    after = {"superseded_by": str(each.by), "valid_to": each.at.isoformat(), "rule": each.rule}
    before = succession(old.superseded_by, old.valid_to)
    source = caller.token_id, caller.trace_id
    taken = {"supersedes": str(old.memory_id), "rule": each.rule}
    return [
        Change(old.memory_id, "superseded", version, *source, before, after),
        Change(each.by, "supersede", None, *source, {}, taken),
    ]


def admits(old: Earlier, new: Earlier) -> bool:
    """Whether scope and layer allow one to supersede the other."""
    layers = {old.memory_type, new.memory_type}
    return not old.pinned and old.namespace == new.namespace and (len(layers) == 1 or layers <= _LASTING)


def may_be_superseded(old: Earlier, new: Earlier) -> bool:
    """Whether `new` may supersede `old`: an extracted fact never supersedes what was said."""
    return old.by_model or not new.by_model


def from_rows(rows: Sequence[Mapping[str, Any]]) -> list[Earlier]:
    """Returns one for each memory, with all subjects that it was found by."""
    subjects: dict[UUID, set[int]] = {}
    for row in rows:
        subjects.setdefault(row["memory_id"], set()).update({row["subject_key"]} - {None})
    unique = {row["memory_id"]: row for row in rows}
    return [
        Earlier(
            memory_id,
            told(RuleColumns.of(row)),
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
    """Returns the memory that a draft will be stored as."""
    columns = each.columns
    return Earlier(
        memory_id,
        told(columns),
        columns.memory_type,
        columns.namespace,
        bool(columns.ttl_seconds),
        columns.pinned,
        None,
        frozenset(columns.subjects),
        each.params.supersede,
        by_model=columns.provenance.get("form") == FACT_FORM,
    )


async def supersede_overtaken(
    transaction: MemoryTransaction,
    caller: Caller,
    copies: Mapping[UUID, Mapping[str, Any]],
    subjects: Mapping[UUID, Sequence[int]],
    archived_at: Mapping[UUID, datetime],
) -> list[UUID]:
    """Supersedes restored memories that newer ones contradict, by the rules of a store; returns their ids.

    `subjects`: subject keys of the restored memories that are current. Only memories stored after the
    archiving count: for earlier ones the rules were applied then.
    """
    keys = sorted({key for stated in subjects.values() for key in stated})
    if not keys:
        return []
    standing = await _standing(transaction, keys)
    found = []
    for memory_id, stated in subjects.items():
        newer = {each.memory_id: each for key in stated for each in standing.get(key, ())}
        supersession = _overtaken(restored(memory_id, copies[memory_id]), newer, archived_at[memory_id])
        if supersession is not None:
            found.append(supersession)
    return [row["memory_id"] for row in await write_supersessions(transaction, caller, found)]


async def _standing(transaction: MemoryTransaction, keys: Sequence[int]) -> dict[int, list[Earlier]]:
    lookup = Lookup(keys, max_chars=JUDGED_CHARS)
    rows = await transaction.subjects.stated_before(lookup, limit=ON_A_SUBJECT)
    by_subject: dict[int, list[Earlier]] = {}
    for each in from_rows(rows):
        for key in each.subjects:
            by_subject.setdefault(key, []).append(each)
    return by_subject


def _overtaken(old: Earlier, newer: Mapping[UUID, Earlier], archived_at: datetime) -> Supersession | None:
    for each in sorted(newer.values(), key=lambda each: (each.told.timestamp, each.memory_id)):
        meanwhile = each.created_at is not None and each.created_at > archived_at
        if not meanwhile or not each.takes_places or not admits(old, each) or not may_be_superseded(old, each):
            continue
        verdict = judge(old.told, each.told)
        if each.memory_id != old.memory_id and verdict.relation == "superseding":
            return Supersession(old, each.memory_id, each.version, each.told.timestamp, verdict.rule)
    return None


def rule_columns_of(copy: Mapping[str, Any]) -> RuleColumns:
    """Returns what an archived copy states."""
    return RuleColumns.of({**copy, "timestamp": datetime.fromisoformat(copy["timestamp"])})


def restored(memory_id: UUID, copy: Mapping[str, Any]) -> Earlier:
    """Returns the memory in an archived copy."""
    return Earlier(
        memory_id,
        told(rule_columns_of(copy)),
        copy["memory_type"],
        copy["namespace"],
        copy["expires_at"] is not None,
        copy["pinned"],
        copy["version"],
        by_model=copy["provenance"].get("form") == FACT_FORM,
    )
