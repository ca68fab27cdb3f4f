"""Pure functions from a finding to a verdict with a fix. No I/O."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentcore.database import pgvector_is_too_old
from agentcore.memory.archival import ARCHIVE_IS_OFF, ONE_ARCHIVE
from agentcore.structured_settings import LlmEndpoint

OLDEST_PYTHON, NEWEST_PYTHON = (3, 11), (3, 13)
OLDEST_POSTGRESQL = 14
OLDEST_REDIS = (6, 0)
LEAST_FREE_BYTES = 512 * 2**20
LARGEST_SKEW_SECONDS = 2.0
LONGEST_QUEUE_SECONDS = 600.0


@dataclass(frozen=True)
class Check:
    """Verdict on one part. `ok` is None if it was not or could not be checked; `found`: the finding."""

    name: str
    ok: bool | None
    found: str
    fix: str = ""


def right(name: str, found: str, advice: str = "") -> Check:
    return Check(name, True, found, advice)


def wrong(name: str, found: str, fix: str) -> Check:
    return Check(name, False, found, fix)


def python(version: tuple[int, ...]) -> Check:
    found = ".".join(str(part) for part in version[:3])
    if OLDEST_PYTHON <= version[:2] <= NEWEST_PYTHON:
        return right("Python", found)
    return wrong("Python", found, "Install agentcore with Python 3.11, 3.12 or 3.13.")


def misspelt(variables: Mapping[str, str]) -> list[Check]:
    """Reports environment variables that no setting has, with the most similar setting."""
    return [
        Check("settings", None, f"{name} is not a setting", f"Did you mean {meant}?")
        for name, meant in variables.items()
    ]


def postgresql(version: str) -> Check:
    if _numbers(version)[:1] >= (OLDEST_POSTGRESQL,):
        return right("PostgreSQL", version)
    return wrong("PostgreSQL", version, f"Move to PostgreSQL {OLDEST_POSTGRESQL} or newer.")


def pgvector(installed: str | None, available: str | None) -> Check:
    """`available`: the version that the server can install."""
    if installed is None and available:
        return wrong("pgvector", "not installed", "As a superuser run in this database: CREATE EXTENSION vector;")
    if installed is None:
        fix = "Install pgvector on the database server, then run as a superuser: CREATE EXTENSION vector;"
        return wrong("pgvector", "not installed", fix)
    fix = "Install pgvector 0.8 on the server, then run: ALTER EXTENSION vector UPDATE;"
    if pgvector_is_too_old(installed):
        return wrong("pgvector", f"{installed}, 0.8 is needed", fix)
    return right("pgvector", installed)


def row_security(
    role: Mapping[str, Any] | None, owned: Sequence[str], unguarded: Sequence[str], *, own_login: bool = True
) -> Check:
    """`role`: the service's role (None: missing); `owned`, `unguarded`: names of tables."""
    name = "row security"
    if role is None:
        return wrong(name, "the role agentcore_service is missing", "Run `agentcore migrate`.")
    if role["superuser"] or role["bypasses"]:
        fix = "As a superuser run: ALTER ROLE agentcore_service NOSUPERUSER NOBYPASSRLS;"
        return wrong(name, "the role agentcore_service passes row security by", fix)
    if not role["granted"]:
        fix = "As a superuser run: GRANT agentcore_service TO <the role of DATABASE_URL>;"
        return wrong(name, "the role of DATABASE_URL may not act as agentcore_service", fix)
    if owned:
        fix = "As a superuser run for each: ALTER TABLE ... OWNER TO <the role that migrates>;"
        return wrong(name, f"agentcore_service owns {', '.join(owned)}: owners pass row security by", fix)
    if unguarded:
        fix = "Run for each: ALTER TABLE ... ENABLE ROW LEVEL SECURITY;"
        return wrong(name, f"switched off for {', '.join(unguarded)}", fix)
    if not own_login:
        advice = "Set DATABASE_SERVICE_URL to a login that is a member of agentcore_service alone."
        return right(name, "on; the service logs in as the owner and switches to its role", advice)
    return right(name, "on; the service's role is bound by it")


def dimensions(stored: Mapping[str, Collection[int]], wanted: int) -> Check:
    """`stored`: the dimensions of the stored vectors, by model."""
    lengths = {length for each in stored.values() for length in each}
    if not lengths:
        return right("embeddings", f"no vector stored yet; EMBEDDING_DIMENSIONS={wanted}")
    found = "; ".join(
        f"{model}: {', '.join(map(str, sorted(each)))} dimensions" for model, each in sorted(stored.items())
    )
    if wanted in lengths:
        return right("embeddings", found)
    return wrong(
        "embeddings",
        f"stored are {found}, but EMBEDDING_DIMENSIONS={wanted}",
        f"Set EMBEDDING_DIMENSIONS={max(lengths)}, and EMBEDDING_MODEL to the model named.",
    )


