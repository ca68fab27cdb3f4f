"""Every error of the product: its wire code, its message, and whether a retry can help.

A class's docstring is its default message.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from typing import Any, ClassVar

__all__ = [
    "AgentCoreError",
    "AuthenticationFailed",
    "ClientClosed",
    "ConfigurationError",
    "Conflict",
    "DependencyUnavailable",
    "DiskFull",
    "InternalError",
    "InvalidParams",
    "InvalidRequest",
    "JsonRpcErrorCode",
    "MethodNotFound",
    "NotAuthorised",
    "NotFound",
    "NotReady",
    "ParseError",
    "PoolExhausted",
    "RateLimited",
    "ReadOnlyDatabase",
    "ServerLimit",
    "StartupError",
    "StatementTimeout",
    "TooLarge",
    "TransactionConflict",
    "Unreachable",
]


class JsonRpcErrorCode(IntEnum):
    """The wire codes. A public contract: never renumbered, never reused."""

    PARSE_ERROR = -32700
    INVALID_REQUEST = -32600
    METHOD_NOT_FOUND = -32601
    INVALID_PARAMS = -32602
    INTERNAL_ERROR = -32603
    NOT_FOUND = -32001
    CONFLICT = -32002
    TOO_LARGE = -32003
    RATE_LIMITED = -32004
    DEPENDENCY_UNAVAILABLE = -32005
    NOT_READY = -32006
    AUTHENTICATION_FAILED = -32103
    NOT_AUTHORISED = -32104


class AgentCoreError(Exception):
    """Something went wrong inside the memory service."""

    code: ClassVar[JsonRpcErrorCode] = JsonRpcErrorCode.INTERNAL_ERROR
    retryable: ClassVar[bool] = False
    cause: ClassVar[str | None] = None
    """Distinguishes errors of one code: `data.cause` of the error object."""

    def __init__(self, message: str | None = None, *, data: Mapping[str, Any] | None = None) -> None:
        self.message = message or (type(self).__doc__ or "").strip()
        self.data: dict[str, Any] = dict(data or {})
        if self.cause is not None:
            self.data["cause"] = self.cause
        super().__init__(self.message)


class ParseError(AgentCoreError):
    """Parse error"""

    code = JsonRpcErrorCode.PARSE_ERROR


class InvalidRequest(AgentCoreError):
    """Invalid Request"""

    code = JsonRpcErrorCode.INVALID_REQUEST


class MethodNotFound(AgentCoreError):
    """Method not found"""

    code = JsonRpcErrorCode.METHOD_NOT_FOUND


class InvalidParams(AgentCoreError):
    """Invalid params"""

    code = JsonRpcErrorCode.INVALID_PARAMS


class InternalError(AgentCoreError):
    """Internal error"""

    code = JsonRpcErrorCode.INTERNAL_ERROR


class NotFound(AgentCoreError):
    """No such memory."""

    code = JsonRpcErrorCode.NOT_FOUND


class Conflict(AgentCoreError):
    """The request contradicts what is already stored."""

    code = JsonRpcErrorCode.CONFLICT


class TooLarge(AgentCoreError):
    """The request is larger than the service accepts."""

    code = JsonRpcErrorCode.TOO_LARGE


class RateLimited(AgentCoreError):
    """Too many requests, or overload; `data.retry_after_seconds` says how long to wait."""

    code = JsonRpcErrorCode.RATE_LIMITED
    retryable = True


class DependencyUnavailable(AgentCoreError):
    """A part the service depends on does not answer."""

    code = JsonRpcErrorCode.DEPENDENCY_UNAVAILABLE
    retryable = True


class Unreachable(DependencyUnavailable):
    """A part the service depends on cannot be reached."""

    cause = "unreachable"


class PoolExhausted(DependencyUnavailable):
    """Every database connection is in use; none became free in time."""

    cause = "pool_exhausted"


class TransactionConflict(DependencyUnavailable):
    """A deadlock or a concurrent change ended this transaction; nothing of it was kept."""

    cause = "transaction_conflict"


class StatementTimeout(DependencyUnavailable):
    """PostgreSQL took too long for this call."""

    cause = "statement_timeout"


class DiskFull(DependencyUnavailable):
    """A disk of the service is full: free space, or make it larger."""

    cause = "disk_full"
    retryable = False


class ServerLimit(DependencyUnavailable):
    """A limit in PostgreSQL's configuration was reached, usually temp_file_limit: raise it."""

    cause = "server_limit"
    retryable = False


