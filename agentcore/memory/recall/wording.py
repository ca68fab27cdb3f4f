"""Lexical search: reads the terms of a query, corrects typos, selects the terms to look up."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TypeVar

from agentcore.memory.lexical import (
    Bm25,
    LexicalStatistics,
    edits_at_distance_one,
    everyday_share,
    rarest,
    select_query_keys,
    term_key,
    terms,
)
from agentcore.memory.ranking.candidates import Candidate, MatchScale
from agentcore.memory.vector_store import PgVectorStore

MAX_POSTINGS = 1_000
# If vectors are searched too, a term of more memories is skipped: it costs more than it discriminates.
LONGEST_LIST = 20_000
MAX_QUERY_TERMS = 64
# No memory contains every word of a long prompt: its rarest terms count as a full match.
MATCHED_TERMS = 12
# In a new store, a full match scores at least as high as this many terms that no memory contains.
TELLING_TERMS = 3
MAX_CORRECTED_TERMS = 4
# Weight of a term that is the probable correction of a typo.
CORRECTED_SHARE = 0.8
# The maximum number of distinct terms of a query that are looked up.
READ_TERMS = 8_192
# Longer texts are parsed in a thread.
READ_CHARS = 4_000

Read = TypeVar("Read")


@dataclass(frozen=True)
class Wording:
    """The query's terms as keys, their scorer, the terms to look up with weights, corrected typos."""

    keys: Sequence[int]
    bm25: Bm25
    term_weights: Mapping[int, float]
    corrected: Mapping[str, str] = field(default_factory=dict)

    def full_match(self, candidates: Sequence[Candidate]) -> MatchScale:
        """Returns the scale of a full match: the best BM25 score found, with a lower bound.

        The bound is half the score of the query's rarest terms, so that one shared common word is no match. In a small
        store it is the whole of it, and at least that of TELLING_TERMS new terms (one for a query of one word).
        """
        statistics, alone = self.bm25.statistics, self.bm25(self.keys[:MATCHED_TERMS])
        best = max((candidate.words for candidate in candidates), default=0.0)
        count = 1 if len(self.keys) == 1 else TELLING_TERMS
        telling = count * statistics.background_weight * statistics.max_weight()
        words = max(best, 0.5 * (1 + statistics.background_weight) * alone, telling)
        return MatchScale(words, alone)


async def read_words(vectors: PgVectorStore, agent_id: str, text: str, *, with_vectors: bool) -> Wording:
    """Looks the terms of a text up; with vectors, not those that nearly every memory contains."""
    keys = await read_text(lambda: _read(agent_id, text), len(text))
    statistics = await vectors.statistics(agent_id, list(keys))
    edits = _edits(agent_id, keys, statistics)
    frequencies = statistics.document_frequency
    if edits:
        spelled = await vectors.statistics(agent_id, list({key for near in edits.values() for key in near}))
        frequencies = {**spelled.document_frequency, **frequencies}
    corrected = _corrected(edits, frequencies)
    corrections = dict(corrected.values())
    background_share = {key: everyday_share(term) for key, term in {**keys, **corrections}.items()}
    statistics = replace(statistics, document_frequency=frequencies, background_share=background_share)
    own = [corrected[key][0] if key in corrected else key for key in keys]
    wanted = rarest(own, frequencies, MAX_QUERY_TERMS)
    # A correction that the query also contains counts in full.
    bm25 = Bm25(wanted, statistics, discounts=dict.fromkeys(corrections.keys() - keys.keys(), CORRECTED_SHARE))
    longest_list = LONGEST_LIST if with_vectors else math.inf
    looked_up = select_query_keys(bm25.keys, frequencies, MAX_POSTINGS, longest_list)
    return Wording(wanted, bm25, bm25.weights(looked_up), {keys[key]: term for key, (_, term) in corrected.items()})


def _read(agent_id: str, text: str) -> dict[int, str]:
    return {term_key(agent_id, term): term for term in islice(dict.fromkeys(terms(text)), READ_TERMS)}


async def read_text(read: Callable[[], Read], chars: int) -> Read:
    """Returns the result of a pure parser; in a thread for a long text."""
    return read() if chars <= READ_CHARS else await asyncio.to_thread(read)


def _edits(agent_id: str, keys: Mapping[int, str], statistics: LexicalStatistics) -> dict[int, dict[int, str]]:
    if not statistics.memory_count:
        return {}
    unknown = (each for each in keys.items() if not statistics.document_frequency.get(each[0]))
    near = ((key, edits_at_distance_one(term)) for key, term in unknown)
    few = islice(((key, edits) for key, edits in near if edits), MAX_CORRECTED_TERMS)
    return {key: {term_key(agent_id, edit): edit for edit in edits} for key, edits in few}


def _corrected(edits: Mapping[int, Mapping[int, str]], frequencies: Mapping[int, int]) -> dict[int, tuple[int, str]]:
    """Returns the most frequent spelling of each term."""
    best: dict[int, tuple[int, str]] = {}
    for key, near in edits.items():
        count, meant = max((frequencies.get(edit, 0), edit) for edit in near)
        if count:
            best[key] = (meant, near[meant])
    return best
