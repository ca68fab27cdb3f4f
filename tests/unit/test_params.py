"""Params reject invalid combinations and name the field."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from agentcore.memory.models import Strict
from agentcore.memory.params.archived import ArchivedParams, RestoreParams
from agentcore.memory.params.changes import UpdateParams
from agentcore.memory.params.memories import (
    DeleteParams,
    GetContextParams,
    ListParams,
    PruneParams,
    RetrieveParams,
    StoreParams,
)

ID = "0190f7c0-0000-7000-8000-000000000001"


@pytest.mark.parametrize(
    ("params", "values", "field"),
    [
        (RetrieveParams, {"query": ""}, "query"),
        (StoreParams, {"content": "x", "valid_from": "2026-05-02", "valid_to": "2026-05-01"}, ""),
        (StoreParams, {"interaction": {"query": "x", "session_id": "a"}, "session_id": "b"}, ""),
        (StoreParams, {"interaction": {"query": "x", "user_id": "a"}, "user_id": "b"}, ""),
        (StoreParams, {"interaction": {"query": "x", "task_id": "a"}, "task_id": "b"}, ""),
        (PruneParams, {"memory_layer": "episodic", "target": "20%"}, "target"),
        (RetrieveParams, {"query": "   "}, "query"),
        (RetrieveParams, {"query": "a\x00b"}, "query"),
        (RetrieveParams, {"query": "\ud800"}, "query"),
        (RetrieveParams, {"query": "x", "k": -1}, "k"),
        (RetrieveParams, {"query": "x", "k": 10**9}, "k"),
        (RetrieveParams, {"query": "x", "kk": 1}, "kk"),
        (RetrieveParams, {"query": "x", "after": "the day before yesterday"}, "after"),
        (RetrieveParams, {"query": "x", "after": 1e300}, "after"),
        (RetrieveParams, {"query": "x", "after": "9999-12-31T23:59:59-12:00"}, "after"),
        (RetrieveParams, {"query": "x", "after": "9999-12-31"}, "after"),
        (RetrieveParams, {"query": "x", "after": "0001-01-01"}, "after"),
        (RetrieveParams, {"query": "x", "after": "20260501"}, "after"),
        (RetrieveParams, {"query": "x", "after": "2026"}, "after"),
        (RetrieveParams, {"query": "x", "after": "1777629600.5"}, "after"),
        (RetrieveParams, {"query": "x", "after": "-1"}, "after"),
        (RetrieveParams, {"query": "x", "after": b"20260501"}, "after"),
        (StoreParams, {"content": "x", "timestamp": "20260501"}, "timestamp"),
        (RetrieveParams, {"query": "x", "after": "2026-02-02", "before": "2026-01-01"}, ""),
        (RetrieveParams, {"query": "x", "min_score": float("nan")}, "min_score"),
        (RetrieveParams, {"query": "x", "memory_types": ["sematic"]}, "memory_types"),
        *(
            (RetrieveParams, {"query": "x", name: []}, name)
            for name in ("memory_types", "entities", "keywords", "tags")
        ),
        (RetrieveParams, {"query": "x", "session_id": "a\nb"}, "session_id"),
        (GetContextParams, {"query": "x", "max_tokens": 0}, "max_tokens"),
        (RetrieveParams, {"query": 7}, "query"),
        (RetrieveParams, {"query": "x", "k": "5"}, "k"),
        (RetrieveParams, {"query": "x", "k": True}, "k"),
        (RetrieveParams, {"query": "x", "explain": "yes"}, "explain"),
        (RetrieveParams, {"query": "x", "after": 0}, "after"),
        (RetrieveParams, {"query": "x", "min_importance": "0.5"}, "min_importance"),
        (RetrieveParams, {"query": "x", "query_vector": ["1", True]}, "query_vector"),
        (StoreParams, {}, ""),
        (StoreParams, {"content": "a", "interaction": {"query": "b"}}, ""),
        (StoreParams, {"interaction": {}}, "interaction"),
        (StoreParams, {"interaction": {"query": 7}}, "interaction"),
        (StoreParams, {"interaction": {"query": "x", "metadata": {"a": "\x00"}}}, "interaction"),
        (StoreParams, {"content": "x", "importance": 1.5}, "importance"),
        (StoreParams, {"content": "x", "ttl_seconds": 0}, "ttl_seconds"),
        (StoreParams, {"content": "x" * 300_000}, "content"),
        (UpdateParams, {"memory_id": "not-a-uuid", "updates": {"pinned": True}}, "memory_id"),
        (UpdateParams, {"memory_id": ID, "updates": {}}, "updates"),
        (UpdateParams, {"memory_id": ID, "updates": {"contents": "x"}}, "updates"),
        (UpdateParams, {"memory_id": ID, "updates": {"importance": 1, "relevance_score": 1}}, "updates"),
        (UpdateParams, {"memory_id": ID, "updates": {"renew": True, "pinned": True}}, "updates"),
        (UpdateParams, {"memory_id": ID, "updates": {"renew": True, "if_version": 1}}, "updates"),
        (UpdateParams, {"memory_id": ID, "updates": {"renew": None}}, "updates"),
        (PruneParams, {"memory_layer": "all"}, "memory_layer"),
        (PruneParams, {"memory_layer": "episodic", "strategy": "random"}, "strategy"),
        (PruneParams, {"memory_layer": "episodic", "target": 0}, "target"),
        (PruneParams, {"memory_layer": "episodic", "target": 2.5}, "target"),
        (PruneParams, {"memory_layer": "episodic", "target": 1.0001}, "target"),
        (RestoreParams, {}, ""),
        (RestoreParams, {"limit": 5}, ""),
        (RestoreParams, {"memory_ids": []}, "memory_ids"),
        (RestoreParams, {"memory_ids": [ID], "all": True}, ""),
        (RestoreParams, {"memory_ids": [ID], "session_id": "s"}, ""),
        (RestoreParams, {"memory_types": []}, "memory_types"),
        (RestoreParams, {"all": True, "limit": 1_001}, "limit"),
        (RestoreParams, {"keywords": ["x"]}, "keywords"),
        (ArchivedParams, {"archived_after": "2026-02-02", "archived_before": "2026-02-02"}, ""),
        (ArchivedParams, {"after": "2026-02-02", "before": "2026-02-01"}, ""),
        (ArchivedParams, {"limit": 0}, "limit"),
        (UpdateParams, {"memory_id": ID, "updates": {"content": None}}, "updates"),
        (UpdateParams, {"memory_id": ID, "updates": {"ttl_seconds": 5, "tags": None}}, "updates"),
        (DeleteParams, {"confirm": True}, ""),
        (DeleteParams, {"all": True}, ""),
        (DeleteParams, {"all": True, "confirm": True, "session_id": "s"}, ""),
        (DeleteParams, {}, ""),
        (DeleteParams, {"session_id": "s"}, ""),
        (DeleteParams, {"memory_ids": [ID], "session_id": "s"}, ""),
        (ListParams, {"order_by": "score"}, "order_by"),
        (ListParams, {"limit": 0}, "limit"),
    ],
)
@pytest.mark.shows("issue2-6-methods", "issue2-bad-input")
def test_bad_values_are_refused_by_field(params: type[Strict], values: dict[str, Any], field: str) -> None:
    with pytest.raises(ValidationError) as refused:
        params.model_validate(values)
    assert field in {str(error["loc"][0]) if error["loc"] else "" for error in refused.value.errors()}


@pytest.mark.parametrize(
    ("given", "moment"),
    [
        ("2026-05-01T10:00:00", "2026-05-01T10:00:00Z"),
        ("2026-05-01T10:00:00Z", "2026-05-01T10:00:00Z"),
        ("2026-05-01T12:00:00+02:00", "2026-05-01T10:00:00Z"),
        ("2026-05-01 10:00", "2026-05-01T10:00:00Z"),
        ("2026-05-01", "2026-05-01T00:00:00Z"),
        ("0002-01-01T00:00:00+14:00", "0001-12-31T10:00:00Z"),
        ("9998-12-31T23:59:59-14:00", "9999-01-01T13:59:59Z"),
    ],
)
def test_a_time_is_iso_8601_and_without_a_zone_it_is_utc(given: str, moment: str) -> None:
    params = RetrieveParams.model_validate({"query": "x", "after": given})
    assert params.conditions()["after"] == moment


def test_a_share_too_small_for_the_database_is_none() -> None:
    shares = [StoreParams(content="x", importance=each).importance for each in (5e-324, -0.0, 1e-37, 0.3)]
    assert [str(each) for each in shares] == ["0.0", "0.0", "1e-37", "0.3"]


@pytest.mark.shows("issue4-5-curve")
def test_a_prune_of_more_than_all_is_refused_with_a_sentence() -> None:
    with pytest.raises(ValidationError, match=r"above 1\.0; a count is an integer"):
        PruneParams.model_validate({"memory_layer": "episodic", "target": 1.5})


def test_conditions_hold_the_filters_and_nothing_else() -> None:
    params = RetrieveParams.model_validate({"query": "x", "k": 3, "entities": ["Anna"], "tags": ["Work"]})
    assert params.conditions() == {"entities": ["anna"], "tags": ["Work"]}
