"""Signed receipts of erasure (JWS); the header type excludes use as a token."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

import jwt

from agentcore.errors import InvalidParams
from agentcore.memory.models import JsonObject

KIND = "agentcore-erase-receipt"
ALGORITHM = "HS256"
NOT_SIGNED_HERE = "The receipt is not one that this service signed, or it was changed."


def sign_receipt(key_id: str, key: bytes, claims: Mapping[str, Any]) -> str:
    return jwt.encode(dict(claims), key, ALGORITHM, headers={"typ": KIND, "kid": key_id})


def key_id_of(receipt: str) -> str:
    """Returns the id of the key that signed a receipt. Raises InvalidParams if it is no receipt."""
    try:
        header = jwt.get_unverified_header(receipt)
    except jwt.PyJWTError as cause:
        raise InvalidParams(NOT_SIGNED_HERE) from cause
    if header.get("typ") != KIND:
        raise InvalidParams("This is no receipt of an erasure.")
    return str(header.get("kid"))


def read_receipt(keys: Iterable[bytes], receipt: str) -> JsonObject:
    """Returns the claims. Raises InvalidParams unless one of these keys signed the receipt."""
    key_id_of(receipt)
    for key in keys:
        with suppress(jwt.PyJWTError):
            return dict(jwt.decode(receipt, key, [ALGORITHM]))
    raise InvalidParams(NOT_SIGNED_HERE)
