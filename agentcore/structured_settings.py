"""Settings with a structure of their own. They may contain keys: no message here quotes a value."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    field_validator,
    model_validator,
)

from agentcore.summary_rules import SummaryRules

KEY_BYTES = 32
KeyId = Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,64}$")]
# Storage classes without a restore: a copy is read back before its memory is deleted.
READABLE_AT_ONCE = ("STANDARD", "STANDARD_IA", "ONEZONE_IA", "INTELLIGENT_TIERING", "GLACIER_IR", "REDUCED_REDUNDANCY")


def _key_digits(secret: SecretStr) -> SecretStr:
    try:
        whole = len(bytes.fromhex(secret.get_secret_value())) == KEY_BYTES
    except ValueError:
        whole = False
    if not whole:
        raise ValueError("is no key: make one of 64 hexadecimal digits with `openssl rand -hex 32`")
    return secret


EncryptionKey = Annotated[SecretStr, AfterValidator(_key_digits)]


class ArchiveOptions(BaseModel):
    """MEMORY_ARCHIVE_OPTIONS. `encrypt_with`: id of the key for new copies, by default the only key."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    keys: dict[KeyId, EncryptionKey] = Field(default_factory=dict)
    encrypt_with: KeyId | None = None
    storage_class: str | None = None
    server_side_encryption: Literal["AES256", "aws:kms", "aws:kms:dsse"] | None = None
    kms_key_id: str | None = None

    @field_validator("storage_class")
    @classmethod
    def _readable_at_once(cls, given: str | None) -> str | None:
        if given is not None and given not in READABLE_AT_ONCE:
            raise ValueError(
                f"is none of {', '.join(READABLE_AT_ONCE)}: a copy is read back before its memory goes, so "
                "colder classes are for the bucket's lifecycle rules"
            )
        return given

    @model_validator(mode="after")
    def _parts_fit(self) -> ArchiveOptions:
        if self.encrypt_with is not None and self.encrypt_with not in self.keys:
            raise ValueError(f"encrypt_with names {self.encrypt_with!r}, which keys does not hold")
        if len(self.keys) > 1 and "encrypt_with" not in self.model_fields_set:
            raise ValueError("keys holds several: encrypt_with names the one for new copies, or is null for none")
        if self.kms_key_id is not None and not (self.server_side_encryption or "").startswith("aws:kms"):
            raise ValueError("kms_key_id needs server_side_encryption aws:kms or aws:kms:dsse")
        return self

    @property
    def keyring(self) -> Keyring:
        """Returns the keys as bytes."""
        only = next(iter(self.keys)) if len(self.keys) == 1 else None
        chosen = self.encrypt_with if "encrypt_with" in self.model_fields_set else only
        return Keyring({name: bytes.fromhex(key.get_secret_value()) for name, key in self.keys.items()}, chosen)

    @property
    def object_headers(self) -> Mapping[str, str]:
        """Returns the headers of stored objects, by boto3's names."""
        told = {
            "StorageClass": self.storage_class,
            "ServerSideEncryption": self.server_side_encryption,
            "SSEKMSKeyId": self.kms_key_id,
        }
        return {name: value for name, value in told.items() if value is not None}


@dataclass(frozen=True)
class Keyring:
    """AES-256 keys by id, and the id of the key for new copies (None: no encryption)."""

    keys: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    sealing_id: str | None = None


def read_archive_options(text: str | None) -> ArchiveOptions:
    """Raises ValueError with every problem."""
    try:
        return ArchiveOptions.model_validate_json(text or "{}")
    except ValidationError as cause:
        problems = map(_archive_problem, cause.errors(include_input=False))
        raise ValueError("; ".join(problems)) from None


def _archive_problem(found: Any) -> str:
    if found["type"] == "json_invalid":
        return 'is no JSON object, such as {"storage_class": "STANDARD_IA"}'
    where = ".".join(str(part) for part in found["loc"] if part != "[key]")
    said = str(found["msg"]).removeprefix("Value error, ")
    return f"{where}: {said}" if where else said


MICROS = 1_000_000
Price = Annotated[Decimal, Field(ge=0, le=1_000_000, max_digits=12)]


