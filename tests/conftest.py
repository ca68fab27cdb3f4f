"""Shared fixtures and pytest configuration; services are in `tests/fixtures`, one file each."""

from __future__ import annotations

import os
import signal

import pytest
from hypothesis import HealthCheck, settings

# As the command line does; numpy reads it at import.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# As the adapter of Milvus does; gRPC, which other libraries import, too, reads it at import.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
pytest_plugins = [
    "tests.fixtures.services",
    "tests.fixtures.memory",
    "tests.fixtures.plays",
    "tests.fixtures.databases",
    "tests.fixtures.unreached",
    "tests.fixtures.chat_model",
    "tests.fixtures.browser",
]

# No deadline: the machines that run this are shared.
settings.register_profile("house", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("house")


def pytest_configure() -> None:
    """Restores SIGINT: a shell's background job ignores Ctrl-C, and every command it starts would inherit
    that."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Returns one worker more than there are cores, since tests often block on processes they started."""
    return len(os.sched_getaffinity(0)) + 1 if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1) + 1


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Runs the long tests first, so that no worker ends alone with one; otherwise the random order is
    kept."""
    items.sort(key=lambda item: item.path.parent.name != "acceptance")
