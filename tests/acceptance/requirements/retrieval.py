"""Requirements of issue 3 on retrieval."""

from __future__ import annotations

from tests.acceptance.requirements.form import of

_sought = of("issue 3")

UNDERSTOOD = (
    _sought("1 temporal",
            "Expressions of time in a query become windows over the time that memories speak of.",
            "unit/test_moments.py::test_words_for_a_time_become_its_days",
            "unit/test_moments.py::test_what_is_no_time_or_not_surely_one_is_left_alone",
            "property/test_moments_properties.py::"
            "test_any_text_gives_windows_in_order_with_a_length_inside_the_calendar",
            "integration/test_event_times.py::test_a_memory_keeps_the_time_it_speaks_of",
            "integration/test_plans.py::test_a_span_of_time_goes_through_its_index",
            "integration/test_understanding.py::"
            "test_a_time_in_the_query_finds_what_happened_then_though_no_word_or_vector_does",
            "integration/test_understanding.py::test_what_was_told_later_of_a_day_is_found_by_that_day",
            "unit/test_retrieval.py::"
            "test_what_speaks_of_the_time_asked_for_comes_before_what_was_only_said_then"),
    _sought("4 vague", "A vague query is joined with the key terms of the last user turns.",
            "unit/test_query.py::test_a_query_that_says_too_little_is_followed_by_key_terms_of_the_turns",
            "property/test_query_properties.py::"
            "test_a_completed_query_begins_with_itself_and_repeats_nothing"),
    _sought("4 prompts", "A long prompt is split into sentences and searched as several queries.",
            "unit/test_query.py::test_a_long_prompt_becomes_its_telling_sentences_in_order",
            "unit/test_query.py::test_of_code_and_logs_the_errors_and_the_names_are_left",
            "integration/test_understanding.py::test_each_question_of_a_long_prompt_is_searched"),
    _sought("1 lexical", "Words are exact for identifiers, and misspellings within reach.",
            "integration/test_wording.py::test_an_identifier_finds_its_memory_among_many_like_it",
            "integration/test_wording.py::test_a_slip_of_the_pen_is_read_as_the_word_it_is_near",
            "integration/test_wording.py::"
            "test_a_short_memory_with_the_words_is_a_candidate_before_long_ones_that_hold_them_too"),
    _sought("2 fusion", "One score in [0, 1], weights learnt by a committed script, each share explained.",
            "unit/test_retrieval.py::test_the_terms_add_up_to_the_score",
            "property/test_pure_properties.py::"
            "test_a_ranking_is_bounded_ordered_and_independent_of_the_order_of_arrival",
            "benchmarks/learn_weights", "benchmarks/retrieval_quality", "benchmarks/ranking_cost"),
    _sought("3 near-duplicates",
            "Of memories with the same words the newest is returned and lists the others, or all are.",
            "integration/test_copies.py::test_the_newest_is_given_and_names_the_older_ones",
            "integration/test_copies.py::test_who_wants_every_copy_gets_it"),
    _sought("3 silence",
            "Where nothing fits nothing is given, stricter in a context, and the receipt says so.",
            "unit/test_calibration.py::test_a_good_match_is_likely_to_answer_and_a_poor_one_is_not",
            "integration/test_understanding.py::"
            "test_below_the_callers_bound_a_search_is_silent_and_counts_what_it_held_back",
            "integration/test_understanding.py::test_what_is_far_below_the_best_is_left_out_and_counted",
            "integration/test_understanding.py::"
            "test_entries_of_a_log_step_back_behind_what_says_something_else"),
    _sought("5 reranker",
            "A reranker orders the foremost inside a time budget, or is left out with a receipt.",
            "integration/test_reranked_search.py::test_it_chooses_among_more_than_are_given_back",
            "integration/test_reranked_search.py::"
            "test_a_reranker_over_its_time_is_done_without_and_then_given_less"),
)