class ReadOnlyDatabase(DependencyUnavailable):
    """PostgreSQL accepts no changes: this server is a standby. Set DATABASE_URL to the primary."""

    cause = "read_only"
    retryable = False


class NotReady(AgentCoreError):
    """The service is starting or stopping."""

    code = JsonRpcErrorCode.NOT_READY
    retryable = True


class AuthenticationFailed(AgentCoreError):
    """Authentication failed."""

    code = JsonRpcErrorCode.AUTHENTICATION_FAILED


class NotAuthorised(AgentCoreError):
    """The token lacks the scope this method needs."""

    code = JsonRpcErrorCode.NOT_AUTHORISED


class ConfigurationError(AgentCoreError):
    """The configuration is wrong; each problem is listed with its fix."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = list(problems)
        lines = "\n".join(f"  - {problem}" for problem in self.problems)
        super().__init__(f"The configuration is wrong:\n{lines}")


class StartupError(AgentCoreError):
    """The service cannot start; the message says what to do."""


class ClientClosed(AgentCoreError):
    """This client is closed: make a new MemoryClient, or keep the one you have open."""


NO_MEMORY_ID = "is not a memory id (a UUID such as 0193a1c2-7f4e-7c3d-9b5a-2e8f6d4c1b0a)"


def problem_sentence(found: Mapping[str, Any]) -> str:
    """Returns one of pydantic's `errors()` as a sentence without pydantic's terms; never the value."""
    match found["type"]:
        case "extra_forbidden":
            return "is not a known field"
        case "missing":
            return "is required"
        case "model_type" | "dict_type":
            return "must be an object"
        case "string_too_short" | "too_short" if "at least 1 " in found["msg"]:
            return "is empty"
        case "string_type":
            return "must be a text"
        case "string_too_long" | "too_long":
            return _too_long(str(found["msg"]))
        case "uuid_parsing" | "uuid_type":
            return NO_MEMORY_ID
        case _:
            said = str(found["msg"]).removeprefix("Value error, ")
            return re.sub("^Input should be ", "must be ", said)


def _too_long(said: str) -> str:
    unit = "items" if said.startswith(("List", "Tuple", "Set", "Dictionary")) else "characters"
    return re.sub(r"^.*?at most (\d+).*$", rf"is longer than \1 {unit}", said)


def field_path(location: Iterable[Any]) -> str:
    """Returns the path of one of pydantic's `errors()`, without its labels for union members and keys."""
    parts = (str(part) for part in location)
    return ".".join(part for part in parts if "[" not in part and not part.startswith("constrained-"))


def _descendants(root: type[AgentCoreError]) -> list[type[AgentCoreError]]:
    return [found for child in root.__subclasses__() for found in (child, *_descendants(child))]


# Errors sent to clients.
WIRE_ERRORS = tuple(
    error for error in _descendants(AgentCoreError) if error not in (ConfigurationError, StartupError, ClientClosed)
)
_KNOWN = {(int(error.code), error.cause): error for error in WIRE_ERRORS}


def from_wire(code: int, message: str, data: Mapping[str, Any] | None = None) -> AgentCoreError:
    """Returns the client-side error of a received error object."""
    cause = str((data or {}).get("cause"))
    known = _KNOWN.get((code, cause)) or _KNOWN.get((code, None), AgentCoreError)
    return known(message, data=data)
