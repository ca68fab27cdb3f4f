"""Consolidates: finds clusters of new episodes, writes their summaries, archives their sources."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from agentcore.errors import Conflict, DependencyUnavailable, InvalidParams
from agentcore.memory.api import Caller
from agentcore.memory.consequences.pending_work import mark_summaries_stale, watch_capacity
from agentcore.memory.deriving.summary_providers import SessionSummary, SummaryWriter, requests_of
from agentcore.memory.forgetting.removing import PRUNE_CHUNK, Pruning, Removed
from agentcore.memory.intake import Draft
from agentcore.memory.language.rejection import rejection
from agentcore.memory.models import SUMMARY_RELATION, Link, MemoryType
from agentcore.memory.params.agent_settings import ConsolidatedCluster, ConsolidateParams
from agentcore.memory.params.memories import PruneParams, StoreParams
from agentcore.memory.parts import MemoryParts
from agentcore.memory.pruning import Prunable
from agentcore.memory.rows.archive_rows import Tombstone
from agentcore.memory.rows.derived_rows import CLUSTER_SUMMARY_KIND
from agentcore.memory.rows.memory_rows import Change, Row
from agentcore.memory.rows.vector_rows import index_settings
from agentcore.memory.storage import MemoryTransaction, NewMemory, mint_memory_id
from agentcore.memory.summaries.clustering import Cluster, Episode, ExistingSummary, clusters, facts_of
from agentcore.memory.summaries.summarizing import Source, shared
from agentcore.memory.writing.document_vectors import vector_columns
from agentcore.summary_rules import SummaryRules

TOO_LONG = "the sources exceed the size limit of one model request"
SUMMARY_TAG = "consolidated"
MIN_AGE = timedelta(days=1)
PAGE, NEIGHBOURS, SEEDS_PER_QUERY, MAX_CHANGED = 200, 24, 25, 100
MAX_PROCESSED = 2_000
# Shorter than REQUEST_TIMEOUT, and than one job may block others.
DEADLINE_SECONDS = 12.0
MAX_ARCHIVED = 2 * PRUNE_CHUNK
# A transaction may commit an id older than one already read: ids of this last period are read again.
COMMIT_GRACE = timedelta(minutes=5)
MIN_TOKENS, MAX_TOKENS = 40, 400
# Falls back to extraction at the first failure: "failing since the beginning of time" exceeds every retry period.
FAILING_FOREVER = datetime.min.replace(tzinfo=UTC)
INHERITED_FIELDS = ("user_id", "namespace", "speaker", "session_id")
NO_ARCHIVE = "archive_sources requires an archive: set MEMORY_ARCHIVAL_ENABLED=true"


@dataclass
class Consolidated:
    clusters: list[ConsolidatedCluster] = field(default_factory=list)
    looked_at_count: int = 0
    too_young_count: int = 0
    archived: list[UUID] = field(default_factory=list)
    complete: bool = True


@dataclass(frozen=True)
class _Page:
    memory_ids: list[UUID]
    last: bool


class Consolidating:
    def __init__(
        self, parts: MemoryParts, caller: Caller, params: ConsolidateParams, *, by_model: bool = False
    ) -> None:
        self._parts = parts
        self._caller = caller
        self._params = params
        self._by_model = by_model
        self._now = parts.clock()
        self._before = self._now - MIN_AGE
        self._done = Consolidated()
        self.degraded: list[str] = []

    async def run(self) -> Consolidated:
        """Resumes after the last run; with `again`, starts over. Raises InvalidParams, DependencyUnavailable."""
        if self._params.archive_sources and self._parts.archive is None:
            raise InvalidParams(NO_ARCHIVE, data={"field": "archive_sources"})
        if self._parts.vectors_moving:
            raise DependencyUnavailable(
                "Consolidation is unavailable while memories are re-embedded: retry afterwards."
            )
        await self._process_new_episodes()
        if self._params.archive_sources and self._done.complete:
            removed = await SourcePruning(self._parts, self._caller, self._params).run()
            self._done.archived = removed.memory_ids
            self._done.complete = removed.complete
        return self._done

    async def _summarize_clusters(self, memory_ids: Sequence[UUID]) -> None:
        found, rows = await self._clusters(memory_ids)
        for cluster in found:
            await self._store_summary(cluster, rows)

    async def _process_new_episodes(self) -> None:
        clock = asyncio.get_running_loop().time
        ends_at, done = clock() + DEADLINE_SECONDS, self._done
        async with self._parts.storage.transaction(self._caller.agent_id) as transaction:
            _, after = await transaction.clusters.settings()
            changed = await transaction.clusters.changed_sources(MAX_CHANGED)
            done.too_young_count = await transaction.clusters.count_young(self._before)
        after, after_late = None if self._params.again else after, None
        while True:
            page, late = await self._read_page(after, after_late)
            await self._summarize_clusters([*page.memory_ids, *late, *changed])
            if not self._params.dry_run:
                await self._save_progress(after, page, late)
            done.looked_at_count += len({*page.memory_ids, *late})
            after = page.memory_ids[-1] if page.memory_ids else after
            after_late = late[-1] if late else after_late
            changed = []
            last = page.last and len(late) < PAGE
            if last or done.looked_at_count >= MAX_PROCESSED or clock() >= ends_at:
                done.complete = last
                return

    async def _read_page(self, after: UUID | None, after_late: UUID | None) -> tuple[_Page, list[UUID]]:
        async with self._parts.storage.transaction(self._caller.agent_id) as transaction:
            rows = await transaction.clusters.episodes_after(after, PAGE)
            late = await transaction.clusters.late(self._parts.vector_model, self._before, after_late, PAGE)
        ids: list[UUID] = []
        for row in rows:
            if row["timestamp"] > self._before and row["created_at"] > self._before:
                return _Page(ids, last=True), late
            ids.append(row["memory_id"])
        return _Page(ids, last=len(rows) < PAGE), late

    async def _save_progress(self, after: UUID | None, page: _Page, late: Sequence[UUID]) -> None:
        """Stores the position; at the end never beyond rows of transactions that may still be open."""
        async with self._parts.storage.transaction(self._caller.agent_id) as transaction:
            if page.memory_ids:
                reached = page.memory_ids[-1]
                if page.last:
                    # The smallest UUIDv7 of that time.
                    stable_id = UUID(int=int((self._now - COMMIT_GRACE).timestamp() * 1_000) << 80)
                    reached = min(reached, stable_id if after is None else max(after, stable_id))
                await transaction.clusters.save_progress(reached, page.memory_ids[-1])
        # A transaction of its own: no other locks the agent's settings and these rows together.
        async with self._parts.storage.transaction(self._caller.agent_id) as transaction:
            if late:
                await transaction.clusters.dequeue_late(late)

    async def _clusters(self, seeds: Sequence[UUID]) -> tuple[list[Cluster], Mapping[UUID, Row]]:
        if not seeds:
            return [], {}
        model = self._parts.vector_model
        pairs = await self._pairs(seeds)
        async with self._parts.storage.transaction(self._caller.agent_id) as transaction:
            near = {memory_id for pair in pairs for memory_id in pair} | {*seeds}
            summaries = await transaction.clusters.current_summaries(sorted(near))
            wanted = near | {each for row in summaries for each in row["member_ids"]}
            episodes = await transaction.clusters.episodes(sorted(wanted), model, self._before)
        rows = {row["memory_id"]: row for row in episodes}
        return await asyncio.to_thread(_find_clusters, rows, summaries, pairs), rows

    async def _pairs(self, seeds: Sequence[UUID]) -> list[tuple[UUID, UUID]]:
        parts, agent_id, model = self._parts, self._caller.agent_id, self._parts.vector_model
        size = (await parts.vectors.statistics(agent_id, [])).memory_count
        index = None
        if size > parts.policy.limits.exact_search_limit:
            index = await parts.storage.indexes.of(agent_id, model)
            if index is not None and not index.is_faster_for(size):
                index = None
        dimensions = None if index is None else parts.policy.embedding_dimensions
        pairs: list[tuple[UUID, UUID]] = []
        for start in range(0, len(seeds), SEEDS_PER_QUERY):
            asked = seeds[start : start + SEEDS_PER_QUERY]
            async with parts.storage.transaction(agent_id) as transaction:
                if index is not None:
                    await transaction.clusters.set_for_transaction(index_settings(index, filtered=True))
                pairs += await transaction.clusters.near(asked, model, self._before, NEIGHBOURS, dimensions=dimensions)
        return pairs

    async def _store_summary(self, cluster: Cluster, rows: Mapping[UUID, Row]) -> None:
        members = [rows[each.memory_id] for each in cluster.members]
        summary = await self._summary(members)
        if not summary.text:
            return
        each = await asyncio.to_thread(self._draft, cluster, members, summary)
        memory_id = None
        if not self._params.dry_run:
            [each.columns.vector], degraded = await vector_columns(self._parts, [each.derived.embedding_text])
            self.degraded += degraded
            memory_id = await self._write(cluster, each)
            if memory_id is None:
                return
        self._done.clusters.append(
            ConsolidatedCluster(
                memory_id=memory_id,
                source_ids=[member.memory_id for member in cluster.members],
                summary=each.columns.content,
                facts=each.columns.text.facts,
                replaces=cluster.replaces,
            )
        )

    async def _summary(self, members: Sequence[Row]) -> SessionSummary:
        sources = [
            Source(row["memory_id"], row["timestamp"], None, row["content"], row["relevance_score"]) for row in members
        ]
        max_tokens = max(MIN_TOKENS, min(MAX_TOKENS, sum(row["token_count"] for row in members) // 2))
        # A failing model is not asked again: the cluster is summarized once.
        writer = SummaryWriter(self._parts, self._caller.agent_id, SummaryRules(max_tokens=max_tokens), FAILING_FOREVER)
        if not self._by_model:
            return await writer.extracted(sources)
        if len([*requests_of(sources)]) > 1:
            return await writer.extracted(sources, TOO_LONG)
        return await writer.by_model(sources)

    def _draft(self, cluster: Cluster, members: Sequence[Row], summary: SessionSummary) -> Draft:
        sources = [str(member.memory_id) for member in cluster.members]
        origin = summary.origin if self._by_model else {}
        each = self._parts.draft(
            StoreParams(
                content=summary.content,
                memory_type=MemoryType.SEMANTIC,
                timestamp=members[-1]["timestamp"],
                importance=max(row["relevance_score"] for row in members),
                tags=[SUMMARY_TAG],
                metadata={"sources": sources, **origin},
                links=[Link(target_id=each.memory_id, relation=SUMMARY_RELATION) for each in cluster.members],
                idempotency_key=f"{CLUSTER_SUMMARY_KIND}:{cluster.digest}",
                force=True,
                supersede=False,
                **{name: shared(row[name] for row in members) for name in INHERITED_FIELDS},
            ),
            self._caller,
            self._now,
        )
        each.columns.text.facts = facts_of(fact for row in members for fact in row["facts"])
        each.columns.provenance |= {"form": CLUSTER_SUMMARY_KIND, "digest": cluster.digest, "sources": sources}
        return each

    async def _write(self, cluster: Cluster, each: Draft) -> UUID | None:
        params = each.params
        digest = hashlib.sha256(cluster.digest.encode()).digest()
        memory = NewMemory(mint_memory_id(), each.columns, params.links, params.idempotency_key, digest)
        ids = [member.memory_id for member in cluster.members]
        async with self._parts.storage.transaction(self._caller.agent_id) as transaction:
            await transaction.clusters.lock_consolidation()
            # All in the strongest mode needed: upgrading a lock later could deadlock with a store.
            replacing = [] if cluster.replaces is None else [*ids, cluster.replaces]
            await transaction.existing(replacing or ids, replacing)
            locked_digests = await transaction.clusters.lock_episodes(ids)
            current_summaries = {row["memory_id"] for row in await transaction.clusters.current_summaries(ids)}
            expected_digests = {member.memory_id: member.digest for member in cluster.members}
            if (locked_digests, current_summaries) != (expected_digests, {cluster.replaces} - {None}):
                return None
            ttl_seconds = self._parts.policy.idempotency_ttl_seconds
            if await transaction.claim_keys([memory], ttl_seconds):
                return None
            await transaction.insert([memory])
            made = {"sources": [*map(str, ids)], "replaces": cluster.replaces and str(cluster.replaces)}
            source = self._caller.token_id, self._caller.trace_id
            await transaction.history.append(Change(memory.memory_id, "consolidate", 1, *source, {}, made))
            if cluster.replaces is not None:
                await self._supersede(transaction, cluster.replaces, memory.memory_id)
                await mark_summaries_stale(transaction, [cluster.replaces])
            layers = [MemoryType.SEMANTIC.value]
            await watch_capacity(transaction, self._parts.capacities, layers, self._now)
        return memory.memory_id

    async def _supersede(self, transaction: MemoryTransaction, old: UUID, new: UUID) -> None:
        version = await transaction.clusters.supersede(old, new, self._now)
        if version is not None:
            before = {"superseded_by": None, "valid_to": None}
            after = {"superseded_by": str(new), "valid_to": self._now.isoformat()}
            source = self._caller.token_id, self._caller.trace_id
            await transaction.history.append(Change(old, "supersede", version, *source, before, after))


class SourcePruning(Pruning):
    def __init__(self, parts: MemoryParts, caller: Caller, params: ConsolidateParams) -> None:
        pruning = PruneParams(memory_layer=MemoryType.EPISODIC, dry_run=params.dry_run)
        super().__init__(parts, caller, pruning)
        self._strategy = CLUSTER_SUMMARY_KIND
        self._archive_before = parts.clock() - timedelta(days=params.archive_sources_after_days)
        self._more = False

    async def run(self) -> Removed:
        try:
            removed = await super().run()
        except Conflict:
            return Removed(complete=False)
        removed.complete = removed.complete and not self._more
        return removed

    async def _select(self) -> list[Prunable]:
        async with self._parts.storage.transaction(self._caller.agent_id) as transaction:
            rows = await transaction.clusters.summarised(self._archive_before, MAX_ARCHIVED + 1)
        self._more = len(rows) > MAX_ARCHIVED
        return [Prunable(**row, access_count=0, last_accessed=None) for row in rows[:MAX_ARCHIVED]]

    async def _copied(
        self, transaction: MemoryTransaction, held: Sequence[UUID], place: UUID | None
    ) -> list[Tombstone]:
        tombstones = await super()._copied(transaction, held, place)
        source = self._caller.token_id, self._caller.trace_id
        await transaction.clusters.record_archived_sources(held, *source)
        return tombstones


def _find_clusters(
    rows: Mapping[UUID, Row], summaries: Sequence[Row], pairs: Sequence[tuple[UUID, UUID]]
) -> list[Cluster]:
    intact = [row for row in summaries if _has_all_sources(row, rows)]
    excluded_ids = {each for row in summaries if row not in intact for each in row["member_ids"]}
    summarized_ids = {each for row in intact for each in row["member_ids"]}
    episodes = [_episode(row) for row in rows.values() if _is_eligible(row, summarized_ids, excluded_ids)]
    eligible_ids = {each.memory_id for each in episodes}
    existing = [
        ExistingSummary(row["memory_id"], frozenset(eligible_ids.intersection(row["member_ids"])), row["digest"])
        for row in intact
    ]
    vectors = {memory_id: _normalized(rows[memory_id]) for memory_id in eligible_ids}
    return clusters(episodes, vectors, pairs, existing)


def _has_all_sources(summary: Row, rows: Mapping[UUID, Row]) -> bool:
    members = {*summary["member_ids"]}
    return members <= rows.keys() and {*summary["source_ids"]} == {str(each) for each in members}


def _is_eligible(row: Row, summarized_ids: set[UUID], excluded_ids: set[UUID]) -> bool:
    if row["memory_id"] in excluded_ids:
        return False
    if row["memory_id"] in summarized_ids:
        return not row["superseded"]
    says_something = not row["content"].rstrip().endswith("?") and rejection(row["content"]) is None
    return bool(row["free"]) and says_something


def _episode(row: Row) -> Episode:
    return Episode(
        row["memory_id"],
        row["timestamp"],
        (row["user_id"], row["namespace"], row["speaker"]),
        row["content"],
        frozenset(row["entity_keys"]),
        tuple(row["keywords"]),
        bytes(row["content_hash"]).hex(),
    )


def _normalized(row: Row) -> NDArray[np.float32]:
    vector = np.asarray(row["embedding"].to_numpy(), dtype=np.float32)
    return np.asarray(vector / max(float(np.linalg.norm(vector)), 1e-9), dtype=np.float32)
