"""Creates the configured parts, without opening them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import platformdirs
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as RedisUnreachable

from agentcore.auth import JwksKeys, KeySource, SharedSecret, TokenRules, TokenVerifier
from agentcore.circuit_breaker import CircuitBreaker
from agentcore.config import Settings, revealed
from agentcore.database import Database
from agentcore.embedded import Home
from agentcore.errors import ConfigurationError
from agentcore.limits import LIMIT_SETTINGS
from agentcore.memory.archival import ARCHIVES, Archive, SealedArchive
from agentcore.memory.embeddings import (
    DEFAULT_MODEL_NAMES,
    EMBEDDERS,
    RELATION_CLASSIFIERS,
    Embedder,
    EmbedderOptions,
    RelationClassifier,
)
from agentcore.memory.external_vectors import VECTOR_STORES, ExternalVectors, VectorStore, VectorStoreOptions
from agentcore.memory.language.rejection import Screen
from agentcore.memory.llm import (
    FACT_EXTRACTORS,
    FACT_JUDGES,
    QUERY_REWRITERS,
    RERANKERS,
    SUMMARISERS,
    LlmOptions,
    Meter,
    RerankerOptions,
)
from agentcore.memory.llm_limits import (
    LONGEST_WAIT_SECONDS,
    LimitedFactJudge,
    LimitedReranker,
    LimitedRewriter,
    LlmMeter,
)
from agentcore.memory.params.agent_settings import LayerRules
from agentcore.memory.parts import AccessQueue, JobControl, MemoryParts, MemoryPolicy
from agentcore.memory.query_samples import QuerySamples
from agentcore.memory.ranking.calibration import CutOffs
from agentcore.memory.ranking.candidates import SearchLimits
from agentcore.memory.rows.vector_index import IndexPolicy
from agentcore.memory.rows.vector_rows import MOVING, SETTLED, KnownModel
from agentcore.memory.scoring import RetrievalWeights
from agentcore.memory.storage import MemoryStorage
from agentcore.memory.tokens import TokenCounters
from agentcore.memory.vector_store import PgVectorStore
from agentcore.memory.working import GuardedRedis, WorkingMemory
from agentcore.providers.local_models import E5
from agentcore.readiness import WatchedEmbedder
from agentcore.registry import resolve
from agentcore.structured_settings import (
    LlmEndpoint,
    LlmUseOptions,
    llm_endpoint,
    read_archive_options,
    read_llm_options,
)
from agentcore.telemetry import Metrics

# Default thresholds of abstention, and of what a context omits; decision 53.
RETRIEVE_CUT_OFFS = CutOffs(min_fit=0.2)
CONTEXT_CUT_OFFS = CutOffs(min_fit=0.2, least_share=0.4, least_rise=0.2, widest_gap=0.25, full_fit=0.5)
# Lexical scores alone cannot decide answerability: with these models only a caller's `min_fit` applies.
WITHOUT_MEANING = frozenset({"hashing", "none"})
# Weight of words if vectors carry no meaning.
WORDS_WITHOUT_MEANING = 0.28
# Memories that a reranker orders.
RERANKED_AT_MOST = 40
EMBEDDING_ATTEMPTS = 3
# Timeouts that rewriting adds to a search and judging to a store.
REWRITING_SECONDS = JUDGING_SECONDS = 5.0
# The rest is for the concurrency limit before and the accounting after.
REQUEST_SECONDS = 5.0 - 2 * LONGEST_WAIT_SECONDS
# Of a background request; after them its job is retried later.
BACKGROUND_SECONDS, BACKGROUND_ATTEMPTS = 30.0, 2
SUMMARISER = "summariser of LLM_OPTIONS"


def cache_of(settings: Settings) -> Path:
    return settings.agentcore_cache or platformdirs.user_cache_path("agentcore")


def make_redis(url: str | None, settings: Settings) -> GuardedRedis | None:
    """Returns a client with short timeouts; it connects with its first command."""
    if url is None:
        return None
    # A stale connection is replaced once; a timeout is not retried.
    redis = GuardedRedis.from_url(
        url,
        retry=Retry(NoBackoff(), 1, (RedisUnreachable,)),
        socket_timeout=settings.redis_timeout_seconds,
        socket_connect_timeout=settings.redis_timeout_seconds,
    )
    guarded = cast(GuardedRedis, redis)
    guarded.circuit = CircuitBreaker(
        "redis", "working memory and reads use the primary PostgreSQL, vectors are computed again"
    )
    return guarded


def make_embedder(settings: Settings) -> WatchedEmbedder | None:
    """Returns None for words only."""
    if settings.embedding_model == "none":
        return None
    keys = {"openai": settings.openai_api_key, "cohere": settings.cohere_api_key}
    options = EmbedderOptions(
        model_name=settings.embedding_model_name or DEFAULT_MODEL_NAMES.get(settings.embedding_model, ""),
        dimensions=settings.embedding_dimensions,
        cache_directory=cache_of(settings),
        api_key=revealed(keys.get(settings.embedding_model)),
        base_url=settings.openai_base_url if settings.embedding_model == "openai" else None,
        timeout_seconds=settings.embedding_timeout_seconds,
        max_attempts=EMBEDDING_ATTEMPTS,
        threads=settings.embedding_threads,
    )
    return WatchedEmbedder(resolve(settings.embedding_model, EMBEDDERS, kind="EMBEDDING_MODEL")(options))


def make_relations(settings: Settings) -> RelationClassifier | None:
    """Returns None without its weights or without semantic vectors."""
    if settings.embedding_model in WITHOUT_MEANING or E5.directory() is None:
        return None
    make = resolve("local", RELATION_CLASSIFIERS, kind="relation classifier")
    classifier: RelationClassifier = make(cache_of(settings))
    return classifier


def check_choices(settings: Settings) -> None:
    """Raises ConfigurationError with every unknown choice, before any part is created."""
    summariser = llm_options_of(settings).summariser
    unused = summariser in SUMMARISERS and not has_language_model(settings)
    chosen = (
        (settings.embedding_model, EMBEDDERS, "EMBEDDING_MODEL"),
        (settings.reranker, RERANKERS, "RERANKER"),
        (settings.query_rewriter, QUERY_REWRITERS, "QUERY_REWRITER"),
        (settings.vector_store, VECTOR_STORES, "VECTOR_STORE"),
        ("none" if unused else summariser, SUMMARISERS, SUMMARISER),
    )
    problems: list[str] = []
    for name, table, kind in chosen:
        try:
            if name != "none":
                resolve(name, table, kind=kind)
        except ConfigurationError as error:
            problems += error.problems
    if problems:
        raise ConfigurationError(problems)


def _reranker(settings: Settings) -> LimitedReranker | None:
    if settings.reranker == "none":
        return None
    timeout_seconds = settings.reranker_timeout_ms / 1_000
    options = RerankerOptions(
        model_name=settings.reranker_model,
        url=settings.reranker_url,
        api_key=revealed(settings.reranker_api_key),
        timeout_seconds=timeout_seconds,
    )
    reranker = resolve(settings.reranker, RERANKERS, kind="RERANKER")(options)
    return LimitedReranker(reranker, candidates=RERANKED_AT_MOST, timeout_seconds=timeout_seconds)


def _chat_model(
    settings: Settings, meter: Meter, table: Mapping[str, str], kind: str, name: str = "openai", *, blocking: bool
) -> Any:
    """Returns the model of this name; None for "none", and if it needs a language model and there is none.

    `blocking`: a caller waits for its answers.
    """
    if name == "none" or (name in table and not has_language_model(settings)):
        return None
    endpoint = llm_endpoint_of(settings)
    options = LlmOptions(
        model_name=settings.llm_model or "",
        api_key=endpoint.api_key,
        base_url=endpoint.base_url,
        timeout_seconds=REQUEST_SECONDS if blocking else BACKGROUND_SECONDS,
        attempts=1 if blocking else BACKGROUND_ATTEMPTS,
        meter=meter,
    )
    return resolve(name, table, kind=kind)(options)


def llm_options_of(settings: Settings) -> LlmUseOptions:
    return read_llm_options(revealed(settings.llm_options))


def llm_endpoint_of(settings: Settings) -> LlmEndpoint:
    own_key, openai_key = revealed(llm_options_of(settings).api_key), revealed(settings.openai_api_key)
    return llm_endpoint(own_key, openai_key, settings.llm_base_url, settings.openai_base_url)


def has_language_model(settings: Settings) -> bool:
    return settings.llm_model is not None and llm_endpoint_of(settings).is_known


def make_parts(
    settings: Settings,
    home: Home,
    database: Database,
    redis: Redis | None,
    embedder: Embedder | None,
    metrics: Metrics,
    jobs: JobControl,
    *,
    in_force: KnownModel | None,
    samples: QuerySamples | None,
) -> MemoryParts:
    """Returns the parts that every agent's manager shares. Their models are not open yet."""
    llm_options = llm_options_of(settings)
    counters = TokenCounters(cache_of(settings), settings.token_encoding)
    count_tokens = counters.of(counters.default).count
    storage = MemoryStorage(database, llm_options.summaries)
    meter = LlmMeter(MemoryStorage(database), llm_options, count_tokens, metrics)
    rewriter = _chat_model(settings, meter, QUERY_REWRITERS, "QUERY_REWRITER", settings.query_rewriter, blocking=True)
    judge = _chat_model(settings, meter, FACT_JUDGES, "fact judge", blocking=True)
    return MemoryParts(
        storage=storage,
        vectors=make_vectors(settings, database, in_force, make_external_vectors(settings, database)),
        working=WorkingMemory(
            redis,
            ttl_seconds=settings.memory_working_ttl,
            budget_tokens=settings.memory_working_tokens,
            record=storage.record_redis,
        ),
        archive=make_archive(settings, home),
        embedder=embedder,
        count_tokens=count_tokens,
        token_counters=counters,
        accesses=AccessQueue(),
        policy=make_policy(settings),
        jobs=jobs,
        metrics=metrics,
        reranker=_reranker(settings),
        rewriter=rewriter and LimitedRewriter(rewriter, timeout_seconds=REWRITING_SECONDS),
        fact_judge=judge and LimitedFactJudge(judge, timeout_seconds=JUDGING_SECONDS),
        extractor=_chat_model(settings, meter, FACT_EXTRACTORS, "fact extractor", blocking=False),
        summariser=_chat_model(settings, meter, SUMMARISERS, SUMMARISER, llm_options.summariser, blocking=False),
        meter=meter,
        vectors_moving=in_force is not None and in_force.moving,
        samples=samples,
        relations=make_relations(settings),
    )


