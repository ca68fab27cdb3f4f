"""What to install where a framework that memory is to be given to is not there."""

from __future__ import annotations


def not_installed(extra: str, cause: ImportError) -> ImportError:
    """The error that says so, with the command that installs the extra."""
    return ModuleNotFoundError(
        f"This integration needs {extra}, which is not installed (there is no module {cause.name}): "
        f"pip install 'agentcore-memory[{extra}]'.", name=cause.name)
