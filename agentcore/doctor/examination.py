"""Examines each part, running or not, and collects the verdicts. Changes no data."""

from __future__ import annotations

import asyncio
import os
import shutil
import stat
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from importlib.util import find_spec
from typing import Any

import httpx
import jwt
import psycopg
from psycopg.rows import dict_row
from redis.asyncio import Redis
from redis.exceptions import RedisError

from agentcore import migration
from agentcore.assembly import llm_endpoint_of, make_archive, make_vector_store
from agentcore.auth import SharedSecret, TokenRules, TokenVerifier
from agentcore.config import Settings, misspelt_variables, revealed
from agentcore.doctor import verdicts
from agentcore.doctor.verdicts import Check, right, wrong
from agentcore.embedded import EmbeddedUrls, Home, attach
from agentcore.errors import AgentCoreError, AuthenticationFailed, StartupError
from agentcore.memory.archival import ARCHIVES, Archive
from agentcore.memory.external_vectors import VectorStore
from agentcore.providers.local_models import E5
from agentcore.readiness import other_archives
from agentcore.registry import resolve
from agentcore.runtime import home_of

ELSEWHERE = "The token's signature is wrong."


async def own_token(settings: Settings, home: Home) -> Check:
    """Validates AGENTCORE_TOKEN; without a local secret, the signature is not verified."""
    if settings.agentcore_token is None:
        return Check("token", None, "AGENTCORE_TOKEN is not set; commands need it, or --agent")
    token = settings.agentcore_token.get_secret_value()
    try:
        secret = _secret(settings, home)
        if secret is not None:
            rules = TokenRules("HS256", settings.jwt_issuer, settings.jwt_audience)
            await TokenVerifier(rules, SharedSecret(secret)).verify(f"Bearer {token}")
        claims = jwt.decode(token, options={"verify_signature": False, "verify_exp": True})
    except AuthenticationFailed as refused:
        more = f" It is of another home than {home.path}." if refused.message == ELSEWHERE else ""
        return verdicts.token(refused.message + more)
    except jwt.ExpiredSignatureError:
        return verdicts.token("The token has expired.")
    except jwt.PyJWTError:
        return verdicts.token("The token is malformed.")
    scopes = claims.get("scope") or ""
    told = scopes if isinstance(scopes, str) else " ".join(map(str, scopes))
    return verdicts.token(None, str(claims.get("sub")), told, float(claims.get("exp", 0)) - time.time())


def _secret(settings: Settings, home: Home) -> str | None:
    if settings.jwt_algorithm != "HS256":
        return None
    if settings.jwt_secret_key is not None:
        return settings.jwt_secret_key.get_secret_value()
    if settings.database_url is not None or not (home.secrets / "jwt").exists():
        return None
    return home.secret("jwt")


SERVICE_ROLE = "agentcore_service"
PATIENCE_SECONDS = 5
# Memories that are not embedded yet are no loss of the store.
MIN_SHARE = 0.9
NOT_RUNNING = "not running here; `agentcore serve` starts it"
# Required packages by setting.
_NEEDED = {"local": ("onnxruntime", "onnx"), "openai": ("openai",), "cohere": ("cohere",)}

SERVER = """
SELECT current_setting('server_version') AS version, clock_timestamp() AS now,
       (SELECT extversion FROM pg_extension WHERE extname = 'vector') AS pgvector,
       (SELECT default_version FROM pg_available_extensions WHERE name = 'vector') AS available"""
ROLE = """
SELECT rolsuper AS superuser, rolbypassrls AS bypasses, pg_has_role(current_user, oid, 'MEMBER') AS granted
  FROM pg_roles WHERE rolname = %s"""
TABLES = """
SELECT c.relname AS name, c.relrowsecurity AS guarded, pg_get_userbyid(c.relowner) = %s AS owned
  FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'agent_id' AND NOT a.attisdropped
 WHERE c.relkind IN ('r', 'p') AND (NOT c.relispartition OR has_table_privilege('agentcore_service', c.oid, 'SELECT'))
   AND c.relnamespace = current_schema()::regnamespace
 ORDER BY 1"""
JOBS = """
SELECT count(*) FILTER (WHERE state = 'failed') AS failed,
       coalesce(extract(epoch FROM now() - min(coalesce(not_before, enqueued_at))
                                   FILTER (WHERE state = 'waiting')), 0)::float AS overdue_seconds
  FROM background_jobs"""
