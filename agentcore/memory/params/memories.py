"""Params and results of the methods about memories themselves: store, retrieve, delete, stats ..."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Any, Literal, Protocol
from uuid import UUID

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    SerializeAsAny,
    ValidationError,
    WrapValidator,
    model_serializer,
    model_validator,
)

from agentcore.errors import JsonRpcErrorCode, field_path, problem_sentence
from agentcore.limits import (
    MAX_BATCH_ITEMS,
    MAX_CONTEXT_TOKENS,
    MAX_IDS,
    MAX_K,
    MAX_LINKS_A_CALL,
    MAX_PAGE,
    MAX_PROJECTED,
    MAX_QUERY_CHARS,
    MAX_TRACED,
)
from agentcore.memory.models import (
    Amount,
    FilledText,
    FilterUsers,
    Flag,
    Identifier,
    Interaction,
    JsonObject,
    Labels,
    Link,
    MemoryRecord,
    MemorySummary,
    MemoryType,
    Metadata,
    Moment,
    Receipt,
    ScoreTerm,
    Share,
    StoreStatus,
    Strict,
    Text,
    TtlSeconds,
    Vector,
    WeightName,
)

# Errors in an item's shape, not in its values.
_WRONG_FORM = {"extra_forbidden", "model_type"}


class RefusedItem(BaseModel):
    """Placeholder for an item that cannot be stored; serializes as the original input.

    `problem`: the validation error; `is_wrong`: false if there is merely no text to store.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    problem: str
    given: Any
    is_wrong: bool = True

    @model_serializer
    def _as_given(self) -> Any:
        return self.given


class _Validates(Protocol):
    def __call__(self, value: Any, handler: ModelWrapValidatorHandler[Any]) -> Any: ...


def each_alone(instead: Callable[..., RefusedItem]) -> _Validates:
    """Returns a validator that replaces an item with invalid values by `instead(problem=..., given=...)`.

    Raises ValidationError for an item of a wrong shape.
    """

    def validate(value: Any, handler: ModelWrapValidatorHandler[Any]) -> Any:
        try:
            return handler(value)
        except ValidationError as cause:
            if any(found["type"] in _WRONG_FORM for found in cause.errors()):
                raise
            return instead(problem=_problem(cause), given=value)

    return validate


def _problem(cause: ValidationError) -> str:
    found = cause.errors(include_url=False, include_context=False, include_input=False)
    places = ((field_path(each["loc"]), problem_sentence(each)) for each in found)
    return "; ".join(dict.fromkeys(f"{place} {problem}".strip() for place, problem in places))


DEFAULT_SHARE = 0.2

# A list matches any of its values. An empty one is rejected: it could mean no filter or no match.
FilterLabels = Annotated[Labels, Field(min_length=1)]
MemoryTypes = Annotated[list[MemoryType], Field(min_length=1, max_length=len(MemoryType))]
Consistent = Annotated[
    Flag, Field(description="Read from the primary, not from a replica, which may lag behind recent writes.")
]
PruningStrategyName = Literal["least_relevant", "oldest_first", "frequency_based", "retention_curve"]


class Filters(Strict):
    """Filters of memories: all fields that are set must match, a list matches any of its values."""

    memory_types: MemoryTypes | None = Field(None, description="Only these layers.")
    task_id: Identifier | None = None
    session_id: Identifier | None = None
    user_id: FilterUsers | None = None
    namespace: Identifier | None = None
    after: Moment | None = Field(None, description="Timestamp at or after this time.")
    before: Moment | None = Field(None, description="Timestamp before this time.")
    entities: FilterLabels | None = None
    keywords: FilterLabels | None = None
    tags: FilterLabels | None = None
    min_importance: Share | None = None

    @model_validator(mode="after")
    def _range_has_sense(self) -> Filters:
        if self.after is not None and self.before is not None and self.after >= self.before:
            raise ValueError("after must be earlier than before")
        return self

    def conditions(self) -> JsonObject:
        """Returns the filters that are set as JSON values; same keys as `memory_matches` in the schema."""
        given = self.model_dump(mode="json", include=set(Filters.model_fields), exclude_none=True)
        for name in ("entities", "keywords"):
            if name in given:
                given[name] = [label.casefold() for label in given[name]]
        return given


