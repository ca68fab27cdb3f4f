"""Resolves a configured name, or `module:attribute`, to an object."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from types import ModuleType
from typing import Any

from agentcore.errors import ConfigurationError

__all__ = ["resolve"]

# Names whose packages belong to an extra of another name.
_EXTRAS = {"local": "server"}


def resolve(name: str, table: Mapping[str, str], *, kind: str) -> Any:
    """Returns the object of `name`: a key of `table`, or a path `module:attribute`. Imports its module.

    `kind` names the choice in messages. Raises ConfigurationError, with the package to install if one is missing.
    """
    target = table.get(name, name)
    module_name, _, attribute = target.partition(":")
    if not module_name or not attribute:
        known = ", ".join(sorted(table)) or "none"
        raise ConfigurationError(
            [f"There is no {kind} named {name!r}. Known: {known}; or give a path, module:attribute."]
        )
    module = _import(module_name, name, kind, extra=_EXTRAS.get(name, name) if name in table else None)
    try:
        return getattr(module, attribute)
    except AttributeError as cause:
        raise ConfigurationError(
            [f"The {kind} {name!r} does not exist: module {module_name!r} has no {attribute!r}."]
        ) from cause


def _import(module_name: str, name: str, kind: str, *, extra: str | None) -> ModuleType:
    try:
        return import_module(module_name)
    except ModuleNotFoundError as cause:
        missing = cause.name or ""
        if missing == module_name or module_name.startswith(f"{missing}."):
            raise ConfigurationError(
                [f"The {kind} {name!r} does not exist: there is no module {missing!r}."]
            ) from cause
        package = missing.partition(".")[0]
        wanted = f"'agentcore-memory[{extra}]'" if extra else package
        raise ConfigurationError(
            [f"The {kind} {name!r} needs the package {package!r}, which is not installed: pip install {wanted}."]
        ) from cause
    except ImportError as cause:
        raise ConfigurationError([f"The {kind} {name!r} cannot be loaded: {cause}"]) from cause
