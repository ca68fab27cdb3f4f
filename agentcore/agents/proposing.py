"""Which of the memories found for "forget that ..." surely are what is meant. Pure.

Recalling may give what is merely near; what is proposed to be deleted may not. Each memory is judged by its
match: its score without recency, frequency, importance and repetition, which say nothing of what was asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from agentcore.memory.models import MemorySummary

# Below this probability that anything found answers, nothing is proposed.
SURE_FIT = 0.5
# A match that speaks for itself; one that does beside what else was found; and how far it then stands above.
SURE_MATCH, STANDING_MATCH, TIMES_THE_TYPICAL = 0.37, 0.25, 2.5
# Of fewer others nothing is typical.
FEWEST_OTHERS = 3
# So much of the best match belongs to it.
SHARE_OF_BEST = 0.75
_NOT_OF_THE_MATCH = ("recency", "frequency", "importance", "repetition")


def surely_meant(found: Sequence[MemorySummary]) -> list[MemorySummary]:
    """Those of a search with `explain` that surely are meant, in its order; often none."""
    matches = [_match(memory) for memory in found]
    if not matches or not _stands(sorted(matches, reverse=True)):
        return []
    least = SHARE_OF_BEST * max(matches)
    return [memory for memory, match in zip(found, matches, strict=True) if match >= least]


def _match(memory: MemorySummary) -> float:
    added = sum(term.contribution for name, term in (memory.terms or {}).items() if name in _NOT_OF_THE_MATCH)
    return (memory.score or 0.0) - added


def _stands(matches: Sequence[float]) -> bool:
    best, *others = matches
    if best >= SURE_MATCH:
        return True
    typical = median(others) if len(others) >= FEWEST_OTHERS else best
    return best >= STANDING_MATCH and best >= TIMES_THE_TYPICAL * typical