class StoreParams(Strict):
    """The memory to store: an `interaction`, or `content` as text."""

    interaction: Interaction | None = None
    content: FilledText | None = None
    memory_type: MemoryType | None = Field(None, description="The layer; episodic if absent.")
    importance: Share | None = Field(None, description="Importance of the memory, 0 to 1; 0.5 if absent.")
    tags: Labels = Field(default_factory=list)
    namespace: Identifier | None = None
    user_id: Identifier | None = None
    session_id: Identifier | None = None
    task_id: Identifier | None = None
    speaker: Identifier | None = None
    timestamp: Moment | None = Field(
        None, description="When it was said or happened; now if absent. Rejected if more than 24 hours ahead."
    )
    ttl_seconds: TtlSeconds | None = Field(
        None, description="Seconds until it expires; null: never. Absent: the default of its layer."
    )
    pinned: Flag = Field(False, description="Never pruned, never expired.")
    external_id: Identifier | None = Field(None, description="The caller's own id; returned unchanged.")
    idempotency_key: Identifier | None = Field(
        None, description="A repeated key returns the first memory_id and stores nothing."
    )
    embedding: Vector | None = Field(None, description="The caller's own vector, used instead of the embedder's.")
    parent_memory_id: UUID | None = None
    valid_from: Moment | None = Field(None, description="Start of validity; the timestamp if absent.")
    valid_to: Moment | None = Field(None, description="End of validity; still valid if absent.")
    superseded_by: UUID | None = Field(None, description="The memory that replaced it.")
    links: Annotated[list[Link], Field(max_length=MAX_LINKS_A_CALL)] = Field(default_factory=list)
    force: Flag = Field(False, description="Store it even if it has no content worth storing or is a duplicate.")
    supersede: Flag = Field(True, description="Supersede memories whose fact this one changes.")
    keep_reasoning: Flag = Field(
        False, description="Keep an assistant's text with its reasoning blocks in the record's `response`."
    )
    metadata: Metadata = Field(default_factory=dict)

    @model_validator(mode="after")
    def _one_source(self) -> StoreParams:
        if self.interaction is None and self.content is None:
            raise ValueError("requires interaction or content")
        if self.interaction is not None and self.content is not None:
            raise ValueError("requires either interaction or content, not both")
        return self

    @model_validator(mode="after")
    def _does_not_contradict_itself(self) -> StoreParams:
        if self.valid_from is not None and self.valid_to is not None and self.valid_from > self.valid_to:
            raise ValueError("valid_from is later than valid_to")
        for name in ("session_id", "user_id", "task_id"):
            inner = getattr(self.interaction, name, None)
            if inner is not None and getattr(self, name) not in (None, inner):
                raise ValueError(f"{name} and interaction.{name} differ: pass one, or the same value")
        return self


class StoreResult(Strict):
    success: bool
    memory_id: UUID | None
    status: StoreStatus
    superseded: list[UUID] = Field(default_factory=list, description="The memories that it superseded.")
    superseded_by: UUID | None = Field(
        None, description="Set if a memory with a later timestamp, stored earlier, supersedes this one."
    )
    near_duplicate_of: UUID | None = Field(None, description="An earlier memory with nearly the same text.")
    reason: str | None = Field(None, description="Why it was rejected.")
    flagged: bool = Field(False, description="It matches a pattern of injected instructions.")
    flags: list[str] = Field(default_factory=list, description="The names of the patterns it matches.")
    code: int | None = Field(
        None,
        description="In a batch, the error code that memory.store would return for this item; null if it was "
        "rejected for its content only.",
    )
    receipt: Receipt | None = Field(None, description="Null in a batch, which has one receipt.")


class RefusedStore(RefusedItem, StoreParams):
    """An item with invalid values."""

    @model_validator(mode="after")
    def _one_source(self) -> RefusedStore:
        return self


class StoreBatchParams(Strict):
    """Several stores in one transaction; an item that cannot be stored is rejected alone."""

    items: Annotated[
        list[Annotated[SerializeAsAny[StoreParams], WrapValidator(each_alone(RefusedStore))]],
        Field(min_length=1, max_length=MAX_BATCH_ITEMS, fail_fast=True),
    ]


