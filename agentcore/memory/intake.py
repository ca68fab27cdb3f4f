"""Converts a store's params to a draft: column values, and a reason to reject it. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from agentcore.errors import InvalidParams
from agentcore.limits import MAX_TEXT_CHARS
from agentcore.memory.api import Caller
from agentcore.memory.columns import NewColumns, RuleColumns, TextColumns, VectorColumns
from agentcore.memory.contradictions import rule_input, subject_keys
from agentcore.memory.encoding import action_outcomes, encode, interaction_text
from agentcore.memory.language.llm_text import strip_leading_reasoning
from agentcore.memory.language.moments import mentioned
from agentcore.memory.language.passages import is_long
from agentcore.memory.language.rejection import Screen, rejection
from agentcore.memory.lexical import term_key, term_keys
from agentcore.memory.models import DEFAULT_IMPORTANCE, Interaction, JsonObject, Link, MemoryType
from agentcore.memory.params.memories import StoreParams
from agentcore.memory.scoring import is_assistant
from agentcore.memory.statements.facts import fact, fact_keys
from agentcore.memory.statements.statements import read

# A memory dated in the future would supersede and outrank all that is stored until then.
LARGEST_CLOCK_SKEW = timedelta(hours=24)
ONLY_REASONING = "it contains nothing but a model's reasoning"
THREAD_ABOVE_ITEMS, THREAD_ABOVE_CHARS = 4, 20_000
_SCOPE = ("task_id", "session_id", "user_id", "namespace", "speaker", "memory_type")
_MUST_MATCH_IF_GIVEN = ("tags", "metadata", "pinned", "external_id", "interaction_id", "parent_memory_id")


@dataclass(frozen=True)
class Draft:
    """A memory before embedding.

    `rejection_reason`: None if accepted; `digest`: SHA-256 of the request, for idempotency.
    """

    params: StoreParams
    columns: NewColumns
    derived: DerivedText
    rejection_reason: str | None
    digest: bytes


@dataclass(frozen=True, slots=True)
class DerivedText:
    """Values derived from a text; `flags`: patterns of injected instructions that it matches."""

    content: str
    columns: TextColumns
    flags: list[str]
    embedding_text: str
    is_long: bool


def draft(
    params: StoreParams,
    caller: Caller,
    *,
    now: datetime,
    count_tokens: Callable[[str], int],
    default_ttls: Mapping[str, int],
    screen: Screen,
) -> Draft:
    """Raises InvalidParams. `default_ttls`: the service's, in seconds by layer."""
    # A TTL counts from the request, so a retry of the same request may pass a smaller one.
    request = params.model_dump_json(exclude={"idempotency_key", "ttl_seconds"}, exclude_defaults=True)
    said: Interaction | StoreParams = params.interaction or params
    speaker = _first(params.speaker, said.speaker)
    metadata = {**said.metadata, **params.metadata}
    content, raw_text = _content_and_raw(params, speaker, metadata)
    check_length(content, "content" if params.interaction is None else "interaction")
    timestamp = params.timestamp or said.timestamp or now
    _check_timestamp(timestamp, now)
    derived = derive_text(caller.agent_id, content, speaker, count_tokens, timestamp, screen)
    if derived.flags:
        params = params.model_copy(update={"supersede": False})
    layer = (params.memory_type or MemoryType.EPISODIC).value
    columns = NewColumns(
        content=content,
        text=derived.columns,
        is_long=derived.is_long,
        flagged=bool(derived.flags),
        vector=VectorColumns(params.embedding),
        response=raw_text if params.keep_reasoning else None,
        speaker=speaker,
        user_id=_first(params.user_id, said.user_id),
        namespace=params.namespace,
        session_id=_first(params.session_id, said.session_id),
        task_id=_first(params.task_id, said.task_id),
        timestamp=timestamp,
        valid_from=params.valid_from or timestamp,
        valid_to=params.valid_to,
        superseded_by=params.superseded_by,
        parent_memory_id=params.parent_memory_id,
        memory_type=layer,
        ttl_seconds=_ttl_seconds(params),
        default_ttl_seconds=default_ttls.get(layer),
        relevance_score=DEFAULT_IMPORTANCE if params.importance is None else params.importance,
        pinned=params.pinned,
        tags=list(params.tags),
        metadata=metadata,
        external_id=params.external_id,
        provenance=_provenance(caller, params, derived.columns.content_hash),
    )
    _add_interaction_and_subjects(columns, caller.agent_id, params)
    rejection_reason = _rejection(params, content, raw_text)
    return Draft(params, columns, derived, rejection_reason, hashlib.sha256(request.encode()).digest())


