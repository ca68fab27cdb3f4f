"""VECTOR_STORE=milvus: a Milvus server at VECTOR_STORE_URL, or Milvus Lite in a file `NAME.db`."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Iterable, Sequence
from threading import Lock
from typing import Any
from uuid import UUID

# gRPC reads it when imported. Its fork handlers crash children, such as an embedded Redis, while its threads are busy.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")

import grpc
import numpy as np
from numpy.typing import NDArray
from pymilvus import DataType, MilvusClient, MilvusException
from pymilvus.exceptions import DataNotMatchException, ParamError

from agentcore.errors import ConfigurationError
from agentcore.memory.external_vectors import COLLECTION_PREFIX, Point, PointFilter, VectorStoreOptions

# Bytes of the longest agent id.
AGENT_ID_BYTES = 1_024
DIGEST_CHARS = 32
HNSW = {"M": 16, "efConstruction": 128}
# Codes of a server that is not ready, overloaded, or has a full disk; 1 is also that of errors without a code.
UNAVAILABLE_CODES = {1, 2, 3, 4, 5, 7, 8}
# Each search must see all changes that were confirmed before.
STRONG = "Strong"


class MilvusVectors:
    """Ids and labels are compared as digests: an expression never contains a caller's text."""

    failures: tuple[type[Exception], ...] = (MilvusException, grpc.RpcError, OSError, RuntimeError)

    def __init__(self, options: VectorStoreOptions) -> None:
        if options.url is None or not ("://" in options.url or options.url.endswith(".db")):
            raise ConfigurationError(["VECTOR_STORE=milvus needs VECTOR_STORE_URL: http://host:19530, or NAME.db."])
        self._url = options.url
        self._options = options
        self.threads = 8 if "://" in options.url else 1
        self._opened: MilvusClient | None = None
        self._opening = Lock()

    @property
    def _client(self) -> MilvusClient:
        with self._opening:
            if self._opened is None:
                key, seconds = self._options.api_key or "", self._options.timeout_seconds
                self._opened = MilvusClient(self._url, token=key, timeout=seconds)
            return self._opened

    def collections(self) -> Collection[str]:
        return {each for each in self._client.list_collections() if each.startswith(COLLECTION_PREFIX)}

    def upsert(self, collection: str, points: Sequence[Point]) -> None:
        if not self._client.has_collection(collection):
            self._create(collection, len(points[0].vector))
        # Also of an existing collection, whose creation may have been interrupted.
        if not self._client.list_indexes(collection):
            indexes = self._client.prepare_index_params()
            indexes.add_index("vector", index_type="HNSW", metric_type="COSINE", params=HNSW)
            self._client.create_index(collection, indexes)
        self._client.load_collection(collection)
        self._client.upsert(collection, [_row(each) for each in points])

    def _create(self, collection: str, dimensions: int) -> None:
        schema = MilvusClient.create_schema(auto_id=False, enable_dynamic_field=False)
        schema.add_field("memory_id", DataType.VARCHAR, is_primary=True, max_length=36)
        schema.add_field("vector", DataType.FLOAT_VECTOR, dim=dimensions)
        schema.add_field("agent_id", DataType.VARCHAR, max_length=AGENT_ID_BYTES)
        for field in ("agent", "person", "session", "memory_type"):
            schema.add_field(field, DataType.VARCHAR, max_length=DIGEST_CHARS)
        schema.add_field("at", DataType.INT64)
        self._client.create_collection(collection, schema=schema, consistency_level=STRONG)

    def delete(self, collection: str, ids: Sequence[UUID]) -> None:
        self._client.delete(collection, ids=[str(each) for each in ids])

    def search(
        self, collection: str, vectors: Sequence[NDArray[np.float32]], where: PointFilter, limit: int
    ) -> list[list[UUID]]:
        try:
            found = self._client.search(
                collection,
                data=[each.tolist() for each in vectors],
                filter=_expression(where),
                limit=limit,
                output_fields=["memory_id"],
                search_params={"metric_type": "COSINE", "params": {"ef": max(64, 2 * limit)}},
                consistency_level=STRONG,
            )
        except MilvusException as failure:
            if not self.is_refusal(failure) or self._client.has_collection(collection):
                raise
            return [[] for _ in vectors]
        return [[UUID(hit["entity"]["memory_id"]) for hit in hits] for hits in found]

    def ids(self, collection: str, after: UUID | None, limit: int) -> list[tuple[str, UUID]]:
        # An iterator reads in the order of the key; a query with a limit does not.
        pages = self._client.query_iterator(
            collection,
            batch_size=limit,
            filter=f'memory_id > "{after or ""}"',
            output_fields=["memory_id", "agent_id"],
            consistency_level=STRONG,
        )
        try:
            return [(row["agent_id"], UUID(row["memory_id"])) for row in pages.next()]
        finally:
            pages.close()

    def erase(self, where: PointFilter) -> None:
        for collection in self.collections():
            self._client.delete(collection, filter=_expression(where))

    def count(self, where: PointFilter | None) -> int:
        expression = "" if where is None else _expression(where)
        return sum(self._count(collection, expression) for collection in self.collections())

    def _count(self, collection: str, expression: str) -> int:
        [row] = self._client.query(collection, filter=expression, output_fields=["count(*)"], consistency_level=STRONG)
        return int(row["count(*)"])

    def is_refusal(self, failure: Exception) -> bool:
        if isinstance(failure, grpc.RpcError):
            return failure.code() in (grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED)
        if not isinstance(failure, MilvusException):
            return False
        is_answer = isinstance(failure.code, int) and failure.code not in UNAVAILABLE_CODES
        return is_answer or failure.is_input_error or isinstance(failure, DataNotMatchException | ParamError)

    def ping(self) -> None:
        self._client.list_collections()

    def close(self) -> None:
        if self._opened is not None:
            self._opened.close()


def _digest(label: str | None) -> str:
    """Returns an empty text for None."""
    return "" if label is None else hashlib.blake2b(label.encode(), digest_size=DIGEST_CHARS // 2).hexdigest()


def _row(point: Point) -> dict[str, Any]:
    return {
        "memory_id": str(point.memory_id),
        "vector": point.vector.tolist(),
        "agent_id": point.agent_id,
        "agent": _digest(point.agent_id),
        "person": _digest(point.user_id),
        "session": _digest(point.session_id),
        "memory_type": point.memory_type,
        "at": point.at,
    }


def _expression(where: PointFilter) -> str:
    conditions = [f'agent == "{_digest(where.agent_id)}"']
    if where.user_ids is not None:
        conditions.append(_one_of("person", map(_digest, where.user_ids)))
    if where.session_id is not None:
        conditions.append(f'session == "{_digest(where.session_id)}"')
    if where.memory_types is not None:
        conditions.append(_one_of("memory_type", where.memory_types))
    if where.after is not None:
        conditions.append(f"at >= {where.after}")
    if where.before is not None:
        conditions.append(f"at < {where.before}")
    return " and ".join(conditions)


def _one_of(field: str, values: Iterable[str]) -> str:
    quoted = ", ".join(f'"{each}"' for each in values)
    return f"{field} in [{quoted}]"
