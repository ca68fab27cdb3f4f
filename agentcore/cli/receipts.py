"""The work of `erase --check`: what a receipt of this service says."""

from __future__ import annotations

from typing import Any

from agentcore.assembly import RECEIPTS, receipt_secret
from agentcore.cli.app import FAILED, fail
from agentcore.cli.connection import signing_secret_at_hand
from agentcore.config import load_settings
from agentcore.memory.forgetting.erase_receipt import read_receipt, receipt_key
from agentcore.runtime import home_of


def checked(receipt: str) -> dict[str, Any]:
    """What the receipt tells; ends the command where no secret is at hand that could have signed it."""
    settings = load_settings()
    home = home_of(settings)
    if settings.jwt_jwks_url is None:
        return read_receipt(receipt_key(signing_secret_at_hand(settings)), receipt.strip())
    with home.explained():
        kept = (home.secrets / RECEIPTS).exists()
    if not kept:
        fail(f"{home.path} holds no secret of receipts: check where the service runs", FAILED)
    return read_receipt(receipt_key(receipt_secret(settings, home)), receipt.strip())
