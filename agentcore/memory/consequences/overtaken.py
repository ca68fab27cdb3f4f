"""What was overtaken while it lay in the archive: restored, it is superseded by the fact stored meanwhile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from agentcore.memory.api import Caller
from agentcore.memory.consequences.supersession import (
    ON_A_SUBJECT,
    Earlier,
    Supersession,
    admits,
    from_rows,
    may_give_way,
    take_places,
)
from agentcore.memory.consolidation import JUDGED_CHARS, judge, told
from agentcore.memory.models import FACT_FORM
from agentcore.memory.rows.subject_rows import Lookup
from agentcore.memory.storage import MemoryTransaction


async def supersede_overtaken(
    transaction: MemoryTransaction,
    caller: Caller,
    copies: Mapping[UUID, Mapping[str, Any]],
    subjects: Mapping[UUID, Sequence[int]],
    archived_at: Mapping[UUID, datetime],
) -> list[UUID]:
    """File what newer facts have the place of by the rules of a store; the memories that hold no longer.

    `subjects`: of what the restored memories state something, those that were not superseded. Only what was
    stored after one was archived can have overtaken it: of what came before, the rules have had their say.
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
    return [row["memory_id"] for row in await take_places(transaction, caller, found)]


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
        if not meanwhile or not each.takes_places or not admits(old, each) or not may_give_way(old, each):
            continue
        verdict = judge(old.told, each.told)
        if each.memory_id != old.memory_id and verdict.relation == "superseding":
            return Supersession(old, each.memory_id, each.version, each.told.timestamp, verdict.rule)
    return None


def restored(memory_id: UUID, copy: Mapping[str, Any]) -> Earlier:
    """A memory as it came back."""
    said = told({**copy, "timestamp": datetime.fromisoformat(copy["timestamp"])})
    return Earlier(
        memory_id,
        said,
        copy["memory_type"],
        copy["namespace"],
        copy["expires_at"] is not None,
        copy["pinned"],
        copy["version"],
        by_model=copy["provenance"].get("form") == FACT_FORM,
    )
