"""A process of `agentcore serve --workers`: answers calls on the service's socket until its standard input ends.

Arguments: the descriptor of the socket, and the directory for metrics. The service does the background work.
"""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from socket import socket

from agentcore.cli.serve import Stop, answer_calls, run_until_stopped
from agentcore.config import load_settings
from agentcore.runtime import can_attach, open_runtime
from agentcore.telemetry import configure_logging
from agentcore.worker_processes import PROGRAM, shared_metrics

logger = logging.getLogger(PROGRAM)


def main(descriptor: int, directory: Path) -> None:
    """Runs until standard input ends or a signal arrives."""
    settings = load_settings(maintenance_in_server=False)
    configure_logging(settings.log_level, settings.log_format)

    async def work(stop: Stop) -> None:
        stop.when_input_ends(sys.stdin.fileno())
        async with (
            open_runtime(settings, attach_only=can_attach(settings)) as runtime,
            shared_metrics(runtime.metrics.exposition, directory) as exposition,
        ):
            stop.started.set()
            await answer_calls(
                runtime, stop, address, lambda url: logger.info("a worker process answers calls"), exposition
            )

    with socket(fileno=descriptor) as address:
        run_until_stopped(work)


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
