"""Dependencies and configuration of a manager. Opens no resources."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Protocol
from uuid import UUID

from agentcore.database import Row
from agentcore.memory.api import Caller
from agentcore.memory.archival import Archive
from agentcore.memory.embedding_cache import CachingEmbedder
from agentcore.memory.embeddings import Embedder, RelationClassifier
from agentcore.memory.intake import Draft, draft
from agentcore.memory.language.rejection import Screen
from agentcore.memory.llm import FactExtractor, Summariser
from agentcore.memory.llm_limits import LimitedFactJudge, LimitedReranker, LimitedRewriter, LlmMeter
from agentcore.memory.models import MemoryType
from agentcore.memory.params.agent_settings import LayerRules
from agentcore.memory.params.memories import StoreParams
from agentcore.memory.query_samples import QuerySamples
from agentcore.memory.ranking.calibration import CutOffs
from agentcore.memory.ranking.candidates import SearchLimits
from agentcore.memory.rows.vector_index import IndexPolicy
from agentcore.memory.scoring import RetrievalWeights
from agentcore.memory.storage import MemoryStorage
from agentcore.memory.tokens import TokenCounters
from agentcore.memory.vector_store import PgVectorStore
from agentcore.memory.working import WorkingMemory
from agentcore.telemetry import Metrics, Steps

CALLER_VECTORS = "caller"


@dataclass(frozen=True)
class MemoryPolicy:
    """Configuration of one service; `layers`: the defaults of all agents."""

    layers: Mapping[str, LayerRules] = field(default_factory=dict)
    pruning_strategy: str = "least_relevant"
    idempotency_ttl_seconds: int = 7 * 86_400
    embedding_dimensions: int = 384
    weights: RetrievalWeights = field(default_factory=RetrievalWeights)
    retrieve_cut_offs: CutOffs = field(default_factory=CutOffs)
    context_cut_offs: CutOffs = field(default_factory=CutOffs)
    limits: SearchLimits = field(default_factory=SearchLimits)
    indexes: IndexPolicy = field(default_factory=IndexPolicy)
    screen: Screen = field(default_factory=Screen)
    limits_set: Mapping[str, int] = field(default_factory=dict)


class AccessQueue:
    """Accesses not yet counted in the database; flushed in the background."""

    def __init__(self) -> None:
        self._counts: dict[str, Counter[UUID]] = {}
        self._moments: dict[str, dict[UUID, datetime]] = {}

    def __len__(self) -> int:
        return sum(len(counts) for counts in self._counts.values())

    def note(self, agent_id: str, memory_ids: Sequence[UUID], moment: datetime) -> None:
        self._counts.setdefault(agent_id, Counter()).update(memory_ids)
        self._moments.setdefault(agent_id, {}).update(dict.fromkeys(memory_ids, moment))

    def forget(self, agent_id: str) -> None:
        self._counts.pop(agent_id, None)
        self._moments.pop(agent_id, None)

    async def flush(self, storage: MemoryStorage, extend_after_uses: Mapping[str, int] | None = None) -> int:
        """Writes queued accesses, one transaction per agent; failed writes stay queued. Returns the number of memories.

        Memories used as often as their agent's layer rule (default: `extend_after_uses`) requires get a full TTL again.
        """
        flushed = 0
        for agent_id in list(self._counts):
            counts, moments = self._counts.pop(agent_id, None), self._moments.pop(agent_id, {})
            if counts is None:
                # An erasure or another flush took them while this one wrote those of other agents.
                continue
            try:
                async with storage.transaction(agent_id, record_lsn=False) as transaction:
                    await transaction.life.count_accesses(counts, moments, extend_after_uses or {})
            except BaseException:
                self._counts.setdefault(agent_id, Counter()).update(counts)
                self._moments.setdefault(agent_id, {}).update(moments)
                raise
            flushed += len(counts)
        return flushed


def utc_now() -> datetime:
    return datetime.now(UTC)


class JobControl(Protocol):
    """The background jobs of all agents."""

    async def page(self, *, state: str | None, agent_id: str | None, limit: int) -> list[Row]: ...

    async def change(self, agent_id: str, job_id: int, action: str) -> str: ...


@dataclass(frozen=True)
class MemoryParts:
    """Dependencies shared by the managers of all agents. Without an embedder, search is lexical only.

    `vectors_moving`: current vectors are still migrating to their column, which has no index yet.
    """

    storage: MemoryStorage
    vectors: PgVectorStore
    working: WorkingMemory
    archive: Archive | None
    embedder: Embedder | None
    count_tokens: Callable[[str], int]
    token_counters: TokenCounters
    accesses: AccessQueue
    policy: MemoryPolicy
    jobs: JobControl
    metrics: Metrics | None = None
    clock: Callable[[], datetime] = utc_now
    reranker: LimitedReranker | None = None
    rewriter: LimitedRewriter | None = None
    fact_judge: LimitedFactJudge | None = None
    extractor: FactExtractor | None = None
    summariser: Summariser | None = None
    meter: LlmMeter | None = None
    vectors_moving: bool = False
    samples: QuerySamples | None = None
    relations: RelationClassifier | None = None
    # Unrestricted, if `storage` is restricted to the users of a bound token.
    whole_storage: MemoryStorage | None = None

    def for_caller(self, caller: Caller) -> MemoryParts:
        """Returns the parts with the vector cache of its agent, restricted to the users of its token."""
        parts = self
        if isinstance(self.embedder, CachingEmbedder):
            parts = replace(parts, embedder=self.embedder.for_agent(caller.agent_id, caller.users))
        if caller.users is None:
            return parts
        return replace(
            parts,
            storage=self.storage.bound_to(caller.users),
            whole_storage=self.storage,
            vectors=self.vectors.bound_to(caller.users),
            working=self.working.without_copies(),
        )

    def draft(self, params: StoreParams, caller: Caller, now: datetime | None = None) -> Draft:
        """Returns all values of a memory that derive from the params alone. Raises InvalidParams."""
        return draft(
            params,
            caller,
            now=now or self.clock(),
            count_tokens=self.count_tokens,
            default_ttls=self.default_ttls,
            screen=self.policy.screen,
        )

    @property
    def default_ttls(self) -> dict[str, int]:
        """Default TTL in seconds by layer; working memory defaults to the TTL of its copy."""
        named = {layer: rules.ttl_seconds for layer, rules in self.layer_rules.items()}
        return {layer: seconds for layer, seconds in named.items() if seconds is not None}

    @property
    def layer_rules(self) -> dict[str, LayerRules]:
        default = LayerRules(ttl_seconds=self.working.ttl_seconds)
        working = self.policy.layers.get(MemoryType.WORKING.value, default)
        if working.ttl_seconds is None:
            working = working.model_copy(update={"ttl_seconds": default.ttl_seconds})
        return {**self.policy.layers, MemoryType.WORKING.value: working}

    @property
    def capacities(self) -> dict[str, int]:
        """Default capacity by layer; 0 is unlimited."""
        return {layer: rules.capacity or 0 for layer, rules in self.policy.layers.items()}

    @property
    def extend_after_uses(self) -> dict[str, int]:
        """Default number of uses after which a TTL starts again, by layer."""
        return {layer: rules.extend_after_uses or 0 for layer, rules in self.policy.layers.items()}

    @property
    def vector_model(self) -> str:
        """The name stored with vectors: the embedder's model, or CALLER_VECTORS."""
        return self.embedder.model if self.embedder is not None else CALLER_VECTORS

    def steps(self) -> Steps:
        return Steps(self.metrics)
