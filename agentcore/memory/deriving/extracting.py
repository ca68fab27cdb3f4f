"""Extracts facts from pending memories by a model, checks and stores them.

If a batch fails, each text is asked about alone: one that fails while others succeed is the cause.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from uuid import UUID

from pydantic import ValidationError

from agentcore.errors import Conflict, DependencyUnavailable, InvalidParams
from agentcore.memory.api import Caller
from agentcore.memory.columns import NewColumns
from agentcore.memory.consequences.pending_work import PATIENCE, failing_since
from agentcore.memory.deriving.summary_providers import requests_of
from agentcore.memory.intake import Draft
from agentcore.memory.language.llm_text import strip_all_reasoning
from agentcore.memory.language.rejection import rejection
from agentcore.memory.language.text import collapse, normal_form, words
from agentcore.memory.llm import Extraction, FactExtractor, SourceText
from agentcore.memory.llm_limits import is_budget_spent
from agentcore.memory.models import FACT_FORM, FACT_TAG, MemoryType
from agentcore.memory.params.memories import StoreParams
from agentcore.memory.parts import MemoryParts
from agentcore.memory.rows.memory_rows import Change, Row
from agentcore.memory.storage import MemoryTransaction
from agentcore.memory.summaries.grounding import SourceTexts, as_read
from agentcore.memory.summaries.summarizing import Source
from agentcore.memory.writing.storing import Storing

# Maximum requests about one text whose answers cannot be parsed.
MOST_TRIES = 5
# Delay before a retry if every text of a batch fails.
LONG_WAIT_SECONDS = 600


@dataclass(frozen=True)
class _Read:
    row: Row
    entities: Sequence[str]
    facts: Sequence[StoreParams]


Ask = Callable[[Sequence[Row]], Awaitable[Sequence[_Read]]]


@dataclass
class Asked:
    """Answers about a batch, memories given up with the reason, and memories to retry."""

    read: list[_Read] = field(default_factory=list)
    without: dict[UUID, str] = field(default_factory=dict)
    again: list[UUID] = field(default_factory=list)
    tried: list[UUID] = field(default_factory=list)
    """To retry alone: the text itself may be the cause."""
    failure: DependencyUnavailable | None = None


async def _ask(model: Ask, batch: Sequence[Row], now: datetime) -> Asked:
    """Asks about memories together, then one by one. A model's failure is returned, not raised."""
    try:
        return Asked([*await model(batch)])
    except DependencyUnavailable as failure:
        if len(batch) > 1 and _may_be_the_texts(failure):
            return await _one_by_one(model, batch, now)
        asked = Asked()
        _fail(asked, batch, failure, now, own_fault=batch[0]["tries"] > 0)
        return asked


async def _one_by_one(model: Ask, batch: Sequence[Row], now: datetime) -> Asked:
    asked = Asked()
    failed: list[tuple[Row, DependencyUnavailable]] = []
    for place, row in enumerate(batch):
        try:
            asked.read += await model([row])
        except DependencyUnavailable as failure:
            if not _may_be_the_texts(failure):
                _fail(asked, [*(each for each, _ in failed), *batch[place:]], failure, now)
                return asked
            failed.append((row, failure))
    if not asked.read:
        last = failed[-1][1]
        message = f"The language model answers no text of {len(batch)}, each by itself: {last.message}"
        data = {**last.data, "retry_after_seconds": LONG_WAIT_SECONDS}
        _fail(asked, batch, DependencyUnavailable(message, data=data), now)
        return asked
    for row, why in failed:
        if why.data.get("refused"):
            asked.without[row["memory_id"]] = why.message
        else:
            _fail(asked, [row], why, now, own_fault=True)
    # Texts at fault are retried alone: the batch itself succeeded.
    asked.failure = None
    return asked


