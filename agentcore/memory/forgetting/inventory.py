"""Lists every place where a text or vector may be stored."""

from __future__ import annotations

from dataclasses import dataclass

from agentcore.memory.embedding_cache import CACHE_KEY_PREFIX
from agentcore.memory.keys import encode_segment


@dataclass(frozen=True)
class Place:
    """`derived`: rebuilt from the memories' rows. `cleared_by`: what deletes a removed memory's data."""

    name: str
    derived: bool
    cleared_by: str


@dataclass(frozen=True)
class OwnedTable(Place):
    """A table under row security. `text`: words of the memory, or passed with it.

    `digests` can confirm a guessed text, but reveal none. Numbers, times and flags are in no category.
    """

    text: tuple[str, ...]
    vectors: tuple[str, ...]
    digests: tuple[str, ...]
    labels: tuple[str, ...]


@dataclass(frozen=True)
class RedisKeys(Place):
    prefix: str

    def pattern(self, agent_id: str) -> str:
        """Returns the SCAN pattern of the agent's keys."""
        return f"{self.prefix}{encode_segment(agent_id)}:*"


@dataclass(frozen=True)
class ArchiveObjects(Place):
    def folder(self, agent_id: str) -> str:
        """Returns the key prefix of the agent's objects."""
        return f"{encode_segment(agent_id, caseless=True)}/"


def _table(
    name: str,
    cleared_by: str,
    *,
    derived: bool = False,
    text: str = "",
    vectors: str = "",
    digests: str = "",
    labels: str = "",
) -> OwnedTable:
    columns = (tuple(names.split()) for names in (text, vectors, digests, labels))
    return OwnedTable(name, derived, cleared_by, *columns)


_WITH_ROW = "the memory's row, on whose deletion it cascades"

TABLES: tuple[OwnedTable, ...] = (
    _table(
        "memories",
        "its deletion; indexes on vectors and terms follow the row",
        text=(
            "content summary actions outcome action_outcomes response entities entity_keys facts keywords tags "
            "metadata provenance"
        ),
        vectors="embedding next_embedding",
        digests="content_hash term_keys",
        labels=(
            "memory_id memory_type kind embedding_model next_embedding_model interaction_id task_id session_id "
            "user_id namespace speaker external_id superseded_by parent_memory_id"
        ),
    ),
    _table("memory_usage", _WITH_ROW, labels="memory_id"),
    _table(
        "memory_passages",
        f"{_WITH_ROW}; or an update of its text",
        vectors="embedding",
        labels="memory_id embedding_model",
    ),
    _table("memory_subjects", _WITH_ROW, digests="subject_key", labels="memory_id"),
    _table("late_episodes", f"{_WITH_ROW}; consolidation, after reading the row", labels="memory_id"),
    _table("memory_links", _WITH_ROW, labels="source_id target_id relation"),
    _table(
        "memory_history",
        "the transaction that deletes the memory",
        text="before after",
        labels="memory_id operation token_id trace_id",
    ),
    _table(
        "idempotency_keys",
        "its own expiry: a retried store must not bring a deleted memory back; or erase",
        digests="request_digest",
        labels="idempotency_key memory_id",
    ),
    _table(
        "archived_memories",
        "memory.restore, or erase: it has the location of a pruned memory's copy",
        text="tags",
        digests="sha256",
        labels="memory_id memory_type object_key archive_id reason task_id session_id user_id users namespace",
    ),
    _table(
        "archived_copies",
        "erase on a server that uses the archive; it lists every copy, also that of a restored memory",
        labels="memory_id archive_id user_id",
    ),
    _table("completed_tasks", "erase", labels="task_id"),
    _table(
        "agent_settings",
        "erase: rules for the agent's layers, of no memory",
        # Model settings may contain a prompt: the agent's text for a model, not a memory's.
        text="models",
        labels="layers consolidation consolidated_to",
    ),
    _table("llm_usage", "erase; or 90 days"),
    _table("llm_queue", f"{_WITH_ROW}; or the job that processes the entry", labels="memory_id work session_id"),
    _table(
        "vector_changes",
        "passing the change on to the vector store; the end of its use",
        derived=True,
        labels="memory_id",
    ),
    _table("lexical_terms", "folding the negative lexical deltas of deletions", derived=True, digests="term_key"),
    _table("lexical_totals", "folding the negative lexical deltas of deletions", derived=True),
    _table("lexical_deltas", "folding", derived=True, digests="term_keys"),
)

JOBS = Place(
    "background jobs",
    False,
    "the end of the job; JobRows.forget, which erasing or deleting everything calls; it contains only ids",
)
WORKING_MEMORY = RedisKeys(
    "working memory",
    True,
    "a change or deletion of one of the task's memories, the task's end, MEMORY_WORKING_TTL",
    prefix="memory:working:",
)
# Contains only queries, but a query may equal a memory's text.
SHARED_EMBEDDINGS = RedisKeys(
    "embedding cache in Redis",
    True,
    "erase, all of the agent's (AgentEmbedder.forget); or a day",
    prefix=CACHE_KEY_PREFIX,
)
PROCESS_EMBEDDINGS = Place(
    "embedding cache in the process",
    True,
    "erase in its own process (AgentEmbedder.forget), newer entries, the end of the process",
)
ARCHIVE = ArchiveObjects(
    "archive", False, "erase, on a server that uses it; archived_copies lists every copy, also of what was restored"
)
VECTOR_STORE = Place(
    "vector store",
    True,
    "passing on a deletion, within seconds; or erase, which counts what is left. It contains vectors and labels",
)
EXPORTS = Place("exported files", False, "their owner: `agentcore export` does not record them")
PROVIDERS = Place(
    "a remote embedding provider",
    False,
    "its own terms: EMBEDDING_MODEL openai or cohere sends it each text; local models send none",
)
MODELS = Place(
    "a remote reranker or language model",
    False,
    "their own terms: RERANKER=http sends the top memories with the query, QUERY_REWRITER the query "
    "with its history, LLM_MODEL a fact and the one it may supersede, and for agents that enabled it new memories "
    "for facts and sessions for summaries; none is used unless set",
)
LOGS = Place("logs", False, "nothing to clear: no text is ever logged")
# Remains on disk for a while after a removal, inaccessible through the service.
REMAINS = Place(
    "dead rows, write-ahead log and column statistics of PostgreSQL, append-only file of Redis",
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
    VECTOR_STORE,
    EXPORTS,
    PROVIDERS,
    MODELS,
    LOGS,
    REMAINS,
)
