"""Requirements of issue 5 on contexts."""

from __future__ import annotations

from tests.acceptance.requirements.form import of

_composed = of("issue 5")

COMPOSED = (
    _composed("1 limit", "The limit holds in every form; tokens are counted as the model counts them.",
              "property/test_context_properties.py::test_no_form_exceeds_its_budget_and_nothing_is_lost",
              "integration/test_context_forms.py::test_no_form_exceeds_the_limit_in_any_encoding",
              "integration/test_context_forms.py::test_tokens_are_counted_as_the_model_counts_them",
              "integration/test_context_forms.py::"
              "test_a_model_that_cannot_be_counted_is_refused_with_what_to_do"),
    _composed("1 used well", "What is near the limit is filled.",
              "unit/test_compression.py::test_room_that_a_long_memory_leaves_is_filled_with_shorter_ones",
              "benchmarks/context_efficiency"),
    _composed("1 story", "Inside a section memories stand by session and time.",
              "unit/test_compression.py::"
              "test_a_session_stands_in_one_piece_beside_another_of_the_same_hour",
              "unit/test_compression.py::test_what_was_said_together_stands_under_one_time"),
    _composed("1 citable", "Each line can be cited.",
              "integration/test_context_forms.py::"
              "test_each_numbered_line_is_the_memory_at_that_place",
              "integration/test_cited_lines.py::"
              "test_the_lines_of_a_turns_context_name_the_memories_they_are_of"),
    _composed("1 once", "Superseded and duplicated statements are left out.",
              "integration/test_context_forms.py::test_a_replaced_statement_is_not_in_the_context",
              "integration/test_context_forms.py::test_words_of_the_task_are_not_said_twice"),
    _composed("1 fence", "Nothing that a memory says closes the fence around the memories.",
              "property/test_context_properties.py::"
              "test_nothing_that_a_memory_says_closes_the_fence_or_begins_a_line",
              "property/test_context_properties.py::test_json_stays_one_object_of_what_was_put_in",
              "property/test_context_properties.py::test_no_mark_of_a_chat_is_left_in_what_is_quoted",
              "unit/test_fencing.py::test_whatever_reads_as_a_tag_of_the_fence_loses_its_angle",
              "unit/test_fencing.py::test_what_is_said_in_any_script_stays_as_it_was_said"),
    _composed("1 nothing", "Where nothing is found, JSON is an empty document, the others no text.",
              "integration/test_context_forms.py::"
              "test_where_nothing_is_found_json_is_an_empty_document_and_the_others_no_text"),
    _composed("1 receipt", "The result says what was used, shortened and left out.",
              "integration/test_context_forms.py::test_what_does_not_fit_is_named_up_to_a_bound",
              "integration/test_context_forms.py::"
              "test_a_memory_too_long_stands_by_what_answers_and_the_result_says_so"),
    _composed("2 window", "Of a task the newest stand in full, older ones shortened; what matters is kept.",
              "unit/test_task_window.py::"
              "test_for_a_vague_query_the_newest_stand_in_full_and_older_ones_shortened",
              "unit/test_task_window.py::"
              "test_an_important_old_note_stands_in_full_where_a_trivial_newer_one_does_not",
              "integration/test_context_of_tasks.py::"
              "test_a_vague_query_gives_the_newest_notes_in_full_and_older_ones_shortened",
              "integration/test_context_of_tasks.py::"
              "test_a_pinned_note_stands_in_full_among_many_newer_ones"),
    _composed("2 summaries", "Stored summaries stand for what has no room, and tell nothing twice.",
              "integration/test_standing_in.py::"
              "test_what_is_looked_up_matches_what_was_asked_for_and_holds",
              "property/test_context_properties.py::test_no_form_exceeds_its_budget_and_nothing_is_lost",
              "unit/test_compression.py::test_a_summary_adds_nothing_to_its_sources",
              "benchmarks/context_efficiency"),
    _composed("2 extraction", "Without an LLM a long memory stands by its sentences that tell of the query.",
              "unit/test_shortening.py::"
              "test_the_sentence_that_holds_the_querys_words_stays_with_its_numbers",
              "property/test_context_properties.py::test_an_extract_fits_and_says_nothing_of_its_own"),
    _composed("6 windows", "Pairs, windows and neighbours come in where measurement says they help.",
              "benchmarks/retrieval_units", "benchmarks/context_efficiency"),
)