DISTRIBUTED = """
SELECT relkind = 'r' AS distributed FROM pg_class WHERE oid = 'memories'::regclass"""
CLUSTER = """
SELECT (SELECT extversion FROM pg_extension WHERE extname = 'citus') AS version,
       (SELECT count(*) FROM pg_dist_node WHERE noderole = 'primary' AND shouldhaveshards) AS workers,
       (SELECT count(*) FROM citus_check_cluster_node_health() WHERE result IS NOT TRUE) AS failing,
       (SELECT count(*) = 2 FROM pg_roles
         WHERE rolname IN ('agentcore_service', 'agentcore_bound') AND rolcanlogin) AS logins"""
VECTORS = """
SELECT DISTINCT embedding_model AS model, vector_dims(embedding) AS dimensions
  FROM (SELECT embedding_model, embedding FROM memories WHERE embedding IS NOT NULL LIMIT 20000) AS seen"""
EXPECTED_POINTS = """
SELECT (SELECT coalesce(sum(memory_count), 0) FROM lexical_totals)
       + (SELECT coalesce(sum(memory_count), 0) FROM lexical_deltas)
       - (SELECT count(*) FROM vector_changes) AS expected"""
IN_FORCE = "SELECT model FROM embedding_models WHERE stage <> 'filling'"


async def examine(settings: Settings) -> list[Check]:
    home = home_of(settings)
    urls, embedded = _running_parts(settings, home)
    return [
        verdicts.python(sys.version_info[:3]),
        *verdicts.misspelt(misspelt_variables()),
        *_home_checks(home, settings),
        embedded,
        *await _guarded("PostgreSQL", lambda: _database(settings, home, urls.database_url)),
        *await _guarded("Redis", lambda: _redis(urls.redis_url)),
        _embedder(settings),
        *_models_beside(settings),
        *await _guarded("archive", lambda: _archive(settings, home)),
        *await _guarded("vector store", lambda: _vector_store(settings, urls.database_url)),
        await own_token(settings, home),
        await _service(settings),
    ]


def _running_parts(settings: Settings, home: Home) -> tuple[EmbeddedUrls, Check]:
    given = EmbeddedUrls(
        None if settings.database_url is None else settings.database_url.get_secret_value(),
        None if settings.redis_url is None else settings.redis_url.get_secret_value(),
    )
    if given.database_url is not None and given.redis_url is not None:
        return given, Check("embedded parts", None, "none: DATABASE_URL and REDIS_URL are set")
    try:
        found = attach(home)
    except StartupError as error:
        return given, Check("embedded parts", None, f"not running: {error.message}")
    urls = EmbeddedUrls(given.database_url or found.database_url, given.redis_url or found.redis_url)
    return urls, right("embedded parts", f"running on {home.path}")


def _home_checks(home: Home, settings: Settings) -> list[Check]:
    if settings.database_url is not None and settings.redis_url is not None and not home.path.exists():
        return []
    try:
        with home.startup_errors():
            if not home.path.exists():
                return [Check("home", None, f"{home.path} is not there yet; `agentcore serve` makes it")]
            return [
                verdicts.disk(shutil.disk_usage(home.path).free, str(home.path)),
                verdicts.secrets(_secret_modes(home)),
            ]
    except StartupError as error:
        return [wrong("home", str(home.path), error.message)]


def _secret_modes(home: Home) -> dict[str, int]:
    if not home.secrets.exists():
        return {}
    return {str(path): stat.S_IMODE(path.stat().st_mode) for path in (home.secrets, *home.secrets.iterdir())}


async def _guarded(name: str, look: Callable[[], Awaitable[list[Check]]]) -> list[Check]:
    try:
        return await look()
    except AgentCoreError as error:
        return [wrong(name, error.message, "See that it runs and that this host may reach it.")]
    except psycopg.ProgrammingError as error:
        # Without an SQLSTATE the error concerns the URL, and quotes its password.
        found = migration.NOT_A_URL if error.sqlstate is None else str(error).splitlines()[0]
        return [wrong(name, found, "Fix DATABASE_URL.")]
    except (psycopg.Error, RedisError, OSError) as error:
        said = str(error).strip().splitlines() or [type(error).__name__]
        fix = "See that it runs, that this host may reach it, and that the user and password of its URL are right."
        return [wrong(name, said[0], fix)]


