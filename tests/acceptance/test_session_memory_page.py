"""Runs the examples of docs/session-memory.md as printed against the running service."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest

from tests.fixtures.forked_commands import COMMAND_SECONDS
from tests.fixtures.serving import ROOT, Serving

PAGE = (ROOT / "docs" / "session-memory.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
SAID = (
    [
        "assistant Noted.",
        "user The claim for the warehouse is HX-2210.",
        "['The claim for the warehouse is HX-2210.']",
        "The claim for the warehouse is HX-2210. ('basic_retrieval', 'summarization', 'ttl', "
        "'importance_weighting', 'time_travel')",
    ],
    ["redis 1", "vector 1", "hierarchical 1", "stored", "call:7 2", "2"],
    [
        "['I love African Grey parrots.']",
        "memory user: I love African Grey parrots.",
        "user: The warehouse in Ghent flooded.",
        "user What now?",
        "21 tokens, 2 messages not as they were said",
    ],
)


@pytest.mark.parametrize(
    ("example", "said"), list(zip(EXAMPLES, SAID, strict=True)), ids=["in memory", "on parts", "for a model"]
)
@pytest.mark.shows("issue6-4-interface")
def test_each_example_of_the_page_runs(serving: Serving, agent_id: str, example: str, said: list[str]) -> None:
    urls = json.loads((serving.home / "run" / "urls.json").read_text())
    done = subprocess.run(
        [sys.executable, "-c", example],
        capture_output=True,
        text=True,
        timeout=COMMAND_SECONDS,
        check=False,
        env={
            **serving.environment,
            "AGENTCORE_URL": serving.url,
            "AGENTCORE_TOKEN": serving.token(agent_id),
            "REDIS_URL": urls["redis_url"],
        },
    )
    assert (done.stderr, done.stdout.splitlines()) == ("", said)
