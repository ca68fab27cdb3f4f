"""Settings: all configuration errors are reported at once, without quoting secrets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agentcore.assembly import llm_endpoint_of, llm_options_of
from agentcore.config import Settings, misspelt_variables
from agentcore.errors import ConfigurationError


def problems_of(**values: Any) -> list[str]:
    with pytest.raises(ConfigurationError) as refused:
        Settings(_env_file=None, **values)
    return refused.value.problems


def test_wrong_fields_and_fields_that_do_not_fit_are_told_together() -> None:
    problems = problems_of(port=99_999, jwt_secret_key="short", embedding_model="cohere")
    assert [problem.split()[0] for problem in problems] == ["PORT:", "JWT_SECRET_KEY", "EMBEDDING_MODEL=cohere"]


def test_a_wrong_field_is_not_blamed_on_another() -> None:
    problems = problems_of(jwt_algorithm="HS1024", jwt_jwks_url="https://keys.example/jwks")
    assert [problem.split()[0] for problem in problems] == ["JWT_ALGORITHM:"]


def test_the_environment_is_told_of_in_the_same_list(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PORT", "99999")
    monkeypatch.setenv("JWT_ALGORITHM", "RS256")
    monkeypatch.delenv("JWT_JWKS_URL", raising=False)
    assert [problem.split()[0] for problem in problems_of(max_batch_calls=0)] == [
        "PORT:",
        "MAX_BATCH_CALLS:",
        "JWT_ALGORITHM=RS256",
    ]


@pytest.mark.parametrize(
    ("field", "kind"), [("database_url", "PostgreSQL"), ("database_read_url", "PostgreSQL"), ("redis_url", "Redis")]
)
@pytest.mark.parametrize("url", ["foo", "postgresql+psycopg://ada:hunter2@db/memory", "host=db password=hunter2"])
def test_a_url_of_something_else_is_refused_and_not_quoted(field: str, kind: str, url: str) -> None:
    [problem] = problems_of(**{field: url})
    assert problem.startswith(f"{field.upper()} is not a {kind} URL")
    assert "hunter2" not in problem
    assert "foo" not in problem


@pytest.mark.parametrize(
    ("values", "problems"),
    [
        ({"reranker": "http"}, ["RERANKER=http needs RERANKER_URL"]),
        ({"reranker": "http", "reranker_url": "reranker:80"}, ["RERANKER_URL is not a URL"]),
        ({"query_rewriter": "openai"}, ["QUERY_REWRITER=openai needs LLM_MODEL"]),
        ({"query_rewriter": "openai", "llm_model": "m"}, ["LLM_MODEL needs OPENAI_API_KEY, or LLM_BASE_URL"]),
        ({"llm_model": "m"}, ["LLM_MODEL needs OPENAI_API_KEY, or LLM_BASE_URL"]),
        ({"llm_model": "m", "llm_options": "{"}, ["LLM_OPTIONS is not a JSON object"]),
        ({"query_rewriter": "openai", "llm_model": "m", "llm_base_url": "localhost"}, ["LLM_BASE_URL is not a URL"]),
        ({"reranker_timeout_ms": 0}, ["RERANKER_TIMEOUT_MS:"]),
    ],
)
@pytest.mark.shows("issue5-3-key")
def test_a_model_beside_the_embedder_says_what_it_lacks(values: dict[str, Any], problems: list[str]) -> None:
    found = problems_of(**values)
    assert len(found) == len(problems)
    assert all(problem.startswith(start) for problem, start in zip(found, problems, strict=True)), found


@pytest.mark.parametrize(
    "values",
    [
        {"reranker": "http", "reranker_url": "https://api.example/v2/rerank"},
        {"reranker": "my.module:Reranker", "query_rewriter": "my.module:Rewriter"},
        {"query_rewriter": "openai", "llm_model": "m", "openai_api_key": "k"},
        {"query_rewriter": "openai", "llm_model": "m", "llm_base_url": "http://127.0.0.1:11434/v1"},
        {"llm_model": "m", "openai_base_url": "http://127.0.0.1:11434/v1"},
        {"llm_model": "m", "llm_options": '{"api_key": "k"}'},
    ],
)
def test_a_model_beside_the_embedder_with_what_it_needs_is_taken(values: dict[str, Any]) -> None:
    settings = Settings(_env_file=None, **values)
    assert (settings.reranker, settings.query_rewriter) == (
        values.get("reranker", "none"),
        values.get("query_rewriter", "none"),
    )


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"database_url": "postgres://db/x", "database_read_url": "postgresql://replica/x"},
        {"redis_url": "rediss://cache:6379/1"},
        {"redis_url": "unix:///run/redis.sock"},
    ],
)
def test_what_is_right_is_taken(values: dict[str, Any]) -> None:
    settings = Settings(_env_file=None, **values)
    for name, url in values.items():
        assert getattr(settings, name).get_secret_value() == url


@pytest.mark.parametrize(
    "options",
    [
        '{"api_key": "hunter2", "hunter3": 1, "concurrency": "hunter2"}',
        '{"api_key": "hunter2"',
        '{"api_key": ["hunter2"]}',
        '{"api_key": "hunter2", "cost_a_day": 1}',
    ],
)
def test_a_key_among_refused_options_is_not_quoted(options: str) -> None:
    problems = problems_of(llm_model="m", llm_base_url="http://llm.example", llm_options=options)
    assert problems
    assert all(problem.startswith("LLM_OPTIONS ") for problem in problems)
    assert "hunter2" not in " ".join(problems)


@pytest.mark.shows("issue5-3-key")
def test_a_key_among_the_options_is_never_shown() -> None:
    settings = Settings(_env_file=None, llm_model="m", llm_options='{"api_key": "hunter2"}', openai_api_key="hunter4")
    told = (settings, settings.model_dump_json(), llm_options_of(settings), llm_endpoint_of(settings))
    assert "hunter" not in repr(told)


@pytest.mark.parametrize("level", ["info", "Info", "INFO"])
def test_a_level_of_the_log_is_taken_in_any_case(level: str) -> None:
    assert Settings(_env_file=None, log_level=level).log_level == "INFO"
    assert problems_of(log_level="loud")


def test_a_name_of_the_file_that_is_like_a_setting_is_told_with_it_and_a_strangers_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".env").write_text(
        "EMBEDING_MODEL=none\nPOSTGRES_USER=ada\nJWT_SECRET=x\nexport log_level=info\nMY_APP_URL=x\n"
    )
    monkeypatch.setenv("EMBEDING_NAME", "another program's")
    assert misspelt_variables() == {"EMBEDING_MODEL": "EMBEDDING_MODEL", "JWT_SECRET": "JWT_SECRET_KEY"}


def test_a_refused_secret_is_not_quoted() -> None:
    assert "hunter2" not in " ".join(problems_of(jwt_secret_key="hunter2", port=-1))
