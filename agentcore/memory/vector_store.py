"""Retrieves candidates from PostgreSQL: one statement runs all retrievers with the filter."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, NamedTuple, TypeVar
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from pgvector import HalfVector
from psycopg import sql
from psycopg.types.json import Jsonb

from agentcore.database import (
    MAX_LOOKUP_KEYS,
    Database,
    Row,
    Users,
    array_literal,
    query,
    set_for_transaction,
    shaped_query,
)
from agentcore.memory.external_vectors import ExternalVectors, PointFilter, StoreUnusable, Suggestion, microseconds
from agentcore.memory.lexical import K1, B, Bm25, LexicalStatistics
from agentcore.memory.models import CHANGES, SERVICE_RELATIONS
from agentcore.memory.ranking.candidates import Candidate, CandidateLink, SearchLimits, Span
from agentcore.memory.rows.vector_index import ServingIndex, fastest_exact, widest
from agentcore.memory.rows.vector_rows import SETTLED, ServingIndexes, VectorPlace, index_settings
from agentcore.memory.scoring import is_person

Conditions = Mapping[str, Any]
EndT = TypeVar("EndT")


class QueryVariant(NamedTuple):
    """The SQL variant of a search. The last three fields are set only for a generic plan on one partition."""

    mode: str
    passages: str
    lexical: bool
    several: bool
    timely: bool
    then: bool
    partition: str = ""
    model: str = ""
    current: bool = False


PASSAGE, PASSAGES = sql.SQL("p.embedding"), "memory_passages"
# The query vector in a distance: the only one, or each of several.
ASKED, ONE_OF_SEVERAL = sql.SQL("%(vector)s::halfvec"), sql.SQL("asked.vector")
# Terms loaded per memory, plus up to a quarter as many later ones if the query has them.
MAX_TERMS_PER_MEMORY = 1_024
# Nearest memories whose vectors are returned, for the comparison with off-topic prompts.
BASELINE_DEPTH = 10
# The filters of the statement `selected_up_to`, by its parameters.
INDEXED_FILTERS = {"user": "user_id", "session": "session_id", "task": "task_id", "after": "after", "before": "before"}
# The filters that a vector store applies, and the one that nearly all memories match.
PUSHED_FILTERS = {"user_id", "session_id", "memory_types", "after", "before", "current"}
MORE_IF_FILTERED = 4
# Without the vector store and without an index, more memories are not compared with the query.
MAX_EXACT_FALLBACK = 50_000
IN_POSTGRESQL, BY_WORDS = "; searched in PostgreSQL", "; searched by words alone"
# Above this many terms, candidates are scored and ranked in a thread.
THREAD_ABOVE_TERMS = 20_000


@dataclass(frozen=True)
class SearchRequest:
    """Filters, query vectors (a row each, or None), their model, and the query's terms.

    `term_weights`: BM25 weights of the terms to look up, by key. `windows`: time ranges of the query. `breadth`:
    factor of the candidate limits. `held`: superseded memories must have been valid in one of these ranges.
    `with_retrievers`: report which retrievers found each candidate.
    """

    conditions: Conditions
    vectors: NDArray[Any] | None
    model: str | None
    bm25: Bm25
    term_weights: Mapping[int, float] = field(default_factory=dict)
    windows: Sequence[Span] = ()
    breadth: int = 1
    held: Sequence[Span] | None = None
    with_retrievers: bool = False

    @property
    def by_passages(self) -> bool:
        return self.vectors is not None and self.bm25.statistics.has_passages

    @property
    def includes_history(self) -> bool:
        return not self.conditions.keys() & {"current", "as_of"}


@dataclass(frozen=True)
class Found:
    """Candidates, links among them, hits per retriever, and the vector search mode.

    `neighbours` link top hits to adjacent messages of the session, `changes` a message to one that it makes
    outdated. `near_vectors`: vectors of the BASELINE_DEPTH nearest, and of lexical hits nearer than all of them.
    `rank_in_thread`: too many terms for the event loop. `found_by`: the retrievers of each, if requested.
    """

    candidates: Sequence[Candidate]
    links: Sequence[CandidateLink]
    neighbours: Sequence[CandidateLink]
    counts: Mapping[str, int]
    mode: str
    near_vectors: Mapping[UUID, NDArray[np.float16]]
    changes: Sequence[CandidateLink]
    rank_in_thread: bool = False
    found_by: Mapping[UUID, Sequence[str]] = field(default_factory=dict)
    degraded: Sequence[str] = ()

    @property
    def passages(self) -> dict[UUID, tuple[int, int]]:
        return {each.memory_id: each.passage for each in self.candidates if each.passage is not None}


class CandidateRow(NamedTuple):
    """A row of the statement `candidates`, whose columns these are."""

    memory_id: UUID
    timestamp: datetime
    relevance_score: float
    term_keys: Sequence[int]
    content_hash: bytes
    speaker: str | None
    user_id: str | None
    namespace: str | None
    session_id: str | None
    similarity: float | None
    passage_start: int | None
    passage_end: int | None
    asks: bool
    is_exchange: bool
    is_summary: bool
    event_from: datetime | None
    event_to: datetime | None
    held_from: datetime | None
    held_to: datetime
    access_count: int
    last_accessed: datetime | None
    vector: HalfVector | None
    is_near: bool
    is_lexical: bool
    is_linked: bool
    is_timely: bool
    target_ids: Sequence[UUID] | None
    weights: Sequence[float] | None
    relations: Sequence[str] | None
    beside_ids: Sequence[UUID]


class VectorRow(NamedTuple):
    """A row of the statement `newest_vectors`; `vector`: None without one of the model."""

    memory_id: UUID
    timestamp: datetime
    memory_type: str
    user_id: str | None
    session_id: str | None
    vector: HalfVector | None


class PgVectorStore:
    """Searches pgvector: exactly for small agents, else with the index keeper's indexes."""

    def __init__(
        self,
        database: Database,
        dimensions: int,
        limits: SearchLimits,
        place: VectorPlace = SETTLED,
        external: ExternalVectors | None = None,
    ) -> None:
        """`external` suggests near memories of large agents."""
        self.external = external
        self._database = database
        self._limits = limits
        self._place = place
        self._dimensions = sql.Literal(dimensions)
        self._indexes = ServingIndexes(database)
        self._statements: dict[QueryVariant, sql.SQL] = {}

    @property
    def name(self) -> str:
        return "pgvector" if self.external is None else self.external.name

    def bound_to(self, users: Users) -> PgVectorStore:
        bound = copy(self)
        bound._database = self._database.bound_to(users)
        return bound

    async def statistics(self, agent_id: str, term_keys: Sequence[int]) -> LexicalStatistics:
        """Returns the agent's totals, and the document frequency of each term."""
        keys = set(term_keys)
        values = {"agent_id": agent_id, "term_keys": array_literal(keys)}
        name = "lexical_statistics" if self._database.users is None else "bound_statistics"
        by_key = len(keys) <= MAX_LOOKUP_KEYS
        [[found]] = await self._database.fetch(agent_id, [(query(name), values)], by_key=by_key)
        count = max(0, int(found["memory_count"]))
        return LexicalStatistics(
            memory_count=count,
            mean_length=max(1.0, int(found["term_count"]) / max(1, count)),
            document_frequency={
                key: max(0, frequency)
                for key, frequency in zip(found["term_keys"] or (), found["frequencies"] or (), strict=True)
            },
            has_passages=found["has_passages"],
        )

    async def search(self, agent_id: str, request: SearchRequest) -> Found:
        index, passage_index = await self._serving(agent_id, request)
        near, degraded, words_only = await self._suggested(agent_id, request, has_index=index is not None)
        if words_only:
            request, passage_index = replace(request, vectors=None), None
        values = self._values(agent_id, request)
        if near is not None:
            index, values["near_ids"] = None, near.memory_ids
        modes = _modes(request, index, passage_index, external=near is not None)
        served = widest(index, passage_index)
        rows = await self._candidate_rows(agent_id, modes, request, values, served)
        if _is_partial(near, served) and _near(rows) < values["limit"]:
            modes = _modes(request, None, None)
            rows = await self._candidate_rows(agent_id, modes, request, values, None)

        rank_in_thread = sum(len(row.term_keys) for row in rows) > THREAD_ABOVE_TERMS
        return Found(
            await asyncio.to_thread(_candidates, rows, request) if rank_in_thread else _candidates(rows, request),
            list(_links(rows, changes=False)),
            [CandidateLink(row.memory_id, each, 1.0) for row in rows for each in row.beside_ids],
            _counts(rows, request),
            modes[0],
            _near_vectors(rows),
            list(_links(rows, changes=True)),
            rank_in_thread,
            _found_by(rows, request),
            degraded,
        )

    async def _suggested(
        self, agent_id: str, request: SearchRequest, *, has_index: bool
    ) -> tuple[Suggestion | None, Sequence[str], bool]:
        """Returns what the vector store suggests, None if it is not asked; what the search lacks; if words must do."""
        is_large = request.bm25.statistics.memory_count > MAX_EXACT_FALLBACK and not has_index
        limit = self._limits.times(request.breadth).vector_candidates
        try:
            near = await self._near_ids(agent_id, request, limit, partial=is_large)
        except StoreUnusable as failure:
            return None, (failure.message + (BY_WORDS if is_large else IN_POSTGRESQL),), is_large
        return near, () if near is None else near.degraded, False

    async def _near_ids(self, agent_id: str, request: SearchRequest, limit: int, *, partial: bool) -> Suggestion | None:
        limit_exact = self._limits.exact_search_limit
        if self.external is None or request.vectors is None or request.model is None:
            return None
        if request.bm25.statistics.memory_count <= limit_exact:
            return None
        if limit_exact and await self._few_selected(agent_id, request, limit_exact):
            return None
        more = MORE_IF_FILTERED if request.held or set(request.conditions) - PUSHED_FILTERS else 2
        where = self._where(agent_id, request.conditions)
        return await self.external.nearest(
            self._database, request.model, request.vectors, where, more * limit, partial=partial
        )

    def _where(self, agent_id: str, conditions: Conditions) -> PointFilter:
        users = conditions.get("user_id")
        if users is None and self._database.users is not None:
            users = {*self._database.users, None}
        types = conditions.get("memory_types")
        times = {name: conditions.get(name) for name in ("after", "before")}
        return PointFilter(
            agent_id,
            (users,) if isinstance(users, str) else users and tuple(users),
            conditions.get("session_id"),
            types and tuple(types),
            **{name: each and microseconds(datetime.fromisoformat(each)) for name, each in times.items()},
        )

    async def compare(self, agent_id: str, request: SearchRequest, memory_ids: Sequence[UUID]) -> dict[UUID, Row]:
        """Returns whether these memories match the filter, and their similarity to the query, by id."""
        values = {**self._values(agent_id, request), "memory_ids": [*memory_ids]}
        distance = shaped_query(
            "no_distance" if request.vectors is None else "distance_to_nearest", stored=self._place.stored
        )
        then = query("held_ever" if request.held is None else "held_then")
        statement = shaped_query("compare_memories", held=self._place.held, distance=distance, then=then)
        [rows] = await self._database.fetch(agent_id, [(statement, values)])
        return {row["memory_id"]: row for row in rows}

    async def newest(
        self, agent_id: str, conditions: Conditions, model: str, last: VectorRow | None, limit: int
    ) -> list[VectorRow]:
        """Returns a page of matching memories after `last`, newest first."""
        values = {"agent_id": agent_id, "filter": Jsonb(conditions), "model": model, "limit": limit}
        values |= {"place": last and last.timestamp, "after_id": last and last.memory_id}
        shape = {"stored": self._place.stored, "held": self._place.held, "dimensions": self._dimensions}
        statement = shaped_query("newest_vectors", **shape)
        return await self._database.fetch_as(agent_id, (statement, values), VectorRow._make, {})

    def _values(self, agent_id: str, request: SearchRequest) -> dict[str, Any]:
        limits = self._limits.times(request.breadth)
        vectors = [] if request.vectors is None else [HalfVector(each) for each in request.vectors]
        return {
            "agent_id": agent_id,
            "filter": Jsonb(request.conditions),
            "model": request.model,
            "query_keys": array_literal(request.bm25.keys),
            "most_terms": MAX_TERMS_PER_MEMORY,
            "limit": limits.vector_candidates,
            "compared": BASELINE_DEPTH,
            "foremost": limits.leading_candidates,
            "link_limit": limits.link_candidates,
            "term_keys": array_literal(request.term_weights),
            "weights": array_literal(request.term_weights.values()),
            "lexical_limit": limits.lexical_candidates,
            "k1": K1,
            "b": B,
            "window_starts": [start for start, _ in request.windows],
            "window_ends": [end for _, end in request.windows],
            "held_starts": [start for start, _ in request.held or ()],
            "held_ends": [end for _, end in request.held or ()],
            "window_rows": limits.temporal_rows,
            "read_rows": limits.temporal_rows_read,
            "several_limit": limits.several_vector_candidates,
            "temporal_limit": limits.temporal_candidates,
            "vector": next(iter(vectors), None),
            "vectors": vectors,
        }

    async def _candidate_rows(
        self,
        agent_id: str,
        modes: tuple[str, str],
        request: SearchRequest,
        values: Mapping[str, Any],
        index: ServingIndex | None,
    ) -> list[CandidateRow]:
        several, then = len(values["vectors"]) > 1, request.held is not None
        variant = QueryVariant(*modes, bool(request.term_weights), several, bool(request.windows), then)
        prepared = index is not None and self._plan_fits_all(variant, request, index)
        if index is not None and prepared:
            current = "current" in request.conditions
            variant = variant._replace(partition=index.partition, model=request.model or "", current=current)
        settings: Mapping[str, str] = {}
        if index is not None:
            filtered = bool(set(request.conditions) - {"current"}) or request.held is not None
            settings = index_settings(index, filtered=filtered, prepared=prepared)
        statement = self._statement(variant), values
        return await self._database.fetch_as(agent_id, statement, CandidateRow._make, settings)

    def _plan_fits_all(self, variant: QueryVariant, request: SearchRequest, index: ServingIndex) -> bool:
        """Returns whether a generic plan suits this search: planning takes a fifth of PostgreSQL's time."""
        is_plain = request.conditions in ({}, {"current": True}) and not (variant.timely or variant.then)
        return (
            is_plain
            and variant.passages == "none"
            and bool(index.partition)
            and self._place is SETTLED
            and self._database.users is None
        )

    def _statement(self, variant: QueryVariant) -> sql.SQL:
        if variant not in self._statements:
            mode, passages, lexical, several, timely, then, partition, model, current = variant
            place = self._place.shape
            if partition:
                place = self._place.prepared_shape(partition, model, current=current)
            name = "distance_to_nearest" if several else "distance_to_one"
            distance = shaped_query(name, stored=self._place.stored)
            best: sql.SQL | sql.Composed = query("no_passage")
            if passages != "none":
                passage_distance = shaped_query(name, stored=PASSAGE)
                best = shaped_query(
                    "best_passage", passage_distance=passage_distance, distance=distance, held=self._place.held
                )
            temporal = "temporal_retriever" if timely else "temporal_retriever_none"
            statement = shaped_query(
                "candidates",
                nearest=self._nearest(place, mode, several, passages, then=then),
                lexical=query("lexical_retriever" if lexical else "lexical_retriever_none"),
                best=best,
                distance=distance,
                beside=query("beside_foremost").format(memories=place["memories"], matches=place["matches"]),
                timely=shaped_query(temporal, distance=distance, held=self._place.held),
                then=query("held_then" if then else "held_ever"),
                **place,
            )
            # Joined once, not in every search.
            self._statements[variant] = sql.SQL(statement.as_string())
        return self._statements[variant]

    def _nearest(
        self,
        place: Mapping[str, sql.Composable],
        mode: str,
        several: bool,
        passages: str = "none",
        *,
        then: bool = False,
    ) -> sql.SQL | sql.Composed:
        if mode == "words":
            return query("vector_retriever_none")
        valid = query("held_then" if then else "held_ever")
        vector = ONE_OF_SEVERAL if several else ASKED
        shape = {**place, "vector": vector}
        if then:
            shape["held"] = sql.SQL("{} AND {}").format(place["held"], valid)
        if mode == "indexed":
            shape["dimensions"] = self._dimensions
        arm = shaped_query(f"vector_retriever_{mode}", **shape)
        if passages != "none":
            passage_shape: dict[str, sql.Composable] = {"vector": vector, "then": valid}
            if passages == "indexed":
                passage_shape["dimensions"] = self._dimensions
            passage_retriever = shaped_query(f"passage_retriever_{passages}", **passage_shape)
            arm = shaped_query("vector_retriever_with_passages", own=arm, passages=passage_retriever)
        return shaped_query("vector_retriever_several", arm=arm) if several else arm

    async def _serving(self, agent_id: str, request: SearchRequest) -> tuple[ServingIndex | None, ServingIndex | None]:
        if request.vectors is None or request.model is None:
            return None, None
        limit = self._limits.exact_search_limit
        index = await self._memory_index(agent_id, request, limit)
        few = 0 if index is None else max(limit, fastest_exact(index.rows))
        if limit and few and await self._few_selected(agent_id, request, few):
            return None, None
        if not request.by_passages:
            return index, None
        return index, await self._indexes.of(agent_id, request.model, PASSAGES, limit)

    async def _memory_index(self, agent_id: str, request: SearchRequest, limit: int) -> ServingIndex | None:
        count = request.bm25.statistics.memory_count
        if request.model is None or count <= limit:
            return None
        index = await self._indexes.of(agent_id, self._place.index_model(request.model))
        is_slower = index is not None and limit and not index.is_faster_for(count)
        return None if is_slower else index

    async def _few_selected(self, agent_id: str, request: SearchRequest, limit: int) -> bool:
        """Whether an indexed filter selects so few memories that comparing them exactly is faster."""
        selected_by = {name: request.conditions.get(key) for name, key in INDEXED_FILTERS.items()}
        if all(condition is None for condition in selected_by.values()):
            return False
        users = selected_by["user"]
        values = {**selected_by, "user": None if users is None else Jsonb(users), "agent_id": agent_id, "limit": limit}
        [[found]] = await self._database.fetch(agent_id, [(query("selected_up_to"), values)])
        return bool(found["selected"] < limit)

    async def measured_recall(self, agent_id: str, vector: NDArray[Any], model: str, k: int) -> float:
        """Returns the share of the exact top `k` that an indexed search finds; 1.0 without an index."""
        index = await self._indexes.of(agent_id, self._place.index_model(model))
        if index is None:
            return 1.0
        values = {"agent_id": agent_id, "filter": Jsonb({}), "model": model, "vector": HalfVector(vector), "limit": k}
        exactly, by_index = (self._nearest(self._place.shape, mode, several=False) for mode in ("exact", "indexed"))
        [exact] = await self._database.fetch(agent_id, [(exactly, values)])
        settings = set_for_transaction(index_settings(index, filtered=False))
        [_, indexed] = await self._database.fetch(agent_id, [settings, (by_index, values)])
        wanted = {row["memory_id"] for row in exact}
        return len(wanted & {row["memory_id"] for row in indexed}) / len(wanted) if wanted else 1.0


