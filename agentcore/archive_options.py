"""The options of MEMORY_ARCHIVE_OPTIONS: how archived copies are stored, and their validation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

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

KEY_BYTES = 32
KeyId = Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,64}$")]
# A copy is read back before its memory is deleted, which excludes storage classes that need a restore first.
READABLE_AT_ONCE = (
    "STANDARD", "STANDARD_IA", "ONEZONE_IA", "INTELLIGENT_TIERING", "GLACIER_IR", "REDUCED_REDUNDANCY",
)


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
    """All fields are optional; by default, copies are only compressed.

    `keys`: AES-256 keys by id. `encrypt_with`: the key for new copies (default: the key, if there is exactly
    one); the other keys decrypt older copies. The other fields are sent to S3 with each object.
    """

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
                "colder classes are for the bucket's lifecycle rules")
        return given

    @model_validator(mode="after")
    def _parts_fit(self) -> ArchiveOptions:
        if self.encrypt_with is not None and self.encrypt_with not in self.keys:
            raise ValueError(f"encrypt_with names {self.encrypt_with!r}, which keys does not hold")
        if len(self.keys) > 1 and "encrypt_with" not in self.model_fields_set:
            raise ValueError(
                "keys holds several: encrypt_with names the one for new copies, or is null for none")
        if self.kms_key_id is not None and not (self.server_side_encryption or "").startswith("aws:kms"):
            raise ValueError("kms_key_id needs server_side_encryption aws:kms or aws:kms:dsse")
        return self

    @property
    def keyring(self) -> Keyring:
        """Returns the keys as bytes."""
        only = next(iter(self.keys)) if len(self.keys) == 1 else None
        chosen = self.encrypt_with if "encrypt_with" in self.model_fields_set else only
        return Keyring(
            {name: bytes.fromhex(key.get_secret_value()) for name, key in self.keys.items()}, chosen)

    @property
    def object_headers(self) -> Mapping[str, str]:
        """Returns the S3 parameters of each object, by boto3's names."""
        told = {"StorageClass": self.storage_class, "ServerSideEncryption": self.server_side_encryption,
                "SSEKMSKeyId": self.kms_key_id}
        return {name: value for name, value in told.items() if value is not None}


@dataclass(frozen=True)
class Keyring:
    """AES-256 keys by id, and the id of the key that encrypts new copies (None: no encryption)."""

    keys: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    sealing_id: str | None = None


def read_archive_options(text: str | None) -> ArchiveOptions:
    """Parses the options from JSON. Raises ValueError with every problem, without quoting a value."""
    try:
        return ArchiveOptions.model_validate_json(text or "{}")
    except ValidationError as cause:
        raise ValueError("; ".join(_problem(each) for each in cause.errors(include_input=False))) from None


def _problem(found: Any) -> str:
    if found["type"] == "json_invalid":
        return 'is no JSON object, such as {"storage_class": "STANDARD_IA"}'
    where = ".".join(str(part) for part in found["loc"] if part != "[key]")
    said = str(found["msg"]).removeprefix("Value error, ")
    return f"{where}: {said}" if where else said