def _fail(
    asked: Asked, rows: Sequence[Row], failure: DependencyUnavailable, now: datetime, *, own_fault: bool = False
) -> None:
    for row in rows:
        given_up = is_budget_spent(failure) or now - failing_since([row["failing_since"]], now) >= PATIENCE
        if given_up or (own_fault and row["tries"] + 1 >= MOST_TRIES):
            asked.without[row["memory_id"]] = failure.message
        else:
            (asked.tried if own_fault else asked.again).append(row["memory_id"])
            asked.failure = failure


def _may_be_the_texts(failure: DependencyUnavailable) -> bool:
    return bool(failure.data.get("refused") or failure.data.get("unreadable"))


BATCH_MEMORIES = 8
MOST_FACTS, MOST_ENTITIES = 8, 16
FACT_CHARS, ENTITY_CHARS = 400, 255
LEAST_WORDS = 3
UNSTORABLE = "The language model answered with what no memory can hold."


class Extracting:
    """Fact extraction of one agent: one batch of the longest pending memories a run."""

    def __init__(self, parts: MemoryParts, caller: Caller) -> None:
        self._parts = parts
        self._caller = caller

    async def run(self) -> bool:
        """Processes a batch; returns whether more are pending. Raises DependencyUnavailable: retry later."""
        extractor = self._parts.extractor
        if extractor is None:
            return False
        async with self._parts.storage.transaction(self._caller.agent_id) as transaction:
            rows = await transaction.llm.pending_for_facts(BATCH_MEMORIES)
        batch = rows[: len(next(requests_of([_source(row) for row in rows]), ()))]
        if not batch:
            return False
        asked = await _ask(partial(self._read, extractor), batch, self._parts.clock())
        settled = await self._store(extractor, batch, asked)
        if asked.again or asked.tried:
            async with self._parts.storage.transaction(self._caller.agent_id) as transaction:
                await transaction.llm.record_failure("facts", asked.again)
                await transaction.llm.record_failure("facts", asked.tried, alone=True)
        if asked.failure is not None:
            raise asked.failure
        return not settled or rows[0]["waiting"] > len(asked.read) + len(asked.without)

    async def _read(self, extractor: FactExtractor, batch: Sequence[Row]) -> list[_Read]:
        sources = await asyncio.to_thread(as_read, [_source(row) for row in batch])
        said = [SourceText(each.content, each.speaker, each.timestamp) for each in sources]
        answers = await extractor.extract(said, agent_id=self._caller.agent_id)
        told = _told_by(extractor)
        try:
            return await asyncio.to_thread(
                lambda: [self._checked(*each, told) for each in zip(batch, sources, answers, strict=True)]
            )
        except ValidationError:
            # `from None`: the message of the cause would quote the answer.
            raise DependencyUnavailable(UNSTORABLE, data={"unreadable": True}) from None

    def _checked(self, row: Row, said: Source, answer: Extraction, told: Mapping[str, str]) -> _Read:
        texts = SourceTexts([said])
        known = normal_form(said.content)
        facts: dict[str, str] = {}
        for given in answer.facts:
            fact = collapse(strip_all_reasoning(given))
            if _is_fact(fact) and texts.holds(fact) and normal_form(fact) != known:
                facts.setdefault(normal_form(fact), fact)
        low = f"{said.speaker or ''} {said.content}".casefold()
        named = (name for each in answer.entities if 0 < len(name := collapse(each)) <= ENTITY_CHARS)
        entities = {each.casefold(): each for each in named if each.casefold() in low}
        items = [_fact(row, fact, told, self._parts) for fact in list(facts.values())[:MOST_FACTS]]
        return _Read(row, list(entities.values())[:MOST_ENTITIES], items)

    async def _store(self, extractor: FactExtractor, batch: Sequence[Row], asked: Asked) -> bool:
        told = {each.row["memory_id"]: _told_by(extractor) for each in asked.read}
        told |= {memory_id: {"degraded": reason} for memory_id, reason in asked.without.items()}
        rows = {row["memory_id"]: row for row in batch if row["memory_id"] in told}
        if not rows:
            return True
        storing = FactStoring(self._parts, self._caller, asked.read, rows, told)
        await storing.run()
        if storing.taken is None:
            async with self._parts.storage.transaction(self._caller.agent_id) as transaction:
                storing.taken = await storing.claim(transaction)
        return len(storing.taken) == len(rows)


