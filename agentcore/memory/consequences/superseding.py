"""Finds, judges and writes what a new memory supersedes.

A late memory, older than the one that superseded it, is stored as superseded, in its place of the chain.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from uuid import UUID

from agentcore.errors import DependencyUnavailable
from agentcore.memory.api import Caller
from agentcore.memory.columns import RuleColumns
from agentcore.memory.consequences.supersession import (
    ON_A_SUBJECT,
    Earlier,
    Supersession,
    admits,
    from_draft,
    from_rows,
    may_be_superseded,
    tie,
    write_supersessions,
)
from agentcore.memory.consolidation import JUDGED_CHARS, Verdict, judge, told
from agentcore.memory.intake import Draft, subjects_of
from agentcore.memory.models import NEAR_DUPLICATE
from agentcore.memory.parts import MemoryParts
from agentcore.memory.rows.memory_rows import Lookup
from agentcore.memory.statements.statements import Told
from agentcore.memory.storage import MemoryTransaction, NewMemory

# Maximum pairs a call asks the model about, in parallel: the caller waits for them.
JUDGED_PAIRS = 4
_JUDGED = frozenset({"superseding", "possible"})
_UNSTORED = UUID(int=0)


@dataclass(frozen=True)
class Outcome:
    """What a stored memory superseded, and what superseded it."""

    superseded: list[UUID] = field(default_factory=list)
    near_duplicate_of: UUID | None = None
    superseded_by: UUID | None = None
    """Set if the memory was stored late: a newer one had superseded it already."""

    def without(self, missed: Collection[UUID], memory_id: UUID) -> Outcome:
        """Returns the outcome without the memories that could not be superseded any more."""
        superseded = [each for each in self.superseded if each not in missed]
        by = None if memory_id in missed else self.superseded_by
        return replace(self, superseded=superseded, superseded_by=by)


class Superseding:
    """Supersessions of one call: looked up before the transaction, decided and written in it."""

    def __init__(self, parts: MemoryParts, caller: Caller) -> None:
        self._parts = parts
        self._caller = caller
        self._on_subject: dict[int, list[Earlier]] = {}
        self._confirmed: dict[tuple[UUID, str], bool] = {}
        self._asking: list[Draft] = []
        self._verdicts: dict[tuple[Told, Told], Verdict] = {}
        self._decided: dict[UUID, Supersession] = {}
        self._near: dict[UUID, UUID] = {}
        self._tasks: set[str] = set()
        self.taken: list[UUID] = []
        """Memories that were superseded, once written."""
        self.degraded: list[str] = []

    async def look_up(self, drafts: Iterable[Draft]) -> None:
        """Reads the memories that the drafts may supersede."""
        asking = [each for each in drafts if each.params.supersede]
        lookup = _lookup_of(asking)
        if lookup is None:
            return
        for each in await self._read(lookup, min(each.columns.timestamp for each in asking)):
            self._remember(each)
        self._asking = asking
        await self._ask_model(asking)

    async def _read(self, lookup: Lookup, first: datetime) -> list[Earlier]:
        """Returns current memories, and those they superseded after `first`, by id."""
        async with self._parts.storage.transaction(self._caller.agent_id) as transaction:
            rows = await transaction.subjects.stated_before(lookup, limit=ON_A_SUBJECT)
            later = sorted({row["memory_id"] for row in rows if row["timestamp"] > first})
            past = await transaction.subjects.stated_in_line(later, JUDGED_CHARS) if later else []
        keys = [subjects_of(self._caller.agent_id, RuleColumns.of(row)) for row in past]
        known = [{**row, "subject_key": key} for row, own in zip(past, keys, strict=True) for key in own]
        return sorted(from_rows([*rows, *known]), key=lambda earlier: earlier.memory_id)

    def candidates(self) -> set[UUID]:
        """Returns the memories that the drafts may supersede or be near-duplicates of."""
        return {each.memory_id for group in self._on_subject.values() for each in group}

    def changing(self) -> set[UUID]:
        """Returns the candidates that will be superseded, or relinked, if the drafts are stored."""
        return {
            old.memory_id
            for each in self._asking
            for new in [told(each.columns)]
            for old in self._met(each)
            if self._judge(old.told, new).relation == "superseding" or self._confirmed.get((old.memory_id, new.content))
        }

    def _met(self, new: Draft) -> Iterator[Earlier]:
        groups = [self._on_subject.get(key, ()) for key in new.columns.subjects]
        stated = from_draft(new, _UNSTORED)
        return (old for group in groups for old in group if admits(old, stated) and may_be_superseded(old, stated))

    def _judge(self, old: Told, new: Told) -> Verdict:
        verdict = self._verdicts.get((old, new))
        if verdict is None:
            verdict = self._verdicts[old, new] = judge(old, new)
        return verdict

    def _remember(self, each: Earlier) -> None:
        for key in each.subjects:
            self._on_subject.setdefault(key, []).append(each)

    def _before(self, new: Draft) -> list[Earlier]:
        found: list[Earlier] = []
        for key in new.columns.subjects:
            found += self._on_subject.get(key, ())[-ON_A_SUBJECT:]
        lasts = bool(new.columns.ttl_seconds)
        stated = from_draft(new, _UNSTORED)
        unique = {
            old.memory_id: old
            for old in found
            if old.superseded_by is None and admits(old, stated) and (not lasts or old.expires)
        }
        return sorted(unique.values(), key=lambda earlier: earlier.memory_id, reverse=True)

    def _after(self, new: Draft) -> list[Earlier]:
        stated = from_draft(new, _UNSTORED)
        found = {
            each.memory_id: each
            for key in new.columns.subjects
            for each in self._on_subject.get(key, ())
            if each.told.timestamp > stated.told.timestamp
            and each.takes_places
            and admits(stated, each)
            and may_be_superseded(stated, each)
        }
        return sorted(found.values(), key=lambda each: (each.told.timestamp, each.memory_id))

    async def _ask_model(self, asking: Sequence[Draft]) -> None:
        """Asks the model about the pairs that the rules allow; without an answer the rules decide."""
        model = self._parts.fact_judge
        if model is None:
            return
        pairs: list[tuple[Earlier, Told, tuple[Told, Told]]] = []
        for each in asking:
            new, stated = told(each.columns), from_draft(each, _UNSTORED)
            before = (other for other in self._before(each) if may_be_superseded(other, stated))
            pairs += [(other, new, (other.told, new)) for other in before]
            pairs += [(other, new, (new, other.told)) for other in self._after(each)]
        judged = [pair for pair in pairs if self._judge(*pair[2]).relation in _JUDGED]
        asked = judged[:JUDGED_PAIRS]
        verdicts = await model.judge_all([pair[2] for pair in asked], agent_id=self._caller.agent_id)
        missing: list[str] = []
        for (other, new, _), said in zip(asked, verdicts, strict=True):
            if isinstance(said, DependencyUnavailable):
                missing.append(f"fact judge: skipped, {said.message}")
            else:
                self._confirmed[other.memory_id, new.content] = said == "SUPERSEDE"
        self.degraded += dict.fromkeys(missing)

    def decide(self, stored: Sequence[tuple[Draft, NewMemory]]) -> dict[UUID, Outcome]:
        """Decides what each new memory supersedes, memories of the same call included, in order of time."""
        outcomes: dict[UUID, Outcome] = {}
        for each, memory in sorted(stored, key=lambda pair: pair[0].columns.timestamp):
            if each.params.supersede and each.params.superseded_by is None and each.params.valid_to is None:
                outcome = self._decide_one(each, memory)
                outcomes[memory.memory_id] = self._decide_late(each, memory, outcome)
            self._remember(from_draft(each, memory.memory_id))
        return outcomes

    def _held_by(self, each: Earlier) -> UUID | None:
        decided = self._decided.get(each.memory_id)
        return each.superseded_by if decided is None else decided.by

    def _decide(self, *supersessions: Supersession) -> list[UUID]:
        self._decided.update({each.old.memory_id: each for each in supersessions})
        return [each.old.memory_id for each in supersessions]

    def _decide_one(self, each: Draft, memory: NewMemory) -> Outcome:
        new, stated = told(each.columns), from_draft(each, memory.memory_id)
        superseded: list[UUID] = []
        near: UUID | None = None
        for old in self._before(each):
            if self._held_by(old) is not None:
                continue
            verdict = self._judge(old.told, new)
            if may_be_superseded(old, stated) and self._takes_place(old, new, verdict):
                at = each.columns.timestamp
                superseded += self._decide(Supersession(old, memory.memory_id, None, at, verdict.rule))
            elif near is None and verdict.relation in ("near", "same"):
                near = self._near[memory.memory_id] = old.memory_id
        return Outcome(superseded, near)

    def _decide_late(self, each: Draft, memory: NewMemory, outcome: Outcome) -> Outcome:
        new = told(each.columns)
        for later in self._after(each):
            verdict = self._judge(new, later.told)
            if self._takes_place(later, new, verdict):
                stated, at = from_draft(each, memory.memory_id), later.told.timestamp
                cut_off = self._decide(*self._cut_off(stated, later))
                self._decide(Supersession(stated, later.memory_id, later.version, at, verdict.rule))
                superseded = [*outcome.superseded, *cut_off]
                return replace(outcome, superseded=superseded, superseded_by=later.memory_id)
        return outcome

    def _cut_off(self, late: Earlier, later: Earlier) -> Iterator[Supersession]:
        found = {each.memory_id: each for key in late.subjects for each in self._on_subject.get(key, ())}
        for old in found.values():
            if self._held_by(old) == later.memory_id and admits(old, late) and may_be_superseded(old, late):
                verdict = self._judge(old.told, late.told)
                if verdict.relation == "superseding":
                    yield Supersession(old, late.memory_id, None, late.told.timestamp, verdict.rule)

    def _takes_place(self, old: Earlier, new: Told, verdict: Verdict) -> bool:
        """Returns the verdict of the rules, which a model may veto; undecided pairs need its consent."""
        said = self._confirmed.get((old.memory_id, new.content))
        if verdict.relation == "possible":
            return said is True
        return verdict.relation == "superseding" and said is not False

    async def write(self, transaction: MemoryTransaction) -> set[UUID]:
        """Writes what was decided; returns the memories that could not be superseded any more."""
        rows = await write_supersessions(transaction, self._caller, [*self._decided.values()])
        self._tasks |= {row["task_id"] for row in rows if row["task_id"] is not None}
        self.taken = [row["memory_id"] for row in rows]
        await self._link_near(transaction)
        return self._decided.keys() - {row["memory_id"] for row in rows}

    async def _link_near(self, transaction: MemoryTransaction) -> None:
        there = await transaction.existing(self._near.values())
        await transaction.links.add_all(
            {memory_id: [tie(other, NEAR_DUPLICATE)] for memory_id, other in self._near.items() if other in there}
        )

    async def forget_tasks(self) -> None:
        """Evicts working memory of tasks in which a memory was superseded."""
        if self._tasks:
            await self._parts.working.forget(self._caller.agent_id, sorted(self._tasks))


def _lookup_of(asking: Sequence[Draft]) -> Lookup | None:
    keys = sorted({key for each in asking for key in each.columns.subjects})
    return Lookup(keys, max_chars=JUDGED_CHARS) if keys else None
