"""`import agentcore` is the public API: these names, imported lazily."""

from __future__ import annotations

import subprocess
import sys

import pytest

import agentcore
from agentcore import errors
from agentcore.memory.api import METHODS, AnyMethod

# The public API: change this list only on purpose.
EXPORTED = [
    "ActionOutcome",
    "AddSessionParams",
    "AddSessionResult",
    "AgentCoreError",
    "ArchiveFilters",
    "ArchivedMemory",
    "ArchivedParams",
    "ArchivedResult",
    "AuthenticationFailed",
    "CapabilitiesParams",
    "CapabilitiesResult",
    "ChangeJobParams",
    "ChangeJobResult",
    "ClearParams",
    "ClearResult",
    "ClientClosed",
    "CompleteTaskParams",
    "CompleteTaskResult",
    "ConfigurationError",
    "ConfigureParams",
    "ConfigureResult",
    "Conflict",
    "ConsolidateParams",
    "ConsolidateResult",
    "ConsolidatedCluster",
    "CountParams",
    "CountResult",
    "DeleteParams",
    "DeleteResult",
    "DependencyUnavailable",
    "DiskFull",
    "Dropped",
    "EndSessionParams",
    "EndSessionResult",
    "EraseParams",
    "EraseResult",
    "FacetValue",
    "FacetsParams",
    "FacetsResult",
    "FeedbackParams",
    "FeedbackResult",
    "Filters",
    "GetContextParams",
    "GetContextResult",
    "GetParams",
    "GetResult",
    "HistoryEntry",
    "HistoryParams",
    "HistoryResult",
    "Interaction",
    "InternalError",
    "InvalidParams",
    "InvalidRequest",
    "JobEntry",
    "JobsParams",
    "JobsResult",
    "JsonRpcErrorCode",
    "LayerRules",
    "LayerStats",
    "LeftOut",
    "Link",
    "ListParams",
    "ListResult",
    "LlmUse",
    "LostLink",
    "MemoryClient",
    "MemoryEnabledAgent",
    "MemoryRecord",
    "MemorySummary",
    "MemoryTrace",
    "MemoryType",
    "Message",
    "MethodNotFound",
    "NotAuthorised",
    "NotFound",
    "NotReady",
    "ParseError",
    "PoolExhausted",
    "ProjectParams",
    "ProjectResult",
    "PruneParams",
    "PruneResult",
    "RateLimited",
    "ReadOnlyDatabase",
    "Receipt",
    "RestoreParams",
    "RestoreResult",
    "RetrieveParams",
    "RetrieveResult",
    "RevertParams",
    "RevertResult",
    "ScoreTerm",
    "ServerLimit",
    "SettingsParams",
    "SettingsResult",
    "StartupError",
    "StatementTimeout",
    "StatsParams",
    "StatsResult",
    "StoreBatchParams",
    "StoreBatchResult",
    "StoreParams",
    "StoreResult",
    "SummarizeParams",
    "SummarizeResult",
    "SummaryRules",
    "SyncMemoryClient",
    "TokenSource",
    "TooLarge",
    "TransactionConflict",
    "Turn",
    "Unreachable",
    "UpdateParams",
    "UpdateResult",
    "Updates",
    "open_memory",
]
CLIENTS = {"MemoryClient", "MemoryEnabledAgent", "SyncMemoryClient", "TokenSource", "open_memory"}


def exported() -> list[str]:
    names: list[str] = agentcore.__getattr__("__all__")
    return names


@pytest.mark.shows("B4")
def test_the_exported_names_are_the_clients_the_errors_and_the_params_of_every_method() -> None:
    failures = {
        name
        for name, found in vars(errors).items()
        if isinstance(found, type) and issubclass(found, errors.AgentCoreError)
    }
    models = {kind.__name__ for method in METHODS for kind in (method.params, method.result)}
    assert CLIENTS | failures | models <= set(EXPORTED)
    assert exported() == EXPORTED


@pytest.mark.parametrize("name", exported())
def test_each_name_can_be_imported(name: str) -> None:
    assert getattr(agentcore, name) is not None
    assert name in dir(agentcore)


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    for name in ("MemoryKlient", "memory_client", "ModelField"):
        with pytest.raises(AttributeError, match=f"module 'agentcore' has no attribute '{name}'"):
            getattr(agentcore, name)


@pytest.mark.shows("B4")
def test_importing_the_package_imports_nothing_else_and_a_star_imports_every_name() -> None:
    script = (
        "import sys\nimport agentcore\nassert 'pydantic' not in sys.modules\n"
        "assert 'agentcore.errors' not in sys.modules\nfrom agentcore import *\n"
        "print(MemoryClient.__name__, StoreParams.__name__, NotFound.__name__)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "MemoryClient StoreParams NotFound\n"


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
@pytest.mark.shows("B18")
def test_params_and_results_are_named_after_their_method(method: AnyMethod) -> None:
    stem = "".join(word.capitalize() for word in method.attribute.split("_"))
    assert (method.params.__name__, method.result.__name__) == (f"{stem}Params", f"{stem}Result")
