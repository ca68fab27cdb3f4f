"""Receipts of erasure: compact JWS that this service signed, and that no service takes for a token."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from typing import Any

import jwt

from agentcore.errors import InvalidParams

KIND = "agentcore-erase-receipt"
ALGORITHM = "HS256"


def receipt_key(secret: str) -> bytes:
    """The key of receipts: of the service's secret, but another than that of its tokens."""
    return hmac.digest(secret.encode(), KIND.encode(), hashlib.sha256)


def sign_receipt(key: bytes, told: Mapping[str, Any]) -> str:
    """What was erased, as a compact JWS."""
    return jwt.encode(dict(told), key, ALGORITHM, headers={"typ": KIND})


def read_receipt(key: bytes, receipt: str) -> dict[str, Any]:
    """What a receipt tells. Raises InvalidParams where it was not signed with this key, or is no receipt."""
    try:
        if jwt.get_unverified_header(receipt).get("typ") != KIND:
            raise InvalidParams("This is no receipt of an erasure.")
        told: dict[str, Any] = jwt.decode(receipt, key, [ALGORITHM])
    except jwt.PyJWTError as cause:
        raise InvalidParams("The receipt is not one that this service signed, or it was changed.") from cause
    return told
