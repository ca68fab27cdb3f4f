"""Authentication: verifies the JWT of an Authorization header."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import time
import unicodedata
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol
from uuid import uuid4

import httpx
import jwt

from agentcore.errors import AuthenticationFailed, ConfigurationError, DependencyUnavailable, InvalidParams
from agentcore.limits import MAX_ID_CHARS
from agentcore.structured_settings import read_secrets

FAR_FUTURE = 2**53
LEEWAY_SECONDS = 5
MAX_KEY_SET_BYTES = 262_144
CACHED_TOKENS = 10_000
# A revoked key is accepted for up to this time plus the JWKS cache TTL; longer while the JWKS cannot be fetched.
CACHED_SECONDS = 60.0

_KEY_TYPES = {"RS256": ("RSA", None), "ES256": ("EC", "P-256"), "EdDSA": ("OKP", "Ed25519")}
_REASONS: tuple[tuple[type[jwt.PyJWTError], str], ...] = (
    (jwt.ExpiredSignatureError, "The token has expired."),
    (jwt.ImmatureSignatureError, "The token is not valid yet."),
    (jwt.InvalidIssuerError, "The token's issuer is not accepted."),
    (jwt.InvalidAudienceError, "The token is meant for another audience."),
    (jwt.InvalidAlgorithmError, "The token's algorithm is not accepted."),
    (jwt.InvalidSignatureError, "The token's signature is wrong."),
)

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Principal:
    """The identity that a token proves; `expires_at`: seconds since the epoch.

    `users`: only their memories are readable and writable (None in it: memories without a user); None: all.
    """

    agent_id: str
    scopes: frozenset[str]
    token_id: str | None
    expires_at: float
    users: frozenset[str | None] | None = None


@dataclass(frozen=True)
class TokenRules:
    """Requirements of a token. The algorithm is configured, never read from the token."""

    algorithm: str
    issuer: str | None = None
    audience: str | None = None


class KeySource(Protocol):
    async def keys_for(self, key_id: str | None) -> Sequence[bytes | jwt.PyJWK]:
        """Returns the keys to try, at least one. Raises AuthenticationFailed if there is none."""


class SharedSecret:
    """One HS256 secret, or a JSON list of them: the first signs, all verify. Raises ConfigurationError."""

    def __init__(self, secret: str) -> None:
        try:
            self.keys = [each.encode() for each in read_secrets(secret)]
            for key in self.keys:
                jwt.encode({}, key, "HS256")
        except jwt.InvalidKeyError as cause:
            raise ConfigurationError(
                [
                    "JWT_SECRET_KEY is a public key or certificate, not a secret: "
                    "set JWT_JWKS_URL and JWT_ALGORITHM for public keys."
                ]
            ) from cause
        except ValueError as problem:
            raise ConfigurationError([str(problem)]) from problem
        self.key = self.keys[0]

    async def keys_for(self, key_id: str | None) -> Sequence[bytes]:
        return self.keys


class JwksKeys:
    """The public keys at a JWKS URL, cached for `ttl_seconds`, and longer while the endpoint is down.

    An unknown key id triggers a fetch, at most one per `refetch_seconds`.
    """

    def __init__(
        self,
        url: str,
        algorithm: str,
        *,
        ttl_seconds: float = 600.0,
        refetch_seconds: float = 30.0,
        timeout_seconds: float = 5.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._url = url
        self._algorithm = algorithm
        self._ttl_seconds = ttl_seconds
        self._refetch_seconds = refetch_seconds
        self._timeout_seconds = timeout_seconds
        self._clock = clock
        self._keys: list[jwt.PyJWK] = []
        self._fetched_at = -ttl_seconds
        self._tried_at: float | None = None
        self._fetching = asyncio.Lock()

    async def keys_for(self, key_id: str | None) -> Sequence[jwt.PyJWK]:
        """Without a key id, returns all. Raises AuthenticationFailed for an unknown id, DependencyUnavailable without
        keys.
        """
        if self._is_due(key_id):
            async with self._fetching:
                if self._is_due(key_id):  # else another caller fetched meanwhile
                    await self._fetch()
        if not self._keys:
            raise DependencyUnavailable(
                "No token keys are available: fetching the JWKS failed or returned no usable key."
            )
        keys = self._find(key_id)
        if not keys:
            raise AuthenticationFailed("No key matches the token's `kid`.")
        return keys

    def _find(self, key_id: str | None) -> Sequence[jwt.PyJWK]:
        return self._keys if key_id is None else [each for each in self._keys if each.key_id == key_id]

    def _is_due(self, key_id: str | None) -> bool:
        now = self._clock()
        # Without any key every call fails: retry soon, but not once per blocked caller.
        pause = self._refetch_seconds if self._keys else min(1.0, self._refetch_seconds)
        if self._tried_at is not None and now < self._tried_at + pause:
            return False
        return not self._find(key_id) or now >= self._fetched_at + self._ttl_seconds

    async def _fetch(self) -> None:
        try:
            async with asyncio.timeout(self._timeout_seconds), httpx.AsyncClient() as client:
                document = await _read_document(client, self._url)
            self._keys = _usable_keys(document, self._algorithm)
            self._fetched_at = self._clock()
        except (httpx.HTTPError, httpx.InvalidURL, TimeoutError, ValueError, RecursionError) as cause:
            logger.warning("the token keys could not be fetched", extra={"failure": type(cause).__name__})
        finally:
            self._tried_at = self._clock()


async def _read_document(client: httpx.AsyncClient, url: str) -> Any:
    """Raises ValueError, RecursionError."""
    body = bytearray()
    async with client.stream("GET", url, headers={"accept-encoding": "identity"}) as response:
        response.raise_for_status()
        async for chunk in response.aiter_raw():
            body += chunk
            if len(body) > MAX_KEY_SET_BYTES:
                raise ValueError("the key set is too large")
    return json.loads(body)


def _usable_keys(document: Any, algorithm: str) -> list[jwt.PyJWK]:
    entries = document.get("keys") if isinstance(document, dict) else None
    if not isinstance(entries, list):
        raise ValueError("not a key set")
    keys = []
    for entry in entries:
        if isinstance(entry, dict) and _is_usable_key(entry, algorithm):
            try:
                keys.append(jwt.PyJWK(entry, algorithm))
            except jwt.PyJWTError:
                logger.warning("a token key cannot be used")
    if not keys:
        raise ValueError("no key that fits")
    return keys


def _is_usable_key(entry: Mapping[str, Any], algorithm: str) -> bool:
    kind, curve = _KEY_TYPES[algorithm]
    return (
        entry.get("kty") == kind
        and (curve is None or entry.get("crv") == curve)
        and "d" not in entry
        and entry.get("use", "sig") == "sig"
        and entry.get("alg", algorithm) == algorithm
    )


class TokenVerifier:
    """Verifies Authorization headers; a verified token is cached for CACHED_SECONDS."""

    def __init__(self, rules: TokenRules, keys: KeySource, clock: Callable[[], float] = time.time) -> None:
        self._rules = rules
        self._keys = keys
        self._clock = clock
        self._seen: OrderedDict[bytes, tuple[Principal, float]] = OrderedDict()

    async def verify(self, authorization: str | None) -> Principal:
        """Raises AuthenticationFailed with a reason, DependencyUnavailable if there is no key."""
        token = _bearer(authorization)
        digest = hashlib.sha256(token.encode()).digest()
        seen = self._seen.get(digest)
        if seen is not None and self._clock() < seen[1]:
            return seen[0]
        principal = _principal(await self._claims(token))
        self._seen[digest] = (principal, min(principal.expires_at, self._clock() + CACHED_SECONDS))
        self._seen.move_to_end(digest)
        if len(self._seen) > CACHED_TOKENS:
            self._seen.popitem(last=False)
        return principal

    async def _claims(self, token: str) -> dict[str, Any]:
        try:
            header = jwt.get_unverified_header(token)
            if header.get("alg") != self._rules.algorithm:
                raise jwt.InvalidAlgorithmError
            *others, last = await self._keys.keys_for(header.get("kid"))
            for key in others:
                with suppress(jwt.InvalidSignatureError, jwt.InvalidKeyError):
                    return self._decoded(token, key)
            return self._decoded(token, last)
        except jwt.MissingRequiredClaimError as cause:
            raise AuthenticationFailed(f"The token lacks {cause.claim}.") from cause
        except jwt.PyJWTError as cause:
            known = (reason for kind, reason in _REASONS if isinstance(cause, kind))
            raise AuthenticationFailed(next(known, "The token is malformed.")) from cause

    def _decoded(self, token: str, key: bytes | jwt.PyJWK) -> dict[str, Any]:
        rules = self._rules
        return jwt.decode(
            token,
            key,
            [rules.algorithm],
            {"require": ["exp", "sub"], "verify_aud": rules.audience is not None, "enforce_minimum_key_length": True},
            issuer=rules.issuer,
            audience=rules.audience,
            leeway=LEEWAY_SECONDS,
        )


def _bearer(authorization: str | None) -> str:
    if authorization is None:
        raise AuthenticationFailed("Missing Authorization header: send `Authorization: Bearer <token>`.")
    scheme, _, token = authorization.partition(" ")
    token = token.strip()
    if scheme.lower() != "bearer" or not token or not token.isascii() or " " in token:
        raise AuthenticationFailed("The Authorization header must be `Bearer <token>`.")
    return token


def _is_plain_id(value: Any) -> bool:
    return (
        isinstance(value, str)
        and 1 <= len(value) <= MAX_ID_CHARS
        and not any(unicodedata.category(character) in ("Cc", "Cs") for character in value)
    )


def _principal(claims: Mapping[str, Any]) -> Principal:
    if not _is_plain_id(claims["sub"]):
        raise AuthenticationFailed(
            f"The claim `sub` must have 1 to {MAX_ID_CHARS} characters and no control characters."
        )
    token_id = claims.get("jti") if _is_plain_id(claims.get("jti")) else None
    expires_at = float(min(int(claims["exp"]), FAR_FUTURE))
    return Principal(claims["sub"], _scopes(claims), token_id, expires_at, _users(claims))


def _scopes(claims: Mapping[str, Any]) -> frozenset[str]:
    scope = claims.get("scope") or ""
    scopes = scope.split() if isinstance(scope, str) else scope
    if not isinstance(scopes, list) or not all(isinstance(each, str) for each in scopes):
        raise AuthenticationFailed("The claim `scope` must be a string or a list of strings.")
    return frozenset(scopes)


def _users(claims: Mapping[str, Any]) -> frozenset[str | None] | None:
    if "users" not in claims:
        return None
    users = claims["users"]
    if not (isinstance(users, list) and users and all(map(_is_user, users))):
        raise AuthenticationFailed("The claim `users` must be a non-empty list of user ids or nulls.")
    return frozenset(users)


def _is_user(value: Any) -> bool:
    return value is None or _is_plain_id(value)


def mint_token(
    secret: str,
    agent_id: str,
    scopes: Iterable[str],
    ttl_seconds: float,
    *,
    issuer: str | None = None,
    audience: str | None = None,
    now: float | None = None,
    users: Sequence[str | None] = (),
) -> str:
    """Returns an HS256 token for an agent, bound to `users` if any. Raises InvalidParams."""
    if not _is_plain_id(agent_id) or not all(map(_is_user, users)):
        raise InvalidParams(
            f"The id of an agent or user must have 1 to {MAX_ID_CHARS} characters and no control characters."
        )
    issued_at = int(time.time() if now is None else now)
    claims: dict[str, Any] = {
        "sub": agent_id,
        "scope": " ".join(scopes),
        "iat": issued_at,
        "exp": issued_at + int(ttl_seconds),
        "jti": str(uuid4()),
        "iss": issuer,
        "aud": audience,
        "users": list(users) or None,
    }
    given = {name: value for name, value in claims.items() if value is not None}
    return jwt.encode(given, SharedSecret(secret).key, "HS256")
