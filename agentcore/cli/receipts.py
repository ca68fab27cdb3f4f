"""The work of `erase --check` and `erase --purge`: receipts read, and signed anew with what was purged."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from agentcore.assembly import RECEIPTS, receipt_secret
from agentcore.cli.app import FAILED, MISUSED, fail, say
from agentcore.cli.connection import signing_secret_at_hand
from agentcore.cli.purge import purged as purge
from agentcore.config import load_settings
from agentcore.errors import AgentCoreError
from agentcore.memory.forgetting.erase_receipt import read_receipt, receipt_key, sign_receipt
from agentcore.runtime import home_of

NO_RECEIPT = ("--check takes a receipt: the text that erase printed, the JSON of erase --json, "
              "the path of a file with either, or - for standard input.")


def checked(given: str) -> dict[str, Any]:
    """What the receipt tells; ends the command where no secret is at hand that could have signed it."""
    return read_receipt(_key(), _receipt(given))


def purged(receipt: str) -> tuple[str, bool]:
    """Purge; returns the receipt with what was purged and what remains, and whether all went well."""
    try:
        key = _key()
        claims = read_receipt(key, receipt)
        report = purge()
    except AgentCoreError as error:
        say(error.message)
        return receipt, False
    claims.pop("not_purged", None)
    return sign_receipt(key, claims | report.claims()), not report.failed


def _key() -> bytes:
    settings = load_settings()
    home = home_of(settings)
    if settings.jwt_jwks_url is None:
        return receipt_key(signing_secret_at_hand(settings))
    with home.explained():
        kept = (home.secrets / RECEIPTS).exists()
    if not kept:
        fail(f"{home.path} holds no secret of receipts: check where the service runs", FAILED)
    return receipt_key(receipt_secret(settings, home))


def _receipt(given: str) -> str:
    """The receipt of what was typed; ends the command where there is none."""
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
    """What stands in the file that is named, where it is one."""
    try:
        if given == "-":
            return sys.stdin.read()
        return Path(given).read_text() if Path(given).is_file() else given
    except (OSError, ValueError):
        # The text of a receipt is longer than a file's name may be; what is no text is no receipt.
        return given
