"""Summarizes the session summaries of a day, week or month once there are two or more."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from uuid import UUID

from agentcore.errors import Conflict, DependencyUnavailable, NotFound
from agentcore.memory.api import Caller
from agentcore.memory.consequences.pending_work import (
    BUSY,
    PERIOD_FORM,
    PERIOD_TAG,
    failing_since,
    is_of_one,
    watch_capacity,
)
from agentcore.memory.deriving.remaking import (
    NewSummary,
    SummaryState,
    claim,
    drafted,
    insert,
    keep,
    metadata_of,
    new_content,
    write,
)
from agentcore.memory.deriving.session_summaries import MOST_LOOKS
from agentcore.memory.deriving.summary_providers import AS_SAID, BY_LLM, EXTRACTED, SessionSummary, source_of
from agentcore.memory.models import SUMMARY_RELATION, JsonObject, Link, MemoryType
from agentcore.memory.parts import MemoryParts
from agentcore.memory.rows.memory_rows import Row
from agentcore.memory.summaries.summarizing import Period, period_named, period_of
from agentcore.summary_rules import LLM_PROVIDERS, SummaryRules

BATCH = 200
FEWEST_SESSIONS = 2
# A model reads a period again after growth by this share, or a pause of this fraction of its length.
GROWTH, QUIET_PARTS = 0.25, 24


@dataclass(frozen=True)
class _Place:
    """A period of one user and namespace; `begins`: its summary is to be created if there is none."""

    user_id: str | None
    namespace: str | None
    period: Period
    begins: bool

    @property
    def where(self) -> tuple[Period, str | None, str | None]:
        return self.period, self.user_id, self.namespace


@dataclass(frozen=True)
class _Share:
    rows: list[Row] = field(default_factory=list)
    last: list[Row] = field(default_factory=list)


class PeriodSummarizing:
    """Period summaries of one agent: one batch of pending session summaries a run."""

    def __init__(self, parts: MemoryParts, caller: Caller) -> None:
        self._parts = parts
        self._caller = caller

    async def run(self) -> bool:
        """Processes a batch; returns whether more are pending. Raises DependencyUnavailable: retry later.

        A failure that concerns one period does not stop the others.
        """
        in_vain, later = 0, set[UUID]()
        failed: dict[_Place | None, DependencyUnavailable] = {}
        while in_vain < MOST_LOOKS:
            async with self._parts.storage.transaction(self._caller.agent_id) as transaction:
                rules = await transaction.llm.summary_rules()
                rows = await transaction.summaries.pending_for_periods(BATCH + 1, later)
            batch = rows[:BATCH]
            try:
                later |= await self._tell_all(_gathered(batch, rules), rules, failed)
            except (Conflict, NotFound):
                in_vain += 1
                continue
            if failed:
                raise next(iter(failed.values()))
            if len(rows) <= BATCH or not later.issuperset(row["memory_id"] for row in batch):
                return len(rows) > BATCH
        raise DependencyUnavailable("Others are at work on these sessions.", data={BUSY: True})

    async def _tell_all(
        self,
        shares: Mapping[_Place | None, _Share],
        rules: SummaryRules | None,
        failed: dict[_Place | None, DependencyUnavailable],
    ) -> set[UUID]:
        held_up, later = set[UUID](), set[UUID]()
        for place, share in shares.items():
            if place not in failed:
                state = await self._state(place, share, held_up, rules)
                if self._may_wait(place, state, share):
                    later |= _ids(share.rows)
                    continue
                try:
                    await self._refresh(place, state)
                except DependencyUnavailable as failure:
                    failed[place] = failure
                    if not is_of_one(failure):
                        break
            if place in failed:
                held_up |= _ids(share.rows)
        return later

    def _has_model(self, state: SummaryState) -> bool:
        return self._parts.summariser is not None and self._provider(state.rules) == BY_LLM

    def _may_wait(self, place: _Place | None, state: SummaryState, share: _Share) -> bool:
        """Returns whether a model need not read the period yet: it only has a few new sessions."""
        if place is None or state.row is None or state.stays or not state.is_whole:
            return False
        if not self._has_model(state):
            return False
        has_changed = any(str(each["memory_id"]) in state.named for each in share.rows)
        has_grown = len(state.sources) >= len(state.named) * (1 + GROWTH)
        quiet = (place.period.ends - place.period.starts) / QUIET_PARTS
        is_quiet = max(each["queued_at"] for each in share.rows) + quiet <= self._parts.clock()
        return not (has_changed or has_grown or is_quiet)

    async def _refresh(self, place: _Place | None, state: SummaryState) -> None:
        row = state.row
        begins = place is not None and place.begins and len(state.current_sources) >= FEWEST_SESSIONS
        if place is None or state.stays or (row is None and not begins):
            await keep(self._parts, self._caller, state)
            return
        # A caller's own summary has a speaker, which a quote of it omits.
        messages = [replace(source_of(each), speaker=None) for each in state.sources]
        provider = self._provider(state.rules)
        summary = await new_content(self._parts, self._caller, state, provider, messages)
        if row is None:
            await self._insert(place, state, summary)
        else:
            new = _new_summary(place, state, row, summary) if summary.text else None
            await write(self._parts, self._caller, state, row, new)

    async def _state(
        self, place: _Place | None, share: _Share, held_up: Set[UUID], rules: SummaryRules | None
    ) -> SummaryState:
        row, sources = None, _by_id([])
        if place is not None:
            async with self._parts.storage.transaction(self._caller.agent_id) as transaction:
                memory_id = await transaction.summaries.of_period(*place.where)
                if memory_id is not None:
                    row = await transaction.summaries.summary_row(memory_id)
                    sources = _by_id(await transaction.summaries.sources(memory_id))
                if place.begins:
                    sources |= _by_id(await transaction.summaries.sessions_of(*place.where))
        ordered = sorted(sources.values(), key=lambda each: (each["timestamp"], each["memory_id"]))
        since = failing_since((row["failing_since"] for row in share.rows), self._parts.clock())
        taken = sorted(_ids(share.last) - held_up)
        return SummaryState(row, ordered, rules, "period", taken, sorted(_ids(share.rows)), since)

    def _provider(self, rules: SummaryRules | None) -> str:
        name = EXTRACTED if rules is None else rules.provider
        has_model = self._parts.summariser is not None
        return BY_LLM if name in LLM_PROVIDERS or (name == AS_SAID and has_model) else EXTRACTED

    async def _insert(self, place: _Place, state: SummaryState, summary: SessionSummary) -> None:
        draft = await drafted(
            self._parts,
            self._caller,
            summary,
            _provenance(place, state),
            metadata=_range_metadata(place, state),
            tags=[PERIOD_TAG],
            timestamp=_until(state),
            user_id=place.user_id,
            namespace=place.namespace,
        )
        async with self._parts.storage.transaction(self._caller.agent_id) as transaction:
            await transaction.summaries.lock_periods()
            await claim(transaction, state)
            if await transaction.summaries.of_period(*place.where) is not None:
                raise Conflict("Somebody has told of this period meanwhile.")
            if await insert(transaction, self._caller, summary, draft) is not None:
                layers = [MemoryType.SEMANTIC.value]
                await watch_capacity(transaction, self._parts.capacities, layers, self._parts.clock())


def _by_id(rows: Sequence[Row]) -> dict[UUID, Row]:
    return {row["memory_id"]: row for row in rows}


def _ids(rows: Iterable[Row]) -> set[UUID]:
    return {row["memory_id"] for row in rows}


def _gathered(rows: Sequence[Row], rules: SummaryRules | None) -> dict[_Place | None, _Share]:
    """Groups pending summaries by every period that contains them; the last one dequeues them."""
    gathered: dict[_Place | None, _Share] = {}
    for row in rows:
        labels = {*row["labels"]}
        unit = None if rules is None else rules.period
        own = None if unit is None else period_of(unit, row["timestamp"])
        told = [period_named(each) for each in sorted(labels - {own.label if own else None})]
        places: list[_Place | None] = [_Place(row["user_id"], row["namespace"], each, False) for each in told]
        if own is not None:
            places.append(_Place(row["user_id"], row["namespace"], own, True))
        places = places or [None]
        for place in places:
            gathered.setdefault(place, _Share()).rows.append(row)
        gathered[places[-1]].last.append(row)
    return gathered


def _new_summary(place: _Place, state: SummaryState, row: Row, summary: SessionSummary) -> NewSummary:
    new = [each["memory_id"] for each in state.sources if str(each["memory_id"]) not in state.named]
    links = [Link(target_id=each, relation=SUMMARY_RELATION) for each in new]
    metadata = {**metadata_of(row, summary), **_range_metadata(place, state)}
    provenance = {**row["provenance"], **_provenance(place, state)}
    return NewSummary(summary, metadata, provenance, _until(state), links)


def _provenance(place: _Place, state: SummaryState) -> JsonObject:
    before = {} if state.row is None else state.row["provenance"]
    sources = [str(each["memory_id"]) for each in state.sources]
    gone = [each for each in before.get("sources", []) if each not in sources]
    users = {user for each in state.sources for user in each["provenance"].get("users", [])}
    users |= {each["user_id"] for each in state.sources if each["user_id"] is not None}
    return {
        "form": PERIOD_FORM,
        "period": place.period.label,
        "sources": [*gone, *sources],
        "users": sorted(users.union(before.get("users", []))),
        "of": state.digest,
    }


def _range_metadata(place: _Place, state: SummaryState) -> JsonObject:
    row, began = state.row, [_began(each) for each in state.sources]
    gone = 0
    if row is not None and not state.is_whole:
        began.append(str(row["metadata"].get("from", row["timestamp"].isoformat())))
        gone = len(state.named - {str(each["memory_id"]) for each in state.sources})
    return {
        "period": place.period.label,
        "from": min(began, key=datetime.fromisoformat),
        "until": _until(state).isoformat(),
        "summarised_count": len(state.current_sources) + gone,
    }


def _began(row: Row) -> str:
    # A caller may have changed the metadata.
    said = row["metadata"].get("from") or (row["metadata"].get("compaction") or {}).get("from")
    try:
        moment = datetime.fromisoformat(str(said))
    except ValueError:
        moment = row["timestamp"]
    return (moment if moment.tzinfo is not None else row["timestamp"]).isoformat()


def _until(state: SummaryState) -> datetime:
    ends = [each["timestamp"] for each in state.current_sources]
    if state.row is not None and (not state.is_whole or not ends):
        ends.append(state.row["timestamp"])
    until: datetime = max(ends)
    return until.astimezone(UTC)
