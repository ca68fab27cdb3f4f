"""The two steps of forgetting: a confirmation that holds for one proposal, and not for long.

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
DIGEST_CHARS = 16


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
        """The confirmation of these memories at these versions."""
        expires = int(self._now().timestamp()) + self._seconds
        return f"{expires:x}-{self._digest(expires, versions, scope)}"

    def problem(self, confirmation: str, versions: Mapping[UUID, int], scope: Strict) -> str | None:
        """Why the confirmation does not hold for these memories as they stand now; None where it does."""
        stamp, _, digest = confirmation.strip().partition("-")
        try:
            expires = int(stamp, 16)
        except ValueError:
            return "is not one that forget_memory gave"
        if not hmac.compare_digest(digest.encode(), self._digest(expires, versions, scope).encode()):
            return "does not belong to exactly these memories, or one of them has changed since"
        if self._now().timestamp() >= expires:
            return "has expired"
        return None

    def _digest(self, expires: int, versions: Mapping[UUID, int], scope: Strict) -> str:
        named = sorted(f"{memory_id}:{version}" for memory_id, version in versions.items())
        said = "|".join([scope.model_dump_json(), str(expires), *named])
        return hmac.new(self._key, said.encode(), hashlib.sha256).hexdigest()[:DIGEST_CHARS]
