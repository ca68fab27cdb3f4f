"""What to install where a framework that memory is to be given to is not there."""

from __future__ import annotations


def not_installed(extra: str, cause: ImportError) -> ImportError:
    """The error that says so: of the missing package's name, with the command that installs the extra."""
    missing = (cause.name or "").partition(".")[0]
    return ModuleNotFoundError(
        f"This integration needs the package {missing!r}, which is not installed: "
        f"pip install 'agentcore-memory[{extra}]'.", name=cause.name)
