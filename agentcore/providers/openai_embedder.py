"""Embeddings of OpenAI, or of any server with its API, over the official SDK."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import openai
from numpy.typing import ArrayLike
from openai import AsyncOpenAI, Omit, omit

from agentcore.errors import DependencyUnavailable
from agentcore.memory.embeddings import EmbedderOptions, EmbeddingKind
from agentcore.memory.tokens import TokenCounter
from agentcore.providers.remote_request import RemoteEmbedder, RequestFailed

OFFICIAL_URL = "https://api.openai.com/v1"
SIZABLE = {"text-embedding-3-small": 1_536, "text-embedding-3-large": 3_072}
FIXED = {"text-embedding-ada-002": 1_536}
# Token limit of all these models, in this encoding; they refuse longer texts.
MAX_TEXT_TOKENS = 8_191
TEXT_ENCODING = "cl100k_base"
# The SDK requires a key; a server without keys ignores it.
NO_KEY = "none"


class OpenAiEmbedder(RemoteEmbedder):
    """Truncates texts to the limit of the known models; other models enforce their own."""

    vendor = "OpenAI"
    key_setting = "OPENAI_API_KEY"
    request_texts = 2_048
    request_bytes = 250_000

    def __init__(self, options: EmbedderOptions) -> None:
        largest = SIZABLE.get(options.model_name)
        fixed = FIXED.get(options.model_name)
        super().__init__(options, sizes=range(1, largest + 1) if largest else [fixed] if fixed else [],
                         sizable=largest is not None)
        self._dimensions_asked: int | Omit = options.dimensions if largest else omit
        self._counter = TokenCounter(options.cache_directory, TEXT_ENCODING) if largest or fixed else None
        self._client: AsyncOpenAI | None = None

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def _connect(self) -> None:
        if self._client is None:
            self._client = AsyncOpenAI(
                api_key=self._options.api_key or NO_KEY, base_url=self._options.base_url or OFFICIAL_URL,
                timeout=self._options.timeout_seconds, max_retries=0)

    async def _fit(self, text: str) -> str:
        if self._counter is not None and len(text.encode("utf-8", "surrogatepass")) > MAX_TEXT_TOKENS:
            text = await asyncio.to_thread(self._counter.truncate, text, MAX_TEXT_TOKENS)
        return text or " "

    async def _ask(self, texts: Sequence[str], kind: EmbeddingKind) -> ArrayLike:
        if self._client is None:
            raise DependencyUnavailable("The OpenAI embedder is not open.")
        try:
            answer = await self._client.embeddings.create(
                model=self._options.model_name, input=list(texts), dimensions=self._dimensions_asked)
            return [each.embedding for each in sorted(answer.data, key=lambda each: each.index)]
        except openai.APIStatusError as cause:
            raise self._failure_of(cause) from cause
        except openai.APITimeoutError as cause:
            raise self._failures.unanswered() from cause
        except openai.APIConnectionError as cause:
            raise self._failures.unreachable() from cause
        except (openai.OpenAIError, ValueError, TypeError, AttributeError) as cause:
            # The SDK does not validate a response: a malformed one fails at its first use.
            raise self._failures.unreadable() from cause

    def _failure_of(self, cause: openai.APIStatusError) -> RequestFailed:
        # The quota is used up: a retry does not help.
        final = cause.code == "insufficient_quota"
        retry_after = cause.response.headers.get("retry-after")
        return self._failures.status(cause.status_code, retry_after=retry_after, final=final)