class StoreBatchResult(Strict):
    success: bool = Field(description="False if an item was rejected.")
    results: list[StoreResult] = Field(description="One result for each item, in order.")
    receipt: Receipt


Query = Annotated[FilledText, Field(max_length=MAX_QUERY_CHARS)]


class Turn(Strict):
    """One earlier turn of the query's conversation."""

    role: Identifier = "user"
    content: Annotated[Text, Field(max_length=MAX_QUERY_CHARS)]


class RetrieveParams(Filters):
    """The query, and filters of the memories to search."""

    query: Query
    k: Annotated[int, Field(strict=True, ge=1, le=MAX_K)] = Field(5, description="Maximum number of memories.")
    min_score: Share | None = Field(None, description="Minimum cosine similarity of a memory.")
    min_fit: Share | None = Field(
        None,
        description="Minimum `fit`, the probability that the query is about stored memories; else none is returned. "
        "Absent: 0.2, or 0 with the embedding model hashing. Not applied to searches by words only.",
    )
    asked_at: Moment | None = Field(None, description="The time that counts as now; the current time if absent.")
    history: Annotated[list[Turn], Field(max_length=64)] = Field(
        default_factory=list,
        description="Earlier turns of the conversation, oldest first; they complete a vague query.",
    )
    as_of: Moment | None = Field(None, description="Search the memories that were valid at this time.")
    query_vector: Vector | None = Field(None, description="The caller's own vector, used instead of the embedder's.")
    distinct: Flag = Field(
        True, description="Return only the newest of memories that are nearly equal or contradict each other."
    )
    explain: Flag = Field(False, description="Return the terms of each score, and the retrievers of each memory.")
    weights: dict[WeightName, Share] = Field(
        default_factory=dict,
        description="Weights of ranking terms for this search only, as an experiment. Requires the scope memory:admin.",
    )
    trace: Annotated[list[UUID], Field(max_length=MAX_TRACED)] = Field(
        default_factory=list, description="Ids of memories: report the outcome of each in this search."
    )


TraceOutcome = Literal[
    "returned",
    "beyond_k",
    "far_below_the_best",
    "nothing_fits",
    "contradicted",
    "same_text",
    "below_min_score",
    "query_or_summary",
    "not_found",
    "filtered",
    "superseded",
    "expired",
    "unknown",
]


class MemoryTrace(Strict):
    """The outcome of one memory in a search."""

    memory_id: UUID
    outcome: TraceOutcome = Field(
        description="returned, or the step that removed it. nothing_fits: the query is about no stored memory. "
        "query_or_summary: it is the query itself, or a summary of a memory that was found. not_found: no retriever "
        "found it. unknown: there is no such memory."
    )
    by: UUID | None = Field(None, description="The memory that supersedes it, contradicts it or has its text.")
    retrievers: list[str] = Field(default_factory=list, description="The retrievers that found it.")
    similarity: float | None = Field(None, description="Cosine similarity to the query.")
    similarity_rank: int | None = Field(None, description="Its rank among the candidates by similarity, from 1.")
    least_similarity: float | None = Field(None, description="The lowest similarity of a candidate.")
    words: float | None = Field(None, description="Its BM25 score.")
    words_rank: int | None = Field(None, description="Its rank among the candidates by BM25, from 1.")
    candidate_count: int = 0
    rank: int | None = Field(None, description="Its rank by score without cut-offs, from 1.")
    score: float | None = None
    terms: dict[str, ScoreTerm] | None = None


class RetrieveResult(Strict):
    memories: list[MemorySummary]
    traces: list[MemoryTrace] | None = Field(None, description="With `trace`: in the order of its ids.")
    receipt: Receipt


ContextFormat = Literal["markdown", "text", "json"]
EncodingName = Literal["cl100k_base", "o200k_base"]
MAX_LEFT_OUT = 50


