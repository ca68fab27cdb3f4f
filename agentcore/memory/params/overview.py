"""What one agent holds, and what the service offers it: params and results. Validation only."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from agentcore.memory.models import MemoryType, Receipt, Strict


class StatsParams(Strict):
    """Nothing to say."""


class LayerStats(Strict):
    count: int
    capacity: int = Field(description="0 means unlimited.")
    oldest: datetime | None = None
    newest: datetime | None = None
    pinned: int = 0
    waiting_for_embedding: int = 0


class StatsResult(Strict):
    total: int
    layers: dict[MemoryType, LayerStats]
    links: int
    archived: int
    accesses: int
    receipt: Receipt


class CapabilitiesParams(Strict):
    """Nothing to say."""


class CapabilitiesResult(Strict):
    version: str
    embedding_model: str | None
    embedding_dimensions: int | None
    vector_store: str
    archive: str
    memory_types: list[MemoryType]
    pruning_strategies: list[str]
    limits: dict[str, int]
    features: list[str] = Field(
        description="What this service does, by name. Where it has a language model: model_facts (it reads "
        "memories for facts), model_summaries (of sessions and clusters), model_judge (of replaced facts)."
    )
    receipt: Receipt
