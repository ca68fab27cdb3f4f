"""Params and results of an agent's background jobs. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import Field

from agentcore.limits import MAX_PAGE
from agentcore.memory.models import JsonObject, Receipt, Strict


class JobState(StrEnum):
    """Jobs that succeeded are deleted."""

    WAITING = "waiting"
    SCHEDULED = "scheduled"
    RUNNING = "running"
    FAILED = "failed"
    CANCELLED = "cancelled"


class JobsParams(Strict):
    """Which background jobs of the agent to list."""

    state: JobState | None = Field(None, description="Default: all.")
    limit: Annotated[int, Field(strict=True, ge=1, le=MAX_PAGE)] = 50


class JobEntry(Strict):
    """A background job that waits, runs, failed or was cancelled."""

    job_id: int
    name: str = Field(description="The kind of work, such as `consolidate_episodes`.")
    state: JobState
    ids: JsonObject = Field(description="What it works on, such as a session.")
    attempts: int = Field(description="Ended runs.")
    enqueued_at: datetime | None
    not_before: datetime | None = Field(description="When a scheduled job may start.")
    failure: str | None = Field(description="The class and message of the last failure.")


class JobsResult(Strict):
    jobs: list[JobEntry] = Field(description="Newest first.")
    receipt: Receipt


def entries(rows: Iterable[Mapping[str, Any]]) -> list[JobEntry]:
    """Returns the jobs of the view `background_jobs`, without frames of failures, and without one that just ended."""
    return [
        JobEntry(
            **{name: row[name] for name in ("job_id", "name", "state", "attempts", "enqueued_at", "not_before")},
            ids={name: value for name, value in row["ids"].items() if name != "agent_id"},
            failure=row["failure"] and row["failure"].partition("\n")[0],
        )
        for row in rows
        if row["state"] in [*JobState]
    ]


JobAction = Literal["retry", "cancel"]


class ChangeJobParams(Strict):
    """The job, and what to do with it."""

    job_id: Annotated[int, Field(strict=True, ge=1, le=2**63 - 1)]
    action: JobAction = Field(description="retry: a failed job; cancel: one that waits or runs.")


class ChangeJobResult(Strict):
    job_id: int
    previous_state: JobState
    receipt: Receipt
