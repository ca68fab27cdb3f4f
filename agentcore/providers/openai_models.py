"""Embeddings and chat models of OpenAI, or of any server with its API, over the official SDK.

Prompts are files of `prompts/`; the version in the first line is raised with each change.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Generic, TypeVar, cast

import openai
from numpy.typing import ArrayLike
from openai import AsyncOpenAI, Omit, omit
from pydantic import BaseModel

from agentcore.errors import DependencyUnavailable
from agentcore.memory.embeddings import EmbedderOptions, EmbeddingKind
from agentcore.memory.language.llm_text import strip_all_reasoning
from agentcore.memory.llm import (
    Bill,
    Extraction,
    FactVerdict,
    LlmOptions,
    Rewriting,
    SourceText,
    SummaryRequest,
    WrittenSummary,
)
from agentcore.memory.params.memories import Turn
from agentcore.memory.statements.statements import RuleInput
from agentcore.memory.tokens import TokenCounter
from agentcore.providers.remote_request import REFUSED, Failures, RemoteEmbedder, RequestFailed, persist

OFFICIAL_URL = "https://api.openai.com/v1"
NO_KEY = "none"

SIZABLE = {"text-embedding-3-small": 1_536, "text-embedding-3-large": 3_072}
FIXED = {"text-embedding-ada-002": 1_536}
# Token limit of these models, in this encoding.
MAX_TEXT_TOKENS = 8_191
TEXT_ENCODING = "cl100k_base"


def _new_client(options: EmbedderOptions | LlmOptions) -> AsyncOpenAI:
    return AsyncOpenAI(
        api_key=options.api_key or NO_KEY,
        base_url=options.base_url or OFFICIAL_URL,
        timeout=options.timeout_seconds,
        max_retries=0,
    )


class OpenAiEmbedder(RemoteEmbedder):
    """Truncates texts to the limit of the known models; other models enforce their own."""

    vendor = "OpenAI"
    key_setting = "OPENAI_API_KEY"
    request_texts = 2_048
    request_bytes = 250_000

    def __init__(self, options: EmbedderOptions) -> None:
        largest = SIZABLE.get(options.model_name)
        fixed = FIXED.get(options.model_name)
        super().__init__(
            options, sizes=range(1, largest + 1) if largest else [fixed] if fixed else [], sizable=largest is not None
        )
        self._dimensions_asked: int | Omit = options.dimensions if largest else omit
        self._counter = TokenCounter(options.cache_directory, TEXT_ENCODING) if largest or fixed else None
        self._client: AsyncOpenAI | None = None

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def _connect(self) -> None:
        if self._client is None:
            self._client = _new_client(self._options)

    async def _fit(self, text: str) -> str:
        if self._counter is not None and len(text.encode("utf-8", "surrogatepass")) > MAX_TEXT_TOKENS:
            text = await asyncio.to_thread(self._counter.truncate, text, MAX_TEXT_TOKENS)
        return text or " "

    async def _ask(self, texts: Sequence[str], kind: EmbeddingKind) -> ArrayLike:
        if self._client is None:
            raise DependencyUnavailable("The OpenAI embedder is not open.")
        try:
            answer = await self._client.embeddings.create(
                model=self._options.model_name, input=list(texts), dimensions=self._dimensions_asked
            )
            return [each.embedding for each in sorted(answer.data, key=lambda each: each.index)]
        except openai.OpenAIError as cause:
            raise _failure_of(cause, self._failures) from cause
        except (ValueError, TypeError, AttributeError) as cause:
            # The SDK does not validate a response: a malformed one fails at its first use.
            raise self._failures.unreadable() from cause


def _failure_of(cause: openai.OpenAIError, failures: Failures) -> RequestFailed:
    if isinstance(cause, openai.APIStatusError):
        final = cause.code == "insufficient_quota"
        retry_after = cause.response.headers.get("retry-after")
        return failures.status(cause.status_code, retry_after=retry_after, final=final)
    if isinstance(cause, openai.APITimeoutError):
        return failures.unanswered()
    if isinstance(cause, openai.APIConnectionError):
        return failures.unreachable()
    return failures.unreadable()


_PROMPTS = Path(__file__).with_name("prompts")
_VERSION = re.compile(r"\A<!-- version (\d+) -->\n")


@dataclass(frozen=True)
class Prompt:
    """A prompt and its label, such as "fact_judge@1"."""

    label: str
    text: str


@cache
def load_prompt(name: str) -> Prompt:
    said = (_PROMPTS / f"{name}.md").read_text(encoding="utf-8")
    _, version, text = _VERSION.split(said, maxsplit=1)
    return Prompt(f"{name}@{version}", text.strip())


# Includes reasoning tokens.
OUTPUT_TOKENS = 2_048
# Background work is retried later anyway.
LONGEST_WAIT_SECONDS = 5.0

AnswerT = TypeVar("AnswerT", bound=BaseModel)


@dataclass(frozen=True)
class Task(Generic[AnswerT]):
    """One kind of request: the prompt, the schema of the answer, and names of both for errors."""

    work: str
    answer: str
    prompt: Prompt
    answer_model: type[AnswerT]
    output_tokens: int = OUTPUT_TOKENS


class OpenAiChat(Generic[AnswerT]):
    """Sends requests of one task. Those that a caller blocks on are not retried (`attempts` is 1)."""

    def __init__(self, options: LlmOptions, task: Task[AnswerT]) -> None:
        self.model = f"openai/{options.model_name}"
        self.prompt = task.prompt.label
        self._options = options
        self._task = task
        self._failures = Failures(
            vendor="The language model",
            work=task.work,
            answer=task.answer,
            model_name=options.model_name,
            key_setting="OPENAI_API_KEY or api_key in LLM_OPTIONS",
            model_setting="LLM_MODEL and LLM_BASE_URL",
            timeout_seconds=options.timeout_seconds,
        )
        self._schema = strict_schema(task.answer_model)
        self._formats: Sequence[Mapping[str, Any]] = self._response_formats()
        self._client: AsyncOpenAI | None = None

    def _response_formats(self) -> list[Mapping[str, Any]]:
        most = self._task.output_tokens
        schema = {"name": "answer", "strict": True, "schema": self._schema}
        return [
            {"response_format": {"type": "json_schema", "json_schema": schema}, "max_completion_tokens": most},
            {"response_format": {"type": "json_object"}, "max_tokens": most},
            {"max_tokens": most},
        ]

    async def open(self) -> None:
        """Creates the client; it connects at the first request, so an unavailable server is no error."""
        if self._client is None:
            self._client = _new_client(self._options)

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def ask(self, document: Mapping[str, Any], *, agent_id: str, instructions: str = "") -> AnswerT:
        """Sends the document as JSON, so that text of users is no instruction. Raises DependencyUnavailable."""
        messages = [
            {"role": "system", "content": f"{self._task.prompt.text}\n\n{instructions}".strip()},
            {"role": "user", "content": json.dumps(document, ensure_ascii=False)},
        ]
        try:
            return await persist(
                lambda: self._answer(messages, agent_id),
                attempts=self._options.attempts,
                longest_wait_seconds=LONGEST_WAIT_SECONDS,
            )
        except RequestFailed as failure:
            raise failure.unavailable() from failure

    async def _answer(self, messages: list[dict[str, str]], agent_id: str) -> AnswerT:
        """Drops a response format permanently once the server has refused it."""
        # Concurrent requests may replace the formats.
        formats = tuple(self._formats)
        for response_format in formats:
            try:
                said = await self._say(messages, response_format, agent_id)
            except RequestFailed as failure:
                if failure.status not in REFUSED or response_format is formats[-1]:
                    raise
                continue
            # From now on a refusal is due to the text.
            self._formats = [response_format]
            try:
                return read_answer(_unfenced(strip_all_reasoning(said)), self._task.answer_model)
            except ValueError:
                # Without the cause: its message would quote the answer.
                raise self._failures.unreadable() from None
        raise AssertionError("there is no response format")

    async def _say(self, messages: list[dict[str, str]], response_format: Mapping[str, Any], agent_id: str) -> str:
        if self._client is None:
            raise DependencyUnavailable("The language model is not open.")
        text = "".join([*(each["content"] for each in messages), json.dumps(self._schema)])
        async with self._metered(text, agent_id) as bill:
            try:
                async with asyncio.timeout(self._options.timeout_seconds):
                    answer = await cast(Any, self._client.chat.completions).create(
                        model=self._options.model_name, messages=messages, **response_format
                    )
                _record_usage(answer, bill)
                if _is_declined(answer):
                    raise self._failures.declined()
                return str(answer.choices[0].message.content or "")
            except openai.OpenAIError as cause:
                if bill is not None and _is_free(cause):
                    bill.free()
                raise _failure_of(cause, self._failures) from cause
            except TimeoutError as cause:
                raise self._failures.unanswered() from cause
            except (ValueError, TypeError, AttributeError, LookupError) as cause:
                # The SDK does not validate responses.
                raise self._failures.unreadable() from cause

    def _metered(self, text: str, agent_id: str) -> AbstractAsyncContextManager[Bill | None]:
        meter, task = self._options.meter, self._task
        urgent = self._options.attempts == 1
        if meter is None:
            return nullcontext()
        return meter.request(agent_id, task.work, text, task.output_tokens, urgent=urgent)


def _record_usage(answer: Any, bill: Bill | None) -> None:
    usage = getattr(answer, "usage", None)
    read, written = getattr(usage, "prompt_tokens", None), getattr(usage, "completion_tokens", None)
    if bill is not None and isinstance(read, int) and isinstance(written, int):
        bill.spent(read, written)


_NOT_CONNECTED = ("ConnectError", "ConnectTimeout")


def _is_free(cause: openai.OpenAIError) -> bool:
    """Returns whether the request was refused, or did not reach the server."""
    # By name: the SDK uses httpx or httpx2, whichever is installed.
    return isinstance(cause, openai.APIStatusError) or type(cause.__cause__).__name__ in _NOT_CONNECTED


def _is_declined(answer: Any) -> bool:
    choice = answer.choices[0]
    return bool(getattr(choice.message, "refusal", None)) or choice.finish_reason == "content_filter"


def _unfenced(said: str) -> str:
    text = said.strip()
    return text.removeprefix("```json").removeprefix("```").removesuffix("```").strip()


# Strict mode rejects `default`; `title` and `description` are not needed.
_REMOVED_KEYWORDS = frozenset({"default", "title", "description"})
# Control characters except white space, and unpaired surrogates.
_UNSTORABLE = re.compile("[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\ud800-\udfff]")


def strict_schema(answer_model: type[BaseModel]) -> dict[str, Any]:
    """Returns the schema of the answer: every field required, no additional ones."""
    schema: dict[str, Any] = _strict(answer_model.model_json_schema())
    return schema


def read_answer(said: str, answer_model: type[AnswerT]) -> AnswerT:
    """Removes characters that cannot be stored and normalizes white space. Raises ValueError."""
    try:
        return answer_model.model_validate(_cleaned(json.loads(said, strict=False)))
    except RecursionError as cause:
        raise ValueError("it is nested too deep") from cause


def _cleaned(value: Any) -> Any:
    if isinstance(value, str):
        lines = _UNSTORABLE.sub("", value).splitlines()
        return "\n".join(line for each in lines if (line := " ".join(each.split())))
    if isinstance(value, list):
        return [_cleaned(each) for each in value]
    if isinstance(value, dict):
        return {key: _cleaned(each) for key, each in value.items()}
    return value


def _strict(value: Any) -> Any:
    if isinstance(value, list):
        return [_strict(each) for each in value]
    if not isinstance(value, dict):
        return value
    named = value.get("properties")
    plain = {key: _strict(each) for key, each in value.items() if key not in _REMOVED_KEYWORDS}
    if isinstance(named, dict):
        # A field may have the name of a schema keyword.
        plain["properties"] = {name: _strict(each) for name, each in named.items()}
        plain |= {"required": list(named), "additionalProperties": False}
    return plain


FACT_OUTPUT_TOKENS = 4_096


class _Read(BaseModel):
    number: int
    facts: list[str]
    entities: list[str]


class _Facts(BaseModel):
    memories: list[_Read]


class OpenAiFactExtractor(OpenAiChat[_Facts]):
    def __init__(self, options: LlmOptions) -> None:
        prompt = load_prompt("fact_extraction")
        task = Task("extract facts", "list of facts", prompt, _Facts, FACT_OUTPUT_TOKENS)
        super().__init__(options, task)

    async def extract(self, said: Sequence[SourceText], *, agent_id: str) -> Sequence[Extraction]:
        memories = [
            {"number": number, "speaker": each.speaker, "said_at": each.said_at.isoformat(), "text": each.text}
            for number, each in enumerate(said)
        ]
        answer = await self.ask({"memories": memories}, agent_id=agent_id)
        read = {each.number: Extraction(each.facts, each.entities) for each in answer.memories}
        return [read.get(number, Extraction()) for number in range(len(said))]


TEXT_CHARS = 2_000


class _Verdict(BaseModel):
    verdict: FactVerdict


class OpenAiFactJudge(OpenAiChat[_Verdict]):
    """Sends one request for each pair, without retries: a store blocks on it."""

    def __init__(self, options: LlmOptions) -> None:
        super().__init__(options, Task("judge", "verdict", load_prompt("fact_judge"), _Verdict))

    async def judge(self, old: RuleInput, new: RuleInput, *, agent_id: str) -> FactVerdict:
        document = {name: _document(each) for name, each in (("old", old), ("new", new))}
        return (await self.ask(document, agent_id=agent_id)).verdict


def _document(memory: RuleInput) -> dict[str, str | None]:
    said_at = memory.timestamp.isoformat()
    return {"text": memory.content[:TEXT_CHARS], "speaker": memory.speaker, "said_at": said_at}


LAST_TURNS = 6
TURN_CHARS = 1_000
QUERY_CHARS = 4_000


class _Queries(BaseModel):
    queries: list[str]
    answer: str | None = None


class OpenAiRewriter(OpenAiChat[_Queries]):
    """Sends one request for each query, without retries: a search blocks on it."""

    def __init__(self, options: LlmOptions) -> None:
        prompt = load_prompt("query_rewriting")
        super().__init__(options, Task("rewrite", "list of queries", prompt, _Queries))

    async def rewrite(self, query: str, history: Sequence[Turn], *, agent_id: str) -> Rewriting:
        turns = [{"role": turn.role, "text": turn.content[:TURN_CHARS]} for turn in history[-LAST_TURNS:]]
        document = {"conversation": turns, "question": query[:QUERY_CHARS]}
        answer = await self.ask(document, agent_id=agent_id)
        return Rewriting(answer.queries, answer.answer)


# English has about three words for four tokens.
WORDS_A_TOKEN = 0.75
OPERATOR_INSTRUCTIONS = "Additional instructions from the operator. Follow them unless they contradict the rules above:"


class _Summary(BaseModel):
    summary: str
    topics: list[str] = []
    key_facts: list[str] = []


class OpenAiSummariser(OpenAiChat[_Summary]):
    def __init__(self, options: LlmOptions) -> None:
        prompt = load_prompt("session_summary")
        super().__init__(options, Task("summarise", "summary", prompt, _Summary))

    async def summarise(self, said: Sequence[SourceText], wish: SummaryRequest, *, agent_id: str) -> WrittenSummary:
        document = {
            "conversation": [
                {"speaker": each.speaker, "said_at": each.said_at.isoformat(), "text": each.text} for each in said
            ],
            "most_words": max(10, int(wish.max_tokens * WORDS_A_TOKEN)),
        }
        instructions = f"{OPERATOR_INSTRUCTIONS}\n{wish.instructions}" if wish.instructions else ""
        answer = await self.ask(document, agent_id=agent_id, instructions=instructions)
        return WrittenSummary(answer.summary, answer.topics, answer.key_facts)
