"""What issue 4 asks of the life of a memory."""

from __future__ import annotations

from tests.acceptance.requirements.form import of

_asked = of("issue 4")

LIVED = (
    _asked("1.1", "Each change stands in the history with its version, who made it and what differs.",
           "integration/test_history.py::test_every_change_says_what_by_whom_and_which_version_it_made",
           "integration/test_history.py::test_the_end_of_a_task_stands_in_the_history_of_what_it_ends"),
    _asked("1.2", "A memory can be brought back to what it held at an earlier version.",
           "integration/test_history.py::test_a_memory_goes_back_to_exactly_what_it_held",
           "integration/test_history.py::test_what_cannot_come_back_is_told_and_the_rest_does"),
    _asked("1.3", "Feedback moves the relevance score by a bounded rule.",
           "integration/test_history.py::test_feedback_moves_the_relevance_score_and_is_kept"),
    _asked("1.4", "What may not be changed is refused by name.",
           "integration/test_lifecycle.py::test_what_may_not_be_changed_is_named_and_so_is_what_may"),
    _asked("4.1", "A default time to live holds by layer and by agent.",
           "integration/test_layers.py::test_a_memory_lives_as_its_layer_says_unless_its_store_says_otherwise",
           "integration/test_layers.py::test_an_agents_own_rules_go_before_the_services_and_are_its_own"),
    _asked("4.2", "A memory that is used often enough within its life is extended, and counts anew.",
           "integration/test_layers.py::test_a_memory_that_is_used_gets_its_time_again_and_counts_anew",
           "integration/test_layers.py::test_use_does_not_bring_back_what_is_over"),
    _asked("7.1", "A conversation is stored message by message, ended, summarised and cleared, each counted.",
           "integration/test_sessions.py::test_each_message_is_a_memory_of_its_speaker_and_its_time",
           "integration/test_sessions.py::test_the_end_keeps_a_summary_that_is_tied_to_what_it_is_of",
           "integration/test_sessions.py::test_a_session_a_user_or_everything_is_cleared_and_counted"),
    _asked("7.2", "What is important or used outlives its session.",
           "integration/test_sessions.py::"
           "test_at_its_end_important_and_used_working_memories_last_and_the_others_are_over"),
    _asked("5.1", "Capacities hold by layer and by agent.",
           "integration/test_layers.py::test_a_prune_goes_down_to_the_agents_own_capacity"),
    _asked("10.1", "All memories are embedded anew while the service runs, and searches go on with the old.",
           "integration/test_reembedding.py::"
           "test_all_memories_have_the_new_vectors_and_the_running_service_uses_them",
           "integration/test_reembedding.py::test_searches_go_through_an_index_at_every_step",
           "integration/test_reembedding.py::test_what_is_stored_changed_and_deleted_meanwhile_is_right"),
    _asked("10.2", "Re-embedding that was killed anywhere goes on where it ended.",
           "integration/test_reembedding.py::test_stopped_at_any_step_the_next_run_goes_on",
           "acceptance/test_reembed.py::test_a_killed_run_goes_on_and_the_service_never_stops_answering"),
    _asked("10.3", "A process with other settings follows the model in force, or says how to start it again.",
           "integration/test_reembedding.py::"
           "test_a_service_with_the_old_settings_starts_with_the_model_in_force",
           "integration/test_reembedding.py::"
           "test_a_service_that_cannot_make_the_model_searches_by_words_and_says_what_to_do"),
    _asked("9 jobs", "A job is enqueued in the transaction that asks for it, and holds ids alone.",
     "integration/test_jobs.py::test_a_job_is_enqueued_only_if_its_transaction_is",
     "integration/test_jobs.py::test_a_job_waits_for_everybody_who_counted_on_it",
     "integration/test_jobs.py::test_jobs_are_those_of_the_agent_of_the_transaction_alone"),
    _asked("9 retries", "A job is tried again with backoff, and done again after its worker was killed.",
     "integration/test_jobs.py::test_a_job_that_fails_is_tried_again_later_and_says_why",
     "integration/test_capacity.py::"
     "test_a_job_whose_worker_is_killed_in_the_middle_is_done_to_the_same_end"),
    _asked("9 operators", "Jobs are listed, explained, cancelled and retried by hand.",
     "acceptance/test_background_jobs.py::test_a_job_that_failed_is_listed_explained_and_tried_again",
     "acceptance/test_background_jobs.py::test_a_job_that_waits_is_cancelled",
     "integration/test_jobs.py::test_a_running_job_is_stopped_and_not_tried_again"),
    _asked("9 schema", "The job library's schema is written by our migrations.",
     "integration/test_migration.py::"
     "test_the_schema_of_the_job_library_is_that_of_the_installed_version"),
    _asked("5 automatic", "A layer is pruned when its limit is passed, and on schedule by one leader.",
     "integration/test_capacity.py::"
     "test_a_thousand_stores_side_by_side_make_one_job_and_end_at_the_capacity",
     "integration/test_capacity.py::test_the_leader_finds_the_layers_that_no_store_saw",
     "integration/test_capacity.py::test_what_one_run_has_no_time_for_the_next_ones_do"),
    _asked("5 kept", "Pinned memories, working memory and only copies are never taken.",
     "integration/test_capacity.py::test_neither_pinned_memories_nor_only_copies_are_taken",
     "integration/test_capacity.py::"
     "test_layers_without_a_capacity_and_working_memory_are_left_alone"),
)
