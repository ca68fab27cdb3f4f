"""How far a search looks: how many candidates each of its arms gives. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace

# So many memories wanted are chosen among the candidates of one breadth.
MEMORIES_A_BREADTH = 50
BROADEST = 8


@dataclass(frozen=True)
class SearchLimits:
    """How far a search looks."""

    exact_search_limit: int = 5_000
    vector_candidates: int = 60
    lexical_candidates: int = 90
    leading_candidates: int = 20
    link_candidates: int = 20
    temporal_candidates: int = 40
    temporal_rows: int = 1_000
    temporal_rows_read: int = 10_000
    several_vector_candidates: int = 150

    def times(self, breadth: int) -> SearchLimits:
        """So many times as many candidates of every arm."""
        return replace(
            self,
            vector_candidates=breadth * self.vector_candidates,
            lexical_candidates=breadth * self.lexical_candidates,
            leading_candidates=breadth * self.leading_candidates,
            link_candidates=breadth * self.link_candidates,
            temporal_candidates=breadth * self.temporal_candidates,
            several_vector_candidates=breadth * self.several_vector_candidates,
        )


def breadth_for(k: int) -> int:
    """How many times as many candidates a search for the best `k` needs as one for a few."""
    return min(BROADEST, max(1, -(-k // MEMORIES_A_BREADTH)))
