"""The work of `erase --check` and `erase --purge`: receipts read, and signed anew with what was purged."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agentcore.cli.app import FAILED, MISUSED, fail, say
from agentcore.cli.connection import signing_secret_at_hand
from agentcore.cli.purge import purged as purge
from agentcore.config import Settings, load_settings
from agentcore.database import Row, query
from agentcore.errors import AgentCoreError
from agentcore.memory.forgetting.erase_receipt import key_id_of, key_of_secret, read_receipt, sign_receipt
from agentcore.runtime import home_of, running_database
from agentcore.token_secrets import read_secrets

# The secret of the home that signed receipts in older versions where tokens came from elsewhere.
RECEIPTS = "receipts"
NO_RECEIPT = ("--check takes a receipt: the text that erase printed, the JSON of erase --json, "
              "the path of a file with either, or - for standard input.")


def checked(given: str) -> dict[str, Any]:
    """Returns what the receipt states; ends the command where no key is at hand that could have signed it."""
    receipt = _receipt(given)
    settings = load_settings()
    key_id = key_id_of(receipt)
    if key_id is None:
        return read_receipt(_keys_of_secrets(settings), receipt)
    stored = asyncio.run(_stored_keys(settings, key_id))
    return read_receipt([bytes(each["key"]) for each in stored], receipt)


def purged(receipt: str) -> tuple[str, bool]:
    """Purges; returns the receipt with what was purged and what remains, and whether all went well."""
    try:
        claims = checked(receipt)
        report = purge()
        [newest, *_] = asyncio.run(_stored_keys(load_settings(), None))
    except AgentCoreError as error:
        say(error.message)
        return receipt, False
    claims.pop("not_purged", None)
    signed = sign_receipt(newest["key_id"], bytes(newest["key"]), claims | report.claims())
    return signed, not report.failed


async def _stored_keys(settings: Settings, key_id: str | None) -> Sequence[Row]:
    """The keys of receipts, newest first; or the one of this id."""
    async with running_database(settings) as database, database.owner_transaction() as connection:
        return await (await connection.execute(query("receipt_keys"), {"key_id": key_id})).fetchall()


def _keys_of_secrets(settings: Settings) -> list[bytes]:
    if settings.jwt_jwks_url is None:
        return [key_of_secret(each) for each in read_secrets(signing_secret_at_hand(settings))]
    home = home_of(settings)
    with home.explained():
        kept = (home.secrets / RECEIPTS).exists()
    if not kept:
        fail(f"{home.path} contains no secret of receipts: check where the service runs", FAILED)
    return [key_of_secret(home.secret(RECEIPTS))]


def _receipt(given: str) -> str:
    text = _text(given).strip()
    if text.startswith("{"):
        try:
            text = str(json.loads(text)["signed_receipt"])
        except (ValueError, KeyError):
            fail(NO_RECEIPT, MISUSED)
    if text.count(".") != 2 or len(text.split()) != 1:
        fail(NO_RECEIPT, MISUSED)
    return text


def _text(given: str) -> str:
    try:
        if given == "-":
            return sys.stdin.read()
        return Path(given).read_text() if Path(given).is_file() else given
    except (OSError, ValueError):
        # The text of a receipt is longer than a file's name may be; what is no text is no receipt.
        return given
