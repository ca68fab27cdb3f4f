"""Embeddings of Cohere, over the official SDK."""

from __future__ import annotations

from collections.abc import Sequence

import httpx
from cohere import AsyncClientV2
from cohere.core.api_error import ApiError
from cohere.core.parse_error import ParsingError
from cohere.core.request_options import RequestOptions
from numpy.typing import ArrayLike

from agentcore.errors import DependencyUnavailable
from agentcore.memory.embeddings import EmbedderOptions, EmbeddingKind
from agentcore.providers.remote_request import RemoteEmbedder

SIZABLE = {"embed-v4.0": (256, 512, 1_024, 1_536)}
FIXED = {
    "embed-english-v3.0": 1_024,
    "embed-multilingual-v3.0": 1_024,
    "embed-english-light-v3.0": 384,
    "embed-multilingual-light-v3.0": 384,
}


class CohereEmbedder(RemoteEmbedder):
    """Embeds a text differently as a document and as a query. Cohere truncates long texts."""

    vendor = "Cohere"
    key_setting = "COHERE_API_KEY"
    distinguishes_queries = True
    request_texts = 96
    request_bytes = 5_000_000

    def __init__(self, options: EmbedderOptions) -> None:
        sizable, fixed = SIZABLE.get(options.model_name), FIXED.get(options.model_name)
        super().__init__(options, sizes=sizable or ([fixed] if fixed else []), sizable=sizable is not None)
        asked = {"output_dimension": options.dimensions} if sizable else {}
        # Only the parent class retries.
        self._request_options = RequestOptions(max_retries=0, additional_body_parameters=asked)
        self._connections: httpx.AsyncClient | None = None
        self._client: AsyncClientV2 | None = None

    async def close(self) -> None:
        connections, self._connections, self._client = self._connections, None, None
        if connections is not None:
            await connections.aclose()

    async def _connect(self) -> None:
        if self._client is None:
            # The SDK has no public way to close the connections that it opens itself.
            self._connections = httpx.AsyncClient(timeout=self._options.timeout_seconds)
            self._client = AsyncClientV2(
                self._options.api_key,
                base_url=self._options.base_url,
                httpx_client=self._connections,
                timeout=self._options.timeout_seconds,
                log_warning_experimental_features=False,
            )

    async def _ask(self, texts: Sequence[str], kind: EmbeddingKind) -> ArrayLike:
        if self._client is None:
            raise DependencyUnavailable("The Cohere embedder is not open.")
        try:
            answer = await self._client.embed(
                model=self._options.model_name,
                input_type=f"search_{kind}",
                texts=texts,
                embedding_types=["float"],
                truncate="END",
                request_options=self._request_options,
            )
        except ApiError as cause:
            if cause.status_code is None or cause.status_code < 400:
                raise self._failures.unreadable() from cause
            retry_after = (cause.headers or {}).get("retry-after")
            raise self._failures.status(cause.status_code, retry_after=retry_after) from cause
        except httpx.TimeoutException as cause:
            raise self._failures.unanswered() from cause
        except httpx.HTTPError as cause:
            raise self._failures.unreachable() from cause
        except (ParsingError, ValueError, TypeError, AttributeError) as cause:
            # The SDK does not validate a response: a malformed one fails at its first use.
            raise self._failures.unreadable() from cause
        rows: list[list[float]] | None = getattr(getattr(answer, "embeddings", None), "float_", None)
        if not rows:
            raise self._failures.unreadable()
        return rows