class FactStoring(Storing):
    """Stores facts of the memories that are still pending and unchanged."""

    follows = False

    def __init__(
        self,
        parts: MemoryParts,
        caller: Caller,
        read: Sequence[_Read],
        rows: Mapping[UUID, Row],
        told: Mapping[UUID, Mapping[str, str]],
    ) -> None:
        self._rows = rows
        self._told = told
        # In the order of the items.
        self._entities: Iterator[Sequence[str]] = (each.entities for each in read for _ in each.facts)
        self.taken: set[UUID] | None = None
        facts = [fact for each in read for fact in each.facts]
        super().__init__(parts, caller, facts, provenance={"form": FACT_FORM})

    def _make_drafts(self, items: Sequence[StoreParams]) -> list[Draft | InvalidParams]:
        made = super()._make_drafts(items)
        for each, entities in zip(made, self._entities, strict=False):
            if isinstance(each, Draft):
                _name(each.columns, entities)
                parent_id = each.columns.parent_memory_id
                if parent_id is not None and "ttl_seconds" not in self._rows[parent_id]["provenance"]:
                    # The layer's default, not a caller's time to live.
                    each.columns.provenance.pop("ttl_seconds", None)
        return made

    async def claim(self, transaction: MemoryTransaction) -> set[UUID]:
        """Dequeues the memories; returns those that were still pending."""
        versions = {memory_id: row["version"] for memory_id, row in self._rows.items()}
        taken = await transaction.llm.dequeue_unchanged("facts", versions)
        source = self._caller.token_id, self._caller.trace_id
        for memory_id in sorted(taken):
            change = Change(memory_id, "extract_facts", None, *source, {}, dict(self._told[memory_id]))
            await transaction.history.append(change)
        return taken

    async def _check_targets(self, transaction: MemoryTransaction, drafts: Mapping[int, Draft]) -> None:
        # Locked together with what the facts affect: locks are taken in one order.
        earlier, changing = self._superseding.candidates(), self._superseding.changing()
        await transaction.existing(earlier.union(self._rows), changing.union(self._rows))
        taken = self.taken = await self.claim(transaction)
        for index, each in drafts.items():
            if each.params.parent_memory_id not in taken:
                self._refuse(index, Conflict("This memory was read, or changed, meanwhile."))
        await super()._check_targets(transaction, self._open(drafts))


def _told_by(extractor: FactExtractor) -> dict[str, str]:
    return {"by": extractor.model, "prompt": extractor.prompt}


def _source(row: Row) -> Source:
    return Source(row["memory_id"], row["timestamp"], row["speaker"], row["content"], row["relevance_score"])


def _is_fact(text: str) -> bool:
    fits = len(words(text)) >= LEAST_WORDS and len(text) <= FACT_CHARS
    return fits and not text.endswith("?") and rejection(text) is None


def _fact(row: Row, fact: str, told: Mapping[str, str], parts: MemoryParts) -> StoreParams:
    given: dict[str, int] = {}
    if row["expires_at"] is not None and not row["pinned"]:
        # It expires with its memory.
        given["ttl_seconds"] = max(1, int((row["expires_at"] - parts.clock()).total_seconds()))
    return StoreParams(
        content=fact,
        memory_type=MemoryType.SEMANTIC,
        parent_memory_id=row["memory_id"],
        timestamp=row["timestamp"],
        importance=row["relevance_score"],
        tags=[FACT_TAG],
        metadata={"extracted": dict(told)},
        force=True,
        **{name: row[name] for name in ("session_id", "user_id", "namespace")},
        **given,
    )


def _name(columns: NewColumns, entities: Sequence[str]) -> None:
    low = columns.content.casefold()
    own = {each.casefold(): each for each in columns.text.entities}
    found = {each.casefold(): each for each in entities if each.casefold() in low} | own
    columns.text.entities, columns.text.entity_keys = list(found.values()), list(found)