class GetContextParams(Filters):
    """The query of the context, its token budget, and filters of the memories to search."""

    query: Query
    task_id: Identifier | None = Field(None, description="The task whose working memory is the first section.")
    max_tokens: Annotated[int, Field(strict=True, ge=1, le=MAX_CONTEXT_TOKENS)] = 2_000
    min_score: Share | None = None
    min_fit: Share | None = Field(None, description="As for memory.retrieve; the default is 0 with a `task_id`.")
    asked_at: Moment | None = None
    history: Annotated[list[Turn], Field(max_length=64)] = Field(default_factory=list)
    as_of: Moment | None = None
    query_vector: Vector | None = None
    distinct: Flag = Field(True, description="As for memory.retrieve; does not apply to working memory.")
    include_flagged: Flag = Field(False, description="Include memories that match a pattern of injected instructions.")
    format: ContextFormat = Field("markdown", description="Output format of the context.")
    model: Identifier | None = Field(
        None, description="Count tokens with this model's encoding. Rejected if the encoding is unknown."
    )
    encoding: EncodingName | None = Field(
        None, description="Count tokens with this tiktoken encoding, instead of `model`; absent: TOKEN_ENCODING."
    )
    explain: Flag = Field(False, description="Also return the memories found, with their score terms.")

    @model_validator(mode="after")
    def _counted_one_way(self) -> GetContextParams:
        if self.model is not None and self.encoding is not None:
            raise ValueError("pass either model or encoding, not both")
        return self


class LeftOut(Strict):
    """A memory that is not in the context, and why."""

    memory_id: UUID
    reason: Literal["beyond_max_tokens", "same_text", "told_by_parent", "told_by_sources", "told_by_others"]


class GetContextResult(Strict):
    context: str
    token_count: int
    memory_ids: list[UUID] = Field(description="The memories in the context, in the order of their numbers in it.")
    encoding: str | None = Field(description="The encoding used to count tokens; null if memory was not available.")
    shortened: list[UUID] = Field(
        default_factory=list, description="Those of `memory_ids` that were shortened to some of their sentences."
    )
    left_out: list[LeftOut] = Field(
        default_factory=list, description="Memories found but not in the context, best first; at most 50."
    )
    memories: list[MemorySummary] | None = Field(
        None, description="With `explain`: those of `memory_ids` that the search found, with their score terms."
    )
    receipt: Receipt


class PruneParams(Strict):
    """The layer to prune, the strategy, and how many memories."""

    memory_layer: MemoryType = Field(
        description="working: pruned memories are archived and leave the working memory of their task."
    )
    strategy: PruningStrategyName = Field(
        "least_relevant", description="Overridden by MEMORY_PRUNING_STRATEGY if absent and that is set."
    )
    target: Amount | None = Field(
        None,
        description="How many to prune: an integer (500) is a count, a number with a decimal point (0.2, "
        "1.0) a share of the layer. Absent: the excess over its capacity if there is one, else 0.2.",
    )
    dry_run: Flag = Field(False, description="Return the memories that would be pruned; prune none.")


class PruneResult(Strict):
    pruned_count: int = Field(description="Memories pruned; 0 in a dry run.")
    memory_ids: list[UUID] = Field(default_factory=list, description="The memories pruned, or to prune in a dry run.")
    dry_run: bool = False
    complete: bool = Field(
        True,
        description="False: the call reached its time limit. The memories in `memory_ids` are pruned, the "
        "others are not. Call again with the remaining count; a share would count the smaller layer.",
    )
    receipt: Receipt


class GetParams(Strict):
    """The memory to return."""

    memory_id: UUID
    consistent: Consistent = False


class GetResult(Strict):
    memory: MemoryRecord
    receipt: Receipt


class ListParams(Filters):
    """Filters, sort order and page size."""

    order_by: Literal["timestamp", "importance", "access_count"] = "timestamp"
    descending: Flag = True
    vectors: Flag = Field(False, description="Also return vectors that callers passed.")
    consistent: Consistent = False
    limit: Annotated[int, Field(strict=True, ge=1, le=MAX_PAGE)] = 50
    cursor: Annotated[str, Field(max_length=512)] | None = Field(
        None, description="`next_cursor` of the previous page."
    )


class ListResult(Strict):
    memories: list[MemoryRecord]
    next_cursor: str | None
    receipt: Receipt


class CountParams(Filters):
    """Filters of the memories to count."""

    consistent: Consistent = False


class CountResult(Strict):
    count: int
    receipt: Receipt


FacetField = Literal["memory_type", "user_id", "session_id", "task_id", "namespace", "speaker", "tags", "day"]


