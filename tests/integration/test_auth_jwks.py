"""Tokens with asymmetric signatures, verified against a JWKS endpoint on a real socket."""

from __future__ import annotations

import asyncio
import base64
import time
from collections.abc import AsyncIterator
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from agentcore.auth import MAX_KEY_SET_BYTES, JwksKeys, TokenRules, TokenVerifier
from agentcore.errors import AuthenticationFailed, DependencyUnavailable
from tests.fixtures.key_server import KeyServer, jwk, key_server, new_key

ALGORITHMS = ["RS256", "ES256", "EdDSA"]
RSA_KEY = new_key("RS256")


@pytest.fixture
async def server() -> AsyncIterator[KeyServer]:
    async with key_server() as running:
        yield running


class Clock:
    now = 1_000.0

    def __call__(self) -> float:
        return self.now


def verifier(server: KeyServer, algorithm: str = "RS256", **options: Any) -> TokenVerifier:
    return TokenVerifier(TokenRules(algorithm), JwksKeys(server.url, algorithm, **options))


def bearer(key: Any, algorithm: str = "RS256", key_id: str | None = "k1", **claims: Any) -> str:
    """Creates a new token each time, so that no verification is cached."""
    headers = {} if key_id is None else {"kid": key_id}
    given = {"sub": "agent", "exp": time.time() + 60, "jti": str(time.perf_counter_ns()), **claims}
    return "Bearer " + jwt.encode(given, key, algorithm, headers)


async def refusal(subject: TokenVerifier, header: str) -> str:
    with pytest.raises(AuthenticationFailed) as caught:
        await subject.verify(header)
    return caught.value.message


@pytest.mark.parametrize("algorithm", ALGORITHMS)
async def test_a_token_of_each_algorithm_is_verified(server: KeyServer, algorithm: str) -> None:
    key = new_key(algorithm)
    server.publish(jwk(key.public_key(), algorithm, "k1"))
    assert (await verifier(server, algorithm).verify(bearer(key, algorithm))).agent_id == "agent"
    forged = bearer(new_key(algorithm), algorithm)
    assert await refusal(verifier(server, algorithm), forged) == "The token's signature is wrong."


async def test_the_public_key_is_no_shared_secret(server: KeyServer) -> None:
    server.publish(jwk(RSA_KEY.public_key(), "RS256", "k1"))
    pem = RSA_KEY.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    unsigned = jwt.encode({"sub": "agent", "exp": time.time() + 60}, "x" * 32, "HS256", {"kid": "k1"})
    signing_input = unsigned.rpartition(".")[0].encode()
    hmac = jwt.get_algorithm_by_name("HS256")
    signature = base64.urlsafe_b64encode(hmac.sign(signing_input, pem)).rstrip(b"=")  # as an attacker would
    token = (signing_input + b"." + signature).decode()
    assert await refusal(verifier(server), f"Bearer {token}") == "The token's algorithm is not accepted."
    assert server.requests == 0


@pytest.mark.parametrize(
    "entry",
    [
        pytest.param(jwk(new_key("ES256").public_key(), "ES256", "k1"), id="another type"),
        pytest.param(jwk(RSA_KEY.public_key(), "RS256", "k1", alg="RS512"), id="another algorithm"),
        pytest.param(jwk(RSA_KEY.public_key(), "RS256", "k1", use="enc"), id="for encryption"),
        pytest.param(jwk(RSA_KEY, "RS256", "k1"), id="private"),
        pytest.param({"kty": "oct", "k": "c2VjcmV0", "kid": "k1"}, id="symmetric"),
        pytest.param({"kty": "RSA", "n": "!", "e": "AQAB", "kid": "k1"}, id="broken"),
        pytest.param("k1", id="no object"),
    ],
)
async def test_a_key_that_does_not_fit_is_as_if_it_were_not_there(server: KeyServer, entry: Any) -> None:
    server.publish(entry, jwk(new_key("RS256").public_key(), "RS256", "other"))
    assert await refusal(verifier(server), bearer(RSA_KEY)) == "No key matches the token's `kid`."


async def test_a_short_rsa_key_verifies_nothing(server: KeyServer) -> None:
    short = rsa.generate_private_key(public_exponent=65_537, key_size=1_024)  # noqa: S505  what is refused
    server.publish(jwk(short.public_key(), "RS256", "k1"))
    with pytest.warns(UserWarning, match="below"):
        header = bearer(short)
    assert await refusal(verifier(server), header) == "The token is malformed."


@pytest.mark.parametrize("names", [[None], [None, None], ["k1", None], ["k1", "k2"], ["k1", "k1"]])
async def test_a_token_without_a_key_id_is_verified_by_any_key(server: KeyServer, names: list[str | None]) -> None:
    keys = [new_key("RS256") for _ in names]
    server.publish(*(jwk(key.public_key(), "RS256", name) for key, name in zip(keys, names, strict=True)))
    subject = verifier(server)
    for key, name in zip(keys, names, strict=True):
        assert (await subject.verify(bearer(key, key_id=None))).agent_id == "agent"
        if name is not None:
            assert (await subject.verify(bearer(key, key_id=name))).agent_id == "agent"
    assert await refusal(subject, bearer(RSA_KEY, key_id=None)) == "The token's signature is wrong."
    assert await refusal(subject, bearer(keys[0], key_id="other")) == "No key matches the token's `kid`."


