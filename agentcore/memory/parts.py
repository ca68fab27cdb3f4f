"""What a manager is given: the parts it works with and the figures it works by. Opens and decides nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from uuid import UUID

from agentcore.memory.api import Caller
from agentcore.memory.archival import Archive
from agentcore.memory.embedding_cache import CachingEmbedder
from agentcore.memory.embeddings import Embedder, RelationClassifier
from agentcore.memory.intake import Draft, draft
from agentcore.memory.language.rejection import Screen
from agentcore.memory.llm import FactExtractor, Summariser
from agentcore.memory.llm_limits import LimitedFactJudge, LimitedReranker, LimitedRewriter, LlmMeter
from agentcore.memory.models import MemoryType
from agentcore.memory.params.memories import StoreParams
from agentcore.memory.params.own_rules import LayerRules
from agentcore.memory.query_samples import QuerySamples
from agentcore.memory.ranking.calibration import CutOffs
from agentcore.memory.ranking.candidates import SearchLimits
from agentcore.memory.rows.vector_index import IndexPolicy
from agentcore.memory.scoring import RetrievalWeights
from agentcore.memory.storage import MemoryStorage
from agentcore.memory.tokens import TokenCounters
from agentcore.memory.vector_store import VectorStore
from agentcore.memory.working import WorkingMemory
from agentcore.telemetry import Metrics, Steps

CALLER_VECTORS = "caller"


@dataclass(frozen=True)
class MemoryPolicy:
    """The figures of one service, times in seconds; `layers` holds for agents without rules of their own."""

    layers: Mapping[str, LayerRules] = field(default_factory=dict)
    pruning_strategy: str = "least_relevant"
    idempotency_ttl_seconds: int = 7 * 86_400
    embedding_dimensions: int = 384
    weights: RetrievalWeights = field(default_factory=RetrievalWeights)
    retrieve_cut_offs: CutOffs = field(default_factory=CutOffs)
    context_cut_offs: CutOffs = field(default_factory=CutOffs)
    limits: SearchLimits = field(default_factory=SearchLimits)
    indexes: IndexPolicy = field(default_factory=IndexPolicy)
    # The names of the patterns of injected instructions that a text matches.
    screen: Screen = field(default_factory=Screen)
    # Of a context's room, what is kept for summaries of what has none; None: they are not looked up.
    summaries_share: float | None = 0.0
    # Limits that settings decide, by the setting.
    limits_set: Mapping[str, int] = field(default_factory=dict)


class AccessQueue:
    """Accesses not yet counted in the database; they are flushed off the request's path."""

    def __init__(self) -> None:
        self._counts: dict[str, Counter[UUID]] = {}
        self._moments: dict[str, dict[UUID, datetime]] = {}

    def __len__(self) -> int:
        return sum(len(counts) for counts in self._counts.values())

    def note(self, agent_id: str, memory_ids: Sequence[UUID], moment: datetime) -> None:
        """Remember that these memories were given out at this moment."""
        self._counts.setdefault(agent_id, Counter()).update(memory_ids)
        self._moments.setdefault(agent_id, {}).update(dict.fromkeys(memory_ids, moment))

    def forget(self, agent_id: str) -> None:
        """Drop what has gathered of an agent."""
        self._counts.pop(agent_id, None)
        self._moments.pop(agent_id, None)

    async def flush(self, storage: MemoryStorage, extend_after_uses: Mapping[str, int] | None = None) -> int:
        """Write what has gathered, a transaction an agent; how many memories. What fails stays queued.

        What was used as often as its agent, else `extend_after_uses`, asks of its layer gets its time again.
        """
        flushed = 0
        for agent_id in list(self._counts):
            counts, moments = self._counts.pop(agent_id, None), self._moments.pop(agent_id, {})
            if counts is None:
                # Erased, or written by another flush, while this one wrote those of others.
                continue
            try:
                async with storage.transaction(agent_id) as transaction:
                    await transaction.life.count_accesses(counts, moments, extend_after_uses or {})
            except BaseException:
                self._counts.setdefault(agent_id, Counter()).update(counts)
                self._moments.setdefault(agent_id, {}).update(moments)
                raise
            flushed += len(counts)
        return flushed


def utc_now() -> datetime:
    """The time now, in UTC."""
    return datetime.now(UTC)


@dataclass(frozen=True)
class MemoryParts:
    """The running parts every agent's manager shares. Without an embedder, words alone are searched.

    `vectors_moving`: those in force are on their way into their place, where no index is made of them yet.
    """

    storage: MemoryStorage
    vectors: VectorStore
    working: WorkingMemory
    archive: Archive | None
    embedder: Embedder | None
    count_tokens: Callable[[str], int]
    token_counters: TokenCounters
    accesses: AccessQueue
    policy: MemoryPolicy
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
    # All rows of the agent, beside `storage` of a caller whose token is bound to users.
    whole_storage: MemoryStorage | None = None

    def for_caller(self, caller: Caller) -> MemoryParts:
        """The parts of one caller's manager: cached vectors of its agent, rows of its token's users alone."""
        parts = self
        if isinstance(self.embedder, CachingEmbedder):
            parts = replace(parts, embedder=self.embedder.for_agent(caller.agent_id, caller.users))
        if caller.users is None:
            return parts
        return replace(parts, storage=self.storage.bound_to(caller.users), whole_storage=self.storage,
                       vectors=self.vectors.bound_to(caller.users), working=self.working.without_copies())

    def draft(self, params: StoreParams, caller: Caller, now: datetime | None = None) -> Draft:
        """Returns everything of a memory that follows from the params alone. Raises InvalidParams."""
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
        """Seconds that a memory lives by default, by layer; working memory as its copy does."""
        named = {layer: rules.ttl_seconds for layer, rules in self.layer_rules.items()}
        return {layer: seconds for layer, seconds in named.items() if seconds is not None}

    @property
    def layer_rules(self) -> dict[str, LayerRules]:
        """What holds by default, by layer."""
        default = LayerRules(ttl_seconds=self.working.ttl_seconds)
        working = self.policy.layers.get(MemoryType.WORKING.value, default)
        if working.ttl_seconds is None:
            working = working.model_copy(update={"ttl_seconds": default.ttl_seconds})
        return {**self.policy.layers, MemoryType.WORKING.value: working}

    @property
    def capacities(self) -> dict[str, int]:
        """How many memories a layer holds by default; 0 is unlimited."""
        return {layer: rules.capacity or 0 for layer, rules in self.policy.layers.items()}

    @property
    def extend_after_uses(self) -> dict[str, int]:
        """How many uses within its life give a memory its time again by default, by layer."""
        return {layer: rules.extend_after_uses or 0 for layer, rules in self.policy.layers.items()}

    @property
    def vector_model(self) -> str:
        """The name stored beside vectors: the embedder's model, or that they are the callers' own."""
        return self.embedder.model if self.embedder is not None else CALLER_VECTORS

    def steps(self) -> Steps:
        """A timer for one call, whose steps are also counted in the metrics."""
        return Steps(self.metrics)
