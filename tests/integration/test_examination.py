"""`agentcore doctor` on the configured models other than the embedder."""

from __future__ import annotations

from typing import Any

from agentcore.doctor.examination import examine
from agentcore.doctor.verdicts import Check
from tests.fixtures.memory import settings_for
from tests.fixtures.services import Services

PARTS = ("reranker", "query rewriter", "language model")


async def examined(services: Services, **overrides: Any) -> dict[str, Check]:
    checks = await examine(settings_for(services, **overrides))
    return {check.name: check for check in checks if check.name in PARTS}


async def test_what_is_not_chosen_is_not_looked_at(services: Services) -> None:
    assert await examined(services) == {}


async def test_what_is_chosen_is_told(services: Services) -> None:
    found = await examined(
        services,
        reranker="http",
        reranker_url="http://127.0.0.1:9/rerank",
        query_rewriter="openai",
        llm_model="small",
        openai_api_key="very-secret",
    )
    assert found["reranker"] == Check("reranker", True, "RERANKER=http")
    assert found["query rewriter"].ok
    assert "LLM_MODEL=small" in found["query rewriter"].found
    assert found["language model"].found == "LLM_MODEL=small at api.openai.com, with a key"
    assert "very-secret" not in str(found)
