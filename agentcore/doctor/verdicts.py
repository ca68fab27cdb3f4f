"""Pure functions from a finding to a verdict with a fix. No I/O."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentcore.database import has_iterative_scans, pgvector_is_too_old
from agentcore.memory.archival import ARCHIVE_IS_OFF, ONE_ARCHIVE
from agentcore.providers.local_models import LocalModel
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


def python(version: tuple[int, ...]) -> Check:
    found = ".".join(str(part) for part in version[:3])
    if OLDEST_PYTHON <= version[:2] <= NEWEST_PYTHON:
        return Check("Python", True, found)
    return Check("Python", False, found, "Install agentcore with Python 3.11, 3.12 or 3.13.")


def misspelt(variables: Mapping[str, str]) -> list[Check]:
    """Reports environment variables that no setting has, with the most similar setting."""
    return [
        Check("settings", None, f"{name} is not a setting", f"Did you mean {meant}?")
        for name, meant in variables.items()
    ]


def postgresql(version: str) -> Check:
    if _numbers(version)[:1] >= (OLDEST_POSTGRESQL,):
        return Check("PostgreSQL", True, version)
    return Check("PostgreSQL", False, version, f"Move to PostgreSQL {OLDEST_POSTGRESQL} or newer.")


def pgvector(installed: str | None, available: str | None) -> Check:
    """`available`: the version that the server can install."""
    if installed is None:
        fix = (
            "As a superuser run in this database: CREATE EXTENSION vector;"
            if available
            else "Install pgvector on the database server, then run as a superuser: CREATE EXTENSION vector;"
        )
        return Check("pgvector", False, "not installed", fix)
    fix = "Install pgvector 0.8 on the server, then run: ALTER EXTENSION vector UPDATE;"
    if pgvector_is_too_old(installed):
        return Check("pgvector", False, f"{installed}, 0.7 is needed", fix)
    if not has_iterative_scans(installed):
        found = f"{installed}; with 0.8 filtered searches of large agents are faster"
        return Check("pgvector", True, found, fix)
    return Check("pgvector", True, installed)


def row_security(
    role: Mapping[str, Any] | None, owned: Sequence[str], unguarded: Sequence[str], *, own_login: bool = True
) -> Check:
    """`role`: the service's role (None: missing); `owned`, `unguarded`: names of tables."""
    name = "row security"
    if role is None:
        return Check(name, False, "the role agentcore_service is missing", "Run `agentcore migrate`.")
    if role["superuser"] or role["bypasses"]:
        return Check(
            name,
            False,
            "the role agentcore_service passes row security by",
            "As a superuser run: ALTER ROLE agentcore_service NOSUPERUSER NOBYPASSRLS;",
        )
    if not role["granted"]:
        return Check(
            name,
            False,
            "the role of DATABASE_URL may not act as agentcore_service",
            "As a superuser run: GRANT agentcore_service TO <the role of DATABASE_URL>;",
        )
    if owned:
        return Check(
            name,
            False,
            f"agentcore_service owns {', '.join(owned)}: owners pass row security by",
            "As a superuser run for each: ALTER TABLE ... OWNER TO <the role that migrates>;",
        )
    if unguarded:
        return Check(
            name,
            False,
            f"switched off for {', '.join(unguarded)}",
            "Run for each: ALTER TABLE ... ENABLE ROW LEVEL SECURITY;",
        )
    if not own_login:
        return Check(
            name,
            True,
            "on; the service logs in as the owner and switches to its role",
            "Set DATABASE_SERVICE_URL to a login that is a member of agentcore_service alone.",
        )
    return Check(name, True, "on; the service's role is bound by it")


def dimensions(stored: Mapping[str, Collection[int]], wanted: int) -> Check:
    """`stored`: the dimensions of the stored vectors, by model."""
    lengths = {length for each in stored.values() for length in each}
    if not lengths:
        return Check("embeddings", True, f"no vector stored yet; EMBEDDING_DIMENSIONS={wanted}")
    told = "; ".join(
        f"{model}: {', '.join(str(length) for length in sorted(each))} dimensions"
        for model, each in sorted(stored.items())
    )
    if wanted in lengths:
        return Check("embeddings", True, told)
    return Check(
        "embeddings",
        False,
        f"stored are {told}, but EMBEDDING_DIMENSIONS={wanted}",
        f"Set EMBEDDING_DIMENSIONS={max(lengths)}, and EMBEDDING_MODEL to the model named.",
    )


