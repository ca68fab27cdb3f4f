"""The form that a model must answer in, as strict structured outputs ask for it, and an answer read in it."""

from __future__ import annotations

import json
import re
from typing import Any, TypeVar

from pydantic import BaseModel

Form = TypeVar("Form", bound=BaseModel)

# What the strict mode of structured outputs knows nothing of.
_UNKNOWN = frozenset({"default", "title", "description"})
# Control characters but for white space, and halves of characters.
_UNSTORABLE = re.compile("[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\ud800-\udfff]")


def answer_form(form: type[BaseModel]) -> dict[str, Any]:
    """The form's schema: every field required, nothing beside them."""
    schema: dict[str, Any] = _strict(form.model_json_schema())
    return schema


def read_answer(said: str, form: type[Form]) -> Form:
    """What a model said, read in its form, without what no text can hold. Raises ValueError."""
    try:
        return form.model_validate(_storable(json.loads(said, strict=False)))
    except RecursionError as cause:
        raise ValueError("it is nested too deep") from cause


def _storable(value: Any) -> Any:
    if isinstance(value, str):
        lines = _UNSTORABLE.sub("", value).splitlines()
        return "\n".join(line for each in lines if (line := " ".join(each.split())))
    if isinstance(value, list):
        return [_storable(each) for each in value]
    if isinstance(value, dict):
        return {key: _storable(each) for key, each in value.items()}
    return value


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