def not_searched(models: Sequence[str]) -> Check:
    """Some stored vectors are of `models`, not of the local one."""
    found = f"some memories have vectors of {', '.join(models)}: they are found by words only"
    return wrong(
        "embeddings",
        found,
        "Run `agentcore reembed --model local`, or set EMBEDDING_MODEL to that model if this version has it.",
    )


def jobs(failed: int, overdue_seconds: float) -> Check:
    """`overdue_seconds`: how long the oldest pending job has been due."""
    if failed:
        fix = "See why: agentcore jobs list --state failed. When it is fixed: agentcore jobs retry <job>."
        return wrong("jobs", f"{failed} failed", fix)
    if overdue_seconds > LONGEST_QUEUE_SECONDS:
        found = f"nobody has taken the first one for {overdue_seconds / 60:.0f} min"
        return wrong("jobs", found, "Run `agentcore worker`, or serve with MAINTENANCE_IN_SERVER=true.")
    return right("jobs", "none failed, none waits too long")


def copies(others: Mapping[str, int], *, archival: bool) -> Check:
    """`others`: number of copies in archives that this server does not use, by archive id."""
    if not others:
        return right("copies", "all in this server's archive" if archival else "none in an archive")
    found = ", ".join(f"{count} in {archive}" for archive, count in others.items())
    fix = ONE_ARCHIVE if archival else ARCHIVE_IS_OFF
    return wrong("copies", f"in archives that this server does not use: {found}", fix)


def clock(skew_seconds: float) -> Check:
    found = f"{skew_seconds:+.2f} s between the database and this host"
    if abs(skew_seconds) <= LARGEST_SKEW_SECONDS:
        return right("clock", found)
    return wrong("clock", found, "Set both clocks by NTP: times to live and tokens depend on them.")


def cluster(version: str, workers: int, failing: int, *, logins: bool) -> Check:
    """`failing`: connections between two nodes. `logins`: whether the service's roles may log in on the workers."""
    found = f"Citus {version}, tables distributed over {workers} nodes"
    if failing:
        fix = "SELECT * FROM citus_check_cluster_node_health() shows which nodes do not reach each other."
        return wrong("cluster", f"{found}; {failing} connections between nodes fail", fix)
    if not logins:
        fix = "ALTER ROLE agentcore_service LOGIN, and agentcore_bound; allow both in pg_hba.conf of each node."
        return wrong("cluster", f"{found}; the coordinator connects to workers with roles that may not log in", fix)
    return right("cluster", found)


def token(problem: str | None, agent_id: str = "", scopes: str = "", seconds_left: float = 0.0) -> Check:
    """`problem`: why the service would reject the token."""
    fix = "Make one where the service's home or secret is: agentcore token --agent <agent>."
    if problem is not None:
        return wrong("token", f"AGENTCORE_TOKEN: {problem}", fix)
    found = f"of {agent_id}, {scopes or 'no scope'}, for {max(0.0, seconds_left) / 3600:.1f} h more"
    return right("token", found) if scopes else wrong("token", found, fix)


def redis(version: str, append_only: bool) -> Check:
    if _numbers(version) < OLDEST_REDIS:
        return wrong("Redis", version, "Move to Redis 6 or newer.")
    kept = "append-only file on" if append_only else "no append-only file: tasks are lost when it restarts"
    return right("Redis", f"{version}, {kept}")


def disk(free_bytes: int, place: str) -> Check:
    found = f"{free_bytes / 2**30:.1f} GB free at {place}"
    if free_bytes >= LEAST_FREE_BYTES:
        return right("disk", found)
    return wrong("disk", found, "Free some space, or move AGENTCORE_HOME to another disk.")


def language_model(model: str, endpoint: LlmEndpoint) -> Check:
    """Reports the endpoint and whether it has a key, but never the key."""
    found = f"LLM_MODEL={model} at {endpoint.host}, {'without' if endpoint.api_key is None else 'with'} a key"
    if endpoint.withheld:
        found += ": OPENAI_API_KEY is not for it; one that is stands as api_key in LLM_OPTIONS"
    return right("language model", found)


def secrets(modes: Mapping[str, int]) -> Check:
    """`modes`: the permission bits of each secret and of their directory."""
    opened = {path: mode for path, mode in modes.items() if mode & 0o077}
    if not opened:
        return right("secrets", f"{len(modes)} files and directories, closed to others")
    return wrong(
        "secrets",
        ", ".join(f"{path} has mode {mode:o}" for path, mode in opened.items()),
        f"Run: chmod go-rwx {' '.join(opened)} and make new secrets if others could have read them.",
    )


def _numbers(version: str) -> tuple[int, ...]:
    first = (version.split() or [""])[0]
    return tuple(int(part) for part in first.split(".") if part.isdigit())
