"""Fixtures of every room; the services stand in `tests/fixtures`, one file each."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

pytest_plugins = ["tests.fixtures.services", "tests.fixtures.memory", "tests.fixtures.plays",
                  "tests.fixtures.databases"]

# The machines that run this are shared: how long one example takes says nothing.
settings.register_profile("house", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("house")
