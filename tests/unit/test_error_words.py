"""Stored error messages keep the cause and drop credentials."""

from __future__ import annotations

import pytest

from agentcore.agents.recordable import HIDDEN, MOST_ERROR_CHARS, discreet, error_words, holdable, searchable
from agentcore.limits import MAX_QUERY_CHARS, MAX_TEXT_CHARS

SECRET = "sk4fTz81LmQ2bW7xVnR5"
SECRETS = (SECRET, "hunter2", "abc123", "p@ss", "wJalrXUtnFEMI", "K7MDENG", "c2lnbmF0dXJlMQ", "eyJzdWIiOiJhZGEifQ")


@pytest.mark.parametrize(
    "said",
    [
        f"GET https://api.example.com/v1/rates?api_key={SECRET}&to=EUR failed",
        f"no route to postgresql://ada:{SECRET}@db.example.com:5432/trips",
        f"401 for 'Authorization: Bearer {SECRET}'",
        f"the password is {SECRET}",
        f"password='{SECRET}'",
        f'{{"api_key": "{SECRET}"}}',
        f"Incorrect API key provided: {SECRET}",
        f"token={SECRET}; next",
        f"invalid credential ({SECRET})",
        f"https://hooks.example.com/x#{SECRET}",
        f"Cookie: {SECRET}",
        "AWS refused wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhZGEifQ.c2lnbmF0dXJlMQ is expired",
        f"no route to postgresql://app:p@ss{SECRET}@db/trips",
        f"no route to amqp://u:p/{SECRET}@broker",
        f"POST https://api.telegram.org/bot1234567:AA{SECRET}/sendMessage answered 401",
        f"POST https://hooks.slack.com/services/T0123/B0123/{SECRET} answered 404",
        f"password '{SECRET}' refused",
        f"password hunter2{SECRET[:3]} refused",
        f'api key "{SECRET}" unknown',
        "Incorrect API key provided: sk-abc123. Find yours in the console",
        "no access for ghp_abc123",
        f'{{\\"api_key\\": \\"{SECRET}\\"}}',
        f"token: 'two {SECRET}",
        f'token = "two words {SECRET}',
    ],
)
def test_what_looks_secret_is_hidden(said: str) -> None:
    kept = discreet(said)
    assert kept != said
    assert [part for part in SECRETS if part in kept] == []


@pytest.mark.parametrize(
    "said",
    [
        "the flight service knows no such airport",
        "connection to https://api.example.com/v1/rates timed out",
        "no such file: '/srv/trips/2026/hawaii-budget-07.csv'",
        "invalid literal for int() with base 10: 'ten'",
        "the password was not accepted",
        "the token expired yesterday",
        "password required",
        "KeyError: 'trip'",
        "the key 'budget' stands in no row",
        "https://medium.com/@ada/hawaii is not there",
        "connection to postgresql://db.example.com:5432/trips refused",
        "GET https://api.example.com/v1/trips/17",
        "GET http://127.0.0.1:8000/users/ada@example.com failed",
        "a token of 17 characters was cut: token count 17",
        "Flight HA-17 on 2026-05-01T10:30:00 is full",
        "incomprehensibilities are not accepted here",
    ],
)
def test_what_went_wrong_stays_to_be_read(said: str) -> None:
    assert discreet(said) == said


def test_an_address_keeps_its_host_and_says_that_somebody_signs_in() -> None:
    assert discreet("http://db:5432/app?mail=a@b") == f"http://db:5432/app?{HIDDEN}"
    assert discreet("amqp://ada:hunter2@broker:5672/x") == f"amqp://{HIDDEN}@broker:5672/x"


def test_an_error_that_cannot_be_shown_is_its_kind_all_the_same() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    assert error_words(Mute()).startswith("failed: Mute: ")


def test_an_error_is_its_kind_and_its_words_and_whole_where_that_is_wished() -> None:
    error = PermissionError(f"token={SECRET}")
    assert error_words(error) == f"failed: PermissionError: token={HIDDEN}"
    assert error_words(error, whole=True) == f"failed: PermissionError: token={SECRET}"
    assert len(error_words(ValueError("long " * 1_000))) == MOST_ERROR_CHARS


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("what\x00 bird?", "what  bird?"),
        ("bird \ud83d?", "bird ??"),
        (" \n\x00", ""),
        ("", ""),
        ("  bird  ", "bird"),
        ("b" * 40_000, "b" * MAX_QUERY_CHARS),
    ],
)
def test_of_a_text_there_is_what_can_be_searched(text: str, query: str) -> None:
    assert searchable(text) == query


def test_of_a_text_there_is_what_can_be_held() -> None:
    assert holdable("a\x00\udfffb") == "a ?b"
    assert len(holdable("x" * 300_000)) == MAX_TEXT_CHARS
