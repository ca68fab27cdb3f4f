"""Every cache is declared with what keys it, and every time in a result is coarse."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel

import agentcore
from agentcore.memory.api import METHODS
from agentcore.memory.forgetting.inventory import CACHES

PACKAGE = Path(agentcore.__file__).parent
DECORATORS = {"cache", "lru_cache", "cached"}
CONTAINERS = {"dict", "OrderedDict", "defaultdict", "Counter", "WeakValueDictionary", "WeakKeyDictionary"}
# Filled by one call, one import or one object of a client, or by the import of the package.
NO_CACHES = {
    "agentcore.agents.session_memory.in_memory:InMemorySessionMemory._sessions",
    "agentcore.cli.importing:Import._ids",
    "agentcore.client.memory_client:Batch._waiting",
    "agentcore.connections:LimitedProtocol._timers",
    "agentcore.database:Database._gates",
    "agentcore.integrations.google_adk:AgentCoreMemoryService._kept",
    "agentcore.maintenance.job_queue:JOBS",
    "agentcore.maintenance.rounds:Maintenance._failing",
    "agentcore.maintenance.rounds:Maintenance.jobs",
    "agentcore.maintenance.rounds:Maintenance.waiting",
    "agentcore.memory.consequences.superseding:Superseding._confirmed",
    "agentcore.memory.consequences.superseding:Superseding._decided",
    "agentcore.memory.consequences.superseding:Superseding._in_session",
    "agentcore.memory.consequences.superseding:Superseding._near",
    "agentcore.memory.consequences.superseding:Superseding._on_subject",
    "agentcore.memory.consequences.superseding:Superseding._verdicts",
    "agentcore.memory.contexts.filling:Filling._facts",
    "agentcore.memory.contexts.told_once:_Repeats._sentences",
    "agentcore.memory.contexts.told_once:_Repeats._tellers",
    "agentcore.memory.pruning:STRATEGIES",
    "agentcore.memory.writing.storing:Storing.errors",
    "agentcore.providers.bert_graph:BertGraph.initializers",
    "agentcore.telemetry:Steps._seconds",
}
TIME = re.compile(r"_ms$|_seconds$|duration|timing|took|elapsed")
# Set by the caller: how long something lives, not how long a call took.
SETTINGS = {"LayerRules.ttl_seconds", "SummaryRules.inactivity_seconds"}
# Rounded up by agentcore.telemetry:Steps, the only maker of this field (tests/unit/test_telemetry.py).
COARSE = {"Receipt.timings_ms"}


def _name(node: ast.expr) -> str:
    called = node.func if isinstance(node, ast.Call) else node
    return getattr(called, "id", getattr(called, "attr", ""))


def _is_empty_container(node: ast.expr | None) -> bool:
    if isinstance(node, ast.Dict):
        return not node.keys
    return isinstance(node, ast.Call) and _name(node) in CONTAINERS and not node.args


def _filled_later(body: Iterator[ast.AST] | list[ast.stmt]) -> Iterator[ast.expr]:
    for node in body:
        if isinstance(node, ast.Assign) and _is_empty_container(node.value):
            yield from node.targets
        elif isinstance(node, ast.AnnAssign) and _is_empty_container(node.value):
            yield node.target


def _found(source: str) -> Iterator[str]:
    tree = ast.parse(source)
    yield from (target.id for target in _filled_later(tree.body) if isinstance(target, ast.Name))
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            if DECORATORS & {_name(each) for each in node.decorator_list}:
                yield f"{node.name}()"
        elif isinstance(node, ast.ClassDef):
            for target in _filled_later(ast.walk(node)):
                if isinstance(target, ast.Attribute):
                    yield f"{node.name}.{target.attr}"


@cache
def _places() -> frozenset[str]:
    places: set[str] = set()
    for path in PACKAGE.rglob("*.py"):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        places |= {f"{module}:{each}" for each in _found(path.read_text(encoding="utf-8"))}
    return frozenset(places)


def test_every_cache_is_declared_with_what_keys_it() -> None:
    assert _places() == CACHES.keys() | NO_CACHES


def test_nothing_is_both_a_cache_and_none() -> None:
    assert not CACHES.keys() & NO_CACHES


def test_a_cache_of_any_form_is_found() -> None:
    source = ("from functools import lru_cache\n_KNOWN: dict[str, int] = {}\n"
              "@lru_cache(maxsize=9)\ndef read(text): ...\n"
              "class A:\n    def __init__(self):\n        self._seen = OrderedDict()\n")
    assert [*_found(source)] == ["_KNOWN", "read()", "A._seen"]


def _timed(kind: Any, seen: set[Any]) -> Iterator[str]:
    for inner in get_args(kind):
        yield from _timed(inner, seen)
    if isinstance(kind, type) and issubclass(kind, BaseModel) and kind not in seen:
        seen.add(kind)
        for name, field in kind.model_fields.items():
            if TIME.search(name):
                yield f"{kind.__name__}.{name}"
            yield from _timed(field.annotation, seen)


def test_every_time_in_a_result_is_coarse_or_a_setting() -> None:
    seen: set[Any] = set()
    assert {each for method in METHODS for each in _timed(method.result, seen)} == COARSE | SETTINGS
