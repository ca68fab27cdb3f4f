"""Typed column values of memories: new ones, and rows as they were read. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from pgvector import HalfVector

from agentcore.memory.models import JsonObject

Embedding = NDArray[np.float32] | list[float] | HalfVector


@dataclass(slots=True)
class TextColumns:
    """Columns derived from a memory's content, besides `flagged`."""

    summary: str
    entities: list[str]
    entity_keys: list[str]
    facts: list[str]
    keywords: list[str]
    event_from: datetime | None
    event_to: datetime | None
    content_hash: bytes
    term_keys: list[int]
    token_count: int


@dataclass(slots=True)
class VectorColumns:
    """A vector and its model; None and None: to embed later, None and `refused_by(model)`: refused."""

    embedding: Embedding | None = None
    embedding_model: str | None = None


@dataclass(slots=True, kw_only=True)
class RuleColumns:
    content: str
    timestamp: datetime
    speaker: str | None
    user_id: str | None
    session_id: str | None
    task_id: str | None
    namespace: str | None
    flagged: bool

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> RuleColumns:
        return RuleColumns(**{name: row[name] for name in _RULE})


@dataclass(slots=True, kw_only=True)
class MemoryColumns(RuleColumns):
    text: TextColumns
    vector: VectorColumns
    memory_type: str
    tags: list[str]
    metadata: JsonObject
    relevance_score: float
    pinned: bool
    ttl_seconds: int | None
    valid_to: datetime | None
    superseded_by: UUID | None
    parent_memory_id: UUID | None
    provenance: JsonObject


@dataclass(slots=True, kw_only=True)
class NewColumns(MemoryColumns):
    external_id: str | None
    response: str | None
    valid_from: datetime
    default_ttl_seconds: int | None
    is_long: bool
    subjects: list[int] = field(default_factory=list)
    interaction_id: str | None = None
    actions: list[Any] = field(default_factory=list)
    outcome: Any = None
    action_outcomes: list[dict[str, str]] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class StoredMemory(MemoryColumns):
    memory_id: UUID
    version: int
    expires_at: datetime | None

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> StoredMemory:
        return cls(
            text=TextColumns(**{name: row[name] for name in TEXT}),
            vector=VectorColumns(row["embedding"], row["embedding_model"]),
            **{name: row[name] for name in _STORED},
        )


def _names(kind: type[Any], *without: str) -> tuple[str, ...]:
    return tuple(each.name for each in fields(kind) if each.name not in without)


TEXT, NEW = _names(TextColumns), _names(NewColumns, "text", "vector")
_RULE, _STORED = _names(RuleColumns), _names(StoredMemory, "text", "vector")
