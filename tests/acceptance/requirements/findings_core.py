"""Findings of FINDINGS.md (277e3a9) and issue 13 on the test suite."""

from __future__ import annotations

from tests.acceptance.requirements.form import of

_found = of("finding")

FINDINGS_CORE = (
    _found("B23", "The suite passes while other processes keep both cores busy.",
           "architecture/test_house.py::test_no_test_counts_all_threads_of_the_process",
           "architecture/test_house.py::test_no_test_waits_by_the_clock",
           "unit/test_client_modes.py::test_outside_its_block_it_is_closed_and_its_thread_has_ended",
           "unit/test_hostile_texts.py::test_a_hostile_text_takes_time_in_proportion_to_its_length"),
)
