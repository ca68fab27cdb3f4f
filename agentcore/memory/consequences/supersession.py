"""Supersession: finds, checks and writes what a new memory supersedes, and undoes it.

A late memory, older than the one that superseded it, is stored as superseded, in its place of the chain.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from agentcore.errors import DependencyUnavailable
from agentcore.memory.api import Caller
from agentcore.memory.columns import RuleColumns
from agentcore.memory.contradictions import JUDGED_CHARS, Verdict, judge, rule_input
from agentcore.memory.intake import Draft, subjects_of
from agentcore.memory.models import FACT_FORM, NEAR_DUPLICATE, SUPERSEDES, Link
from agentcore.memory.parts import MemoryParts
from agentcore.memory.rows.memory_rows import Change, Lookup, Row, succession
from agentcore.memory.statements.statements import RuleInput
from agentcore.memory.storage import MemoryTransaction, NewMemory

# How many of the newest memories on one subject are compared.
ON_A_SUBJECT = 8
_LASTING = frozenset({"episodic", "semantic"})
# Rule of a fact that is superseded together with its memory.
FOLLOWS = "read from a superseded memory"


@dataclass(frozen=True)
class Earlier:
    """A memory that may be superseded.

    `version` None: stored in the same call. `takes_places` False: stored with `supersede: false`. `by_model`:
    a fact that a model extracted.
    """

    memory_id: UUID
    told: RuleInput
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

    Facts extracted from a superseded memory are superseded with it.
    """
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
    await transaction.facts.dequeue_facts([*of])
    facts = await transaction.facts.lock_facts_of({key: each.old.superseded_by for key, each in of.items()})
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
            rule_input(RuleColumns.of(row)),
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
        rule_input(columns),
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
        rule_input(rule_columns_of(copy)),
        copy["memory_type"],
        copy["namespace"],
        copy["expires_at"] is not None,
        copy["pinned"],
        copy["version"],
        by_model=copy["provenance"].get("form") == FACT_FORM,
    )


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
        self._verdicts: dict[tuple[RuleInput, RuleInput], Verdict] = {}
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
            for new in [rule_input(each.columns)]
            for old in self._met(each)
            if self._judge(old.told, new).relation == "superseding" or self._confirmed.get((old.memory_id, new.content))
        }

    def _met(self, new: Draft) -> Iterator[Earlier]:
        groups = [self._on_subject.get(key, ()) for key in new.columns.subjects]
        stated = from_draft(new, _UNSTORED)
        return (old for group in groups for old in group if admits(old, stated) and may_be_superseded(old, stated))

    def _judge(self, old: RuleInput, new: RuleInput) -> Verdict:
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
        pairs: list[tuple[Earlier, RuleInput, tuple[RuleInput, RuleInput]]] = []
        for each in asking:
            new, stated = rule_input(each.columns), from_draft(each, _UNSTORED)
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
        new, stated = rule_input(each.columns), from_draft(each, memory.memory_id)
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
        new = rule_input(each.columns)
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

    def _takes_place(self, old: Earlier, new: RuleInput, verdict: Verdict) -> bool:
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
