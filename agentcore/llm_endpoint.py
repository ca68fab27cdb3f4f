"""The chat model's endpoint and API key: a key is only sent to the vendor it belongs to."""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import urlsplit

from agentcore.config import Settings, revealed
from agentcore.llm_options import LlmUseOptions, read_llm_options

OFFICIAL_HOST = "api.openai.com"
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True)
class LlmEndpoint:
    """`base_url` None: OpenAI's own. `withheld`: an OpenAI key is set, but not sent to this address."""

    base_url: str | None
    api_key: str | None = field(default=None, repr=False)
    withheld: bool = False

    @property
    def is_known(self) -> bool:
        """Returns whether an endpoint is configured: a URL, or OpenAI's with a key."""
        return self.base_url is not None or self.api_key is not None

    @property
    def host(self) -> str:
        """Returns the host name, without credentials or path."""
        return OFFICIAL_HOST if self.base_url is None else _origin(self.base_url)[1]


def llm_options_of(settings: Settings) -> LlmUseOptions:
    """Parses LLM_OPTIONS."""
    return read_llm_options(revealed(settings.llm_options))


def llm_endpoint_of(settings: Settings) -> LlmEndpoint:
    """Returns the configured endpoint."""
    own_key, openai_key = revealed(llm_options_of(settings).api_key), revealed(settings.openai_api_key)
    return llm_endpoint(own_key, openai_key, settings.llm_base_url, settings.openai_base_url)


def llm_endpoint(
    own_key: str | None, openai_key: str | None, llm_base_url: str | None, openai_base_url: str | None
) -> LlmEndpoint:
    """Returns the endpoint with its own key, else with OpenAI's if its origin is OpenAI's or
    OPENAI_BASE_URL's."""
    base_url = llm_base_url or openai_base_url
    if own_key is not None or openai_key is None:
        return LlmEndpoint(base_url, own_key)
    if llm_base_url is None or _is_meant(llm_base_url, openai_base_url):
        return LlmEndpoint(base_url, openai_key)
    return LlmEndpoint(base_url, withheld=True)


def _is_meant(url: str, openai_base_url: str | None) -> bool:
    scheme, host, port = _origin(url)
    if host and openai_base_url is not None and _origin(openai_base_url) == (scheme, host, port):
        return True
    official = host == OFFICIAL_HOST or host.endswith(f".{OFFICIAL_HOST}")
    return official and (scheme, port) == ("https", 443)


def _origin(url: str) -> tuple[str, str, int | None]:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return "", "", None
    return parts.scheme, parts.hostname or "", port or _PORTS.get(parts.scheme)
