"""The doctor's checks: healthy results, problems, and a fix for each problem."""

from __future__ import annotations

import pytest

from agentcore.doctor import verdicts
from agentcore.doctor.verdicts import Check

ROLE = {"superuser": False, "bypasses": False, "granted": True}


@pytest.mark.parametrize(
    "check",
    [
        verdicts.python((3, 11, 7)),
        verdicts.python((3, 13, 0)),
        verdicts.postgresql("18.4"),
        verdicts.postgresql("14.11 (Debian 14.11-1)"),
        verdicts.pgvector("0.8.5", "0.8.5"),
        verdicts.row_security(ROLE, [], []),
        verdicts.dimensions({}, 384),
        verdicts.dimensions({"local": [384]}, 384),
        verdicts.dimensions({"old": [64], "new": [384]}, 384),
        verdicts.clock(-0.3),
        verdicts.cluster("14.0-1", 3, 0, logins=True),
        verdicts.redis("6.2.14", append_only=True),
        verdicts.disk(10 * 2**30, "/data"),
        verdicts.secrets({}),
        verdicts.secrets({"/home/secrets": 0o700, "/home/secrets/jwt": 0o600}),
    ],
    ids=lambda check: f"{check.name} {check.found}"[:60],
)
def test_what_is_well_needs_no_mend(check: Check) -> None:
    assert check.ok is True
    assert check.fix == ""


@pytest.mark.parametrize(
    ("check", "fix"),
    [
        (verdicts.python((3, 10, 1)), "3.11"),
        (verdicts.python((3, 14, 0)), "3.13"),
        (verdicts.postgresql("13.9"), "PostgreSQL 14"),
        (verdicts.postgresql(""), "PostgreSQL 14"),
        (verdicts.pgvector(None, "0.8.5"), "CREATE EXTENSION vector"),
        (verdicts.pgvector(None, None), "Install pgvector"),
        (verdicts.cluster("14.0-1", 3, 1, logins=True), "citus_check_cluster_node_health"),
        (verdicts.cluster("14.0-1", 3, 0, logins=False), "ALTER ROLE agentcore_service LOGIN"),
        (verdicts.pgvector("0.6.2", "0.8.5"), "ALTER EXTENSION vector UPDATE"),
        (verdicts.row_security(None, [], []), "agentcore migrate"),
        (verdicts.row_security({**ROLE, "superuser": True}, [], []), "NOSUPERUSER NOBYPASSRLS"),
        (verdicts.row_security({**ROLE, "bypasses": True}, [], []), "NOSUPERUSER NOBYPASSRLS"),
        (verdicts.row_security({**ROLE, "granted": False}, [], []), "GRANT agentcore_service"),
        (verdicts.row_security(ROLE, ["memories"], []), "OWNER TO"),
        (verdicts.row_security(ROLE, [], ["memory_links"]), "ENABLE ROW LEVEL SECURITY"),
        (verdicts.dimensions({"openai": [1536]}, 384), "EMBEDDING_DIMENSIONS=1536"),
        (verdicts.jobs(2, 0.0), "agentcore jobs retry"),
        (verdicts.jobs(0, 900.0), "agentcore worker"),
        (verdicts.clock(2.5), "NTP"),
        (verdicts.clock(-7200), "NTP"),
        (verdicts.redis("5.0.3", append_only=False), "Redis 6"),
        (verdicts.disk(2**20, "/data"), "Free some space"),
        (verdicts.secrets({"/h/secrets": 0o700, "/h/secrets/jwt": 0o640}), "chmod go-rwx /h/secrets/jwt"),
    ],
    ids=lambda value: f"{value.name} {value.found}"[:60] if isinstance(value, Check) else "",
)
@pytest.mark.shows("issue2-2-doctor")
def test_what_is_wrong_comes_with_its_mend(check: Check, fix: str) -> None:
    assert check.ok is False
    assert fix in check.fix


def test_a_redis_that_keeps_nothing_is_told() -> None:
    assert "lost when it restarts" in verdicts.redis("7.2.0", append_only=False).found
