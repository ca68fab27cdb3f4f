"""Rewriting, as a story: a language model puts the query into other words, whose vectors are searched too.

Nothing else of a search comes from the model: whose memories, which filters and how many are the caller's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agentcore.errors import DependencyUnavailable
from agentcore.memory.llm import Rewriting
from agentcore.memory.params.memories import Turn
from agentcore.memory.parts import MemoryParts
from agentcore.memory.recall.notes import Notes

MOST_QUERIES = 3
# Far longer than a question or a sentence: what a model says beyond that is cut.
MOST_CHARS = 1_000


async def rewritten(
    parts: MemoryParts, agent_id: str, query: str, text: str, history: Sequence[Turn], notes: Notes
) -> list[str]:
    """The texts whose vectors are searched: `text` first, then other wordings of the query.

    Without a rewriter, or when it fails, `text` alone; `notes` say how many wordings came.
    """
    if parts.rewriter is None:
        return [text]
    try:
        with notes.steps("rewrite"):
            rewriting = await parts.rewriter.rewrite(query, history, agent_id=agent_id)
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