async def test_a_short_key_does_not_keep_another_from_verifying_a_token_without_a_key_id(server: KeyServer) -> None:
    short = rsa.generate_private_key(public_exponent=65_537, key_size=1_024)  # noqa: S505  what is refused
    server.publish(*(jwk(key.public_key(), "RS256", None) for key in (short, RSA_KEY)))
    assert (await verifier(server).verify(bearer(RSA_KEY, key_id=None))).agent_id == "agent"


async def test_keys_are_fetched_once_until_they_are_old(server: KeyServer) -> None:
    clock = Clock()
    server.publish(jwk(RSA_KEY.public_key(), "RS256", "k1"))
    subject = verifier(server, ttl_seconds=600, clock=clock)
    for moment, requests in [(0, 1), (599, 1), (601, 2), (1_200, 2), (1_202, 3)]:
        clock.now = 1_000 + moment
        await subject.verify(bearer(RSA_KEY))
        assert server.requests == requests


async def test_many_at_once_fetch_once(server: KeyServer) -> None:
    server.publish(jwk(RSA_KEY.public_key(), "RS256", "k1"))
    server.open.clear()
    subject = verifier(server)
    waiting = [asyncio.create_task(subject.verify(bearer(RSA_KEY))) for _ in range(20)]
    await server.asked.wait()
    server.open.set()
    assert {principal.agent_id for principal in await asyncio.gather(*waiting)} == {"agent"}
    assert server.requests == 1


@pytest.mark.shows("issue2-5-JWKS")
async def test_a_new_key_is_found_but_unknown_ids_do_not_hammer_the_server(server: KeyServer) -> None:
    clock = Clock()
    new = new_key("RS256")
    server.publish(jwk(RSA_KEY.public_key(), "RS256", "k1"))
    subject = verifier(server, refetch_seconds=30, clock=clock)
    await subject.verify(bearer(RSA_KEY))
    server.publish(jwk(new.public_key(), "RS256", "k2"))
    for _ in range(5):
        assert await refusal(subject, bearer(new, key_id="k2")) == "No key matches the token's `kid`."
    assert server.requests == 1
    clock.now += 31
    assert (await subject.verify(bearer(new, key_id="k2"))).agent_id == "agent"
    unknown = [bearer(RSA_KEY), *(bearer(new, key_id=f"made up {number}") for number in range(5))]
    for header in unknown:
        assert await refusal(subject, header) == "No key matches the token's `kid`."
    assert server.requests == 2


@pytest.mark.parametrize(
    "fault",
    [
        {"status": 500},
        {"status": 302},
        {"document": b"<html>"},
        {"document": []},
        {"document": {"keys": {}}},
        {"document": {"keys": []}},
        {"document": {}},
        {"document": b'{"keys":' + b"[" * 100_000},
        {"document": b" " * (MAX_KEY_SET_BYTES + 1) + b"{}"},
    ],
)
@pytest.mark.shows("A14-JWKS")
async def test_the_last_keys_serve_while_the_endpoint_fails(server: KeyServer, fault: dict[str, Any]) -> None:
    clock = Clock()
    server.publish(jwk(RSA_KEY.public_key(), "RS256", "k1"))
    subject = verifier(server, clock=clock)
    await subject.verify(bearer(RSA_KEY))
    vars(server).update(fault)
    clock.now += 10_000
    for _ in range(3):
        assert (await subject.verify(bearer(RSA_KEY))).agent_id == "agent"
    assert server.requests == 2
    clock.now += 31
    vars(server).update(status=200, document={"keys": [jwk(RSA_KEY.public_key(), "RS256", "k2")]})
    assert (await subject.verify(bearer(RSA_KEY, key_id="k2"))).agent_id == "agent"


async def test_without_any_key_the_service_is_at_fault_not_the_token(server: KeyServer) -> None:
    clock = Clock()
    server.status = 503
    subject = verifier(server, clock=clock)
    for _ in range(3):
        with pytest.raises(DependencyUnavailable, match="No token keys are available"):
            await subject.verify(bearer(RSA_KEY))
    assert server.requests == 1
    clock.now += 2
    vars(server).update(status=200, document={"keys": [jwk(RSA_KEY.public_key(), "RS256", "k1")]})
    assert (await subject.verify(bearer(RSA_KEY))).agent_id == "agent"


async def test_an_endpoint_that_hangs_is_given_up(server: KeyServer) -> None:
    server.open.clear()
    with pytest.raises(DependencyUnavailable):
        await verifier(server, timeout_seconds=0.5).verify(bearer(RSA_KEY))
    assert server.requests == 1


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/keys", "ftp://127.0.0.1/keys", "no url", "http://[::1"])
async def test_an_address_that_cannot_answer_is_a_missing_part(url: str) -> None:
    with pytest.raises(DependencyUnavailable):
        await TokenVerifier(TokenRules("RS256"), JwksKeys(url, "RS256")).verify(bearer(RSA_KEY))


@pytest.mark.parametrize(
    ("claims", "reason"),
    [
        ({"exp": time.time() - 600}, "The token has expired."),
        ({"nbf": time.time() + 36_000}, "The token is not valid yet."),
    ],
)
async def test_claims_are_checked_as_with_a_secret(server: KeyServer, claims: dict[str, Any], reason: str) -> None:
    server.publish(jwk(RSA_KEY.public_key(), "RS256", "k1"))
    assert await refusal(verifier(server), bearer(RSA_KEY, **claims)) == reason
