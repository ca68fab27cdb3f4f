"""API keys: OpenAI's key is sent only to OpenAI and to the configured address."""

from __future__ import annotations

import pytest

from agentcore.doctor.verdicts import language_model
from agentcore.structured_settings import llm_endpoint

KEY, OWN = "sk-openai", "own-key"
VENDOR, PROXY = "https://llm.example/v1", "http://proxy.internal:8000/v1"


@pytest.mark.parametrize(
    ("llm_base_url", "openai_base_url"),
    [
        (None, None),
        (None, PROXY),
        ("https://api.openai.com/v1", None),
        ("https://eu.api.openai.com/v1", PROXY),
        ("http://proxy.internal:8000/other", PROXY),
        ("https://llm.example:443/x", VENDOR),
    ],
)
def test_the_key_of_openai_goes_where_it_is_meant_to_go(llm_base_url: str | None, openai_base_url: str | None) -> None:
    endpoint = llm_endpoint(None, KEY, llm_base_url, openai_base_url)
    assert (endpoint.api_key, endpoint.withheld) == (KEY, False)
    assert endpoint.base_url == (llm_base_url or openai_base_url)


@pytest.mark.parametrize(
    ("llm_base_url", "openai_base_url"),
    [
        (VENDOR, None),
        (VENDOR, PROXY),
        ("http://api.openai.com/v1", None),
        ("https://api.openai.com.llm.example/v1", None),
        ("https://api.openai.com@llm.example/v1", None),
        ("https://notapi.openai.com/v1", None),
        ("http://proxy.internal:8001/v1", PROXY),
        ("https://proxy.internal:8000/v1", PROXY),
        ("https://llm.example:port/v1", "https://other.example:port/v1"),
    ],
)
@pytest.mark.shows("issue5-3-key")
def test_the_key_of_openai_goes_to_no_other(llm_base_url: str, openai_base_url: str | None) -> None:
    endpoint = llm_endpoint(None, KEY, llm_base_url, openai_base_url)
    assert (endpoint.base_url, endpoint.api_key, endpoint.withheld) == (llm_base_url, None, True)


@pytest.mark.parametrize("url", [None, VENDOR, "https://api.openai.com/v1"])
def test_the_models_own_key_goes_before_it(url: str | None) -> None:
    endpoint = llm_endpoint(OWN, KEY, url, None)
    assert (endpoint.base_url, endpoint.api_key, endpoint.withheld) == (url, OWN, False)


def test_without_a_key_and_an_address_there_is_no_place_to_ask() -> None:
    assert not llm_endpoint(None, None, None, None).is_known
    assert llm_endpoint(None, None, VENDOR, None).is_known
    assert llm_endpoint(OWN, None, None, None).is_known


def test_the_doctor_tells_of_a_key_without_telling_it() -> None:
    found = language_model("small", llm_endpoint(None, KEY, "https://ada:hunter2@llm.example/v1", None))
    assert found.ok
    assert found.found == (
        "LLM_MODEL=small at llm.example, without a key: OPENAI_API_KEY is not for it; one that is stands as "
        "api_key in LLM_OPTIONS"
    )
    known = language_model("small", llm_endpoint(OWN, KEY, None, None))
    assert known.found == "LLM_MODEL=small at api.openai.com, with a key"
