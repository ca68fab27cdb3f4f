"""VECTOR_STORE=qdrant: a Qdrant server at VECTOR_STORE_URL, or its local mode in a directory."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from threading import Lock
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from qdrant_client import QdrantClient, models
from qdrant_client.common.client_exceptions import ResourceExhaustedResponse
from qdrant_client.http.exceptions import ApiException, UnexpectedResponse

from agentcore.errors import ConfigurationError
from agentcore.memory.external_vectors import COLLECTION_PREFIX, Point, PointFilter, VectorStoreOptions

INDEXED_FIELDS: Mapping[str, models.PayloadSchemaType | models.KeywordIndexParams] = {
    # is_tenant: Qdrant stores the points of an agent close together.
    "agent_id": models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD, is_tenant=True),
    "user_id": models.PayloadSchemaType.KEYWORD,
    "session_id": models.PayloadSchemaType.KEYWORD,
    "memory_type": models.PayloadSchemaType.KEYWORD,
    "at": models.PayloadSchemaType.INTEGER,
}


class QdrantVectors:
    # OSError: another process uses the directory. ValueError: the local mode refuses a request.
    failures: tuple[type[Exception], ...] = (ApiException, ResourceExhaustedResponse, OSError, RuntimeError, ValueError)

    def __init__(self, options: VectorStoreOptions) -> None:
        if options.url is None:
            raise ConfigurationError(["VECTOR_STORE=qdrant needs VECTOR_STORE_URL: http://host:6333, or a directory."])
        self._url = options.url
        self._options = options
        self._is_local = "://" not in options.url
        self.threads = 1 if self._is_local else 8
        self._opened: QdrantClient | None = None
        self._opening = Lock()

    @property
    def _client(self) -> QdrantClient:
        with self._opening:
            if self._opened is None and self._is_local:
                self._opened = QdrantClient(path=self._url, force_disable_check_same_thread=True)
            elif self._opened is None:
                self._opened = QdrantClient(
                    self._url,
                    api_key=self._options.api_key,
                    timeout=int(self._options.timeout_seconds),
                    check_compatibility=False,
                )
            return self._opened

    def collections(self) -> Collection[str]:
        names = [each.name for each in self._client.get_collections().collections]
        return {each for each in names if each.startswith(COLLECTION_PREFIX)}

    def upsert(self, collection: str, points: Sequence[Point]) -> None:
        if not self._client.collection_exists(collection):
            distance = models.VectorParams(size=len(points[0].vector), distance=models.Distance.COSINE)
            self._client.create_collection(collection, vectors_config=distance)
        if not self._is_local:
            # Also of an existing collection, whose creation may have been interrupted.
            for field in INDEXED_FIELDS.keys() - self._client.get_collection(collection).payload_schema.keys():
                self._client.create_payload_index(collection, field, field_schema=INDEXED_FIELDS[field], wait=True)
        self._client.upsert(collection, [_point(each) for each in points], wait=True)

    def delete(self, collection: str, ids: Sequence[UUID]) -> None:
        self._client.delete(collection, [str(each) for each in ids], wait=True)

    def search(
        self, collection: str, vectors: Sequence[NDArray[np.float32]], where: PointFilter, limit: int
    ) -> list[list[UUID]]:
        requests = [
            models.QueryRequest(query=each.tolist(), filter=_filter(where), limit=limit, with_payload=False)
            for each in vectors
        ]
        try:
            found = self._client.query_batch_points(collection, requests)
        except (UnexpectedResponse, ValueError):
            if collection in self.collections():
                raise
            return [[] for _ in vectors]
        return [[UUID(str(point.id)) for point in each.points] for each in found]

    def ids(self, collection: str, after: UUID | None, limit: int) -> list[tuple[str, UUID]]:
        # `offset` is the first id of the page, so the last one of the page before is read again.
        points, _ = self._client.scroll(
            collection, limit=limit + 1, offset=after and str(after), with_payload=["agent_id"], with_vectors=False
        )
        page = [((point.payload or {})["agent_id"], UUID(str(point.id))) for point in points]
        return [each for each in page if each[1] != after][:limit]

    def erase(self, where: PointFilter) -> None:
        for collection in self.collections():
            self._client.delete(collection, models.FilterSelector(filter=_filter(where)), wait=True)

    def count(self, where: PointFilter | None) -> int:
        chosen, exact = (None, False) if where is None else (_filter(where), True)
        return sum(self._client.count(each, chosen, exact).count for each in self.collections())

    def is_refusal(self, failure: Exception) -> bool:
        """Except 408 (timeout) and 429 (overload)."""
        if isinstance(failure, UnexpectedResponse):
            return 400 <= (failure.status_code or 0) < 500 and failure.status_code not in (408, 429)
        return isinstance(failure, ValueError)

    def ping(self) -> None:
        self._client.get_collections()

    def close(self) -> None:
        if self._opened is not None:
            self._opened.close()


def _point(point: Point) -> models.PointStruct:
    payload = {field: getattr(point, field) for field in INDEXED_FIELDS}
    return models.PointStruct(id=str(point.memory_id), vector=point.vector.tolist(), payload=payload)


def _filter(where: PointFilter) -> models.Filter:
    conditions: list[models.Condition] = [_one_of("agent_id", [where.agent_id])]
    if where.user_ids is not None:
        users: list[models.Condition] = [_one_of("user_id", [each for each in where.user_ids if each is not None])]
        if None in where.user_ids:
            users.append(models.IsEmptyCondition(is_empty=models.PayloadField(key="user_id")))
        conditions.append(models.Filter(should=users))
    if where.session_id is not None:
        conditions.append(_one_of("session_id", [where.session_id]))
    if where.memory_types is not None:
        conditions.append(_one_of("memory_type", [*where.memory_types]))
    if where.after is not None or where.before is not None:
        conditions.append(models.FieldCondition(key="at", range=models.Range(gte=where.after, lt=where.before)))
    return models.Filter(must=conditions)


def _one_of(field: str, values: list[str]) -> models.FieldCondition:
    return models.FieldCondition(key=field, match=models.MatchAny(any=values))
