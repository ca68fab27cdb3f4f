"""Named fault points: the process crashes at the one that AGENTCORE_FAILPOINT names.

Only for crash tests: without the variable, a point costs one lookup in the environment.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from itertools import count

VARIABLE = "AGENTCORE_FAILPOINT"

# Names, and the state reached at each.
FAILPOINTS: Mapping[str, str] = {
    "prune.decided": "it is known which memories go; nothing is held yet",
    "prune.recorded": "it is recorded where the copies will be; none is written",
    "prune.held": "the rows of a chunk are held; no copy is made",
    "archive.drafted": "a copy is written and synced beside its place in the directory",
    "archive.placed": "a copy is in its place; the directory is not synced",
    "archive.put": "a copy is in the bucket; others of the chunk may not be",
    "archive.written": "every copy of the chunk is written; none is read back",
    "archive.read_back": "every copy of the chunk was read back and is whole",
    "prune.deleted": "the rows are deleted, in a transaction that still runs; no tombstone stands",
    "prune.buried": "the tombstones stand too; the transaction still runs",
    "prune.committed": "the transaction has ended; working memory does not know it",
    "restore.claimed": "the tombstones are held; no copy is read",
    "restore.read": "every copy is read and whole; nothing is written",
    "restore.inserted": "the rows are back, in a transaction that still runs; the tombstones stand",
    "restore.unburied": "the tombstones are gone too; the transaction still runs",
    "restore.committed": "the transaction has ended; working memory does not know it",
    "erase.planned": "it is known what goes; nothing has gone",
    "erase.named": "archived memories that named no user bear the name of the one to be erased",
    "erase.held": "a chunk is held, and its vectors are out of the caches; no copy has gone",
    "erase.unarchived": "the chunk's copies are gone; its rows and tombstones stand",
    "erase.deleted": "the rows and tombstones are gone too, in a transaction that still runs",
    "erase.committed": "the transaction has ended; working memory does not know it",
    "erase.loose": "the agent's objects of no memory are gone; what it has beside memories stands",
    "erase.emptied": "its tables are emptied, in a transaction that still runs",
    "erase.cleared": "that transaction has ended; working memory has its copies still",
    "erase.swept": "what belongs to no memory is gone too; nothing is verified",
    "erase.verified": "every place was looked through; no receipt is signed",
    "passages.embedded": "the vectors of a batch of passages are made; none of the batch is written",
    "passages.written": "a batch of passages is written; the memory is still pending",
    "reembed.begun": "the model is noted as the one to come; none of its vectors is made",
    "reembed.embedded": "the vectors of a batch are made; they stand nowhere yet",
    "reembed.written": "they stand beside the old ones; those of other batches may not",
    "reembed.filled": "all stand beside the old ones; no index is over them",
    "reembed.built": "an index of one partition is built; its comment, which says so, is missing",
    "reembed.indexed": "an index over them is wherever one is needed; the old ones are searched",
    "reembed.switching": "they are in force, in a transaction that still runs",
    "reembed.switched": "the transaction has ended; running processes do not know it",
    "reembed.moved": "those of a batch are in their place; others stand beside",
    "reembed.in_place": "all are in their place; the indexes of the old ones are still there",
    "reembed.kept": "the index that stays is measured, the old ones are gone; it is not noted as done",
    "reembed.settled": "it is noted as done; the index that served the move is still there",
}
_passes = count(1)


def failpoint(name: str) -> None:
    """Kills the process by SIGKILL if this point is armed: by `name`, or by `name:3` at the third pass."""
    armed = os.environ.get(VARIABLE)
    if armed is None:
        return
    wanted, _, which = armed.partition(":")
    if name == wanted and next(_passes) == int(which or 1):
        os.kill(os.getpid(), signal.SIGKILL)