def _modes(
    request: SearchRequest, index: ServingIndex | None, passage_index: ServingIndex | None, *, external: bool = False
) -> tuple[str, str]:
    own_mode = "exact" if index is None else "indexed"
    mode = "words" if request.vectors is None else "external" if external else own_mode
    passages = "none" if not request.by_passages else "exact" if passage_index is None else "indexed"
    return mode, passages


def _near_vectors(rows: Sequence[CandidateRow]) -> dict[UUID, NDArray[np.float16]]:
    """Returns vectors of the nearest, and of lexical hits nearer than all of them: an index or a store missed those."""
    nearest = max((row.similarity or 0.0 for row in rows if row.is_near), default=-1.0)
    return {
        row.memory_id: row.vector.to_numpy()
        for row in rows
        if row.vector is not None and (row.is_near or (row.similarity or 0.0) > nearest)
    }


def _found_by(rows: Sequence[CandidateRow], request: SearchRequest) -> dict[UUID, list[str]]:
    return {row.memory_id: _retrievers(row) for row in rows} if request.with_retrievers else {}


def _retrievers(row: CandidateRow) -> list[str]:
    found = {
        "vector": row.is_near,
        "lexical": row.is_lexical,
        "links": row.is_linked,
        "temporal": row.is_timely,
        "neighbours": bool(row.beside_ids),
    }
    return [name for name, is_found in found.items() if is_found]


