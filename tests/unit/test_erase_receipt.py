"""Erase receipts: signing and rejection of invalid ones."""

from __future__ import annotations

import jwt
import pytest

from agentcore.errors import InvalidParams
from agentcore.memory.forgetting.erase_receipt import ALGORITHM, KIND, key_id_of, read_receipt, sign_receipt

KEY = bytes(range(32))


def test_what_is_signed_is_read_again() -> None:
    told = {"agent_id": "Zoë", "erased": {"memories": 3}, "verified": True}
    receipt = sign_receipt("k1", KEY, told)
    assert read_receipt([bytes(32), KEY], receipt) == told
    assert key_id_of(receipt) == "k1"


@pytest.mark.parametrize(
    "receipt",
    [
        sign_receipt("k1", bytes(32), {}),
        jwt.encode({}, KEY, ALGORITHM),
        jwt.encode({}, "", "none", headers={"typ": KIND}),
        "a.b.c",
        "",
    ],
    ids=["another key", "another type", "unsigned", "no JWS", "empty"],
)
def test_what_this_service_did_not_sign_as_a_receipt_is_none(receipt: str) -> None:
    with pytest.raises(InvalidParams):
        read_receipt([KEY], receipt)
