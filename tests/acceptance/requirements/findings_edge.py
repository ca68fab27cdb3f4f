"""Findings of FINDINGS.md (277e3a9) and parts of issue 13: limits of requests and responses."""

from __future__ import annotations

from tests.acceptance.requirements.form import Requirement

FINDINGS_EDGE: tuple[Requirement, ...] = ()