def kept_model(model: LocalModel, wanted: str, used: str, *, installed: bool) -> Check:
    """The stored vectors are of `model`, EMBEDDING_MODEL=`used`; the settings name another local model."""
    found = f"stored are vectors of {model.name}, which is used; EMBEDDING_MODEL={wanted} is another model"
    if not installed:
        return Check(
            "embeddings", False, f"{found}; it is not installed", f"Run `agentcore model install {model.title}`."
        )
    return Check(
        "embeddings",
        True,
        found,
        f"Run `agentcore reembed --model {wanted}` to change to it, or set EMBEDDING_MODEL={used} to keep this one.",
    )


def jobs(failed: int, overdue_seconds: float) -> Check:
    """`overdue_seconds`: how long the oldest pending job has been due."""
    name = "jobs"
    if failed:
        return Check(
            name,
            False,
            f"{failed} failed",
            "See why: agentcore jobs list --state failed. When it is fixed: agentcore jobs retry <job>.",
        )
    if overdue_seconds > LONGEST_QUEUE_SECONDS:
        return Check(
            name,
            False,
            f"nobody has taken the first one for {overdue_seconds / 60:.0f} min",
            "Run `agentcore worker`, or serve with MAINTENANCE_IN_SERVER=true.",
        )
    return Check(name, True, "none failed, none waits too long")


def copies(others: Mapping[str, int], *, archival: bool) -> Check:
    """`others`: number of copies in archives that this server does not use, by archive id."""
    if not others:
        return Check("copies", True, "all in this server's archive" if archival else "none in an archive")
    told = ", ".join(f"{count} in {archive}" for archive, count in others.items())
    return Check(
        "copies",
        False,
        f"in archives that this server does not use: {told}",
        ONE_ARCHIVE if archival else ARCHIVE_IS_OFF,
    )


def clock(skew_seconds: float) -> Check:
    found = f"{skew_seconds:+.2f} s between the database and this host"
    if abs(skew_seconds) <= LARGEST_SKEW_SECONDS:
        return Check("clock", True, found)
    return Check("clock", False, found, "Set both clocks by NTP: times to live and tokens depend on them.")


def token(problem: str | None, agent_id: str, scopes: str, seconds_left: float) -> Check:
    """`problem`: why the service would reject the token."""
    fix = "Make one where the service's home or secret is: agentcore token --agent <agent>."
    if problem is not None:
        return Check("token", False, f"AGENTCORE_TOKEN: {problem}", fix)
    found = f"of {agent_id}, {scopes or 'no scope'}, for {max(0.0, seconds_left) / 3600:.1f} h more"
    return Check("token", bool(scopes), found, "" if scopes else fix)


def redis(version: str, append_only: bool) -> Check:
    kept = "append-only file on" if append_only else "no append-only file: tasks are lost when it restarts"
    if _numbers(version) < OLDEST_REDIS:
        return Check("Redis", False, version, "Move to Redis 6 or newer.")
    return Check("Redis", True, f"{version}, {kept}")


def disk(free_bytes: int, place: str) -> Check:
    found = f"{free_bytes / 2**30:.1f} GB free at {place}"
    if free_bytes >= LEAST_FREE_BYTES:
        return Check("disk", True, found)
    return Check("disk", False, found, "Free some space, or move AGENTCORE_HOME to another disk.")


def language_model(model: str, endpoint: LlmEndpoint) -> Check:
    """Reports the endpoint and whether it has a key, but never the key."""
    found = f"LLM_MODEL={model} at {endpoint.host}, {'without' if endpoint.api_key is None else 'with'} a key"
    if endpoint.withheld:
        found += ": OPENAI_API_KEY is not for it; one that is stands as api_key in LLM_OPTIONS"
    return Check("language model", True, found)


def secrets(modes: Mapping[str, int]) -> Check:
    """`modes`: the permission bits of each secret and of their directory."""
    opened = {path: mode for path, mode in modes.items() if mode & 0o077}
    if not opened:
        return Check("secrets", True, f"{len(modes)} files and directories, closed to others")
    told = ", ".join(f"{path} has mode {mode:o}" for path, mode in opened.items())
    return Check(
        "secrets",
        False,
        told,
        f"Run: chmod go-rwx {' '.join(opened)} and make new secrets if others could have read them.",
    )


def _numbers(version: str) -> tuple[int, ...]:
    first = (version.split() or [""])[0]
    return tuple(int(part) for part in first.split(".") if part.isdigit())
