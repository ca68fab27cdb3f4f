"""Which values and namespaces LangGraph's filters and conditions mean. Pure; knows no LangGraph."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

Namespace = tuple[str, ...]

_SAME: Mapping[str, Callable[[Any, Any], bool]] = {"$eq": operator.eq, "$ne": operator.ne}
_ORDERED: Mapping[str, Callable[[float, float], bool]] = {
    "$gt": operator.gt, "$gte": operator.ge, "$lt": operator.lt, "$lte": operator.le,
}


def passes(value: Mapping[str, Any], wanted: Mapping[str, Any] | None) -> bool:
    """Whether a value has all that a filter names. Raises ValueError for an operator there is none of."""
    return all(_fits(value.get(name), each) for name, each in (wanted or {}).items())


def _fits(value: Any, wanted: Any) -> bool:
    if isinstance(wanted, Mapping):
        if any(name.startswith("$") for name in wanted):
            return all(_compares(value, name, bound) for name, bound in wanted.items())
        return isinstance(value, Mapping) and passes(value, wanted)
    if isinstance(wanted, list | tuple):
        return isinstance(value, list | tuple) and len(value) == len(wanted) and all(
            _fits(each, other) for each, other in zip(value, wanted, strict=True))
    return bool(value == wanted)


def _compares(value: Any, name: str, bound: Any) -> bool:
    if name in _SAME:
        return _SAME[name](value, bound)
    if name not in _ORDERED:
        raise ValueError(f"Unsupported operator: {name}; there are {', '.join([*_SAME, *_ORDERED])}")
    try:
        return _ORDERED[name](float(value), float(bound))
    except (TypeError, ValueError):
        return False


def under(namespace: Namespace, path: Sequence[str], match_type: str) -> bool:
    """Whether a namespace begins (`prefix`) or ends (`suffix`) as the path does, `*` being any label."""
    labels = namespace if match_type == "prefix" else namespace[::-1]
    wanted = path if match_type == "prefix" else path[::-1]
    return len(labels) >= len(wanted) and all(
        other in ("*", label) for label, other in zip(labels, wanted, strict=False))
