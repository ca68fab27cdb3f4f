"""Lists every place where a text or vector may be stored, for erasing and for the isolation tests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from agentcore.memory.embedding_cache import CACHE_KEY_PREFIX
from agentcore.memory.keys import encode_segment


class FoundBy(StrEnum):
    """How one agent's data in a place is found."""

    AGENT_COLUMN = "the column agent_id"
    JOB_IDS = "the agent_id among a job's ids"
    AGENT_SEGMENT = "the agent's id, encoded, in the key"
    AGENT_KEY = "the agent's id, beside a digest of the text, in the key"
    NOTHING = "nothing: out of the service's reach, or never a text in it"


@dataclass(frozen=True)
class Place:
    """One place. `derived`: rebuilt from the memories' own rows, so a loss costs only time.

    `cleared_by`: the operation that deletes a removed memory's data.
    """

    name: str
    found_by: FoundBy
    derived: bool
    cleared_by: str


@dataclass(frozen=True)
class OwnedTable(Place):
    """A table of rows that belong to agents, under row security; `name` is the table's.

    `text`: words of the memory, or passed with it. `digests`: can confirm a guessed text, but reveal none.
    `labels`: ids and names. Numbers, times and flags are in no category.
    """

    text: tuple[str, ...] = ()
    vectors: tuple[str, ...] = ()
    digests: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()


@dataclass(frozen=True)
class RedisKeys(Place):
    """The keys below a prefix."""

    prefix: str

    def pattern(self, agent_id: str) -> str:
        """Returns the SCAN pattern of the agent's keys."""
        return f"{self.prefix}{encode_segment(agent_id)}:*"


@dataclass(frozen=True)
class ArchiveObjects(Place):
    """The objects of the archive, in any kind of object storage."""

    def folder(self, agent_id: str) -> str:
        """Returns the key prefix of all the agent's objects, and of no other agent's."""
        return f"{encode_segment(agent_id, caseless=True)}/"


def _table(name: str, cleared_by: str, *, derived: bool = False, **columns: tuple[str, ...]) -> OwnedTable:
    return OwnedTable(name, FoundBy.AGENT_COLUMN, derived, cleared_by, **columns)


_WITH_ROW = "the memory's row, on whose deletion it cascades"

TABLES: tuple[OwnedTable, ...] = (
    _table(
        "memories",
        "its deletion; indexes on vectors and terms follow the row",
        text=(
            "content",
            "summary",
            "actions",
            "outcome",
            "action_outcomes",
            "response",
            "entities",
            "entity_keys",
            "facts",
            "keywords",
            "tags",
            "metadata",
            "provenance",
        ),
        vectors=("embedding", "next_embedding"),
        digests=("content_hash", "term_keys"),
        labels=(
            "memory_id",
            "memory_type",
            "kind",
            "embedding_model",
            "next_embedding_model",
            "interaction_id",
            "task_id",
            "session_id",
            "user_id",
            "namespace",
            "speaker",
            "external_id",
            "superseded_by",
            "parent_memory_id",
        ),
    ),
    _table("memory_usage", _WITH_ROW, labels=("memory_id",)),
    _table(
        "memory_passages",
        f"{_WITH_ROW}; or an update of its text",
        vectors=("embedding",),
        labels=("memory_id", "embedding_model"),
    ),
    _table("memory_subjects", _WITH_ROW, digests=("subject_key",), labels=("memory_id",)),
    _table("late_episodes", f"{_WITH_ROW}; consolidation, once it has looked", labels=("memory_id",)),
    _table("memory_links", _WITH_ROW, labels=("source_id", "target_id", "relation")),
    _table(
        "memory_history",
        "the transaction that deletes the memory",
        text=("before", "after"),
        labels=("memory_id", "operation", "token_id", "trace_id"),
    ),
    _table(
        "idempotency_keys",
        "its own expiry: a retried store must not bring a deleted memory back; or erase",
        digests=("request_digest",),
        labels=("idempotency_key", "memory_id"),
    ),
    _table(
        "archived_memories",
        "memory.restore, or erase: it tells where a pruned memory's copy is",
        text=("tags",),
        digests=("sha256",),
        labels=(
            "memory_id",
            "memory_type",
            "object_key",
            "archive_id",
            "reason",
            "task_id",
            "session_id",
            "user_id",
            "users",
            "namespace",
        ),
    ),
    _table(
        "archived_copies",
        "erase on a server that uses the archive; it lists every copy, also that of a restored memory",
        labels=("memory_id", "archive_id", "user_id"),
    ),
    _table("completed_tasks", "erase", labels=("task_id",)),
    _table(
        "agent_settings",
        "erase: rules for the agent's layers, of no memory",
        # Model settings may contain a prompt: the agent's text for a model, not a memory's.
        text=("models",),
        labels=("layers", "consolidation", "consolidated_to"),
    ),
    _table("llm_usage", "erase; or 90 days"),
    _table("llm_queue", f"{_WITH_ROW}; or whoever does what it waits for", labels=("memory_id", "work", "session_id")),
    _table("lexical_terms", "the folding of what a deletion takes back", derived=True, digests=("term_key",)),
    _table("lexical_totals", "the folding of what a deletion takes back", derived=True),
    _table("lexical_deltas", "its folding", derived=True, digests=("term_keys",)),
)

