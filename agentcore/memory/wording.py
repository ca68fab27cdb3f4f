"""Searching by words: which of the query's terms tell most, what was probably meant by the unknown ones, and
what holds them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agentcore.memory.lexical import (
    Bm25,
    LexicalStatistics,
    rarest,
    select_query_keys,
    spellings,
    term_key,
    terms,
)
from agentcore.memory.vector_store import VectorStore, WordHits
from agentcore.telemetry import Steps

MAX_POSTINGS = 2_000
MAX_QUERY_TERMS = 64
MAX_CORRECTED_TERMS = 4
# What a term counts that the query does not hold, but probably means.
CORRECTED_SHARE = 0.8
THREAD_ABOVE_CHARS = 4_000


@dataclass(frozen=True)
class Wording:
    """The query's terms as keys, the score they give, what holds them, and which were read as another."""

    keys: Sequence[int]
    bm25: Bm25
    hits: WordHits
    corrected: Mapping[str, str] = field(default_factory=dict)


async def search_words(
    vectors: VectorStore, agent_id: str, text: str, conditions: Mapping[str, Any], steps: Steps
) -> Wording:
    """What holds the words of the text, in the agent's memories that match."""
    with steps("statistics"):
        keys = await _keys(agent_id, text)
        statistics = await vectors.statistics(agent_id, list(keys))
        corrected = await _corrected(vectors, agent_id, keys, statistics)
    meant = {key: corrected[key][1] for key in keys if key in corrected}
    frequencies = {**statistics.document_frequency, **{key: count for _, key, count in corrected.values()}}
    known = LexicalStatistics(statistics.memory_count, statistics.mean_length, frequencies)
    wanted = rarest([meant.get(key, key) for key in keys], frequencies, MAX_QUERY_TERMS)
    bm25 = Bm25(wanted, known, discounts=dict.fromkeys(meant.values(), CORRECTED_SHARE))
    chosen = select_query_keys(wanted, frequencies, MAX_POSTINGS)
    with steps("words"):
        hits = await vectors.search_words(agent_id, bm25.weights(chosen), conditions)
    return Wording(wanted, bm25, hits, {keys[key]: term for key, (term, _, _) in corrected.items()})


async def _keys(agent_id: str, text: str) -> dict[int, str]:
    """The text's terms by their keys, in order."""
    found = terms(text) if len(text) <= THREAD_ABOVE_CHARS else await asyncio.to_thread(terms, text)
    return {term_key(agent_id, term): term for term in found}


async def _corrected(
    vectors: VectorStore, agent_id: str, keys: Mapping[int, str], statistics: LexicalStatistics
) -> dict[int, tuple[str, int, int]]:
    """For each key that no memory holds, the most common term one slip away, with its key and its count."""
    unknown = {
        key: {term_key(agent_id, slip): slip for slip in spellings(term)}
        for key, term in keys.items()
        if not statistics.document_frequency.get(key)
    }
    asked = dict([(key, slips) for key, slips in unknown.items() if slips][:MAX_CORRECTED_TERMS])
    if not asked or not statistics.memory_count:
        return {}
    found = await vectors.statistics(agent_id, [slip for slips in asked.values() for slip in slips])
    best: dict[int, tuple[str, int, int]] = {}
    for key, slips in asked.items():
        count, meant = max((found.document_frequency.get(slip, 0), slip) for slip in slips)
        if count:
            best[key] = (slips[meant], meant, count)
    return best
