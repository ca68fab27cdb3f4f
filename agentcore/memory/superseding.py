"""Superseding, as a story: what a new memory takes the place of is looked up, judged, and written with it.

An old memory is never changed but for when it held and what holds now; `reinstate` takes that back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from agentcore.errors import DependencyUnavailable
from agentcore.memory.api import Caller
from agentcore.memory.consolidation import Verdict, judge, told
from agentcore.memory.corrections import CORRECTION_WINDOW, corrects
from agentcore.memory.history_rows import Change
from agentcore.memory.intake import Draft
from agentcore.memory.models import Link
from agentcore.memory.parts import MemoryParts
from agentcore.memory.statements import READ_CHARS, Told
from agentcore.memory.storage import MemoryTransaction, NewMemory
from agentcore.memory.subject_rows import NEAR_DUPLICATE, SUPERSEDES, Lookup

# How many of the newest memories on one subject, and of one session, are compared.
ON_A_SUBJECT, IN_A_SESSION = 8, 4
# A model is asked about so few pairs a call: whoever stores waits for it.
JUDGED_PAIRS = 4
_JUDGED = frozenset({"superseding", "possible"})
_LASTING = frozenset({"episodic", "semantic"})


@dataclass(frozen=True)
class Earlier:
    """A memory whose place may be taken; `version` None: it is stored in the same call."""

    memory_id: UUID
    told: Told
    memory_type: str
    namespace: str | None
    expires: bool
    pinned: bool
    version: int | None
    subjects: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Outcome:
    """What a stored memory means for earlier ones."""

    superseded: list[UUID] = field(default_factory=list)
    near_duplicate_of: UUID | None = None


@dataclass(frozen=True)
class _Supersession:
    old: Earlier
    by: UUID
    at: datetime
    rule: str


class Superseding:
    """One call's supersessions: looked up before the transaction, decided and written inside it."""

    def __init__(self, parts: MemoryParts, caller: Caller) -> None:
        self._parts = parts
        self._caller = caller
        self._on_subject: dict[int, list[Earlier]] = {}
        self._in_session: dict[str, list[Earlier]] = {}
        self._confirmed: dict[tuple[UUID, str], bool] = {}
        self._decided: list[_Supersession] = []
        self._near: dict[UUID, UUID] = {}
        self._tasks: set[str] = set()
        self.degraded: list[str] = []

    async def look_up(self, drafts: Iterable[Draft]) -> None:
        """Read what the drafts may take the place of; nothing where none states or corrects anything."""
        asking = [each for each in drafts if each.params.supersede]
        keys = {key for each in asking for key in each.columns["subjects"]}
        sessions = {
            each.columns["session_id"]: each.columns["timestamp"]
            for each in asking
            if each.columns["session_id"] is not None and corrects(told(each.columns).content)
        }
        if not keys and not sessions:
            return
        window_seconds = CORRECTION_WINDOW.total_seconds()
        lookup = Lookup(sorted(keys), list(sessions.items()), window_seconds, 2 * READ_CHARS)
        async with self._parts.storage.transaction(self._caller.agent_id) as transaction:
            rows = await transaction.subjects.stated_before(
                lookup, limit=ON_A_SUBJECT, session_limit=IN_A_SESSION
            )
        for each in sorted(_from_rows(rows), key=lambda earlier: earlier.memory_id):
            self._remember(each)
        await self._ask_model(asking)

    def _remember(self, each: Earlier) -> None:
        for key in each.subjects:
            self._on_subject.setdefault(key, []).append(each)
        if each.told.session_id is not None:
            self._in_session.setdefault(each.told.session_id, []).append(each)

    def _before(self, new: Draft) -> list[Earlier]:
        """What the new memory may take the place of, the newest first."""
        found: list[Earlier] = []
        for key in new.columns["subjects"]:
            found += self._on_subject.get(key, ())[-ON_A_SUBJECT:]
        if corrects(told(new.columns).content):
            found += self._in_session.get(new.columns["session_id"] or "", ())[-IN_A_SESSION:]
        unique = {old.memory_id: old for old in found if _admits(old, new)}
        return sorted(unique.values(), key=lambda earlier: earlier.memory_id, reverse=True)

    async def _ask_model(self, asking: Sequence[Draft]) -> None:
        """Let the model, where there is one, say of the pairs that the rules allow what they are."""
        model = self._parts.fact_judge
        if model is None:
            return
        pairs = [
            (old, new)
            for new in asking
            for old in self._before(new)
            if judge(old.told, told(new.columns)).relation in _JUDGED
        ]
        for old, new in pairs[:JUDGED_PAIRS]:
            content = told(new.columns).content
            try:
                said = await model.judge(old.told, told(new.columns), agent_id=self._caller.agent_id)
            except DependencyUnavailable as failure:
                self.degraded.append(f"fact judge: skipped, {failure.message}")
                return
            self._confirmed[old.memory_id, content] = said == "SUPERSEDE"

    def decide(self, stored: Sequence[tuple[Draft, NewMemory]]) -> dict[UUID, Outcome]:
        """What each memory about to be stored means for those before it, of this call too."""
        outcomes: dict[UUID, Outcome] = {}
        gone: set[UUID] = set()
        for each, memory in stored:
            if each.params.supersede and each.params.superseded_by is None and each.params.valid_to is None:
                outcome = self._decide_one(each, memory, gone)
                gone.update(outcome.superseded)
                outcomes[memory.memory_id] = outcome
            self._remember(_from_draft(each, memory))
        return outcomes

    def _decide_one(self, each: Draft, memory: NewMemory, gone: set[UUID]) -> Outcome:
        new = told(each.columns)
        superseded: list[UUID] = []
        near: UUID | None = None
        for old in self._before(each):
            if old.memory_id in gone:
                continue
            verdict = judge(old.told, new)
            if self._takes_place(old, new, verdict):
                superseded.append(old.memory_id)
                self._decided.append(
                    _Supersession(old, memory.memory_id, each.columns["timestamp"], verdict.rule)
                )
            elif near is None and verdict.relation in ("near", "same"):
                near = self._near[memory.memory_id] = old.memory_id
        return Outcome(superseded, near)

    def _takes_place(self, old: Earlier, new: Told, verdict: Verdict) -> bool:
        """The rules' word, which a model may veto; what the rules leave open, only with the model's."""
        said = self._confirmed.get((old.memory_id, new.content))
        if verdict.relation == "possible":
            return said is True
        return verdict.relation == "superseding" and said is not False

    async def write(self, transaction: MemoryTransaction) -> set[UUID]:
        """Write what was decided; the memories whose place was not taken after all."""
        decided = {each.old.memory_id: each for each in self._decided}
        rows = []
        if decided:
            rows = await transaction.subjects.supersede(
                [(each.old.memory_id, each.old.version or 1, each.by, each.at) for each in decided.values()]
            )
            await transaction.subjects.forget([row["memory_id"] for row in rows])
        for row in rows:
            await self._tell(transaction, decided[row["memory_id"]], row["version"])
            if row["task_id"] is not None:
                self._tasks.add(row["task_id"])
        await self._link_near(transaction)
        return set(decided) - {row["memory_id"] for row in rows}

    async def _link_near(self, transaction: MemoryTransaction) -> None:
        there = await transaction.existing(self._near.values())
        for memory_id, other in self._near.items():
            if other in there:
                await transaction.links.add(memory_id, [Link(target_id=other, relation=NEAR_DUPLICATE)])

    async def _tell(self, transaction: MemoryTransaction, each: _Supersession, version: int) -> None:
        """Tie both, and write both into the history."""
        await transaction.links.add(each.by, [Link(target_id=each.old.memory_id, relation=SUPERSEDES)])
        after = {"superseded_by": str(each.by), "valid_to": each.at.isoformat(), "rule": each.rule}
        before = {"superseded_by": None, "valid_to": None}
        source = self._caller.token_id, self._caller.trace_id
        history = transaction.history
        await history.append(Change(each.old.memory_id, "superseded", version, *source, before, after))
        taken = {"supersedes": str(each.old.memory_id), "rule": each.rule}
        await history.append(Change(each.by, "supersede", None, *source, {}, taken))

    async def forget_tasks(self) -> None:
        """Let working memory be read anew where a memory of a task was superseded."""
        if self._tasks:
            await self._parts.working.forget(self._caller.agent_id, sorted(self._tasks))


def _admits(old: Earlier, new: Draft) -> bool:
    """Whether the two stand in one scope and the new one lasts as long: before any word is compared."""
    columns = new.columns
    layers = {old.memory_type, columns["memory_type"]}
    if old.pinned or old.namespace != columns["namespace"] or (len(layers) > 1 and not layers <= _LASTING):
        return False
    return not columns["ttl_seconds"] or old.expires


def _from_rows(rows: Sequence[Mapping[str, Any]]) -> list[Earlier]:
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
        )
        for memory_id, row in unique.items()
    ]


def _from_draft(each: Draft, memory: NewMemory) -> Earlier:
    columns = each.columns
    return Earlier(
        memory.memory_id,
        told(columns),
        columns["memory_type"],
        columns["namespace"],
        bool(columns["ttl_seconds"]),
        columns["pinned"],
        None,
        frozenset(columns["subjects"]),
    )
