"""Keeps an invalid item of a batch in its place with its problem, so that the others go on. Pure.

An unknown field is an error of the program, not of the data: it still rejects the whole call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from pydantic import BaseModel, ConfigDict, ModelWrapValidatorHandler, ValidationError, model_serializer

from agentcore.errors import field_path, problem_sentence

# What is wrong with the form of an item, not with its values.
_WRONG_FORM = {"extra_forbidden", "model_type"}


class RefusedItem(BaseModel):
    """What was given instead of an item that can be stored: written as it was given.

    `problem`: what is wrong with it; `is_wrong` is false where there is merely nothing to store.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    problem: str
    given: Any
    is_wrong: bool = True

    @model_serializer
    def _as_given(self) -> Any:
        return self.given


class _Validates(Protocol):
    def __call__(self, value: Any, handler: ModelWrapValidatorHandler[Any]) -> Any: ...


def each_alone(instead: Callable[..., RefusedItem]) -> _Validates:
    """A validator that gives the item, else `instead(problem=..., given=...)`.

    Raises ValidationError for an item of a wrong form.
    """

    def validate(value: Any, handler: ModelWrapValidatorHandler[Any]) -> Any:
        try:
            return handler(value)
        except ValidationError as cause:
            if any(found["type"] in _WRONG_FORM for found in cause.errors()):
                raise
            return instead(problem=_problem(cause), given=value)

    return validate


def _problem(cause: ValidationError) -> str:
    """Names the fields and what is wrong with them, never their values."""
    found = cause.errors(include_url=False, include_context=False, include_input=False)
    places = ((field_path(each["loc"]), problem_sentence(each)) for each in found)
    return "; ".join(dict.fromkeys(f"{place} {problem}".strip() for place, problem in places))
