"""Fixtures of every room; the services stand in `tests/fixtures`, one file each."""

from __future__ import annotations

import os
import signal

import pytest
from hypothesis import HealthCheck, settings

# As the command line does; read by numpy at its import.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
pytest_plugins = ["tests.fixtures.services", "tests.fixtures.memory", "tests.fixtures.plays",
                  "tests.fixtures.databases", "tests.fixtures.unreached"]

# The machines that run this are shared: how long one example takes says nothing.
settings.register_profile("house", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("house")


def pytest_configure() -> None:
    """A run in the background of a shell ignores Ctrl-C, and so would every command that it starts."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """What `-n auto` means: one more than there are cores, since tests wait for processes they started."""
    return len(os.sched_getaffinity(0)) + 1 if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1) + 1


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The long tests first, else a worker ends alone with one; within that the order stays the random one."""
    items.sort(key=lambda item: item.path.parent.name != "acceptance")
