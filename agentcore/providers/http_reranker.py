"""Reranking over HTTP, in the format of Cohere, Jina and vLLM, or that of text-embeddings-inference."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from enum import Enum
from typing import Any

import httpx
from pydantic import AliasChoices, BaseModel, Field, TypeAdapter, ValidationError

from agentcore.errors import ConfigurationError, DependencyUnavailable
from agentcore.memory.llm import RerankerOptions
from agentcore.providers.remote_request import REFUSED, Failures, RequestFailed, persist

MAX_ATTEMPTS = 2
KEEP_ALIVE_SECONDS = 60.0
# Default limit of text-embeddings-inference for one request.
TEXTS_A_REQUEST = 32


class _Scored(BaseModel):
    index: int = Field(ge=0)
    score: float = Field(validation_alias=AliasChoices("relevance_score", "score"), allow_inf_nan=False)


class _Results(BaseModel):
    results: list[_Scored]


_ANSWER: TypeAdapter[_Results | list[_Scored]] = TypeAdapter(_Results | list[_Scored])


class _Form(Enum):
    DOCUMENTS = "documents"
    TEXTS = "texts"


class HttpReranker:
    """Posts to `RERANKER_URL`."""

    def __init__(self, options: RerankerOptions) -> None:
        if options.url is None:
            raise ConfigurationError(["RERANKER=http needs RERANKER_URL."])
        try:
            self._url = httpx.URL(options.url)
        except httpx.InvalidURL as cause:
            raise ConfigurationError(["RERANKER_URL is not a URL (https://host/v2/rerank)."]) from cause
        self.model = f"http/{options.model_name or 'reranker'}"
        self._options = options
        self._failures = Failures(
            vendor="The reranker",
            work="rerank",
            answer="list of scores",
            model_name=options.model_name or "",
            key_setting="RERANKER_API_KEY",
            model_setting="RERANKER_URL and RERANKER_MODEL",
            timeout_seconds=options.timeout_seconds,
        )
        self._form: _Form | None = None
        self._client: httpx.AsyncClient | None = None

    async def open(self) -> None:
        """Creates the client; it connects at the first request, so an unavailable server is no error."""
        if self._client is None:
            key = self._options.api_key
            headers = {"Authorization": f"Bearer {key}"} if key else {}
            self._client = httpx.AsyncClient(
                timeout=self._options.timeout_seconds,
                headers=headers,
                limits=httpx.Limits(keepalive_expiry=KEEP_ALIVE_SECONDS),
            )

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def score(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        if not texts:
            return []
        try:
            return await persist(
                lambda: self._ask_in_its_form(query, texts),
                attempts=MAX_ATTEMPTS,
                longest_wait_seconds=self._options.timeout_seconds / 2,
            )
        except RequestFailed as failure:
            raise failure.unavailable() from failure

    async def _ask_in_its_form(self, query: str, texts: Sequence[str]) -> list[float]:
        """Tries the common format first, then the other; keeps the one that worked."""
        if self._form is _Form.TEXTS:
            return await self._ask_in_parts(query, texts)
        if self._form is _Form.DOCUMENTS:
            return await self._ask(_Form.DOCUMENTS, query, texts)
        try:
            scores = await self._ask(_Form.DOCUMENTS, query, texts)
        except RequestFailed as refusal:
            if refusal.status not in REFUSED:
                raise
            try:
                scores = await self._ask_in_parts(query, texts)
            except RequestFailed:
                raise refusal from None
            self._form = _Form.TEXTS
        else:
            self._form = _Form.DOCUMENTS
        return scores

    async def _ask_in_parts(self, query: str, texts: Sequence[str]) -> list[float]:
        parts = [texts[start : start + TEXTS_A_REQUEST] for start in range(0, len(texts), TEXTS_A_REQUEST)]
        answers = await asyncio.gather(*(self._ask(_Form.TEXTS, query, part) for part in parts))
        return [score for answer in answers for score in answer]

    async def _ask(self, form: _Form, query: str, texts: Sequence[str]) -> list[float]:
        """Sends one request, without retries. Raises RequestFailed."""
        if self._client is None:
            raise DependencyUnavailable("The reranker is not open.")
        try:
            answer = await self._client.post(self._url, json=self._body(form, query, texts))
        except httpx.TimeoutException as cause:
            raise self._failures.unanswered() from cause
        except httpx.HTTPError as cause:
            raise self._failures.unreachable() from cause
        if not answer.is_success:
            raise self._failures.status(answer.status_code, retry_after=answer.headers.get("retry-after"))
        try:
            found = _ANSWER.validate_json(answer.content)
        except ValidationError:
            # Without the cause: its message would quote the response.
            raise self._failures.unreadable() from None
        scored = found.results if isinstance(found, _Results) else found
        if sorted(each.index for each in scored) != list(range(len(texts))):
            raise self._failures.unreadable()
        return [each.score for each in sorted(scored, key=lambda each: each.index)]

    def _body(self, form: _Form, query: str, texts: Sequence[str]) -> dict[str, Any]:
        body: dict[str, Any] = {"query": query, form.value: list(texts)}
        if form is _Form.TEXTS:
            # It refuses a text that is too long unless asked to truncate.
            return {**body, "truncate": True}
        return body if self._options.model_name is None else {**body, "model": self._options.model_name}
