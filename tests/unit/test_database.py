"""Statements of the database module, without a server."""

from __future__ import annotations

import pytest

from agentcore.database import QUERIES, with_numbered_parameters


@pytest.mark.parametrize(
    ("statement", "numbered", "names"),
    [
        ("SELECT 1", b"SELECT 1", []),
        ("SELECT %(b)s, %(a)s, %(b)s", b"SELECT $1, $2, $1", ["b", "a"]),
        ("SELECT 7 %% %(a)s WHERE x LIKE 'ann%%'", b"SELECT 7 % $1 WHERE x LIKE 'ann%'", ["a"]),
        ("SELECT '%%(a)s', %(a)s", b"SELECT '%(a)s', $1", ["a"]),
    ],
)
def test_named_parameters_get_numbers_in_order(statement: str, numbered: bytes, names: list[str]) -> None:
    assert with_numbered_parameters(statement) == (numbered, names)


def test_no_statement_has_another_placeholder() -> None:
    for name, text in QUERIES.items():
        numbered, _ = with_numbered_parameters(text.replace("%%", ""))
        assert b"%" not in numbered, name
