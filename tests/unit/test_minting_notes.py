"""A token acts for its agent, so the home records each token creation."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import jwt
import pytest

from agentcore.cli import main
from agentcore.cli.token import token_for
from agentcore.config import Settings


def test_each_minted_token_leaves_a_line_that_says_for_whom_and_how_long(tmp_path: Path) -> None:
    settings = Settings(_env_file=None, agentcore_home=tmp_path / "home")
    tokens = [token_for(settings, agent, ["memory:read"], 60, make_home=True) for agent in ("ada", "bob")]
    kept = tmp_path / "home" / "log" / "tokens.jsonl"
    notes = [json.loads(line) for line in kept.read_text().splitlines()]
    assert [(note["agent_id"], note["scopes"], note["ttl_seconds"]) for note in notes] == [
        ("ada", ["memory:read"], 60),
        ("bob", ["memory:read"], 60),
    ]
    assert not any(token in kept.read_text() for token in tokens)
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600


@pytest.mark.shows("issue13-users")
def test_the_command_binds_a_token_to_users(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AGENTCORE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("JWT_SECRET_KEY", "kV3q8ZtW1nXb7cLs5mPd2fGh9jRw4yTu")
    with pytest.raises(SystemExit) as ended:
        main(["token", "--agent", "ada", "--user", "anna", "--user", "bob", "--shared"])
    assert not ended.value.code
    claims = jwt.decode(capsys.readouterr().out.strip(), "kV3q8ZtW1nXb7cLs5mPd2fGh9jRw4yTu", ["HS256"])
    assert claims["users"] == ["anna", "bob", None]
    assert not (tmp_path / "home").exists()