class LlmUseOptions(BaseModel):
    """LLM_OPTIONS. Budgets are per agent and day (UTC), 0: unlimited; prices per million tokens."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    tokens_a_day: int = Field(1_000_000, ge=0, le=10**15)
    cost_a_day: Price = Decimal(0)
    input_price: Price = Decimal(0)
    output_price: Price = Decimal(0)
    concurrency: int = Field(16, ge=1, le=100)
    extract_facts: bool = False
    summaries: SummaryRules | None = None
    summariser: Annotated[str, Field(min_length=1)] = "openai"
    api_key: Annotated[SecretStr, Field(min_length=1)] | None = None

    def micros(self, input_tokens: int, output_tokens: int) -> Decimal:
        """Returns the cost in millionths of the currency."""
        return input_tokens * self.input_price + output_tokens * self.output_price


def read_llm_options(given: str | None) -> LlmUseOptions:
    """Raises ValueError with every problem."""
    try:
        options = LlmUseOptions() if given is None else LlmUseOptions.model_validate_json(given)
    except ValidationError as cause:
        wrong = "; ".join(_llm_problem(error["loc"], error["msg"]) for error in cause.errors())
        raise ValueError(wrong) from None
    if options.summaries is not None and options.summaries.provider == "default":
        raise ValueError("summaries.provider: the default cannot be `default`")
    if options.cost_a_day and not (options.input_price or options.output_price):
        raise ValueError("limits a cost_a_day without an input_price or an output_price")
    return options


def _llm_problem(place: tuple[int | str, ...], message: str) -> str:
    name = ".".join(map(str, place))
    return f"{name}: {message}" if name else f"is not a JSON object: {message}"


OFFICIAL_HOST = "api.openai.com"
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True)
class LlmEndpoint:
    """`base_url` None: OpenAI's own. `withheld`: an OpenAI key is set, but belongs to another vendor."""

    base_url: str | None
    api_key: str | None = field(default=None, repr=False)
    withheld: bool = False

    @property
    def is_known(self) -> bool:
        """Returns whether an endpoint is configured: a URL, or OpenAI's with a key."""
        return self.base_url is not None or self.api_key is not None

    @property
    def host(self) -> str:
        return OFFICIAL_HOST if self.base_url is None else _origin(self.base_url)[1]


def llm_endpoint(
    own_key: str | None, openai_key: str | None, llm_base_url: str | None, openai_base_url: str | None
) -> LlmEndpoint:
    """Returns the endpoint with its own key, else with OpenAI's if its origin is OpenAI's or OPENAI_BASE_URL's."""
    base_url = llm_base_url or openai_base_url
    if own_key is not None or openai_key is None:
        return LlmEndpoint(base_url, own_key)
    if llm_base_url is None or _is_meant(llm_base_url, openai_base_url):
        return LlmEndpoint(base_url, openai_key)
    return LlmEndpoint(base_url, withheld=True)


def _is_meant(url: str, openai_base_url: str | None) -> bool:
    scheme, host, port = _origin(url)
    if host and openai_base_url is not None and _origin(openai_base_url) == (scheme, host, port):
        return True
    official = host == OFFICIAL_HOST or host.endswith(f".{OFFICIAL_HOST}")
    return official and (scheme, port) == ("https", 443)


def _origin(url: str) -> tuple[str, str, int | None]:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return "", "", None
    return parts.scheme, parts.hostname or "", port or _PORTS.get(parts.scheme)


MIN_SECRET_BYTES = 32
MIN_DISTINCT_BYTES = 8
_MAKE_ONE = "make one with `openssl rand -hex 32`."


def new_secret() -> str:
    return secrets.token_hex(32)


def read_secrets(text: str) -> list[str]:
    """Returns the secrets of a JSON list of texts, else the whole text as the only one. Raises ValueError."""
    found = _listed_secrets(text) if text.lstrip().startswith("[") else [text]
    for number, secret in enumerate(found, 1):
        problem = _secret_problem(secret.encode())
        if problem is not None:
            which = f" ({number} of {len(found)})" if len(found) > 1 else ""
            raise ValueError(f"JWT_SECRET_KEY{which} {problem}: {_MAKE_ONE}")
    return found


def _listed_secrets(text: str) -> list[str]:
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, list) or not found or not all(isinstance(each, str) for each in found):
        raise ValueError(
            'JWT_SECRET_KEY begins with [ and is no JSON list of secrets: write ["new secret", "old secret"].'
        )
    return found


def _secret_problem(secret: bytes) -> str | None:
    if len(secret) < MIN_SECRET_BYTES:
        return f"is shorter than {MIN_SECRET_BYTES} bytes"
    if len(set(secret)) < MIN_DISTINCT_BYTES:
        return f"has fewer than {MIN_DISTINCT_BYTES} different bytes"
    if any(secret[period:] == secret[:-period] for period in range(1, len(secret) // 2 + 1)):
        return "repeats one short pattern"
    return None
