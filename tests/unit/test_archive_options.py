"""MEMORY_ARCHIVE_OPTIONS: valid options, and errors that never quote a key."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentcore.config import Settings
from agentcore.errors import ConfigurationError
from agentcore.structured_settings import Keyring, read_archive_options

KEY, OTHER = "0f" * 32, "a1" * 32


def test_nothing_said_is_nothing_wanted() -> None:
    options = read_archive_options(None)
    assert (options.keyring, options.object_headers) == (Keyring(), {})


def test_the_only_key_seals_unless_none_is_to() -> None:
    one = {"keys": {"2026": KEY}}
    assert read_archive_options(json.dumps(one)).keyring == Keyring({"2026": bytes.fromhex(KEY)}, "2026")
    assert read_archive_options(json.dumps({**one, "encrypt_with": None})).keyring.sealing_id is None


def test_of_several_keys_one_is_named() -> None:
    several = {"keys": {"2025": OTHER, "2026": KEY}, "encrypt_with": "2026"}
    assert read_archive_options(json.dumps(several)).keyring.sealing_id == "2026"


def test_what_s3_is_told_with_each_object() -> None:
    options = read_archive_options(
        json.dumps({"storage_class": "STANDARD_IA", "server_side_encryption": "aws:kms", "kms_key_id": "alias/memory"})
    )
    assert options.object_headers == {
        "StorageClass": "STANDARD_IA",
        "ServerSideEncryption": "aws:kms",
        "SSEKMSKeyId": "alias/memory",
    }


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ("keys", "is no JSON object"),
        ("[]", "Input should be an object"),
        ({"colour": 1}, "colour: Extra inputs"),
        ({"keys": {"2026": KEY[:-2]}}, "keys.2026: is no key: make one of 64 hexadecimal digits"),
        ({"keys": {"2026": "z" * 64}}, "keys.2026: is no key"),
        ({"keys": {"a b": KEY}}, "keys.a b: String should match"),
        ({"keys": {"a": KEY, "b": OTHER}}, "encrypt_with names the one for new copies"),
        ({"keys": {"a": KEY}, "encrypt_with": "b"}, "encrypt_with names 'b', which keys does not hold"),
        ({"storage_class": "DEEP_ARCHIVE"}, "storage_class: is none of STANDARD,"),
        ({"server_side_encryption": "rot13"}, "server_side_encryption: Input should be 'AES256'"),
        ({"kms_key_id": "k", "server_side_encryption": "AES256"}, "kms_key_id needs"),
    ],
)
@pytest.mark.shows("issue4-6-sealed")
def test_a_problem_is_named_with_its_part_and_no_key_is_quoted(given: Any, problem: str) -> None:
    text = given if isinstance(given, str) else json.dumps(given)
    with pytest.raises(ConfigurationError) as refused:
        Settings(_env_file=None, memory_archive_options=text, memory_archival_s3_bucket="b")
    [told] = refused.value.problems
    assert told.startswith("MEMORY_ARCHIVE_OPTIONS ")
    assert problem in told
    assert KEY[:20] not in told
    assert "zzzz" not in told


def test_what_is_for_s3_needs_a_bucket() -> None:
    with pytest.raises(ConfigurationError, match="names no bucket"):
        Settings(_env_file=None, memory_archive_options='{"storage_class": "STANDARD_IA"}')


def test_no_key_shows_in_the_settings_or_the_keyring() -> None:
    text = json.dumps({"keys": {"2026": KEY}})
    settings = Settings(_env_file=None, memory_archive_options=text)
    shown = repr(settings) + repr(read_archive_options(text)) + repr(read_archive_options(text).keyring)
    assert KEY not in shown
    assert str(bytes.fromhex(KEY)) not in shown
