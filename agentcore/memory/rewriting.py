"""Rewriting, as a story: a language model puts the query into other words, whose vectors are searched too.

Nothing else of a search comes from the model: whose memories, which filters and how many are the caller's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain

from agentcore.errors import DependencyUnavailable
from agentcore.memory.llm import Rewriting
from agentcore.memory.notes import Notes
from agentcore.memory.params import Turn
from agentcore.memory.parts import MemoryParts
from agentcore.memory.retrieval import Candidate
from agentcore.memory.vector_store import Found

MOST_QUERIES = 3
# Far longer than a question or a sentence: what a model says beyond that is cut.
MOST_CHARS = 1_000


async def rewritten(
    parts: MemoryParts, query: str, text: str, history: Sequence[Turn], notes: Notes
) -> list[str]:
    """The texts whose vectors are searched: `text` first, then other wordings of the query.

    Without a rewriter, or when it fails, `text` alone; `notes` say how many wordings came.
    """
    if parts.rewriter is None:
        return [text]
    try:
        with notes.steps("rewrite"):
            rewriting = await parts.rewriter.rewrite(query, history)
    except DependencyUnavailable as failure:
        notes.degraded.append(f"query rewriting: skipped, {failure.message}")
        rewriting = Rewriting()
    texts = list(dict.fromkeys([text, *_wordings(rewriting, query)]))
    notes.searched["rewritten"] = len(texts) - 1
    return texts


def _wordings(rewriting: Rewriting, query: str) -> Iterator[str]:
    answers = [] if rewriting.answer is None else [rewriting.answer]
    for each in [*rewriting.queries[:MOST_QUERIES], *answers]:
        wording = each[:MOST_CHARS].strip()
        if wording and wording.casefold() != query.strip().casefold():
            yield wording


def together(found: Sequence[Found]) -> Found:
    """What the searches by each wording found, each memory as near as the wording it is nearest to.

    `rewritten` counts the candidates that the first did not find.
    """
    first = found[0]
    if len(found) == 1:
        return first
    candidates = chain.from_iterable(one.candidates for one in found)
    nearest = {each.memory_id: each for each in sorted(candidates, key=_similarity)}
    return replace(
        first,
        candidates=list(nearest.values()),
        ties=list(dict.fromkeys(chain.from_iterable(one.ties for one in found))),
        neighbours=list(dict.fromkeys(chain.from_iterable(one.neighbours for one in found))),
        counts={**first.counts, "rewritten": len(nearest) - len(first.candidates)},
    )


def _similarity(candidate: Candidate) -> float:
    return -1.0 if candidate.similarity is None else candidate.similarity
