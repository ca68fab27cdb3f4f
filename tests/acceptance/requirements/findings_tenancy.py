"""Findings of FINDINGS.md (277e3a9) and issue 13 on isolation of agents and users."""

from __future__ import annotations

from tests.acceptance.requirements.form import of

_found = of("finding")
_asked = of("issue 13")
_bound = "integration/test_bound_tokens.py"
_caches = "architecture/test_caches.py"

FINDINGS_TENANCY = (
    _found("A4", "No agent gets the cached embedding of another, and times in receipts are coarse.",
           "unit/test_embeddings.py::test_an_agent_never_gets_the_cached_vector_of_another",
           "unit/test_embeddings.py::test_without_an_agent_nothing_is_cached",
           "unit/test_embeddings.py::test_a_forgotten_agents_texts_are_embedded_again_and_no_others",
           "integration/test_embedding_cache.py::test_another_agent_is_never_answered_from_redis",
           "integration/test_embedding_cache.py::test_forgetting_an_agent_removes_its_keys_and_no_others",
           "integration/test_searching.py::test_another_agents_question_is_embedded_again",
           "unit/test_telemetry.py::test_a_callers_timings_are_rounded_up_to_5_ms"),
    _asked("caches", "Every cache and every timing field is listed; one that is missing fails a test.",
           f"{_caches}::test_every_cache_is_declared_with_what_keys_it",
           f"{_caches}::test_what_agents_share_is_a_pure_function_of_one_word",
           f"{_caches}::test_a_cache_of_any_form_is_found",
           f"{_caches}::test_every_time_in_a_result_is_coarse_or_a_setting"),
    _found("A8", "Archive folders of two agents differ on a file system that ignores case.",
           "unit/test_keys.py::test_archive_folders_differ_in_more_than_case",
           "integration/test_erasing.py::"
           "test_on_a_file_system_that_ignores_case_an_erasure_leaves_the_other_agents_copies"),
    _found("B9", "A query may ask for a user's memories and the shared ones together.",
           f"{_bound}::test_a_filter_asks_for_a_users_memories_and_the_shared_ones_together",
           f"{_bound}::test_deleting_by_several_users_leaves_the_others"),
    _asked("users", "A token bound to users reads and writes nothing else through any method.",
           f"{_bound}::test_what_is_of_other_users_is_as_if_it_did_not_exist_and_stays_as_it_is",
           f"{_bound}::test_methods_that_act_on_all_users_are_refused_and_change_nothing",
           f"{_bound}::test_reading_is_restricted_to_the_tokens_users",
           f"{_bound}::test_an_archived_summary_of_several_users_is_visible_to_tokens_bound_to_all_of_them",
           f"{_bound}::test_an_update_by_a_bound_token_marks_a_summary_of_several_users_stale",
           f"{_bound}::test_a_store_carries_a_user_of_the_token",
           f"{_bound}::test_a_memory_of_another_user_is_not_found_by_its_id",
           f"{_bound}::test_deleting_all_deletes_what_the_token_may_read_with_its_history",
           f"{_bound}::test_an_idempotency_key_does_not_meet_that_of_another_user",
           f"{_bound}::test_the_words_of_others_neither_correct_nor_weigh_a_query",
           f"{_bound}::test_a_task_shows_each_user_its_own_part",
           f"{_bound}::test_a_summary_of_several_users_shows_to_none_of_them_alone",
           f"{_bound}::test_an_mcp_client_with_a_bound_token_is_bound_too",
           "integration/test_row_security.py::test_a_transaction_bound_to_users_sees_no_row_of_others",
           "integration/test_row_security.py::test_a_transaction_bound_to_users_cannot_write_for_others",
           "unit/test_auth.py::test_a_token_is_bound_to_the_users_that_it_names",
           "unit/test_minting_notes.py::test_the_command_binds_a_token_to_users"),
    _found("B19", "forget_memory proposes all of many alike memories.",
           "integration/test_forgetting.py::test_all_of_many_alike_memories_are_proposed"),
    _found("B20", "The constants of BM25 are defined once, in Python.",
           "integration/test_row_security.py::test_the_constants_of_bm25_are_defined_in_python_alone"),
    _found("B21", "A historical query finds superseded memories by words, too.",
           "integration/test_relations.py::"
           "test_a_historical_query_finds_superseded_memories_by_words_too"),
)