def make_vector_store(settings: Settings) -> VectorStore | None:
    """Returns the vector store beside PostgreSQL; None for pgvector. Sends no request."""
    if settings.vector_store == "pgvector":
        return None
    make = resolve(settings.vector_store, VECTOR_STORES, kind="VECTOR_STORE")
    store: VectorStore = make(
        VectorStoreOptions(revealed(settings.vector_store_url), revealed(settings.vector_store_api_key))
    )
    return store


def make_external_vectors(settings: Settings, database: Database) -> ExternalVectors | None:
    store = make_vector_store(settings)
    if store is None:
        return None
    return ExternalVectors(database, store, settings.vector_store, revealed(settings.vector_store_url))


def make_vectors(
    settings: Settings, database: Database, in_force: KnownModel | None, external: ExternalVectors | None
) -> PgVectorStore:
    place = MOVING if in_force is not None and in_force.moving else SETTLED
    limits = SearchLimits(exact_search_limit=settings.exact_search_limit)
    return PgVectorStore(database, settings.embedding_dimensions, limits, place, external)


def make_policy(settings: Settings) -> MemoryPolicy:
    """Raises ConfigurationError."""
    has_meaning = settings.embedding_model not in WITHOUT_MEANING
    episodic = {"capacity": settings.memory_episodic_capacity, **settings.memory_layers.get("episodic", {})}
    layers = {**settings.memory_layers, "episodic": episodic}
    try:
        screen = Screen(settings.memory_flag_patterns)
    except ValueError as problem:
        raise ConfigurationError([f"MEMORY_FLAG_PATTERNS: {problem}."]) from problem
    return MemoryPolicy(
        weights=RetrievalWeights() if has_meaning else RetrievalWeights(words=WORDS_WITHOUT_MEANING),
        layers={layer: LayerRules(**rules) for layer, rules in layers.items()},
        pruning_strategy=settings.memory_pruning_strategy,
        idempotency_ttl_seconds=settings.idempotency_ttl,
        embedding_dimensions=settings.embedding_dimensions,
        limits=SearchLimits(exact_search_limit=settings.exact_search_limit),
        retrieve_cut_offs=RETRIEVE_CUT_OFFS if has_meaning else CutOffs(),
        context_cut_offs=CONTEXT_CUT_OFFS if has_meaning else CutOffs(),
        indexes=make_index_policy(settings),
        limits_set={name: math.ceil(getattr(settings, name.lower())) for name in LIMIT_SETTINGS},
        screen=screen,
    )


