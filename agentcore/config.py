"""Settings: every option with its unit and default. The only reader of the environment."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, ModelWrapValidatorHandler, SecretStr, ValidationError, model_validator
from pydantic_settings import BaseSettings, DotEnvSettingsSource, NoDecode, SettingsConfigDict

from agentcore.errors import ConfigurationError
from agentcore.limits import (
    MAX_BATCH_CALLS,
    MAX_BODY_BYTES,
    MAX_CONNECTIONS,
    QUEUE_SECONDS,
    RATE_UNITS_PER_MINUTE,
    REQUEST_SECONDS,
    RUNNING_CALLS,
)
from agentcore.structured_settings import read_archive_options, read_llm_options, read_secrets

__all__ = ["Settings", "environment_settings", "load_settings", "misspelt_variables", "revealed"]

LayerName = Literal["working", "episodic", "semantic", "procedural"]
LayerRule = Literal["ttl_seconds", "extend_after_uses", "capacity"]
JwtAlgorithm = Literal["HS256", "RS256", "ES256", "EdDSA"]
# Similarity above which a name counts as a typo.
NEARLY_THE_SAME = 0.9
# Names in our own `.env` are more likely meant for this service.
ALIKE = 0.8


def _from_json(given: Any) -> Any:
    try:
        return json.loads(given) if isinstance(given, str) else given
    except ValueError as cause:
        raise ValueError(f"is not JSON: {cause}") from cause


Amount = Annotated[int, Field(ge=0, le=2**31 - 1)]
Layers = Annotated[dict[LayerName, dict[LayerRule, Amount]], NoDecode, BeforeValidator(_from_json)]


LogLevel = Annotated[
    Literal["DEBUG", "INFO", "WARNING", "ERROR"],
    BeforeValidator(lambda given: given.upper() if isinstance(given, str) else given),
]


class Settings(BaseSettings):
    """The configuration of one process. Names are environment variables, in upper case."""

    model_config = SettingsConfigDict(env_file=".env", env_ignore_empty=True, extra="ignore", frozen=True)

    # Where it runs
    agentcore_home: Path | None = Field(
        None, description="Directory of all embedded data. Default: the platform's user data directory."
    )
    agentcore_cache: Path | None = Field(
        None,
        description="Directory of what can be made again (model graph, token tables). "
        "Default: the platform's user cache directory.",
    )
    host: str = Field("127.0.0.1", description="Address the service listens on.")
    port: int = Field(8080, ge=0, le=65_535, description="Port the service listens on; 0 takes a free one.")
    workers: int = Field(1, ge=1, le=64, description="Processes that answer calls on that port.")
    console: bool | None = Field(
        None, description="Serve the console at /console. Unset: only if the service listens on loopback."
    )
    console_hosts: str = Field(
        "", description="More host names under which browsers may open the console, separated by commas."
    )
    log_level: LogLevel = Field("INFO", description="Least level logged.")
    log_format: Literal["json", "text"] = Field("text", description="Form of a log line.")

    # Parts
    database_url: SecretStr | None = Field(
        None, description="PostgreSQL with pgvector. Unset: the service starts its own."
    )
    database_read_url: SecretStr | None = Field(None, description="Read replicas. Unset: reads go to DATABASE_URL.")
    database_service_url: SecretStr | None = Field(
        None,
        description="Login that may act as agentcore_service and as nobody else, for agents' calls. "
        "Unset: DATABASE_URL's, which switches to that role.",
    )
    database_pool_size: int = Field(10, ge=1, le=200, description="Connections a pool holds at most.")
    database_timeout_seconds: float = Field(10.0, gt=0, description="Longest wait for a connection or statement.")
    redis_url: SecretStr | None = Field(None, description="Redis. Unset: the service starts its own.")
    redis_timeout_seconds: float = Field(0.5, gt=0, description="Longest wait for Redis.")

    # Tokens
    jwt_algorithm: JwtAlgorithm = Field("HS256", description="The one algorithm accepted in tokens.")
    jwt_secret_key: SecretStr | None = Field(
        None,
        description="HS256 secret, at least 32 bytes; or a JSON list: the first signs, all verify. "
        "Unset and embedded: made once, kept in the home.",
    )
    jwt_jwks_url: str | None = Field(None, description="Where the public keys are (RS256, ES256, EdDSA).")
    jwt_issuer: str | None = Field(None, description="Required `iss` of a token. Unset: not checked.")
    jwt_audience: str | None = Field(None, description="Required `aud` of a token. Unset: not checked.")

    # Embeddings
    embedding_model: Literal["local", "openai", "cohere", "hashing", "none"] | str = Field(
        "local", description="local (multilingual) | openai | cohere | hashing | none (words only) | module:attribute."
    )
    embedding_model_name: str | None = Field(
        None,
        description="The provider's model. Default: multilingual-e5-small-adapted, "
        "text-embedding-3-small, embed-english-v3.0.",
    )
    embedding_dimensions: int = Field(384, ge=1, le=16_000, description="Length of a vector.")
    embedding_timeout_seconds: float = Field(10.0, gt=0, description="Longest wait for one embedding request.")
    embedding_threads: int = Field(0, ge=0, le=64, description="Threads of the local model; 0: one for each core.")
    embedding_cache_entries: int = Field(20_000, ge=0, description="Vectors cached in the process.")
    openai_api_key: SecretStr | None = Field(None, description="Key for the OpenAI endpoint.")
    openai_base_url: str | None = Field(None, description="Any OpenAI-compatible endpoint.")
    cohere_api_key: SecretStr | None = Field(None, description="Key for Cohere.")

    # Models beside the embedder
    reranker: Literal["none", "http"] | str = Field("none", description="none | http | module:attribute.")
    reranker_url: str | None = Field(
        None, description="Whole address of a rerank endpoint, in the form of Cohere, Jina, vLLM or TEI."
    )
    reranker_model: str | None = Field(None, description="Model the rerank endpoint is asked for.")
    reranker_api_key: SecretStr | None = Field(None, description="Key for the rerank endpoint.")
    reranker_timeout_ms: int = Field(150, ge=1, le=30_000, description="Longest time reranking may add to a search.")
    query_rewriter: Literal["none", "openai"] | str = Field(
        "none", description="Puts queries into other words: none | openai | module:attribute."
    )
    llm_model: str | None = Field(
        None, description="Chat model that rewrites queries, judges and extracts facts, summarises sessions."
    )
    llm_base_url: str | None = Field(
        None, description="Any OpenAI-compatible chat endpoint. Unset: OPENAI_BASE_URL, else OpenAI."
    )
    llm_options: SecretStr | None = Field(
        None,
        description="What the chat model may cost and is used for, a JSON object of tokens_a_day (default "
        "1000000) and cost_a_day of each agent, 0: unlimited, input_price and output_price of a million "
        "tokens, concurrency (16) of a process, extract_facts (false), summaries (how sessions are "
        "summarised of agents without rules of their own, with or without a model: provider, trigger and the "
        "other rules of memory.configure), summariser (openai, or module:attribute) and api_key (of "
        "LLM_BASE_URL, to which OPENAI_API_KEY is sent only if it is OpenAI's or that of OPENAI_BASE_URL), "
        "each optional.",
    )

    # Memory
    vector_store: Literal["pgvector", "qdrant", "milvus", "memory"] | str = Field(
        "pgvector",
        description="Where vectors are searched. A store beside PostgreSQL suggests memories of large agents; "
        "memory is for tests and tools of one process.",
    )
    vector_store_url: SecretStr | None = Field(
        None,
        description="The server of VECTOR_STORE qdrant or milvus. A path is a local store: a directory, or a file "
        "NAME.db for milvus.",
    )
    vector_store_api_key: SecretStr | None = Field(None, description="Key of the server of VECTOR_STORE_URL.")
    memory_working_ttl: int = Field(3_600, ge=1, description="Seconds a task's working memory lasts.")
    memory_working_tokens: int = Field(4_000, ge=1, description="Tokens a task's working memory holds at most.")
    memory_episodic_capacity: int = Field(0, ge=0, description="Memories kept in the episodic layer; 0: unlimited.")
    memory_layers: Layers = Field(
        default_factory=dict,
        description='How layers forget, in seconds, uses and memories, as JSON: {"episodic": {"ttl_seconds": '
        '1296000, "extend_after_uses": 10, "capacity": 50000}}. What is not named, or 0, does not apply.',
    )
    memory_pruning_strategy: Literal["least_relevant", "oldest_first", "frequency_based", "retention_curve"] = Field(
        "least_relevant", description="Strategy where a caller names none."
    )
    memory_flag_patterns: Annotated[dict[str, str], NoDecode, BeforeValidator(_from_json)] = Field(
        default_factory=dict,
        description="Patterns that flag a memory as injected instructions, beside the default ones: a JSON "
        'object of regular expressions by name, for text in lower case; "" removes a default pattern.',
    )
    memory_archival_enabled: bool = Field(True, description="Archive a memory before pruning removes it.")
    memory_archival_s3_bucket: str | None = Field(
        None, description="Bucket of the archive. Unset: a directory below the home."
    )
    memory_archive_options: SecretStr | None = Field(
        None,
        description="How copies are kept, a JSON object of keys (AES-256 keys by id), encrypt_with (the one "
        "for new copies), storage_class, server_side_encryption and kms_key_id (of S3), each optional.",
    )
    aws_endpoint_url_s3: str | None = Field(None, description="An S3-compatible endpoint other than AWS.")
    exact_search_limit: int = Field(
        1_000,
        ge=0,
        description="Agents with up to this many memories are searched exactly, without an index. In a partition "
        "shared with other agents the limit is higher. 0: always through an index, if there is one.",
    )
    vector_index: Literal["ivfflat", "hnsw"] = Field(
        "hnsw", description="Kind of the vector indexes: hnsw answers faster, ivfflat is built with less memory."
    )
    vector_index_recall: float = Field(
        0.95, ge=0.5, le=0.999, description="Share of the exact 50 nearest that a search through an index should find."
    )
    idempotency_ttl: int = Field(7 * 86_400, ge=60, description="Seconds an idempotency key is remembered.")
    token_encoding: str = Field("o200k_base", description="tiktoken encoding that counts context tokens.")

    # Limits at the edge
    rate_limit_per_minute: int = Field(
        RATE_UNITS_PER_MINUTE, ge=0, description="Units an agent's calls may cost a minute; 0: unlimited."
    )
    max_body_bytes: int = Field(MAX_BODY_BYTES, ge=1_024, description="Largest request body, in bytes.")
    max_batch_calls: int = Field(MAX_BATCH_CALLS, ge=1, description="Calls in one JSON-RPC batch at most.")
    max_connections: int = Field(
        MAX_CONNECTIONS, ge=1, description="Open connections at most; fewer where ulimit -n is low."
    )
    max_running_calls: int = Field(
        RUNNING_CALLS, ge=1, description="Calls that run at once; more are queued, and agents take turns."
    )
    max_queue_seconds: float = Field(
        float(QUEUE_SECONDS),
        ge=0,
        description="Longest time that a call is queued; one that would wait longer gets HTTP 429.",
    )
    request_timeout_seconds: float = Field(
        float(REQUEST_SECONDS),
        gt=0,
        description="Longest time one call may take; a prune or delete ends by itself after 25.",
    )
    shutdown_grace_seconds: float = Field(10.0, ge=0, description="Time for running calls to end at shutdown.")

    # Clients and background
    agentcore_url: str = Field("http://127.0.0.1:8080", description="Service of the CLI and open_memory().")
    agentcore_token: SecretStr | None = Field(None, description="Token of the CLI and open_memory().")
    maintenance_in_server: bool = Field(True, description="Run background work in the server process.")
    maintenance_interval_seconds: float = Field(5.0, gt=0, description="Pause between rounds of background work.")

    @model_validator(mode="wrap")
    @classmethod
    def _every_problem_at_once(cls, values: Any, handler: ModelWrapValidatorHandler[Settings]) -> Settings:
        """Raises ConfigurationError; checks between fields skip invalid fields."""
        problems: list[str] = []
        wrong: set[str] = set()
        try:
            settings = handler(values)
        except ValidationError as cause:
            errors = cause.errors()
            wrong = {str(error["loc"][0]) for error in errors if error["loc"]}
            problems = list(dict.fromkeys(map(_mend, errors)))
            settings = handler({name: value for name, value in values.items() if name not in wrong})
        found = (
            *_token_problems(settings),
            *_missing_settings(settings),
            *_llm_options_problems(settings),
            *_url_problems(settings),
            *_archive_problems(settings),
        )
        problems += [problem for fields, problem in found if wrong.isdisjoint(fields)]
        if problems:
            raise ConfigurationError(problems)
        return settings


# Fields and a problem between them.
Problems = Iterator[tuple[set[str], str]]


def _token_problems(settings: Settings) -> Problems:
    secret, shared = settings.jwt_secret_key, settings.jwt_algorithm == "HS256"
    if secret is not None:
        try:
            read_secrets(secret.get_secret_value())
        except ValueError as problem:
            yield {"jwt_secret_key"}, str(problem)
    if shared and settings.jwt_jwks_url is not None:
        yield (
            {"jwt_algorithm", "jwt_jwks_url"},
            "JWT_JWKS_URL holds public keys, JWT_ALGORITHM=HS256 needs a secret: "
            "set JWT_ALGORITHM to RS256, ES256 or EdDSA, or unset JWT_JWKS_URL.",
        )
    if not shared and settings.jwt_jwks_url is None:
        yield {"jwt_algorithm", "jwt_jwks_url"}, f"JWT_ALGORITHM={settings.jwt_algorithm} needs JWT_JWKS_URL."
    if not shared and secret is not None:
        yield (
            {"jwt_algorithm", "jwt_secret_key"},
            "JWT_SECRET_KEY is for HS256 alone: one algorithm family at a time. Unset one.",
        )


# A setting, its value, and the settings of which it needs one.
_NEEDS: tuple[tuple[str, str, tuple[str, ...], str], ...] = (
    (
        "embedding_model",
        "openai",
        ("openai_api_key", "openai_base_url"),
        "OPENAI_API_KEY (or OPENAI_BASE_URL of a keyless endpoint)",
    ),
    ("embedding_model", "cohere", ("cohere_api_key",), "COHERE_API_KEY"),
    ("reranker", "http", ("reranker_url",), "RERANKER_URL, the whole address of a rerank endpoint"),
    ("query_rewriter", "openai", ("llm_model",), "LLM_MODEL"),
)


def _missing_settings(settings: Settings) -> Problems:
    for field, value, needed, said in _NEEDS:
        if getattr(settings, field) == value and not any(getattr(settings, name) for name in needed):
            yield {field, *needed}, f"{field.upper()}={value} needs {said}."


def _llm_options_problems(settings: Settings) -> Problems:
    try:
        own_key = read_llm_options(revealed(settings.llm_options)).api_key
    except ValueError as problem:
        yield {"llm_options"}, f"LLM_OPTIONS {problem}."
        return
    known = own_key or settings.openai_api_key or settings.llm_base_url or settings.openai_base_url
    if settings.llm_model is not None and not known:
        yield (
            {"llm_model", "llm_options", "openai_api_key", "llm_base_url", "openai_base_url"},
            "LLM_MODEL needs OPENAI_API_KEY, or LLM_BASE_URL of another endpoint (its key, if it wants one: "
            "api_key in LLM_OPTIONS). Without a chat model, unset LLM_MODEL.",
        )


def revealed(secret: SecretStr | None) -> str | None:
    return None if secret is None else secret.get_secret_value()


def _archive_problems(settings: Settings) -> Problems:
    given = settings.memory_archive_options
    try:
        options = read_archive_options(revealed(given))
    except ValueError as problem:
        yield {"memory_archive_options"}, f"MEMORY_ARCHIVE_OPTIONS {problem}."
        return
    if options.object_headers and not settings.memory_archival_s3_bucket:
        yield (
            {"memory_archive_options", "memory_archival_s3_bucket"},
            "MEMORY_ARCHIVE_OPTIONS says what S3 is to do, and MEMORY_ARCHIVAL_S3_BUCKET names no bucket.",
        )


_URLS: tuple[tuple[tuple[str, ...], tuple[str, ...], str], ...] = (
    (
        ("database_url", "database_read_url", "database_service_url"),
        ("postgresql://", "postgres://"),
        "a PostgreSQL URL (postgresql://user:password@host/database)",
    ),
    (("reranker_url", "llm_base_url"), ("http://", "https://"), "a URL (https://host/...)"),
    (("redis_url",), ("redis://", "rediss://", "unix://"), "a Redis URL (redis://host:6379/0, rediss:// or unix://)"),
)


def _url_problems(settings: Settings) -> Problems:
    for fields, schemes, kind in _URLS:
        for field in fields:
            url = getattr(settings, field)
            address = url.get_secret_value() if isinstance(url, SecretStr) else url
            if address is not None and not address.startswith(schemes):
                yield {field}, f"{field.upper()} is not {kind}."


def load_settings(**overrides: Any) -> Settings:
    """Reads the environment and `.env`. Raises ConfigurationError."""
    return Settings(**overrides)


def environment_settings() -> Settings:
    """Reads the environment only, for clients: the working directory's `.env` may belong to others."""
    return Settings(_env_file=None)


def misspelt_variables() -> dict[str, str]:
    """Returns probable typos in the environment and `.env`, with the setting meant."""
    known = {name.upper() for name in Settings.model_fields}
    prefixes = tuple({f"{name.partition('_')[0]}_" for name in known})
    written = {name.upper() for name in DotEnvSettingsSource(Settings, env_file=".env").env_vars}
    found: dict[str, str] = {}
    others = {each for each in os.environ if each.startswith(prefixes)}
    for name in sorted((others | written) - known):
        near = get_close_matches(name, known, n=1, cutoff=ALIKE if name in written else NEARLY_THE_SAME)
        if near:
            found[name] = near[0]
    return found


def _mend(error: Any) -> str:
    field = str(error["loc"][0]) if error["loc"] else "settings"
    secret = "SecretStr" in str(Settings.model_fields[field].annotation) if field in Settings.model_fields else True
    given = "" if secret else f" (got {error.get('input')!r})"
    return f"{field.upper()}: {error['msg']}{given}"
