"""One request to a chat model of OpenAI, or of any server that speaks its interface, answered in JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypeVar

import openai
from openai import AsyncOpenAI
from pydantic import BaseModel, ValidationError

from agentcore.errors import DependencyUnavailable
from agentcore.memory.llm import LlmOptions
from agentcore.providers.remote_request import Failures, RequestFailed

OFFICIAL_URL = "https://api.openai.com/v1"
# The SDK insists on a key; a server without keys ignores it.
NO_KEY = "none"

Answer = TypeVar("Answer", bound=BaseModel)


class OpenAiChat:
    """One request a question, never tried again: a caller waits for it."""

    def __init__(self, options: LlmOptions, *, work: str, answer: str) -> None:
        self.model = f"openai/{options.model_name}"
        self._options = options
        self._failures = Failures(
            vendor="The language model", work=work, answer=answer,
            model_name=options.model_name, key_setting="OPENAI_API_KEY",
            model_setting="LLM_MODEL and LLM_BASE_URL", timeout_seconds=options.timeout_seconds)
        self._client: AsyncOpenAI | None = None

    async def open(self) -> None:
        """Connects when it is first asked; a server that is away is no error."""
        if self._client is None:
            self._client = AsyncOpenAI(
                api_key=self._options.api_key or NO_KEY, base_url=self._options.base_url or OFFICIAL_URL,
                timeout=self._options.timeout_seconds, max_retries=0)

    async def close(self) -> None:
        """Let go of the connection."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def ask(self, instructions: str, document: Mapping[str, Any], form: type[Answer]) -> Answer:
        """The answer in its form. The document is quoted as JSON: what users say is no instruction there.

        Raises DependencyUnavailable.
        """
        try:
            return form.model_validate_json(_unfenced(await self._say(instructions, document)))
        except RequestFailed as failure:
            raise failure.unavailable() from failure
        except ValidationError:
            # Its text would quote the answer.
            raise self._failures.unreadable().unavailable() from None

    async def _say(self, instructions: str, document: Mapping[str, Any]) -> str:
        """What the model says. Raises RequestFailed."""
        if self._client is None:
            raise DependencyUnavailable("The language model is not open.")
        try:
            answer = await self._client.chat.completions.create(
                model=self._options.model_name,
                messages=[{"role": "system", "content": instructions},
                          {"role": "user", "content": json.dumps(document, ensure_ascii=False)}],
                response_format={"type": "json_object"})
            return answer.choices[0].message.content or ""
        except openai.APIStatusError as cause:
            raise self._failures.status(cause.status_code) from cause
        except openai.APITimeoutError as cause:
            raise self._failures.unanswered() from cause
        except openai.APIConnectionError as cause:
            raise self._failures.unreachable() from cause
        except (openai.OpenAIError, ValueError, TypeError, AttributeError, LookupError) as cause:
            # The SDK does not check an answer: what is no completion fails wherever it is first used.
            raise self._failures.unreadable() from cause


def _unfenced(said: str) -> str:
    """The JSON itself: some models put it into a code block whatever they are told."""
    text = said.strip()
    return text.removeprefix("```json").removeprefix("```").removesuffix("```").strip()