def make_index_policy(settings: Settings) -> IndexPolicy:
    return IndexPolicy(kind=settings.vector_index, recall=settings.vector_index_recall)


def make_archive(settings: Settings, home: Home) -> SealedArchive | None:
    """Returns the archive of pruned memories; None if archiving is disabled."""
    if not settings.memory_archival_enabled:
        return None
    options = read_archive_options(revealed(settings.memory_archive_options))
    archive: Archive
    if settings.memory_archival_s3_bucket:
        archive = resolve("s3", ARCHIVES, kind="archive")(
            settings.memory_archival_s3_bucket, settings.aws_endpoint_url_s3, object_headers=options.object_headers
        )
    else:
        archive = resolve("directory", ARCHIVES, kind="archive")(home.archive)
    return SealedArchive(archive, options.keyring)


def make_verifier(settings: Settings, home: Home) -> TokenVerifier:
    """Returns the verifier of tokens. Raises ConfigurationError."""
    keys: KeySource
    if settings.jwt_jwks_url is not None:
        keys = JwksKeys(settings.jwt_jwks_url, settings.jwt_algorithm)
    else:
        keys = SharedSecret(signing_secret(settings, home))
    return TokenVerifier(TokenRules(settings.jwt_algorithm, settings.jwt_issuer, settings.jwt_audience), keys)


def signing_secret(settings: Settings, home: Home) -> str:
    """Returns the HS256 secret, or a JSON list: the setting, else the home's, which is created once."""
    if settings.jwt_secret_key is not None:
        return settings.jwt_secret_key.get_secret_value()
    if settings.database_url is not None:
        raise ConfigurationError(
            [
                "JWT_SECRET_KEY is not set, and a service on an external database makes none by "
                "itself: make one with `openssl rand -hex 32`, or set JWT_JWKS_URL."
            ]
        )
    return home.secret("jwt")
