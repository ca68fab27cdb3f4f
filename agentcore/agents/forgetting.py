"""The two steps of forgetting: a confirmation that holds for what was proposed, and not for long.

A confirmation is worked out from what was proposed, not kept: any process with the same key can check it.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from uuid import UUID

from agentcore.memory.models import Strict

CONFIRMATION_SECONDS = 600
# Of each memory; it guards against slips, not against a caller, who is given one for the asking.
MARK_CHARS = 6


class Confirmations:
    """Gives a confirmation for memories as they stand, and says what is wrong with one that is given back.

    With the same `key` (bytes of a secret) several processes accept each other's; else only this object's own
    are accepted. `scope` is what the tools act in: a confirmation of another user holds nothing.
    """

    def __init__(self, key: bytes | None = None, *, seconds: int = CONFIRMATION_SECONDS,
                 now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._key = secrets.token_bytes(32) if key is None else hashlib.sha256(b"forget|" + key).digest()
        self._seconds = seconds
        self._now = now

    def given(self, versions: Mapping[UUID, int], scope: Strict) -> str:
        """The confirmation of these memories at these versions, or of some of them."""
        expires = int(self._now().timestamp()) + self._seconds
        marks = (self._mark(expires, *named, scope) for named in sorted(versions.items()))
        return f"{expires:x}-{''.join(marks)}"

    def problem(self, confirmation: str, versions: Mapping[UUID, int], scope: Strict) -> str | None:
        """Why the confirmation does not hold for these memories as they stand now; None where it does."""
        stamp, _, marks = confirmation.strip().partition("-")
        try:
            expires = int(stamp, 16)
        except ValueError:
            return "is not one that forget_memory gave"
        held = {marks[start:start + MARK_CHARS] for start in range(0, len(marks), MARK_CHARS)}
        if any(self._mark(expires, *named, scope) not in held for named in versions.items()):
            return "does not belong to all of these memories, or one of them has changed since"
        if self._now().timestamp() >= expires:
            return "has expired"
        return None

    def _mark(self, expires: int, memory_id: UUID, version: int, scope: Strict) -> str:
        said = f"{scope.model_dump_json()}|{expires}|{memory_id}:{version}"
        return hmac.new(self._key, said.encode(), hashlib.sha256).hexdigest()[:MARK_CHARS]
