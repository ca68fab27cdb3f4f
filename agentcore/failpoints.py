"""Named fault points for crash tests: the process crashes at the one that AGENTCORE_FAILPOINT names."""

from __future__ import annotations

import os
import signal
from itertools import count

VARIABLE = "AGENTCORE_FAILPOINT"

_NAMES = """
prune.decided prune.recorded prune.held prune.deleted prune.buried prune.committed
archive.drafted archive.placed archive.put archive.written archive.read_back
restore.claimed restore.read restore.inserted restore.unburied restore.committed
erase.planned erase.named erase.held erase.unarchived erase.deleted erase.committed erase.loose erase.emptied
erase.cleared erase.swept erase.verified
passages.embedded passages.written
reembed.begun reembed.embedded reembed.written reembed.filled reembed.built reembed.indexed reembed.switching
reembed.switched reembed.moved reembed.in_place reembed.kept reembed.settled
"""
FAILPOINTS = _NAMES.split()
_passes = count(1)


def failpoint(name: str) -> None:
    """Kills the process by SIGKILL if this point is armed: by `name`, or by `name:3` at the third pass."""
    armed = os.environ.get(VARIABLE)
    if armed is None:
        return
    wanted, _, which = armed.partition(":")
    if name == wanted and next(_passes) == int(which or 1):
        os.kill(os.getpid(), signal.SIGKILL)
