"""A process of `agentcore serve --workers`: answers calls on the service's socket until its standard input ends.

Arguments: the file descriptor of the socket, and the directory for metrics.
"""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path
from socket import socket

from agentcore.cli import INTERRUPTED
from agentcore.cli.serve import Stop, answer_calls, run_until_stopped
from agentcore.config import load_settings
from agentcore.errors import AgentCoreError
from agentcore.runtime import open_runtime
from agentcore.telemetry import configure_logging
from agentcore.worker_processes import WORKER_MODULE, shared_metrics

logger = logging.getLogger(WORKER_MODULE)


def main(descriptor: int, metrics_directory: Path) -> int:
    # The first process does the background work.
    """Runs until standard input ends or a signal arrives; returns the exit code."""
    settings = load_settings(maintenance_in_server=False)
    configure_logging(settings.log_level, settings.log_format)

    has_both_urls = settings.database_url is not None and settings.redis_url is not None

    async def work(stop: Stop) -> None:
        stop.at_end_of_input(sys.stdin.fileno())
        async with (
            open_runtime(settings, attach_only=not has_both_urls) as runtime,
            shared_metrics(runtime.metrics.exposition, metrics_directory) as read_metrics,
        ):
            stop.started.set()
            await answer_calls(
                runtime, stop, listener, lambda url: logger.info("a worker process answers calls"), read_metrics
            )

    os.set_inheritable(descriptor, False)
    with socket(fileno=descriptor) as listener:
        try:
            return INTERRUPTED if run_until_stopped(work) else 0
        except AgentCoreError as failure:
            logger.error("a worker process could not start: %s", failure.message)
            return 1


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), Path(sys.argv[2])))
