"""Receipts of erasure: what signs them, and what is none."""

from __future__ import annotations

from pathlib import Path

import jwt
import pytest

from agentcore.assembly import receipt_secret
from agentcore.config import Settings
from agentcore.embedded import Home
from agentcore.errors import InvalidParams
from agentcore.memory.forgetting.erase_receipt import ALGORITHM, read_receipt, receipt_key, sign_receipt

SECRET = "a secret of the tests, long enough for HS256"
KEY = receipt_key(SECRET)


def test_what_is_signed_is_read_again() -> None:
    told = {"agent_id": "Zoë", "erased": {"memories": 3}, "verified": True}
    assert read_receipt(KEY, sign_receipt(KEY, told)) == told


def test_its_key_is_not_that_of_the_tokens() -> None:
    assert SECRET.encode() != KEY
    with pytest.raises(jwt.InvalidSignatureError):
        jwt.decode(sign_receipt(KEY, {"sub": "agent"}), SECRET, [ALGORITHM])


@pytest.mark.parametrize("receipt", [
    sign_receipt(receipt_key("another secret"), {}), jwt.encode({}, KEY, ALGORITHM),
    jwt.encode({}, None, "none", headers={"typ": "agentcore-erase-receipt"}), "a.b.c", ""],
    ids=["another key", "another type", "unsigned", "no JWS", "empty"])
def test_what_this_service_did_not_sign_as_a_receipt_is_none(receipt: str) -> None:
    with pytest.raises(InvalidParams):
        read_receipt(KEY, receipt)


def test_where_tokens_come_from_elsewhere_the_home_has_a_secret_for_receipts(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    own = Settings(_env_file=None, jwt_secret_key=SECRET)
    assert receipt_secret(own, home) == SECRET
    assert not home.path.exists()
    foreign = Settings(_env_file=None, jwt_algorithm="RS256", jwt_jwks_url="https://keys.example/jwks")
    assert receipt_secret(foreign, home) == receipt_secret(foreign, home) == home.secret("receipts")