def _add_interaction_and_subjects(columns: NewColumns, agent_id: str, params: StoreParams) -> None:
    interaction = params.interaction
    if interaction is not None:
        columns.interaction_id, columns.actions = interaction.interaction_id, interaction.actions
        columns.outcome = interaction.outcome
        columns.action_outcomes = action_outcomes(interaction.actions, interaction.outcome)
    if params.superseded_by is None and params.valid_to is None:
        columns.subjects = subjects_of(agent_id, columns)


def _rejection(params: StoreParams, content: str, raw_text: str | None) -> str | None:
    if raw_text and not content:
        return ONLY_REASONING
    return None if params.force else rejection(content)


def _check_timestamp(timestamp: datetime, now: datetime) -> None:
    if timestamp > now + LARGEST_CLOCK_SKEW:
        raise InvalidParams(
            f"timestamp {timestamp.isoformat()} is more than 24 hours in the future. It is when the memory "
            "was said or happened; write the time of a future event in the text.",
            data={"field": "timestamp"},
        )


def derive_text(
    agent_id: str,
    content: str,
    speaker: str | None,
    count_tokens: Callable[[str], int],
    timestamp: datetime,
    screen: Screen,
) -> DerivedText:
    """Returns the values derived from a text said at `timestamp`."""
    encoded = encode(content, speaker=speaker)
    # Days are UTC days, independent of the database's time zone.
    said_at = timestamp.astimezone(UTC)
    event = mentioned(content, said_at)
    event_from, event_to = event or (None, None)
    indexed = f"{speaker} {content}" if speaker else content
    columns = TextColumns(
        summary=encoded.summary,
        facts=encoded.facts,
        keywords=encoded.keywords,
        entities=encoded.entities,
        entity_keys=[entity.casefold() for entity in encoded.entities],
        event_from=event_from,
        event_to=event_to,
        content_hash=bytes.fromhex(encoded.content_hash),
        term_keys=term_keys(agent_id, indexed),
        token_count=count_tokens(content),
    )
    flags = screen(encoded.normalised)
    return DerivedText(content, columns, flags, encoded.embedding_text, is_long(content))


def subjects_of(agent_id: str, memory: RuleColumns) -> list[int]:
    """Returns digests of a memory's subjects, which differ by agent, namespace and user.

    Empty for a flagged memory, which must not supersede another.
    """
    if memory.flagged:
        return []
    said = rule_input(memory)
    keys = *subject_keys(read(said.content), said.speaker), *fact_keys(fact(said.content), said.speaker)
    texts = dict.fromkeys(keys)
    scope = memory.namespace or "", memory.user_id or ""
    return [term_key(agent_id, "\x1f".join(("subject", *scope, text))) for text in texts]


def check_length(content: str, field: str) -> None:
    """Raises InvalidParams if a composed text exceeds the length limit of a text."""
    if len(content) > MAX_TEXT_CHARS:
        raise InvalidParams(
            f"{field} makes a memory of {len(content)} characters; {MAX_TEXT_CHARS} is the most", data={"field": field}
        )


