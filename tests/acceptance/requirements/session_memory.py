"""Requirements of issue 6 and seed 004 on session memory for frameworks, and of issue 6 on imports."""

from __future__ import annotations

from tests.acceptance.requirements.form import of

_asked, _seeded = of("issue 6"), of("seed 004")
_SUITE = "conformance/test_session_memory.py::"
_ESSENTIALS = "conformance/test_session_memory_essentials.py::"
_LISTING = "integration/test_session_listing.py::"
_STRATEGIES = "unit/test_session_strategies.py::"
_VECTORS = "unit/test_in_memory_vector_sessions.py::"
_OWN = "integration/test_session_memory_kinds.py::"
_IMPORTS = "acceptance/test_import_from.py::"

HELD = (
    _asked("4 interface", "Every session memory keeps to one interface and passes one suite.",
           f"{_SUITE}test_every_implementation_keeps_to_the_interface_and_to_the_seeds_words",
           f"{_SUITE}test_messages_come_back_whole_the_newest_first",
           f"{_SUITE}test_importance_and_tags_say_which_messages_are_meant",
           f"{_SUITE}test_a_range_of_time_gives_the_talk_as_it_stood_then",
           f"{_SUITE}test_a_query_finds_what_fits_best_with_scores_that_fall",
           f"{_SUITE}test_a_query_that_fits_nothing_finds_nothing",
           f"{_SUITE}test_a_known_id_answers_the_message_that_is_held",
           f"{_ESSENTIALS}test_a_summary_keeps_to_its_length_and_to_what_was_said",
           f"{_SUITE}test_a_cleared_session_is_gone_and_no_other",
           f"{_SUITE}test_what_is_held_is_counted",
           "acceptance/test_session_memory_page.py::test_each_example_of_the_page_runs"),
    _asked("4 ids", "Hostile ids of sessions meet nobody, and neither do two agents.",
           f"{_SUITE}test_hostile_ids_of_sessions_meet_nobody",
           f"{_SUITE}test_two_agents_with_the_same_sessions_never_meet"),
    _asked("4 sessions", "The sessions of every session memory can be listed and counted.",
           f"{_SUITE}test_sessions_are_listed_by_their_newest_messages",
           f"{_SUITE}test_sessions_of_one_time_and_of_any_id_are_listed_once",
           f"{_LISTING}test_sessions_that_speak_in_turns_are_listed_once_by_the_service",
           f"{_LISTING}test_hierarchical_lists_each_session_once_whatever_tier_has_it",
           "property/test_session_listing_properties.py::"
           "test_tiers_list_each_session_once_in_order_with_what_it_holds",
           f"{_LISTING}test_hierarchical_counts_each_message_once_and_each_tier_by_itself"),
    _asked("4 vector", "Messages are found by meaning in this process too, with a developer's own embedder.",
           f"{_VECTORS}test_a_score_is_the_exact_cosine_and_what_is_less_near_is_not_found",
           f"{_VECTORS}test_the_message_found_least_recently_goes_with_its_vector"),
    _asked("4 known", "A message is there once under its id, whoever stores it and wherever it is read.",
           f"{_SUITE}test_a_known_id_answers_the_message_that_is_held",
           f"{_OWN}test_vector_a_known_id_is_known_also_where_a_replica_lags",
           f"{_OWN}test_vector_a_cleared_message_is_stored_once_each_time_also_at_the_same_time"),
    _seeded("G12", "A strategy chooses what a model is given of a session, within its tokens.",
            f"{_STRATEGIES}test_a_window_slides_over_the_newest_and_has_no_gap",
            f"{_STRATEGIES}test_the_important_are_chosen_the_newer_rather_and_the_newest_always",
            f"{_STRATEGIES}test_the_older_are_summed_up_before_the_newest",
            f"{_STRATEGIES}test_no_strategy_exceeds_its_tokens_or_changes_the_order",
            f"{_STRATEGIES}test_a_context_says_how_many_tokens_it_has_and_what_it_leaves_out"),
    _asked("4 kinds", "Least recently used, time to live, publication and tiers work as they are named.",
           f"{_OWN}test_in_memory_what_was_used_least_recently_goes_first",
           f"{_OWN}test_in_redis_a_session_lives_anew_from_each_message_on",
           f"{_OWN}test_in_redis_another_process_hears_what_happens",
           f"{_OWN}test_hierarchical_tiers_keep_what_their_rules_say"),
    _asked("4 endless", "A provider of compressed context keeps a session without end within a budget.",
           f"{_OWN}test_an_endless_session_comes_back_within_its_budget",
           f"{_ESSENTIALS}test_what_is_said_comes_back_for_its_query",
           f"{_ESSENTIALS}test_no_session_says_what_another_was_told",
           f"{_ESSENTIALS}test_a_cleared_message_can_be_stored_again_under_its_id"),
    _asked("4 template", "An agent fills a template in and keeps it.",
           f"{_OWN}test_a_template_is_filled_in_kept_and_corrected",
           f"{_OWN}test_what_several_fill_in_at_the_same_time_is_all_kept"),
    _asked("6 forms", "What mem0, LangGraph, ChatGPT, Claude and kagent export is imported.",
           f"{_IMPORTS}test_every_form_is_stored_once_and_what_was_left_out_is_told",
           f"{_IMPORTS}test_chatgpts_conversations_keep_their_branch_times_roles_and_titles",
           f"{_IMPORTS}test_claudes_conversations_keep_their_times_senders_and_titles",
           f"{_IMPORTS}test_memories_of_others_keep_whose_they_are_when_and_how_long",
           f"{_IMPORTS}test_an_export_is_read_inside_its_zip_archive",
           f"{_IMPORTS}test_a_file_read_as_another_form_fails_and_says_which_it_is",
           f"{_IMPORTS}test_an_export_without_its_form_is_refused_with_what_to_type",
           f"{_IMPORTS}test_langgraphs_store_goes_on_with_the_items_of_its_dump",
           "unit/test_import_forms.py::test_no_json_breaks_a_parser_and_all_its_lines_are_lines"),
    _asked("6 resumed", "An import goes on after a break and stores nothing twice.",
           f"{_IMPORTS}test_an_import_that_was_killed_goes_on_and_stores_nothing_twice",
           f"{_IMPORTS}test_a_state_lets_the_next_run_begin_behind_what_is_stored",
           f"{_IMPORTS}test_a_record_that_was_stored_in_part_is_read_again",
           f"{_IMPORTS}test_a_file_that_could_not_be_read_to_its_end_is_read_on_from_there",
           "unit/test_import_forms.py::"
           "test_a_record_has_the_same_number_whatever_expired_between_two_runs",
           "unit/test_import_forms.py::test_of_whom_and_where_are_different_imports_even_by_one_name"),
    _asked("6 large", "Files of any size are read as a stream.",
           "unit/test_json_stream.py::test_any_array_comes_back_however_it_is_cut",
           "unit/test_json_stream.py::test_a_record_larger_than_the_bound_is_refused",
           "unit/test_json_stream.py::test_a_line_that_is_no_object_takes_no_other_with_it"),
)