async def _database(settings: Settings, home: Home, url: str | None) -> list[Check]:
    if url is None:
        return [Check("PostgreSQL", None, NOT_RUNNING)]
    connection = await psycopg.AsyncConnection.connect(
        url, connect_timeout=PATIENCE_SECONDS, autocommit=True, row_factory=dict_row
    )
    async with connection:
        await connection.execute("SELECT set_config('default_transaction_read_only', 'on', false)")
        asked_at = time.time()
        [server] = await _rows(connection, SERVER)
        skew_seconds = server["now"].timestamp() - (asked_at + time.time()) / 2
        revision = await asyncio.to_thread(_schema, url)
        checks = [
            verdicts.postgresql(server["version"]),
            verdicts.pgvector(server["pgvector"], server["available"]),
            verdicts.clock(skew_seconds),
            revision,
        ]
        if revision.ok and server["pgvector"] is not None:
            [jobs] = await _rows(connection, JOBS)
            own_login = settings.database_url is None or settings.database_service_url is not None
            checks += [
                *await _cluster(connection),
                await _row_security(connection, own_login=own_login),
                await _vectors(connection, settings),
                verdicts.jobs(jobs["failed"], jobs["overdue_seconds"]),
                await _other_archives(connection, make_archive(settings, home)),
            ]
        return checks


async def _rows(
    connection: psycopg.AsyncConnection[dict[str, Any]], statement: str, *values: object
) -> list[dict[str, Any]]:
    return await (await connection.execute(statement.encode(), values)).fetchall()


def _schema(url: str) -> Check:
    try:
        migration.check_revision(url)
    except StartupError as error:
        return wrong("schema", error.message, "")
    return right("schema", f"revision {migration.head_revision()}")


async def _cluster(connection: psycopg.AsyncConnection[dict[str, Any]]) -> list[Check]:
    [memories] = await _rows(connection, DISTRIBUTED)
    if not memories["distributed"]:
        return []
    [found] = await _rows(connection, CLUSTER)
    return [verdicts.cluster(found["version"], found["workers"], found["failing"], logins=found["logins"])]


async def _row_security(connection: psycopg.AsyncConnection[dict[str, Any]], *, own_login: bool) -> Check:
    roles = await _rows(connection, ROLE, SERVICE_ROLE)
    tables = await _rows(connection, TABLES, SERVICE_ROLE)
    return verdicts.row_security(
        roles[0] if roles else None,
        [row["name"] for row in tables if row["owned"]],
        [row["name"] for row in tables if not row["guarded"]],
        own_login=own_login,
    )


async def _other_archives(connection: psycopg.AsyncConnection[dict[str, Any]], archive: Archive | None) -> Check:
    try:
        found = await other_archives(connection, archive)
        return verdicts.copies(found, archival=archive is not None)
    except AgentCoreError as failure:
        return Check("copies", None, failure.message)


async def _vectors(connection: psycopg.AsyncConnection[dict[str, Any]], settings: Settings) -> Check:
    stored: dict[str, list[int]] = {}
    for row in await _rows(connection, VECTORS):
        stored.setdefault(row["model"] or "unknown", []).append(row["dimensions"])
    recorded = {row["model"] for row in await _rows(connection, IN_FORCE)}
    others = sorted(stored.keys() - {f"local/{E5.name}", "unknown"})
    if settings.embedding_model == "local" and not recorded and others:
        return verdicts.not_searched(others)
    return verdicts.dimensions(stored, settings.embedding_dimensions)


async def _redis(url: str | None) -> list[Check]:
    if url is None:
        return [Check("Redis", None, NOT_RUNNING)]
    client = Redis.from_url(url, socket_connect_timeout=PATIENCE_SECONDS, socket_timeout=PATIENCE_SECONDS)
    try:
        told: Mapping[str, Any] = await client.info()
        return [verdicts.redis(str(told["redis_version"]), bool(told.get("aof_enabled")))]
    finally:
        await client.aclose()


def _embedder(settings: Settings) -> Check:
    name = settings.embedding_model
    missing = _missing("embedder", name)
    if missing is not None:
        return missing
    if name != "local":
        return right("embedder", f"EMBEDDING_MODEL={name}")
    directory = E5.directory()
    if directory is None:
        fix = "Run `agentcore model install`, or set EMBEDDING_MODEL=none for words only."
        return wrong("embedder", f"the local model {E5.name} is not installed", fix)
    return right("embedder", f"{E5.name} in {directory}")


