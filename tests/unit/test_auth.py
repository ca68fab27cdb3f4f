"""HS256 tokens: acceptance, refusals with their reason, and no further information in the reason."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Sequence
from contextlib import suppress
from secrets import token_hex, token_urlsafe
from typing import Any
from uuid import UUID

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from agentcore import auth
from agentcore.auth import LEEWAY_SECONDS, Principal, SharedSecret, TokenRules, TokenVerifier, mint_token
from agentcore.config import Settings
from agentcore.errors import AuthenticationFailed, ConfigurationError, InvalidParams

SECRET = "an-hs256-secret-of-more-than-32-bytes"
NOW = int(time.time())


def verifier(issuer: str | None = None, audience: str | None = None, **options: Any) -> TokenVerifier:
    return TokenVerifier(TokenRules("HS256", issuer, audience), SharedSecret(SECRET), **options)


def signed(claims: dict[str, Any], *, secret: str = SECRET, **options: Any) -> str:
    return jwt.encode({"sub": "agent", "exp": NOW + 36_000, **claims}, secret, "HS256", **options)


async def refusal(token: str, **rules: str) -> str:
    with pytest.raises(AuthenticationFailed) as caught:
        await verifier(**rules).verify(f"Bearer {token}")
    assert caught.value.data == {}
    return caught.value.message


# --- creation -----------------------------------------------------------------------------------------------


async def test_a_minted_token_names_its_agent_and_scopes() -> None:
    token = mint_token(SECRET, "ada", ["memory:read", "memory:write"], 3_600, now=NOW)
    principal = await verifier().verify(f"Bearer {token}")
    claims = jwt.decode(token, SECRET, ["HS256"])
    assert principal == Principal(
        "ada", frozenset({"memory:read", "memory:write"}), claims["jti"], expires_at=NOW + 3_600
    )
    assert (claims["iat"], claims["exp"]) == (NOW, NOW + 3_600)


async def test_a_minted_token_carries_issuer_and_audience_where_given() -> None:
    token = mint_token(SECRET, "ada", [], 60, issuer="us", audience="memory")
    assert (await verifier("us", "memory").verify(f"Bearer {token}")).agent_id == "ada"


def test_two_tokens_of_one_moment_differ() -> None:
    assert mint_token(SECRET, "ada", [], 60, now=NOW) != mint_token(SECRET, "ada", [], 60, now=NOW)


@pytest.mark.parametrize("agent_id", ["", "x" * 256, "a\x00b", "a\nb", "a\x7fb", "a\x85b", "a\ud800"])
async def test_an_id_that_no_agent_may_have_is_neither_minted_nor_believed(agent_id: str) -> None:
    with pytest.raises(InvalidParams, match="1 to 255 characters"):
        mint_token(SECRET, agent_id, [], 60)
    assert await refusal(signed({"sub": agent_id})) == (
        "The claim `sub` must have 1 to 255 characters and no control characters."
    )


@pytest.mark.parametrize("agent_id", ["a", "x" * 255, "../x", "a:b", "é \u65e5 \U0001f600", str(UUID(int=7))])
async def test_any_other_text_is_an_agents_id(agent_id: str) -> None:
    token = mint_token(SECRET, agent_id, [], 60)
    assert (await verifier().verify(f"Bearer {token}")).agent_id == agent_id


# --- the header --------------------------------------------------------------------------------------------


async def test_a_request_without_a_header_is_told_to_send_a_token() -> None:
    with pytest.raises(
        AuthenticationFailed, match=r"^Missing Authorization header: send `Authorization: Bearer <token>`\.$"
    ):
        await verifier().verify(None)


@pytest.mark.parametrize("header", ["", "Bearer", "Bearer ", "Basic abc", "abc", "Bearer a b", "Bearer é", "\x00"])
async def test_a_header_that_is_not_bearer_and_a_token_is_refused(header: str) -> None:
    with pytest.raises(AuthenticationFailed, match=r"^The Authorization header must be `Bearer <token>`\.$"):
        await verifier().verify(header)


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER", "Bearer "])
async def test_the_scheme_is_read_in_any_case(scheme: str) -> None:
    assert (await verifier().verify(f"{scheme} {signed({})}")).agent_id == "agent"


# --- refusals ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("claims", "reason"),
    [
        ({"exp": NOW - LEEWAY_SECONDS - 60}, "The token has expired."),
        ({"nbf": NOW + 36_000}, "The token is not valid yet."),
        ({"iat": NOW + 36_000}, "The token is not valid yet."),
        ({"exp": None}, "The token lacks exp."),
        ({"sub": None}, "The token lacks sub."),
        ({"sub": 7}, "The token is malformed."),
        ({"exp": "soon"}, "The token is malformed."),
        ({"exp": [1]}, "The token is malformed."),
        ({"nbf": "x"}, "The token is malformed."),
        ({"scope": 7}, "The claim `scope` must be a string or a list of strings."),
        ({"scope": ["memory:read", 7]}, "The claim `scope` must be a string or a list of strings."),
        *(
            ({"users": users}, "The claim `users` must be a non-empty list of user ids or nulls.")
            for users in ("anna", [], None, [7], ["anna", ""], {"anna": 1}, ["a\n"])
        ),
    ],
)
@pytest.mark.shows("issue2-5-refusals")
async def test_a_claim_that_does_not_hold_is_named(claims: dict[str, Any], reason: str) -> None:
    assert await refusal(signed(claims)) == reason


async def test_an_expiry_out_of_all_bounds_is_malformed_or_far() -> None:
    infinite = _with_payload('{"sub": "agent", "exp": 1e999}')
    assert await refusal(infinite) == "The token is malformed."
    far = signed({"exp": 10**400})
    assert (await verifier().verify(f"Bearer {far}")).expires_at == auth.FAR_FUTURE


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({}, "The token lacks iss."),
        ({"iss": "them"}, "The token's issuer is not accepted."),
        ({"iss": ["us"]}, "The token's issuer is not accepted."),
    ],
)
async def test_the_issuer_is_checked_where_it_is_configured(given: dict[str, Any], reason: str) -> None:
    token = _with_payload(json.dumps({"sub": "agent", "exp": NOW + 36_000, **given}))
    assert await refusal(token, issuer="us") == reason
    if isinstance(given.get("iss", ""), str):
        assert (await verifier().verify(f"Bearer {token}")).agent_id == "agent"


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({}, "The token lacks aud."),
        ({"aud": "other"}, "The token is meant for another audience."),
        ({"aud": ["a", "b"]}, "The token is meant for another audience."),
        ({"aud": 7}, "The token is meant for another audience."),
    ],
)
async def test_the_audience_is_checked_where_it_is_configured(given: dict[str, Any], reason: str) -> None:
    assert await refusal(signed(given), audience="memory") == reason
    assert (await verifier().verify(f"Bearer {signed(given)}")).agent_id == "agent"


async def test_a_signature_by_another_secret_is_wrong() -> None:
    assert await refusal(signed({}, secret="x" * 40)) == "The token's signature is wrong."


async def test_a_forged_token_learns_of_the_signature_alone() -> None:
    forged = signed({"exp": NOW - 600, "iss": "them", "sub": ""}, secret="x" * 40)
    assert await refusal(forged, issuer="us") == "The token's signature is wrong."


@pytest.mark.shows("issue2-5-refusals")
async def test_no_algorithm_but_ours_is_accepted() -> None:
    key = rsa.generate_private_key(public_exponent=65_537, key_size=2_048)
    claims = {"sub": "agent", "exp": NOW + 36_000}
    tokens = [
        jwt.encode(claims, key, "RS256"),
        jwt.encode(claims, SECRET * 2, "HS512"),
        _joined({"alg": "none"}, claims),
        _joined({"alg": "None"}, claims),
        _joined({"alg": "hs256"}, claims),
        _joined({}, claims),
        _joined({"alg": None}, claims),
        _joined({"alg": ["HS256"]}, claims),
    ]
    for token in tokens:
        assert await refusal(token) == "The token's algorithm is not accepted."


@pytest.mark.parametrize(
    "token",
    [
        "x",
        "a.b",
        "a.b.c",
        "..",
        "a.b.c.d",
        "e30.e30.e30",
        "=.=.=",
        "." * 5_000,
        base64.urlsafe_b64encode(b"[" * 30_000).decode().rstrip("=") + ".e30.e30",
        base64.urlsafe_b64encode(b'{"alg": "HS256", "kid": 7}').decode().rstrip("=") + ".e30.e30",
        base64.urlsafe_b64encode(b'{"alg": "HS256", "crit": ["x"]}').decode().rstrip("=") + ".e30.e30",
        base64.urlsafe_b64encode(b"1" * 5_000).decode().rstrip("=") + ".e30.e30",
    ],
)
async def test_what_is_no_jwt_is_refused(token: str) -> None:
    assert await refusal(token) in ("The token is malformed.", "The token's algorithm is not accepted.")


async def test_a_key_id_means_nothing_to_a_shared_secret() -> None:
    assert (await verifier().verify(f"Bearer {signed({}, headers={'kid': 'any'})}")).agent_id == "agent"


async def test_clocks_may_lie_a_little_apart() -> None:
    now = int(time.time())
    for claims in ({"exp": now - 1}, {"iat": now + 3, "nbf": now + 3}):
        assert (await verifier().verify(f"Bearer {signed(claims)}")).agent_id == "agent"


# --- claims -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scope", "scopes"),
    [
        ("memory:read", {"memory:read"}),
        ("a  b\tc", {"a", "b", "c"}),
        (["a", "b"], {"a", "b"}),
        ("", set()),
        (None, set()),
        ([], set()),
    ],
)
async def test_scopes_come_as_a_text_or_a_list(scope: object, scopes: set[str]) -> None:
    assert (await verifier().verify(f"Bearer {signed({'scope': scope})}")).scopes == scopes


async def test_a_token_without_scope_has_none() -> None:
    assert (await verifier().verify(f"Bearer {signed({})}")).scopes == frozenset()


@pytest.mark.shows("issue13-users")
async def test_a_token_is_bound_to_the_users_that_it_names() -> None:
    token = mint_token(SECRET, "agent", [], 60, users=["anna", None])
    assert (await verifier().verify(f"Bearer {token}")).users == frozenset({"anna", None})
    assert (await verifier().verify(f"Bearer {mint_token(SECRET, 'agent', [], 60)}")).users is None
    with pytest.raises(InvalidParams):
        mint_token(SECRET, "agent", [], 60, users=[""])


async def test_a_token_id_that_could_not_be_kept_is_left_out() -> None:
    assert (await verifier().verify(f"Bearer {signed({'jti': 'a' + chr(0)})}")).token_id is None
    assert (await verifier().verify(f"Bearer {signed({'jti': 'abc'})}")).token_id == "abc"


# --- the secret --------------------------------------------------------------------------------------------


def test_a_secret_needs_32_bytes() -> None:
    with pytest.raises(ConfigurationError, match="shorter than 32 bytes"):
        SharedSecret(SECRET[:31])
    assert SharedSecret("äöüßéèçñøåłžšđğı").key == "äöüßéèçñøåłžšđğı".encode()


@pytest.mark.parametrize(
    ("secret", "problem"),
    [
        ("a" * 32, "different bytes"),
        ("ab" * 32, "different bytes"),
        ("changeme" * 4, "different bytes"),
        ("0123456789abcdef" * 2, "repeats"),
        ("12345678901234567890123456789012", "repeats"),
        (json.dumps([SECRET, "a" * 32]), r"\(2 of 2\) has fewer"),
        ("[" + SECRET, "JSON list"),
        ("[]", "JSON list"),
        ('[1, "x"]', "JSON list"),
    ],
)
@pytest.mark.shows("A14-secret")
def test_a_secret_that_is_easy_to_guess_is_refused_with_a_fix(secret: str, problem: str) -> None:
    with pytest.raises(ConfigurationError, match=problem) as refused:
        SharedSecret(secret)
    assert "openssl rand -hex 32" in str(refused.value) or "JSON list" in str(refused.value)
    with pytest.raises(ConfigurationError, match=problem):
        Settings(_env_file=None, jwt_secret_key=secret)


@pytest.mark.shows("A14-secret")
def test_random_secrets_are_accepted() -> None:
    for _ in range(200):
        assert SharedSecret(token_hex(32)).key
        assert SharedSecret(token_urlsafe(32)).key
        assert SharedSecret(token_hex(16)).key


@pytest.mark.shows("B11")
async def test_of_several_secrets_the_first_signs_and_all_verify_until_one_is_removed() -> None:
    old, new = SECRET, token_hex(32)
    both = json.dumps([new, old])
    tokens = {"old": mint_token(old, "ada", [], 60), "new": mint_token(both, "ada", [], 60)}

    async def accepted(secrets: str) -> set[str]:
        found = set()
        for name, token in tokens.items():
            with suppress(AuthenticationFailed):
                await TokenVerifier(TokenRules("HS256"), SharedSecret(secrets)).verify(f"Bearer {token}")
                found.add(name)
        return found

    assert await accepted(old) == {"old"}
    assert await accepted(both) == {"old", "new"}
    assert await accepted(new) == {"new"}


async def test_an_expired_token_of_the_old_secret_is_said_to_have_expired() -> None:
    token = mint_token(SECRET, "ada", [], 60, now=time.time() - 3_600)
    both = SharedSecret(json.dumps([token_hex(32), SECRET]))
    with pytest.raises(AuthenticationFailed, match="expired"):
        await TokenVerifier(TokenRules("HS256"), both).verify(f"Bearer {token}")


def test_a_public_key_is_no_secret() -> None:
    key = rsa.generate_private_key(public_exponent=65_537, key_size=2_048).public_key()
    pem = key.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    with pytest.raises(ConfigurationError, match="JWT_JWKS_URL"):
        SharedSecret(pem.decode())


# --- cached verifications -----------------------------------------------------------------------------------


class CountingSecret(SharedSecret):
    asked = 0

    async def keys_for(self, key_id: str | None) -> Sequence[bytes]:
        self.asked += 1
        return await super().keys_for(key_id)


async def test_a_token_is_verified_once_in_a_while_and_not_past_its_end() -> None:
    now = time.time()
    clock = [now]
    keys = CountingSecret(SECRET)
    subject = TokenVerifier(TokenRules("HS256"), keys, clock=lambda: clock[0])
    token = f"Bearer {signed({'exp': int(now) + 90})}"
    for moment, asked in [(0, 1), (59, 1), (61, 2), (88, 2), (91, 3)]:
        clock[0] = now + moment
        assert (await subject.verify(token)).agent_id == "agent"
        assert keys.asked == asked


async def test_a_refused_token_is_not_remembered() -> None:
    keys = CountingSecret(SECRET)
    subject = TokenVerifier(TokenRules("HS256"), keys)
    for _ in range(2):
        with pytest.raises(AuthenticationFailed):
            await subject.verify(f"Bearer {signed({'exp': NOW - 600})}")
    assert keys.asked == 2


async def test_only_so_many_tokens_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auth, "CACHED_TOKENS", 2)
    keys = CountingSecret(SECRET)
    subject = TokenVerifier(TokenRules("HS256"), keys)
    tokens = [f"Bearer {signed({'sub': name})}" for name in "abc"]
    for token in tokens:
        await subject.verify(token)
    await subject.verify(tokens[2])
    assert keys.asked == 3
    await subject.verify(tokens[0])
    assert keys.asked == 4


def _segment(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _joined(header: dict[str, Any], claims: dict[str, Any]) -> str:
    return f"{_segment(json.dumps(header))}.{_segment(json.dumps(claims))}."


def _with_payload(payload: str) -> str:
    """Signs a payload that the library would not create."""
    return jwt.api_jws.encode(payload.encode(), SECRET, "HS256")
