"""Receipts of erasure: what signs them, and what is none."""

from __future__ import annotations

import jwt
import pytest

from agentcore.errors import InvalidParams
from agentcore.memory.forgetting.erase_receipt import (
    ALGORITHM,
    KIND,
    key_id_of,
    key_of_secret,
    read_receipt,
    sign_receipt,
)

SECRET = "a secret of the tests, long enough for HS256"
KEY = bytes(range(32))


def test_what_is_signed_is_read_again() -> None:
    told = {"agent_id": "Zoë", "erased": {"memories": 3}, "verified": True}
    receipt = sign_receipt("k1", KEY, told)
    assert read_receipt([bytes(32), KEY], receipt) == told
    assert key_id_of(receipt) == "k1"


def test_a_receipt_of_an_older_version_verifies_while_its_secret_is_known() -> None:
    older = jwt.encode({"agent_id": "ada"}, key_of_secret(SECRET), ALGORITHM, headers={"typ": KIND})
    assert key_id_of(older) is None
    other = key_of_secret("another secret")
    assert read_receipt([other, key_of_secret(SECRET)], older) == {"agent_id": "ada"}
    with pytest.raises(InvalidParams):
        read_receipt([other], older)


def test_the_key_of_older_receipts_is_not_that_of_the_tokens() -> None:
    assert SECRET.encode() != key_of_secret(SECRET)


@pytest.mark.parametrize("receipt", [
    sign_receipt("k1", bytes(32), {}), jwt.encode({}, KEY, ALGORITHM),
    jwt.encode({}, None, "none", headers={"typ": KIND}), "a.b.c", ""],
    ids=["another key", "another type", "unsigned", "no JWS", "empty"])
def test_what_this_service_did_not_sign_as_a_receipt_is_none(receipt: str) -> None:
    with pytest.raises(InvalidParams):
        read_receipt([KEY], receipt)
