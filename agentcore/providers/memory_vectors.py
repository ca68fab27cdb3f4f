"""VECTOR_STORE=memory: vectors in this process, for tests and small tools. A start fills it again."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from agentcore.memory.external_vectors import Point, PointFilter, VectorStoreOptions


class MemoryVectors:
    threads = 1
    failures: tuple[type[Exception], ...] = ()

    def __init__(self, options: VectorStoreOptions) -> None:
        self._points: dict[str, dict[UUID, Point]] = {}

    def collections(self) -> Collection[str]:
        return [*self._points]

    def upsert(self, collection: str, points: Sequence[Point]) -> None:
        self._points.setdefault(collection, {}).update({each.memory_id: each for each in points})

    def delete(self, collection: str, ids: Sequence[UUID]) -> None:
        for each in ids:
            self._points.get(collection, {}).pop(each, None)

    def search(
        self, collection: str, vectors: Sequence[NDArray[np.float32]], where: PointFilter, limit: int
    ) -> list[list[UUID]]:
        points = [each for each in self._points.get(collection, {}).values() if _matches(each, where)]
        if not points:
            return [[] for _ in vectors]
        stored = np.array([each.vector for each in points])
        lengths = np.linalg.norm(stored, axis=1) + np.finfo(np.float32).tiny
        places = [np.argsort(-(stored @ vector) / lengths, kind="stable")[:limit] for vector in vectors]
        return [[points[place].memory_id for place in each] for each in places]

    def ids(self, collection: str, after: UUID | None, limit: int) -> list[tuple[str, UUID]]:
        points = self._points.get(collection, {})
        ids = sorted(each for each in points if after is None or each > after)
        return [(points[each].agent_id, each) for each in ids[:limit]]

    def erase(self, where: PointFilter) -> None:
        for collection, point in [*self._selected(where)]:
            self.delete(collection, [point.memory_id])

    def count(self, where: PointFilter | None) -> int:
        return sum(1 for _ in self._selected(where))

    def is_refusal(self, failure: Exception) -> bool:
        return False

    def ping(self) -> None:
        pass

    def close(self) -> None:
        self._points.clear()

    def _selected(self, where: PointFilter | None) -> Iterator[tuple[str, Point]]:
        for collection, points in self._points.items():
            yield from ((collection, each) for each in points.values() if where is None or _matches(each, where))


def _matches(point: Point, where: PointFilter) -> bool:
    sessions = None if where.session_id is None else (where.session_id,)
    wanted = ((where.user_ids, point.user_id), (sessions, point.session_id), (where.memory_types, point.memory_type))
    is_in_time = (where.after is None or point.at >= where.after) and (where.before is None or point.at < where.before)
    is_selected = all(allowed is None or label in allowed for allowed, label in wanted)
    return point.agent_id == where.agent_id and is_selected and is_in_time
