"""How common a word is in what people tell an assistant. English; pure.

An agent with thirty memories has too few words of its own for that; the shares come from our labelled talks.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files

from agentcore.memory.lexical import terms


@lru_cache(maxsize=1)
def _shares() -> Mapping[str, float]:
    shares: dict[str, float] = {}
    share = 0.0
    for line in files(__package__).joinpath("everyday.txt").read_text(encoding="utf-8").splitlines()[1:]:
        if line.startswith("["):
            share = float(line.strip("[]"))
            continue
        for term in terms(line):
            shares[term] = max(share, shares.get(term, 0.0))
    return shares


def everyday_share(term: str) -> float:
    """Returns the share of everyday memories that contain the term, as `lexical.terms` gives it."""
    return _shares().get(term, 0.0)
