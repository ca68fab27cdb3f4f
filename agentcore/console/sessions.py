"""Sign-in links and sessions of the console.

The database stores a digest of each id and the caller's token, encrypted with a key that is derived from the id:
without the browser's cookie it reveals no token.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from agentcore.database import Database, query

LINK_SECONDS = 120
SESSION_SECONDS = 8 * 3_600
_NONCE_BYTES = 12
_ID = re.compile(r"[A-Za-z0-9_-]{43}")


class ConsoleSessions:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def create(self, token: str, seconds: float, *, is_link: bool = False) -> str:
        """Returns the id of a new session, or of a link that is valid once. Removes expired ones."""
        session_id = secrets.token_urlsafe(32)
        nonce = os.urandom(_NONCE_BYTES)
        sealed = nonce + AESGCM(_derived(session_id, "key")).encrypt(nonce, token.encode(), None)
        await self._database.owner_rows(
            query("create_console_session"),
            digest=_derived(session_id, "digest"),
            is_link=is_link,
            sealed=sealed,
            seconds=seconds,
        )
        return session_id

    async def token(self, session_id: str) -> str | None:
        """Returns the token of a session; None if it ended or never existed."""
        return await self._found("console_session", session_id)

    async def redeem(self, link_id: str) -> str | None:
        """Returns the token of a link and removes the link; None if it expired or was used."""
        return await self._found("redeem_console_link", link_id)

    async def end(self, session_id: str) -> None:
        await self._database.owner_rows(query("end_console_session"), digest=_derived(session_id, "digest"))

    async def _found(self, statement: str, given_id: str) -> str | None:
        if not _ID.fullmatch(given_id):
            return None
        rows = await self._database.owner_rows(query(statement), digest=_derived(given_id, "digest"))
        if not rows:
            return None
        sealed = rows[0]["sealed"]
        try:
            token = AESGCM(_derived(given_id, "key")).decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], None)
        except InvalidTag:
            return None
        return token.decode()


def csrf_token(session_id: str) -> str:
    """Returns the value that a changing request of this session must carry; a page of another origin cannot read it."""
    return _derived(session_id, "csrf").hex()


def _derived(session_id: str, purpose: str) -> bytes:
    return hmac.digest(session_id.encode(), f"agentcore console {purpose}".encode(), hashlib.sha256)