def is_long_work(chars: int, items: int = 1) -> bool:
    return items > THREAD_ABOVE_ITEMS or chars > THREAD_ABOVE_CHARS


def is_duplicate(row: Mapping[str, Any], each: Draft) -> bool:
    """Whether a memory with the same normalized text is a duplicate of the draft.

    The scope is equal, no different time is given, and it has all values that the draft has.
    """
    columns, params = each.columns, each.params
    return all(
        (
            all(row[name] == getattr(columns, name) for name in _SCOPE),
            not is_timed(params) or row["timestamp"] == columns.timestamp,
            all(row[name] == own for name in _MUST_MATCH_IF_GIVEN if (own := getattr(columns, name))),
            params.ttl_seconds in (None, row["ttl_seconds"]),
            {params.valid_from, params.valid_to, params.superseded_by} == {None},
            params.importance is None or _near(row["relevance_score"], params.importance),
            _has_links(row["links"], params.links),
        )
    )


def as_row(memory_id: UUID, each: Draft) -> Mapping[str, Any]:
    """Returns a draft as a row that `is_duplicate` can read."""
    names = *_SCOPE, *_MUST_MATCH_IF_GIVEN, "timestamp", "ttl_seconds", "relevance_score"
    links = [link.model_dump() for link in each.params.links]
    own = {name: getattr(each.columns, name) for name in names}
    return {**own, "memory_id": memory_id, "content_hash": each.columns.text.content_hash, "links": links}


def _has_links(stored: Sequence[JsonObject], wanted: Sequence[Link]) -> bool:
    weights = {(str(link["target_id"]), link["relation"]): link["weight"] for link in stored}
    return all(_near(weights.get((str(link.target_id), link.relation), -1.0), link.weight) for link in wanted)


def _near(stored: float, given: float) -> bool:
    return abs(stored - given) < 1e-6


def is_timed(params: StoreParams) -> bool:
    return params.timestamp is not None or (params.interaction is not None and params.interaction.timestamp is not None)


def _content_and_raw(params: StoreParams, speaker: str | None, metadata: JsonObject) -> tuple[str, str | None]:
    given = params.interaction
    if given is None:
        return strip_reasoning(params.content or "", speaker, metadata), params.content
    response = strip_leading_reasoning(given.response or "", cut_off=True)
    return interaction_text(given.query, response, given.actions, given.outcome), given.response


def strip_reasoning(content: str, speaker: str | None, metadata: JsonObject) -> str:
    """Strips reasoning blocks: all of an assistant's, none of a user's.

    If speaker and role are unknown, only closed blocks at the start.
    """
    speakers = speaker, metadata.get("role")
    if any(is_assistant(each) for each in speakers if isinstance(each, str)):
        return strip_leading_reasoning(content, cut_off=True)
    return strip_leading_reasoning(content) if speakers == (None, None) else content


def _ttl_seconds(params: StoreParams) -> int | None:
    """0: never expires. None: the layer's default applies."""
    never_expires = "ttl_seconds" in params.model_fields_set or params.pinned
    return 0 if params.ttl_seconds is None and never_expires else params.ttl_seconds


def _provenance(caller: Caller, params: StoreParams, content_hash: bytes) -> JsonObject:
    given = {
        "form": "content" if params.interaction is None else "interaction",
        # The vector is the caller's while the text has this hash.
        "own_vector_of": None if params.embedding is None else content_hash.hex(),
        # False: older memories that are stored later are not superseded by it either.
        "supersede": None if params.supersede else False,
        # The caller's TTL; a default TTL of the layer is not recorded.
        "ttl_seconds": params.ttl_seconds,
        "token_id": caller.token_id,
        "trace_id": caller.trace_id,
        "a2a_context": dict(caller.a2a_context) if caller.a2a_context else None,
    }
    return {name: value for name, value in given.items() if value is not None}


def _first(own: str | None, said: str | None) -> str | None:
    return said if own is None else own
