"""Findings of FINDINGS.md (277e3a9) and issue 13 on text and flagged memories."""

from __future__ import annotations

from tests.acceptance.requirements.form import Requirement, of

_found, _asked = of("finding"), of("issue 13")

FINDINGS_TEXT: tuple[Requirement, ...] = (
    _found("A1", "Long runs of combining marks are broken before a text is normalized.",
           "unit/test_hostile_texts.py::test_a_hostile_text_takes_time_in_proportion_to_its_length",
           "unit/test_text.py::test_a_run_of_combining_marks_is_broken_before_it_is_normalized",
           "unit/test_text.py::test_every_non_starter_of_unicode_counts_to_a_run",
           "unit/test_text.py::test_one_place_normalizes_texts",
           "unit/test_text.py::test_a_text_normalized_in_slices_has_its_unicode_normal_form"),
    _found("A14 U+FDFA", "No long text keeps the event loop or the GIL; normalization expands it four times.",
           "unit/test_text.py::test_normalization_never_multiplies_a_text_by_more_than_four",
           "unit/test_hostile_texts.py::test_the_longest_text_is_normalized_in_short_c_calls",
           "unit/test_hostile_texts.py::"
           "test_the_local_model_reads_only_the_start_of_the_longest_text_without_blanks",
           "unit/test_lexical.py::test_a_memory_has_a_limited_number_of_term_keys",
           "integration/test_event_loop.py::test_no_text_occupies_the_event_loop"),
    _found("B15", "Reasoning blocks are not stored, found, summarized or quoted.",
           "unit/test_llm_text.py::test_reasoning_blocks_of_a_model_are_removed",
           "unit/test_llm_text.py::test_a_text_about_reasoning_tags_loses_nothing",
           "integration/test_reasoning_blocks.py::test_a_response_is_stored_without_its_reasoning",
           "integration/test_reasoning_blocks.py::test_contents_of_a_model_lose_their_reasoning_too"),
    _found("B17", "German sentences are not split at ordinals and abbreviations.",
           "unit/test_text.py::test_a_german_ordinal_or_abbreviation_ends_no_sentence",
           "unit/test_text.py::test_a_number_or_letter_at_the_end_still_ends_a_sentence"),
    _asked("keep_reasoning", "The raw text stays in the record's `response` if `keep_reasoning` is set.",
           "integration/test_reasoning_blocks.py::test_the_raw_response_stays_in_the_record_on_request",
           "integration/test_reasoning_blocks.py::"
           "test_messages_of_a_session_lose_the_reasoning_of_the_assistant_alone"),
    _asked("growth", "The hostile-text test measures growth at n and 4n for every reader of text.",
           "unit/test_hostile_texts.py::test_a_hostile_text_takes_time_in_proportion_to_its_length"),
    _asked("flagged", "Patterns flag a memory on write; contexts leave it out, lists mark it.",
           "integration/test_flagged_memories.py::test_an_injected_text_is_stored_and_its_pattern_named",
           "integration/test_flagged_memories.py::test_batches_sessions_and_interactions_are_flagged_too",
           "integration/test_flagged_memories.py::test_contexts_leave_flagged_memories_out_and_count_them",
           "integration/test_flagged_memories.py::"
           "test_the_working_memory_of_a_task_leaves_flagged_memories_out",
           "integration/test_flagged_memories.py::test_lists_and_searches_mark_flagged_memories",
           "integration/test_flagged_memories.py::test_an_update_and_a_revert_screen_the_text_again",
           "integration/test_flagged_memories.py::test_the_flag_survives_the_archive",
           "integration/test_flagged_memories.py::test_summaries_are_made_without_flagged_memories",
           "integration/test_flagged_memories.py::test_an_operator_adds_and_removes_patterns"),
    _asked("flagged texts", "Of 300 harmless texts under 1 % are flagged; 100 injected ones are measured.",
           "unit/test_rejection.py::test_under_one_percent_of_harmless_texts_are_flagged",
           "benchmarks/flagged_texts"),
)