def _is_partial(near: Suggestion | None, served: ServingIndex | None) -> bool:
    """Whether more may match: a graph scan ends after hnsw.max_scan_tuples rows; a store lacks parts of the filter."""
    return near.may_have_more if near is not None else served is not None and served.hnsw


def _near(rows: Sequence[CandidateRow]) -> int:
    return sum(row.is_near for row in rows)


def _counts(rows: Sequence[CandidateRow], request: SearchRequest) -> dict[str, int]:
    """Neighbors and links count only if no retriever found them."""
    counts = {"lexical": sum(row.is_lexical for row in rows)}
    if request.vectors is not None:
        counts["vector"] = _near(rows)
    more = [row for row in rows if not row.is_near and not row.is_lexical]
    if request.windows:
        counts["temporal"] = sum(row.is_timely for row in rows)
        more = [row for row in more if not row.is_timely]
    counts["links"] = sum(row.is_linked for row in more)
    counts["neighbours"] = len(more) - counts["links"]
    return counts


def _span(start: EndT | None, end: EndT | None) -> tuple[EndT, EndT] | None:
    return None if start is None or end is None else (start, end)


def _session_matches(rows: Sequence[CandidateRow], bm25: Bm25) -> dict[str, float]:
    """Returns, by session of a conversation, the weighted share of query terms that its candidates contain."""
    weights = bm25.weights(bm25.keys)
    talks = {row.session_id for row in rows if row.session_id is not None and is_person(row.speaker)}
    contained: dict[str, set[int]] = {each: set() for each in talks}
    for row in rows:
        if row.session_id in talks:
            contained[row.session_id].update(weights.keys() & row.term_keys)
    total = sum(weights.values()) or 1.0
    return {each: sum(map(weights.__getitem__, keys)) / total for each, keys in contained.items()}


