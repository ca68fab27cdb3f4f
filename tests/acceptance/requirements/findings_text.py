"""Findings of FINDINGS.md (277e3a9) and parts of issue 13 about text and flagged memories."""

from __future__ import annotations

from tests.acceptance.requirements.form import Requirement

FINDINGS_TEXT: tuple[Requirement, ...] = ()
