"""The rule-based parts of the memory, and the replacement that switches each of them off.

Replacements apply within `replaced` only; `agentcore` does not know them.
"""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from agentcore.memory import contradictions, retrieval, vector_store
from agentcore.memory.contexts.filling import Manner
from agentcore.memory.contradictions import NOTHING, Verdict
from agentcore.memory.ranking.candidates import Candidate, Distinct
from agentcore.memory.recall import recalling
from agentcore.memory.scoring import RetrievalWeights
from agentcore.memory.statements.statements import RuleInput

SHARES = ("assistant_share",)
PRODUCT, AGAIN = "product", "product stored again"
BELOW = "from below"


@dataclass(frozen=True)
class Replacement:
    """`entry`, as `module:name`, and the function that replaces it."""

    entry: str
    by: Callable[..., Any]

    def place(self) -> tuple[Any, str]:
        """Returns the owner and the name. Raises ImportError or AttributeError if the entry is gone."""
        module, _, name = self.entry.partition(":")
        owner = importlib.import_module(module)
        getattr(owner, name)
        return owner, name


@dataclass(frozen=True)
class Part:
    """A part, and how it is switched off.

    `storing`: replaced from the time of storing on. `asking`: replaced for questions only. `store`: the name
    of the store to query. Parts with the same `store` have equal `storing`; "" is the store of the unchanged
    product.
    """

    name: str
    asking: Sequence[Replacement] = ()
    storing: Sequence[Replacement] = ()
    store: str = ""

    @property
    def acts(self) -> str:
        return "storing" if self.store else "asking"

    @property
    def replacements(self) -> Sequence[Replacement]:
        return (*self.storing, *self.asking)


@contextmanager
def replaced(replacements: Sequence[Replacement], called: Counter[str]) -> Iterator[None]:
    """Applies the replacements until the block ends; counts their calls by entry."""
    with ExitStack() as stack:
        for each in replacements:
            owner, name = each.place()
            stack.callback(setattr, owner, name, getattr(owner, name))
            setattr(owner, name, _counted(each, called))
        yield


def _counted(replacement: Replacement, called: Counter[str]) -> Callable[..., Any]:
    def call(*args: Any, **options: Any) -> Any:
        called[replacement.entry] += 1
        return replacement.by(*args, **options)

    return call


def always(value: Any) -> Callable[..., Any]:
    """Returns a function that returns this value for any arguments."""
    return lambda *_, **__: value


# --- replacement functions ----------------------------------------------------------------------------------


def _off(entry: str, by: Callable[..., Any]) -> Replacement:
    return Replacement(f"agentcore.memory.{entry}", by)


# The originals, as of the import of this module.
_judge, _span, _rank, _manner = (
    contradictions.judge, vector_store._span, retrieval.rank, recalling._manner,
)  # fmt: skip


def _no_supersession(old: RuleInput, new: RuleInput) -> Verdict:
    verdict = _judge(old, new)
    return NOTHING if verdict.relation in {"superseding", "possible"} else verdict


def _all_kept(candidates: Sequence[Candidate], *_: Any) -> Distinct:
    return Distinct(candidates, {})


def _no_event(row: Any, of: str) -> Any:
    return None if of == "event" else _span(row, of)


def _all_told(*args: Any) -> Manner:
    return replace(_manner(*args), distinct=False)


def _with_weights(**weights: float) -> Replacement:
    def rank(candidates: Any, ties: Any, neighbours: Any, given: RetrievalWeights, *rest: Any) -> Any:
        return _rank(candidates, ties, neighbours, replace(given, **weights), *rest)

    return _off("recall.searching:rank", rank)


def _only(*terms: str) -> Replacement:
    others: dict[str, float] = {name: 0.0 for name in retrieval.TERMS if name not in terms}
    return _with_weights(**others, **dict.fromkeys(SHARES, 1.0))


def _no_difference(scores: Any, *_: Any) -> Any:
    return np.zeros(len(scores))


def _unchanged(scores: Any, *_: Any) -> Any:
    return scores


# --- the parts ---------------------------------------------------------------------------------------------

_SUPERSESSION = (_off("consequences.supersession:judge", _no_supersession),)
_FACTS = (
    _off("contradictions:_other_fact", always("")),
    _off("intake:fact_keys", always([])),
    _off("ranking.opposition:fact", always(None)),
)
_REJECTION = (_off("intake:rejection", always(None)),)
_SETTLING = (_off("recall.reranking:contradicted", always({})),)
# No subject is extracted from a new memory, so none is looked up or superseded, and results never contradict.
_STATEMENTS = (_off("intake:subjects_of", always([])), *_SETTLING)
_COPIES = (_off("retrieval:distinct", _all_kept),)
_REPETITION = (_off("retrieval:likenesses", _no_difference),)
_TOLD_ONCE = (_off("recall.recalling:_manner", _all_told),)
_FRESHNESS = (
    _off("retrieval:lifted", _unchanged),
    _off("retrieval:freshness", _no_difference),
    _off("retrieval:_outdated", always({})),
)

STORING = (
    Part("statements", storing=_STATEMENTS, store="statements"),
    Part("supersession", storing=_SUPERSESSION, store="supersession"),
    Part("facts", storing=_FACTS, store="facts"),
    Part("rejection", storing=_REJECTION, store="rejection"),
)
ASKING = (
    Part("settling", _SETTLING),
    Part("events", (_off("vector_store:_span", _no_event),)),
    Part("windows", (_off("language.moments:windows", always(())),)),
    Part("looking back", (_off("recall.searching:historical_scope", always(None)),)),
    Part("past questions", (_off("recall.searching:asks_of_the_past", always(False)),)),
    Part("spelling", (_off("recall.wording:edits_at_distance_one", always([])),)),
    Part("everyday words", (_off("recall.wording:everyday_share", always(0.0)),)),
    Part("copies", _COPIES),
    Part("repetition", _REPETITION),
    Part("told once", _TOLD_ONCE),
    Part("distinct", (*_COPIES, *_REPETITION, *_TOLD_ONCE)),
    Part("splitting", (_off("recall.searching:split", lambda prompt: [prompt]),)),
    Part("completion", (_off("recall.searching:complete", lambda text, _: text),)),
    Part("kind of answer", (_off("recall.searching:asks_for_time", always(False)),)),
    Part("freshness", _FRESHNESS),
)
WEIGHTS = tuple(
    [Part(f"weight {name}", (_with_weights(**{name: 0.0}),)) for name in retrieval.TERMS]
    + [Part(name.replace("_", " "), (_with_weights(**{name: 1.0}),)) for name in SHARES]
)
# Removed for the ranking "from below": all of the above except the statement reader, whose rules are separate
# parts.
_BARE = tuple(each for part in ASKING if part.name != "freshness" for each in part.asking)
_BARE_STORE = (*_SUPERSESSION, *_FACTS, *_REJECTION)
FROM_BELOW = tuple(
    Part(name, (*_BARE, *asking), _BARE_STORE, BELOW)
    for name, asking in (
        ("similarity alone", (*_FRESHNESS, _only("similarity"))),
        ("similarity and words", (*_FRESHNESS, _only("similarity", "words"))),
        ("similarity, words and freshness", (_only("similarity", "words"),)),
    )
)
PARTS = (*STORING, *ASKING, *WEIGHTS)
# A second copy of the store: its differences are random (ids), not caused by a part.
CHANCE = Part(AGAIN, store=AGAIN)
CHOICES = {part.name: part for part in (CHANCE, *PARTS, *FROM_BELOW)}