def _missing(part: str, name: str) -> Check | None:
    missing = [package for package in _NEEDED.get(name, ()) if find_spec(package) is None]
    if not missing:
        return None
    extra = name if name in ("openai", "cohere") else "server"
    return wrong(part, f"{name} needs {', '.join(missing)}", f"Install them: pip install 'agentcore-memory[{extra}]'.")


def _models_beside(settings: Settings) -> list[Check]:
    checks = []
    if settings.reranker != "none":
        checks.append(right("reranker", f"RERANKER={settings.reranker}"))
    name = settings.query_rewriter
    if name != "none":
        found = f"QUERY_REWRITER={name}, LLM_MODEL={settings.llm_model}"
        checks.append(_missing("query rewriter", name) or right("query rewriter", found))
    if settings.llm_model is not None:
        asked = verdicts.language_model(settings.llm_model, llm_endpoint_of(settings))
        checks.append(_missing("language model", "openai") or asked)
    return checks


async def _archive(settings: Settings, home: Home) -> list[Check]:
    if not settings.memory_archival_enabled:
        return [Check("archive", None, "switched off (MEMORY_ARCHIVAL_ENABLED=false): pruning keeps no copy")]
    bucket = settings.memory_archival_s3_bucket
    if bucket is not None:
        await resolve("s3", ARCHIVES, kind="archive")(bucket, settings.aws_endpoint_url_s3).check()
        return [right("archive", f"S3 bucket {bucket}")]
    place = home.archive if home.archive.exists() else home.path
    if not place.exists():
        return [Check("archive", None, f"{home.archive} is not there yet; the first pruning makes it")]
    if os.access(place, os.W_OK | os.X_OK):
        more = "" if settings.database_url is None else "; for one server, or mounted on each"
        return [right("archive", f"directory {home.archive}{more}")]
    fix = f"Give it to the user who runs the service: chown -R <user> {place}"
    return [wrong("archive", f"{place} is not writable", fix)]


async def _vector_store(settings: Settings, database_url: str | None) -> list[Check]:
    store, url = make_vector_store(settings), revealed(settings.vector_store_url) or ""
    if store is None:
        return [right("vector store", "PostgreSQL with pgvector")]
    if "://" not in url:
        # Only one process can open a local store: the service.
        return [Check("vector store", None, f"VECTOR_STORE={settings.vector_store}, a store of one process")]
    failures: tuple[type[Exception], ...] = (TimeoutError, *store.failures)
    try:
        points = await asyncio.wait_for(asyncio.to_thread(_points_of, store), 2 * PATIENCE_SECONDS)
    except failures as failure:
        found = f"{settings.vector_store} {'refuses requests' if store.is_refusal(failure) else 'does not answer'}"
        fix = "Check VECTOR_STORE_URL and VECTOR_STORE_API_KEY. Until then searches use PostgreSQL alone."
        return [wrong("vector store", f"{found}: {type(failure).__name__}", fix)]
    expected = 0 if database_url is None else await _expected_points(database_url)
    found = f"VECTOR_STORE={settings.vector_store}, {points:,} vectors"
    if points < MIN_SHARE * expected:
        return [wrong("vector store", f"{found} of about {expected:,}", "Run `agentcore index rebuild`.")]
    return [right("vector store", found)]


def _points_of(store: VectorStore) -> int:
    try:
        return store.count(None)
    finally:
        store.close()


async def _expected_points(database_url: str) -> int:
    async with await psycopg.AsyncConnection.connect(
        database_url, connect_timeout=PATIENCE_SECONDS, row_factory=dict_row
    ) as connection:
        [row] = await _rows(connection, EXPECTED_POINTS)
        return int(row["expected"])


async def _service(settings: Settings) -> Check:
    url = settings.agentcore_url.rstrip("/")
    try:
        async with httpx.AsyncClient(timeout=PATIENCE_SECONDS, trust_env=False) as client:
            answer = await client.get(f"{url}/readyz")
        parts = answer.json().get("parts", {})
    except (httpx.HTTPError, httpx.InvalidURL, ValueError, AttributeError):
        found = f"no memory service answers at {url} (AGENTCORE_URL)"
        if "agentcore_url" not in settings.model_fields_set:
            return Check("service", None, found)
        return wrong("service", found, "Start it there, or fix AGENTCORE_URL.")
    ill = [name for name, part in parts.items() if not part.get("ok") and part.get("required", True)]
    if ill:
        found = f"{url} answers, but not ready: {', '.join(ill)}"
        return wrong("service", found, "Fix the parts named; the service finds them again by itself.")
    return right("service", f"ready at {url}")
