"""Tests that every cache is declared with its key and that results contain only coarse timings."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import Any, get_args

import pytest
from pydantic import BaseModel

import agentcore
from agentcore.memory.api import METHODS

PACKAGE = Path(agentcore.__file__).parent
DECORATORS = {"cache", "lru_cache", "cached"}
CONTAINERS = {
    "dict",
    "OrderedDict",
    "defaultdict",
    "Counter",
    "WeakValueDictionary",
    "WeakKeyDictionary",
    "set",
    "list",
    "deque",
    "WeakSet",
}
# Caches that outlive a call, by what keys an entry. Of one agent:
OF_AGENTS = {
    "agentcore.admission:BodyBudget._held",
    "agentcore.admission:RateLimit._buckets",
    "agentcore.call_queue:CallQueue._queued",
    "agentcore.call_queue:CallQueue._running",
    "agentcore.call_queue:_Waiting.calls",
    "agentcore.memory.embedding_cache:CachingEmbedder._entries",
    "agentcore.memory.lexical:_agent_key()",
    "agentcore.memory.lexical:_term_key()",
    "agentcore.memory.ranking.opposition:_readings()",
    "agentcore.memory.parts:AccessQueue._counts",
    "agentcore.memory.parts:AccessQueue._moments",
    "agentcore.memory.rows.vector_rows:ServingIndexes._known",
}
# A digest of the token:
OF_CALLERS = {"agentcore.auth:TokenVerifier._seen"}
# Names of code, settings or models, so no agent's data:
OF_NO_DATA = {
    "agentcore.auth:JwksKeys._keys",
    "agentcore.database:query()",
    "agentcore.database:with_numbered_parameters()",
    "agentcore.memory.lexical:_shares()",
    "agentcore.memory.language.rejection:_default_patterns()",
    "agentcore.memory.tokens:TokenCounters._made",
    "agentcore.memory.vector_store:PgVectorStore._statements",
    "agentcore.migration:revisions()",
    "agentcore.providers.openai_models:load_prompt()",
}
# Filled within one call, one import, one client object, or at the import of the package.
NO_CACHES = {
    "agentcore.agents.session_memory.in_memory:InMemorySessionMemory._sessions",
    "agentcore.cli.importing:Import._ids",
    "agentcore.client.memory_client:Batch._waiting",
    "agentcore.database:Database._gates",
    "agentcore.database:Database.fallbacks",
    "agentcore.integrations.google_adk:AgentCoreMemoryService._kept",
    "agentcore.maintenance.job_queue:JOBS",
    "agentcore.maintenance.rounds:Maintenance._failing",
    "agentcore.maintenance.rounds:Maintenance.index_recall",
    "agentcore.maintenance.rounds:Maintenance.jobs",
    "agentcore.maintenance.rounds:Maintenance.table_bytes",
    "agentcore.maintenance.rounds:Maintenance.waiting",
    "agentcore.memory.consequences.supersession:Superseding._confirmed",
    "agentcore.memory.consequences.supersession:Superseding._decided",
    "agentcore.memory.consequences.supersession:Superseding._near",
    "agentcore.memory.consequences.supersession:Superseding._on_subject",
    "agentcore.memory.consequences.supersession:Superseding._verdicts",
    "agentcore.memory.contexts.filling:Filling._facts",
    "agentcore.memory.contexts.shortening:_Repeats._tellers",
    "agentcore.memory.pruning:STRATEGIES",
    "agentcore.memory.recall.searching:Search._found_by",
    "agentcore.memory.writing.storing:Storing.errors",
    "agentcore.providers.bert_graphs:E5Graph._quantized",
    "agentcore.providers.bert_graphs:E5Graph.initializers",
    "agentcore.providers.remote_request:RemoteEmbedder._started",
    "agentcore.server:LimitedProtocol._timers",
    "agentcore.telemetry:Steps._seconds",
    "agentcore.providers.memory_vectors:MemoryVectors._points",
}
# Values that live as long as one call, command or client object, by module.
OF_ONE_CALL = {
    "agentcore.agents.memory_enabled_agent": "AgentTurn.actions AgentTurn.answers AgentTurn.problems "
    "MemoryEnabledAgent._said",
    "agentcore.console.visit": "Visit.form",
    "agentcore.structured_settings": "Keyring.keys",
    "agentcore.cli.importing": "Import._links Import._superseded Import._waiting Tally.failures Tally.left_out "
    "Tally.outcomes "
    "Tally.places Tally.reasons",
    "agentcore.cli.imports.export_files": "Opened.others",
    "agentcore.client.memory_client": "Batch._deliveries",
    "agentcore.embedded.parts": "EmbeddedParts._parts",
    "agentcore.integrations.openai_agents": "AgentCoreSession._waiting",
    "agentcore.maintenance.purging": "Purged.failed Purged.purged Purged.remaining",
    "agentcore.memory.columns": "NewColumns.action_outcomes NewColumns.actions NewColumns.subjects",
    "agentcore.memory.consequences.supersession": "Outcome.superseded Superseding._asking Superseding._tasks "
    "Superseding.degraded Superseding.taken",
    "agentcore.memory.contexts.filling": "Filling._headed Filling.lines Filling.told",
    "agentcore.memory.deriving.consolidating": "Consolidated.archived Consolidated.clusters Consolidating.degraded",
    "agentcore.memory.deriving.extracting": "Asked.again Asked.read Asked.tried Asked.without",
    "agentcore.memory.deriving.period_summaries": "_Share.last _Share.rows",
    "agentcore.memory.deriving.session_summaries": "SessionSummarizing.kept",
    "agentcore.memory.forgetting.erasing": "Erased.erased Erased.left Erased.unreachable _Plan.loose",
    "agentcore.memory.forgetting.removing": "Deleted.reinstated Removed.memory_ids",
    "agentcore.memory.forgetting.restoring": "Restored.lost_links Restored.memory_ids Restored.refused_ids "
    "Restored.renewed_ids "
    "Restored.superseded_ids Restored.unreadable_ids Restored.waiting_for_embedding_ids _Page.copies "
    "_Page.refused_ids _Page.tombstones _Page.unreadable_ids",
    "agentcore.memory.lexical": "LexicalStatistics.background_share",
    "agentcore.memory.parts": "MemoryPolicy.layers MemoryPolicy.limits_set",
    "agentcore.memory.recall.reranking": "Notes.degraded Notes.searched",
    "agentcore.memory.recall.recalling": "TaskMemory.importances",
    "agentcore.memory.recall.searching": "SearchResult.passages",
    "agentcore.memory.recall.wording": "Wording.corrected",
    "agentcore.memory.statements.statements": "RuleInput.readings",
    "agentcore.memory.vector_store": "Found.found_by SearchRequest.term_weights",
    "agentcore.memory.writing.changing": "Changing.degraded Wanted.columns Wanted.told",
    "agentcore.memory.writing.storing": "Storing._reinforced Storing._stored Storing.degraded",
    "agentcore.providers.bert_graphs": "E5Graph._nodes",
    "agentcore.providers.openai_models": "_Summary.key_facts _Summary.topics",
}
# Pending work: entries are removed when their task, connection or batch ends.
PENDING = {
    "agentcore.cancellation:_ending",
    "agentcore.memory.archival:DirectoryArchive._abandoned_changes",
    "agentcore.memory.embedding_cache:CachingEmbedder._sharing",
    "agentcore.memory.embeddings:_Lane._running",
    "agentcore.memory.embeddings:_Lane._waiting",
    "agentcore.database:ConnectionGate._acquiring",
    "agentcore.replication:LastWriteLsns._unknown",
    "agentcore.replication:LastWriteLsns._unpublished",
}
# Safe to share between agents: pure functions of one word or name, and a hit saves microseconds only.
OF_WORDS = {
    "agentcore.memory.language.text:_forms()": "the spellings of a token",
    "agentcore.memory.lexical:_term()": "the stem of a word",
    "agentcore.memory.scoring:is_assistant()": "whether a speaker's name is an assistant's",
    "agentcore.memory.scoring:is_person()": "whether a speaker's name is a person's",
    "agentcore.providers.hashing:_features()": "the places of a word in a vector",
}
TIME = re.compile(r"_ms$|_seconds$|duration|timing|took|elapsed")
# Set by the caller: a lifetime, not the duration of a call.
SETTINGS = {"LayerRules.ttl_seconds", "SummaryRules.inactivity_seconds"}
# Rounded up by agentcore.telemetry:Steps, the only code that sets this field (tests/unit/test_telemetry.py).
COARSE = {"Receipt.timings_ms"}


def _name(node: ast.expr) -> str:
    called = node.func if isinstance(node, ast.Call) else node
    return getattr(called, "id", getattr(called, "attr", ""))


def _is_empty_container(node: ast.expr | None) -> bool:
    if isinstance(node, ast.Dict):
        return not node.keys
    if isinstance(node, ast.List):
        return not node.elts
    if not isinstance(node, ast.Call):
        return False
    made = next((each.value for each in node.keywords if each.arg == "default_factory"), None)
    if _name(node) == "field" and made is not None:
        return _name(made) in CONTAINERS or (isinstance(made, ast.Lambda) and _is_empty_container(made.body))
    # The arguments of `defaultdict` and `deque` may configure them; those of `dict` and `list` are content.
    return _name(node) in CONTAINERS and (not node.args or _name(node) in {"defaultdict", "deque"})


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
            yield from (
                f"{node.name}.{target.id}" for target in _filled_later(node.body) if isinstance(target, ast.Name)
            )
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


@pytest.mark.shows("issue13-caches")
def test_every_cache_is_declared_with_what_keys_it() -> None:
    of_one_call = {f"{module}:{name}" for module, names in OF_ONE_CALL.items() for name in names.split()}
    declared = [OF_AGENTS, OF_CALLERS, OF_NO_DATA, OF_WORDS.keys(), NO_CACHES, of_one_call, PENDING]
    assert _places() == set().union(*declared)
    assert sum(map(len, declared)) == len(_places())


@pytest.mark.shows("issue13-caches")
def test_what_agents_share_is_a_pure_function_of_one_word() -> None:
    for place in OF_WORDS:
        module, _, name = place.removesuffix("()").partition(":")
        parameters = signature(getattr(import_module(module), name)).parameters
        assert len(parameters.keys() - {"dimensions"}) == 1


@pytest.mark.shows("issue13-caches")
def test_a_cache_of_any_form_is_found() -> None:
    source = (
        "from functools import lru_cache\n_KNOWN: dict[str, int] = {}\n"
        "@lru_cache(maxsize=9)\ndef read(text): ...\n"
        "class A:\n    ALL = []\n    kept: set[int] = field(default_factory=set)\n"
        "    def __init__(self):\n        self._seen = OrderedDict()\n"
        "        self._last = deque(maxlen=9)\n        self._by_name = defaultdict(list)\n"
        "        self._local = [text]\n"
    )
    assert [*_found(source)] == ["_KNOWN", "read()", "A.ALL", "A.kept", "A._seen", "A._last", "A._by_name"]


def _timed(kind: Any, seen: set[Any]) -> Iterator[str]:
    for inner in get_args(kind):
        yield from _timed(inner, seen)
    if isinstance(kind, type) and issubclass(kind, BaseModel) and kind not in seen:
        seen.add(kind)
        for name, field in kind.model_fields.items():
            if TIME.search(name):
                yield f"{kind.__name__}.{name}"
            yield from _timed(field.annotation, seen)


@pytest.mark.shows("issue13-caches")
def test_every_time_in_a_result_is_coarse_or_a_setting() -> None:
    seen: set[Any] = set()
    assert {each for method in METHODS for each in _timed(method.result, seen)} == COARSE | SETTINGS
