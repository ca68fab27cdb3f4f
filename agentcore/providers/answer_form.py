"""The form that a model must answer in, as the JSON Schema that strict structured outputs ask for."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

# What the strict mode of structured outputs knows nothing of.
_UNKNOWN = frozenset({"default", "title", "description"})


def answer_form(form: type[BaseModel]) -> dict[str, Any]:
    """The form's schema: every field required, nothing beside them."""
    schema: dict[str, Any] = _strict(form.model_json_schema())
    return schema


def _strict(value: Any) -> Any:
    if isinstance(value, list):
        return [_strict(each) for each in value]
    if not isinstance(value, dict):
        return value
    named = value.get("properties")
    plain = {key: _strict(each) for key, each in value.items() if key not in _UNKNOWN}
    if isinstance(named, dict):
        # A field may be called as a word of the schema's own is.
        plain["properties"] = {name: _strict(each) for name, each in named.items()}
        plain |= {"required": list(named), "additionalProperties": False}
    return plain