def _candidates(rows: Sequence[CandidateRow], request: SearchRequest) -> list[Candidate]:
    bm25, includes_history = request.bm25, request.includes_history
    shares = _session_matches(rows, bm25)
    # Positional arguments: keyword arguments cost time for every candidate.
    return [
        Candidate(
            row.memory_id,
            row.timestamp,
            row.relevance_score,
            row.similarity,
            bm25(row.term_keys),
            row.speaker,
            row.access_count,
            row.last_accessed,
            (row.content_hash, row.speaker, row.user_id, row.namespace),
            row.asks,
            row.is_exchange,
            _span(row.event_from, row.event_to),
            row.term_keys,
            row.is_summary,
            _span(row.held_from, row.held_to) if includes_history else None,
            _span(row.passage_start, row.passage_end),
            shares.get(row.session_id or "", 0.0),
        )
        for row in rows
    ]


def _links(rows: Sequence[CandidateRow], *, changes: bool) -> Iterator[CandidateLink]:
    """Yields the CHANGES links, or all other links."""
    for row in rows:
        links = zip(row.target_ids or (), row.weights or (), row.relations or (), strict=True)
        for target_id, weight, relation in links:
            if (relation == CHANGES) == changes:
                yield CandidateLink(row.memory_id, target_id, weight, relation not in SERVICE_RELATIONS)
