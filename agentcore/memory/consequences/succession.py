"""Who takes a deleted memory's part: what it had superseded holds again, unless something newer stands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from agentcore.memory.api import Caller
from agentcore.memory.intake import subjects_of
from agentcore.memory.models import Link
from agentcore.memory.rows.history_rows import Change
from agentcore.memory.rows.owned_rows import Row
from agentcore.memory.rows.subject_rows import SUPERSEDES
from agentcore.memory.storage import MemoryTransaction


async def hand_on(transaction: MemoryTransaction, caller: Caller, deleted: Sequence[Row]) -> list[Row]:
    """Give what deleted memories had superseded to what superseded them, else let it hold; the rows changed.

    Those with `superseded_by` None hold again. An expired memory neither holds nor is given on.
    """
    gone = {row["memory_id"]: row for row in deleted}
    changed: list[Row] = []
    for row in await transaction.subjects.superseded_by(list(gone)):
        successor = _last_of(gone, row["superseded_by"])
        held = {name: successor[name] for name in ("superseded_by", "valid_to")}
        version = await transaction.subjects.succeed(row["memory_id"], **held)
        if held["superseded_by"] is None:
            await transaction.subjects.learn_anew(row["memory_id"], subjects_of(caller.agent_id, row))
            await transaction.clusters.come_late([row["memory_id"]])
        else:
            tie = Link(target_id=row["memory_id"], relation=SUPERSEDES)
            await transaction.links.add(held["superseded_by"], [tie])
        before, after = _plain(row), _plain(held)
        source = caller.token_id, caller.trace_id
        await transaction.history.append(
            Change(row["memory_id"], "successor_deleted", version, *source, before, after)
        )
        changed.append({**row, **held})
    return changed


def _last_of(gone: Mapping[UUID, Row], successor: UUID) -> Row:
    seen: set[UUID] = set()
    while gone[successor]["superseded_by"] in gone.keys() - seen:
        seen.add(successor)
        successor = gone[successor]["superseded_by"]
    return gone[successor]


def _plain(row: Row) -> dict[str, Any]:
    successor, valid_to = row["superseded_by"], row["valid_to"]
    return {
        "superseded_by": successor and str(successor),
        "valid_to": valid_to and valid_to.isoformat(),
    }
