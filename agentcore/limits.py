"""The table of all limits of requests, responses and connections.

`memory.capabilities` and docs/reference/limits.md are derived from `LIMITS`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

MAX_BODY_BYTES = 8_388_608
# Total bytes of concurrent bodies, in units of the largest body.
BODIES_AT_ONCE = 4
MAX_MESSAGE_BYTES = 262_144
MAX_HEADER_BYTES = 65_536
HEADER_SECONDS = 10
REQUEST_SECONDS = 30
UNREAD_SECONDS = 10
MAX_CONNECTIONS = 1_000
MAX_BATCH_CALLS = 100
MAX_DEPTH = 64
MAX_VALUES = 500_000
MAX_MEMBERS = 2_048
MAX_MEMBERS_IN_ALL = 100_000
MAX_NUMBER_CHARS = 1_024
MAX_A2A_BYTES = 16_384
MAX_PAGE_BYTES = 4_194_304
MAX_RESPONSE_BYTES = 16_777_216
RATE_UNITS_PER_MINUTE = 60_000
RUNNING_CALLS, QUEUE_SECONDS = 16, 5

MAX_TEXT_CHARS = 262_144
MAX_MARK_RUN = 30
MAX_TERMS = 131_072
MAX_QUERY_CHARS = 32_768
MAX_ID_CHARS = 255
MAX_LABELS = 64
MAX_EMBEDDING_DIMENSIONS = 16_000
MAX_METADATA_NODES = 2_048
MAX_METADATA_DEPTH = 48
MAX_BATCH_ITEMS = 1_000
MAX_LINKS_A_CALL = 64
MAX_K = 200
MAX_TRACED = 20
MAX_PAGE = 1_000
MAX_COUNTED_MEMORIES = MAX_PROJECTED = 20_000
MAX_CHANGES = 1_000
MAX_ARCHIVED_PAGE = 1_000
MAX_IDS = 10_000
MAX_RESTORED = 1_000
MAX_CONTEXT_TOKENS = 1_000_000
MAX_SUMMARY_TOKENS = 4_000

_413 = "HTTP 413, -32003"
_PARAMS = "-32602"
_CLOSED = "the connection is closed"


@dataclass(frozen=True, slots=True)
class Limit:
    """One limit: its name in `memory.capabilities`, the effect of exceeding it, and the setting whose default it is."""

    name: str
    value: int
    unit: str
    what: str
    beyond: str
    setting: str | None = None
    times: int = 1  # factor applied to the setting's value


LIMITS: tuple[Limit, ...] = (
    Limit("request_bytes", MAX_BODY_BYTES, "bytes", "A request body.", _413, "MAX_BODY_BYTES"),
    Limit(
        "bodies_bytes",
        BODIES_AT_ONCE * MAX_BODY_BYTES,
        "bytes",
        "All bodies that a process is receiving or answering: 4 times the largest. Bodies above 65,536 "
        "bytes may take half, one agent half of either.",
        "HTTP 429, -32004 with `Retry-After`",
        "MAX_BODY_BYTES",
        BODIES_AT_ONCE,
    ),
    Limit("mcp_message_bytes", MAX_MESSAGE_BYTES, "bytes", "A message to `/mcp`.", _413),
    Limit("header_bytes", MAX_HEADER_BYTES, "bytes", "Request line and headers together.", "HTTP 431"),
    Limit(
        "header_seconds",
        HEADER_SECONDS,
        "seconds",
        "Time for all headers to arrive, from the connection or their first byte on.",
        _CLOSED,
    ),
    Limit(
        "body_seconds", REQUEST_SECONDS, "seconds", "Time for a body to arrive.", "-32600", "REQUEST_TIMEOUT_SECONDS"
    ),
    Limit(
        "call_seconds", REQUEST_SECONDS, "seconds", "Time that one call may take.", "-32005", "REQUEST_TIMEOUT_SECONDS"
    ),
    Limit(
        "unread_seconds",
        UNREAD_SECONDS,
        "seconds",
        "Time in which a client must read 65,536 bytes of a buffered response, or its rest.",
        _CLOSED,
    ),
    Limit(
        "connections",
        MAX_CONNECTIONS,
        "connections",
        "Open connections of a process; fewer where the process may open fewer files.",
        "HTTP 503 with `Retry-After`",
        "MAX_CONNECTIONS",
    ),
    Limit(
        "rate_units",
        RATE_UNITS_PER_MINUTE,
        "units a minute",
        "What the calls of one agent cost.",
        "HTTP 429, -32004; -32003 for what costs more than a minute allows",
        "RATE_LIMIT_PER_MINUTE",
    ),
    Limit(
        "running_calls",
        RUNNING_CALLS,
        "calls",
        "Calls that run at once in a process, three quarters of them for one agent at most. Agents take turns.",
        "queued",
        "MAX_RUNNING_CALLS",
    ),
    Limit(
        "queue_seconds",
        QUEUE_SECONDS,
        "seconds",
        "Time that a call is queued.",
        "HTTP 429, -32004 with `Retry-After`",
        "MAX_QUEUE_SECONDS",
    ),
    Limit("batch_calls", MAX_BATCH_CALLS, "calls", "Calls of a JSON-RPC batch.", _413, "MAX_BATCH_CALLS"),
    Limit("nesting", MAX_DEPTH, "levels", "Nesting of arrays and objects in a body.", "-32700"),
    Limit("json_values", MAX_VALUES, "values", "JSON values of a body.", _413),
    Limit("object_members", MAX_MEMBERS, "members", "Members of a JSON object, or params by position.", _413),
    Limit("all_members", MAX_MEMBERS_IN_ALL, "members", "Members of all objects; arrays and objects.", _413),
    Limit("number_chars", MAX_NUMBER_CHARS, "characters", "Digits of a whole number.", "-32700"),
    Limit("a2a_bytes", MAX_A2A_BYTES, "bytes", "An `a2a_context`.", "-32600"),
    Limit(
        "page_bytes",
        MAX_PAGE_BYTES,
        "bytes",
        "What one call reads of memories. One memory or change alone may be larger.",
        "the page ends early with `next_cursor`; a search drops its last memories, see its receipt",
    ),
    Limit(
        "response_bytes",
        MAX_RESPONSE_BYTES,
        "bytes",
        "The response to a body: the calls of a batch share it.",
        "-32003 for each call beyond",
    ),
    Limit("text_chars", MAX_TEXT_CHARS, "characters", "A text to store.", _PARAMS),
    Limit("mark_run", MAX_MARK_RUN, "marks", "Combining marks in a row.", "a joiner breaks the run"),
    Limit("terms", MAX_TERMS, "terms", "Words of a memory in the index of words.", "words beyond are not indexed"),
    Limit("query_chars", MAX_QUERY_CHARS, "characters", "A query, or a turn beside it.", _PARAMS),
    Limit("id_chars", MAX_ID_CHARS, "characters", "An id, a name or a label.", _PARAMS),
    Limit("labels", MAX_LABELS, "labels", "Tags of a memory, or values of a filter.", _PARAMS),
    Limit("dimensions", MAX_EMBEDDING_DIMENSIONS, "numbers", "A vector.", _PARAMS),
    Limit("metadata_values", MAX_METADATA_NODES, "values", "Names and values of metadata or an action.", _PARAMS),
    Limit("metadata_nesting", MAX_METADATA_DEPTH, "levels", "Nesting of metadata.", _PARAMS),
    Limit("batch_items", MAX_BATCH_ITEMS, "items", "Items of a batch, messages of a session.", _PARAMS),
    Limit("links", MAX_LINKS_A_CALL, "links", "Links given in one call.", _PARAMS),
    Limit("k", MAX_K, "memories", "Memories of a `memory.retrieve`.", _PARAMS),
    Limit("traced", MAX_TRACED, "memories", "Memories traced in a `memory.retrieve`.", _PARAMS),
    Limit("page", MAX_PAGE, "memories", "Memories of a page of `memory.list`.", _PARAMS),
    Limit(
        "counted_memories",
        MAX_COUNTED_MEMORIES,
        "memories",
        "Memories whose values `memory.facets` counts.",
        "only the newest are counted, see `complete`",
    ),
    Limit("projected", MAX_PROJECTED, "memories", "Memories of a `memory.project`.", _PARAMS),
    Limit("history_page", MAX_CHANGES, "changes", "Changes of a page of `memory.history`.", _PARAMS),
    Limit("archived_page", MAX_ARCHIVED_PAGE, "rows", "Rows of a page of `memory.archived`.", _PARAMS),
    Limit("delete_ids", MAX_IDS, "ids", "Ids of a `memory.delete`.", _PARAMS),
    Limit("restore_ids", MAX_RESTORED, "ids", "Memories of a `memory.restore`.", _PARAMS),
    Limit("context_tokens", MAX_CONTEXT_TOKENS, "tokens", "A context.", _PARAMS),
    Limit("summary_tokens", MAX_SUMMARY_TOKENS, "tokens", "A summary.", _PARAMS),
)

LIMIT_SETTINGS = frozenset(each.setting for each in LIMITS if each.setting)


def limits_in_force(settings: Mapping[str, int]) -> dict[str, int]:
    """Returns each limit by its name; `settings` are the values of settings, by their names."""
    return {each.name: each.times * settings.get(each.setting or "", each.value // each.times) for each in LIMITS}
