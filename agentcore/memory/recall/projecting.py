"""Projects the vectors of memories onto their first two principal components."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from agentcore.memory.models import JsonObject, Receipt
from agentcore.memory.params.memories import ProjectParams, ProjectResult
from agentcore.memory.parts import MemoryParts
from agentcore.memory.vector_store import VectorRow
from agentcore.telemetry import Steps

PAGE_ROWS = 1_000
# The time grows with the cube of the dimensions.
MAX_DIMENSIONS = 1_536
DIGITS = 4

HalfFloats = NDArray[np.float16]
Floats = NDArray[np.float64]


async def project(parts: MemoryParts, agent_id: str, params: ProjectParams, steps: Steps) -> ProjectResult:
    conditions = params.conditions()
    rows: list[VectorRow] = []
    pages: list[HalfFloats] = []
    count, complete, last = 0, False, None
    with steps("search"):
        while not complete and count < params.limit:
            wanted = min(PAGE_ROWS, params.limit - count)
            # One more row shows whether memories remain.
            read = await parts.vectors.newest(agent_id, conditions, parts.vector_model, last, wanted + 1)
            complete, page = len(read) <= wanted, read[:wanted]
            found = [row for row in page if row.vector is not None]
            if found:
                pages.append(await asyncio.to_thread(_matrix, found))
            rows += [row._replace(vector=None) for row in found]
            count, last = count + len(page), page[-1] if page else None
    with steps("project"):
        places, explained = await asyncio.to_thread(principal_components, pages)
    return await asyncio.to_thread(
        lambda: ProjectResult(
            **_lists(rows, places),
            explained=explained,
            without_vectors=count - len(rows),
            complete=complete,
            receipt=Receipt(searched={"filters": sorted(conditions)}, timings_ms=steps.timings_ms),
        )
    )


def _matrix(rows: Sequence[VectorRow]) -> HalfFloats:
    matrix = np.array([row.vector.to_numpy() for row in rows if row.vector is not None], np.float32)
    # Of unit length: searches compare by cosine, and sums of long vectors would overflow.
    lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
    return folded((matrix / np.where(lengths > 0, lengths, 1.0)).astype(np.float16))


def folded(matrix: HalfFloats) -> HalfFloats:
    """Sums columns with random signs, so that rows have at most MAX_DIMENSIONS.

    Inner products are kept in expectation. As feature hashing, with the index modulo MAX_DIMENSIONS as the hash:
    K. Weinberger et al., Feature Hashing for Large Scale Multitask Learning, ICML 2009.
    """
    dimensions = matrix.shape[1]
    if dimensions <= MAX_DIMENSIONS:
        return matrix
    signed = matrix * np.random.default_rng(0).choice(np.array([-1, 1], np.float32), dimensions)
    padded = np.pad(signed, ((0, 0), (0, -dimensions % MAX_DIMENSIONS)))
    summed: HalfFloats = padded.reshape(len(matrix), -1, MAX_DIMENSIONS).sum(axis=1).astype(np.float16)
    return summed


def principal_components(pages: Sequence[HalfFloats]) -> tuple[Floats, tuple[float, float]]:
    """Returns the coordinates of each vector on two axes, and the share of the variance that each axis explains.

    The axes are the eigenvectors of the covariance matrix with the two largest eigenvalues. The component of the
    largest magnitude of each is positive, so that the result is deterministic. Coordinates are from -1 to 1, in one
    scale. Method: I. T. Jolliffe, Principal Component Analysis, 2nd ed., Springer 2002, chapters 1 and 3.
    """
    count = sum(map(len, pages))
    if not count:
        return np.zeros((0, 2)), (0.0, 0.0)
    # Shifted by one vector first, so that equal vectors have exactly no variance.
    origin = pages[0][0].astype(np.float32)
    total, products = np.zeros(len(origin)), np.zeros((len(origin), len(origin)))
    for page in pages:
        shifted = page.astype(np.float32) - origin
        total += shifted.sum(axis=0, dtype=np.float64)
        products += shifted.T @ shifted
    mean = total / count
    variances, vectors = np.linalg.eigh(products / count - np.outer(mean, mean))
    axes = vectors[:, :-3:-1]
    axes = axes * np.where(axes[np.abs(axes).argmax(axis=0), range(axes.shape[1])] < 0, -1.0, 1.0)
    places = np.zeros((count, 2))
    places[:, : axes.shape[1]] = np.concatenate([(page.astype(np.float32) - origin - mean) @ axes for page in pages])
    places /= np.abs(places).max() or 1.0
    shares = np.zeros(2)
    shares[: axes.shape[1]] = variances[:-3:-1].clip(min=0.0) / (variances.clip(min=0.0).sum() or 1.0)
    first, second = shares.round(DIGITS).tolist()
    return places, (first, second)


def _lists(rows: Sequence[VectorRow], places: Floats) -> JsonObject:
    """Encodes layers, users and sessions as indexes into their distinct values."""
    columns = {"memory_types": "memory_type", "user_ids": "user_id", "session_ids": "session_id"}
    lists: JsonObject = {"values": {}}
    for name, column in columns.items():
        given = [getattr(row, column) for row in rows]
        known = {value: place for place, value in enumerate(dict.fromkeys(given))}
        lists[name], lists["values"][name] = [known[value] for value in given], [*known]
    x, y = places.round(DIGITS).T.tolist()
    return {
        "memory_ids": [row.memory_id for row in rows],
        "x": x,
        "y": y,
        "timestamps": [row.timestamp for row in rows],
        **lists,
    }
