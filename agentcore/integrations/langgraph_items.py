"""An item of LangGraph's store as a memory: text, tags, session, metadata. Pure; imports no LangGraph."""

from __future__ import annotations

import hashlib
import json
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from typing import Any
from urllib.parse import quote

from agentcore.agents.recordable import holdable
from agentcore.limits import MAX_ID_CHARS

METADATA_KEY = "langgraph"
UNINDEXED_CONTENT = "(not searched)"
# A searchable item has two tags per prefix, the empty one included: 2 * (31 + 1) = MAX_LABELS.
MAX_NAMESPACE_DEPTH = 31
# The stored TTL is 5 % longer: reads within the first 5 % need not write a renewal.
TTL_SLACK = 0.05


@dataclass(frozen=True)
class StoredItem:
    """An item as stored in its memory's metadata; times in ISO 8601, `ttl` in minutes."""

    namespace: Sequence[str]
    key: str
    value: dict[str, Any]
    created_at: str
    updated_at: str
    ttl: float | None

    @property
    def identity(self) -> tuple[Namespace, str]:
        return tuple(self.namespace), self.key

    @property
    def changed_at(self) -> datetime:
        return datetime.fromisoformat(self.updated_at)

    def memory(self, text: str) -> dict[str, Any]:
        """Returns the fields of its memory for a store; `text` is the searchable text."""
        return {
            "content": text or UNINDEXED_CONTENT,
            "tags": tags_of(tuple(self.namespace), searched=bool(text)),
            # One string: JSON columns would not preserve it verbatim.
            "metadata": {METADATA_KEY: json.dumps(asdict(self))},
            "pinned": self.ttl is None,
            "ttl_seconds": None if self.ttl is None else max(1, math.ceil(self.ttl * 60 * (1 + TTL_SLACK))),
        }


def parse_item(metadata: Mapping[str, Any]) -> StoredItem | None:
    """Returns the item in a memory's metadata; None if there is no valid one."""
    try:
        data = json.loads(metadata[METADATA_KEY])
        kept = StoredItem(**{each.name: data[each.name] for each in fields(StoredItem)})
        moments = [datetime.fromisoformat(each) for each in (kept.created_at, kept.updated_at)]
    except (KeyError, TypeError, ValueError):
        return None
    return kept if isinstance(kept.value, dict) and all(each.tzinfo for each in moments) else None


def searched_text(lines: Sequence[str]) -> str:
    """Returns the lines as the searchable text of an item; empty if they are blank."""
    said = holdable("\n".join(lines))
    return said if said.strip() else ""


def lines_of(value: Any, name: str = "") -> list[str]:
    match value:
        case dict():
            return [
                line for key, each in value.items() for line in lines_of(each, f"{name}.{key}" if name else str(key))
            ]
        case list() | tuple():
            return [line for each in value for line in lines_of(each, name)]
        case None:
            return []
    return [f"{name}: {value}"]


def tags_of(namespace: Namespace, *, searched: bool) -> list[str]:
    """Returns a tag for each prefix of the namespace, the empty one included; two if `searched`. Raises ValueError."""
    if len(namespace) > MAX_NAMESPACE_DEPTH:
        raise ValueError(f"a namespace of {len(namespace)} labels is too deep; {MAX_NAMESPACE_DEPTH} is the most")
    prefixes = [namespace[:depth] for depth in range(len(namespace) + 1)]
    return [tag_of(prefix, searched=each) for each in ((False, True) if searched else (False,)) for prefix in prefixes]


def tag_of(prefix: Namespace, *, searched: bool = False) -> str:
    return _bounded(f"{METADATA_KEY}{'-searched' if searched else ''}:", _path(prefix))


def session_of(namespace: Namespace, key: str) -> str:
    return _bounded(f"{METADATA_KEY}:", f"{_path(namespace)}?{_quoted(key)}")


def _path(namespace: Namespace) -> str:
    return "".join(f"/{_quoted(label)}" for label in namespace) or "/"


def _quoted(text: str) -> str:
    return quote(text, safe=" ", errors="surrogatepass")


def _bounded(kind: str, text: str) -> str:
    if len(kind) + len(text) <= MAX_ID_CHARS:
        return kind + text
    return f"{kind}#{hashlib.sha256(text.encode()).hexdigest()}"


Namespace = tuple[str, ...]

_EQUALITY: Mapping[str, Callable[[Any, Any], bool]] = {"$eq": operator.eq, "$ne": operator.ne}
_ORDERING: Mapping[str, Callable[[float, float], bool]] = {
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}


def matches_filter(value: Mapping[str, Any], wanted: Mapping[str, Any] | None) -> bool:
    """Whether a value matches all conditions of a filter. Raises ValueError for an unknown operator."""
    return all(_matches(value.get(name), each) for name, each in (wanted or {}).items())


def _matches(value: Any, wanted: Any) -> bool:
    if isinstance(wanted, Mapping):
        if any(name.startswith("$") for name in wanted):
            return all(_compares(value, name, bound) for name, bound in wanted.items())
        return isinstance(value, Mapping) and matches_filter(value, wanted)
    if isinstance(wanted, list | tuple):
        return (
            isinstance(value, list | tuple)
            and len(value) == len(wanted)
            and all(_matches(each, other) for each, other in zip(value, wanted, strict=True))
        )
    return bool(value == wanted)


def _compares(value: Any, name: str, bound: Any) -> bool:
    if name in _EQUALITY:
        return _EQUALITY[name](value, bound)
    if name not in _ORDERING:
        raise ValueError(f"Unsupported operator: {name}; there are {', '.join([*_EQUALITY, *_ORDERING])}")
    try:
        return _ORDERING[name](float(value), float(bound))
    except (TypeError, ValueError):
        return False


def matches_namespace(namespace: Namespace, path: Sequence[str], match_type: str) -> bool:
    """Whether a namespace starts (`prefix`) or ends (`suffix`) with the path; `*` matches any label."""
    labels = namespace if match_type == "prefix" else namespace[::-1]
    wanted = path if match_type == "prefix" else path[::-1]
    return len(labels) >= len(wanted) and all(
        other in ("*", label) for label, other in zip(labels, wanted, strict=False)
    )