JOBS = Place(
    "background jobs",
    FoundBy.JOB_IDS,
    False,
    "the end of the job; JobRows.forget, which erasing or deleting everything calls; ids alone stand in it",
)
WORKING_MEMORY = RedisKeys(
    "working memory",
    FoundBy.AGENT_SEGMENT,
    True,
    "a change or deletion of one of the task's memories, the task's end, MEMORY_WORKING_TTL",
    prefix="memory:working:",
)
# Contains only queries, but a query may equal a memory's text.
SHARED_EMBEDDINGS = RedisKeys(
    "embedding cache in Redis",
    FoundBy.AGENT_SEGMENT,
    True,
    "erase, all of the agent's (AgentEmbedder.forget); or a day",
    prefix=CACHE_KEY_PREFIX,
)
PROCESS_EMBEDDINGS = Place(
    "embedding cache in the process",
    FoundBy.AGENT_KEY,
    True,
    "erase in its own process (AgentEmbedder.forget), newer entries, the end of the process",
)
ARCHIVE = ArchiveObjects(
    "archive",
    FoundBy.AGENT_SEGMENT,
    False,
    "erase, on a server that uses it; archived_copies lists every copy, also of what was restored",
)
EXPORTS = Place(
    "exported files",
    FoundBy.NOTHING,
    False,
    "their owner: `agentcore export` writes where it is told and keeps no note of it",
)
PROVIDERS = Place(
    "the embedding provider, where one is remote",
    FoundBy.NOTHING,
    False,
    "its own terms: EMBEDDING_MODEL openai or cohere sends it each text; the others send nothing",
)
MODELS = Place(
    "the reranker and the language model, where they are remote",
    FoundBy.NOTHING,
    False,
    "their own terms: RERANKER=http sends the foremost memories with the query, QUERY_REWRITER the query "
    "with its history, LLM_MODEL a fact and the one it may replace, and of agents that wish it new memories "
    "for facts and sessions for summaries; none does unless it is set",
)
LOGS = Place("logs", FoundBy.NOTHING, False, "nothing to clear: no text is ever logged")
# Remains on disk for a while after a removal, inaccessible through the service.
REMAINS = Place(
    "dead rows, write-ahead log and column statistics of PostgreSQL, append-only file of Redis",
    FoundBy.NOTHING,
    True,
    "`agentcore purge`; backups keep theirs",
)

INVENTORY: tuple[Place, ...] = (
    *TABLES,
    JOBS,
    WORKING_MEMORY,
    SHARED_EMBEDDINGS,
    PROCESS_EMBEDDINGS,
    ARCHIVE,
    EXPORTS,
    PROVIDERS,
    MODELS,
    LOGS,
    REMAINS,
)


class KeyedBy(StrEnum):
    """Owner of a cache entry."""

    AGENT = "the agent"
    CALLER = "a digest of the token"
    NO_DATA = "names of code, settings or models: no agent's data"
    WORD = "a single word, of any agent: no sentence can be confirmed by it"


# Every in-process cache that outlives a call, as `module:place`. A test fails if one is missing.
CACHES: Mapping[str, KeyedBy] = {
    "agentcore.admission:BodyBudget._held": KeyedBy.AGENT,
    "agentcore.admission:RateLimit._buckets": KeyedBy.AGENT,
    "agentcore.call_queue:CallQueue._queued": KeyedBy.AGENT,
    "agentcore.call_queue:CallQueue._running": KeyedBy.AGENT,
    "agentcore.call_queue:_Waiting.calls": KeyedBy.AGENT,
    "agentcore.auth:JwksKeys._keys": KeyedBy.NO_DATA,
    "agentcore.auth:TokenVerifier._seen": KeyedBy.CALLER,
    "agentcore.database:query()": KeyedBy.NO_DATA,
    "agentcore.database:with_numbered_parameters()": KeyedBy.NO_DATA,
    "agentcore.memory.embedding_cache:CachingEmbedder._entries": KeyedBy.AGENT,
    "agentcore.memory.lexical:_shares()": KeyedBy.NO_DATA,
    "agentcore.memory.language.text:_forms()": KeyedBy.WORD,
    "agentcore.memory.language.rejection:_default_patterns()": KeyedBy.NO_DATA,
    "agentcore.memory.lexical:_agent_key()": KeyedBy.AGENT,
    "agentcore.memory.lexical:_term()": KeyedBy.WORD,
    "agentcore.memory.lexical:_term_key()": KeyedBy.AGENT,
    "agentcore.memory.ranking.opposition:_readings()": KeyedBy.AGENT,
    "agentcore.memory.parts:AccessQueue._counts": KeyedBy.AGENT,
    "agentcore.memory.parts:AccessQueue._moments": KeyedBy.AGENT,
    "agentcore.memory.rows.vector_rows:ServingIndexes._known": KeyedBy.AGENT,
    "agentcore.memory.scoring:is_assistant()": KeyedBy.WORD,
    "agentcore.memory.scoring:is_person()": KeyedBy.WORD,
    "agentcore.memory.tokens:TokenCounters._made": KeyedBy.NO_DATA,
    "agentcore.memory.vector_store:PgVectorStore._statements": KeyedBy.NO_DATA,
    "agentcore.migration:revisions()": KeyedBy.NO_DATA,
    "agentcore.providers.hashing:_features()": KeyedBy.WORD,
    "agentcore.providers.openai_models:load_prompt()": KeyedBy.NO_DATA,
}
