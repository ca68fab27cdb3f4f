"""`agentcore doctor` on the configured models other than the embedder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agentcore.doctor.examination import examine
from agentcore.doctor.verdicts import Check
from tests.fixtures.cross_encoders import write_cross_encoder
from tests.fixtures.memory import settings_for
from tests.fixtures.services import Services

PARTS = ("reranker", "query rewriter", "language model")


async def examined(services: Services, **overrides: Any) -> dict[str, Check]:
    checks = await examine(settings_for(services, **overrides))
    return {check.name: check for check in checks if check.name in PARTS}


async def test_what_is_not_chosen_is_not_looked_at(services: Services) -> None:
    assert await examined(services) == {}


async def test_what_is_chosen_is_told(services: Services, tmp_path: Path) -> None:
    directory = write_cross_encoder(tmp_path, ["a"])
    found = await examined(
        services,
        reranker="cross_encoder",
        reranker_path=directory,
        query_rewriter="openai",
        llm_model="small",
        openai_api_key="very-secret",
    )
    assert found["reranker"] == Check("reranker", True, "RERANKER=cross_encoder")
    assert found["query rewriter"].ok
    assert "LLM_MODEL=small" in found["query rewriter"].found
    assert found["language model"].found == "LLM_MODEL=small at api.openai.com, with a key"
    assert "very-secret" not in str(found)


@pytest.mark.parametrize("missing", ["tokenizer.json", "model.onnx"])
async def test_a_directory_without_a_model_comes_with_its_mend(
    services: Services, tmp_path: Path, missing: str
) -> None:
    (write_cross_encoder(tmp_path, ["a"]) / missing).unlink()
    found = await examined(services, reranker="cross_encoder", reranker_path=tmp_path)
    assert found["reranker"].ok is False
    assert found["reranker"].found == f"no {missing} in {tmp_path}"
    assert "RERANKER_PATH" in found["reranker"].fix