class FacetsParams(Filters):
    """The fields whose values to count, and filters of the memories."""

    fields: Annotated[list[FacetField], Field(min_length=1, max_length=8)] = Field(
        description="day: the date of the timestamp (UTC)."
    )
    limit: Annotated[int, Field(strict=True, ge=1, le=MAX_PAGE, description="Most frequent values of each.")] = 50


class FacetValue(Strict):
    """A value of a field, and the memories that have it."""

    value: str
    count: int
    newest: datetime = Field(description="Timestamp of the newest of them.")


class FacetsResult(Strict):
    facets: dict[FacetField, list[FacetValue]] = Field(description="The most frequent values first.")
    memory_count: int = Field(description="Memories counted: the newest 20,000 that match.")
    complete: bool = Field(description="False: more memories match than were counted.")
    receipt: Receipt


class ProjectParams(Filters):
    """Filters of the memories to project."""

    limit: Annotated[int, Field(strict=True, ge=1, le=MAX_PROJECTED, description="The newest.")] = MAX_PROJECTED


class ProjectResult(Strict):
    """Memories on two axes, newest first: each list has a value for each memory."""

    memory_ids: list[UUID]
    x: list[float] = Field(description="Place on the first axis, -1 to 1; both axes have the same scale.")
    y: list[float]
    timestamps: list[datetime]
    memory_types: list[int] = Field(description="Places in `values`, as those of users and sessions.")
    user_ids: list[int]
    session_ids: list[int]
    values: dict[Literal["memory_types", "user_ids", "session_ids"], list[str | None]]
    explained: tuple[float, float] = Field(description="Share of the variance along each axis.")
    without_vectors: int = Field(description="Memories left out: they have no vector of the current model.")
    complete: bool = Field(description="False: more memories match than `limit`.")
    receipt: Receipt


class DeleteParams(Filters):
    """Selects the memories to delete: by ids, or by filters or `all` with `confirm`."""

    memory_ids: Annotated[list[UUID], Field(min_length=1, max_length=MAX_IDS)] | None = None
    confirm: Flag = Field(False, description="Required with filters or `all`.")
    all: Flag = Field(False, description="Delete all memories of this agent; without ids and filters.")

    @model_validator(mode="after")
    def _says_what(self) -> DeleteParams:
        if sum((self.memory_ids is not None, bool(self.conditions()), self.all)) != 1:
            raise ValueError("pass either memory_ids, or filters, or all: true")
        if self.memory_ids is None and not self.confirm:
            raise ValueError("deleting by filter, or all, requires confirm: true")
        return self


class DeleteResult(Strict):
    deleted_count: int
    reinstated_count: int = Field(0, description="Superseded memories that are current again.")
    complete: bool = Field(
        True,
        description="False: the call reached its time limit; `deleted_count` memories are deleted. Repeat "
        "the call to delete the rest.",
    )
    receipt: Receipt


class CompleteTaskParams(Strict):
    """The task that has ended."""

    task_id: Identifier


class CompleteTaskResult(Strict):
    success: bool
    cleared_count: int = Field(description="Memories removed from working memory.")
    receipt: Receipt


def answer_to(item: RefusedItem) -> StoreResult:
    """Returns the result of an item: with an error code if it is invalid, not if it is skipped."""
    code = int(JsonRpcErrorCode.INVALID_PARAMS) if item.is_wrong else None
    return StoreResult(success=False, memory_id=None, status="rejected", reason=item.problem, code=code)


class StatsParams(Strict):
    """No params."""


class LayerStats(Strict):
    count: int
    capacity: int = Field(description="Maximum number of memories; 0: unlimited.")
    oldest: datetime | None = None
    newest: datetime | None = None
    pinned: int = 0
    waiting_for_embedding: int = 0


class StatsResult(Strict):
    total: int
    layers: dict[MemoryType, LayerStats]
    links: int
    archived: int
    accesses: int
    receipt: Receipt


class CapabilitiesParams(Strict):
    """No params."""


class CapabilitiesResult(Strict):
    version: str
    embedding_model: str | None
    embedding_dimensions: int | None
    vector_store: str
    archive: str
    memory_types: list[MemoryType]
    pruning_strategies: list[str]
    limits: dict[str, int]
    features: list[str] = Field(
        description="Names of optional features that are on. With a language model: model_facts (extracts "
        "facts), model_summaries (of sessions and clusters), model_judge (decides about superseded facts)."
    )
    receipt: Receipt
