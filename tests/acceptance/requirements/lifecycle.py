"""Requirements of issue 4 on the lifecycle of a memory."""

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
    _asked("2 changed facts",
           "A changed fact supersedes; the old stays readable, as of its time too.",
           "unit/test_consolidation.py::"
           "test_another_value_of_the_same_attribute_takes_the_place_of_the_first",
           "unit/test_consolidation.py::test_what_only_looks_like_a_change_stands_beside_the_first",
           "integration/test_superseding.py::test_a_changed_fact_takes_the_place_of_the_old_one",
           "integration/test_superseding.py::test_what_held_before_is_the_answer_as_of_then",
           "integration/test_superseding.py::test_both_sides_of_a_supersession_are_in_the_history",
           "integration/test_superseding.py::test_a_superseded_memory_can_be_let_hold_again",
           "integration/test_superseding.py::"
           "test_deleting_what_took_a_facts_place_lets_it_hold_again",
           "integration/test_superseding.py::"
           "test_in_whatever_order_changes_are_told_each_holds_for_its_time",
           "integration/test_restoring.py::"
           "test_a_fact_that_changed_while_it_was_archived_comes_back_superseded"),
    _asked("2 contradictions in an answer",
           "Of two facts in one answer that contradict each other the newer is given, the other is counted.",
           "unit/test_facts.py::test_a_freely_worded_change_takes_the_place_of_the_old_fact",
           "unit/test_facts.py::test_what_only_sounds_like_a_change_stands_beside_the_fact",
           "integration/test_contradicted.py::"
           "test_an_older_fact_whose_place_was_not_taken_is_left_out_and_counted",
           "integration/test_contradicted.py::test_who_wants_both_gets_both"),
    _asked("2 near duplicates",
           "What says nearly the same is linked, never merged away.",
           "integration/test_superseding.py::test_a_near_duplicate_is_linked_and_both_stay"),
    _asked("2 model",
           "A language model vetoes and confirms inside the rules' guard, and is done without.",
           "integration/test_fact_judge.py::test_its_verdict_decides_what_the_rules_let_through",
           "integration/test_fact_judge.py::test_without_its_answer_the_rules_decide"),
    _asked("2 pairs",
           "Labelled pairs: precision 0.98 at recall 0.70, nothing merged; a stream of changing facts.",
           "unit/test_pairs.py::test_facts_are_superseded_rightly_and_nothing_is_merged",
           "benchmarks/contradictions"),
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
    _asked("5 never taken", "Pinned and superseding-only-copy records are never pruned.",
           "integration/test_capacity.py::test_neither_pinned_memories_nor_only_copies_are_taken",
           "integration/test_superseding.py::"
           "test_a_prune_by_hand_takes_what_was_superseded_and_leaves_what_alone_says_it"),
    _asked("5 curve", "A retention curve, S growing with use, is a strategy; more than 100 % is refused.",
           "unit/test_pruning.py::test_the_retention_curve_takes_what_is_most_forgotten",
           "unit/test_scoring.py::test_what_is_remembered_fades_with_time_and_holds_with_use",
           "unit/test_params.py::test_a_prune_of_more_than_all_is_refused_with_a_sentence"),
    _asked("5 dry run", "A dry run lists exactly what the real run takes; pinned memories survive any state.",
           "property/test_archive_properties.py::"
           "test_a_prune_takes_what_its_dry_run_said_and_never_what_is_pinned",
           "benchmarks/archive_crashes"),
    _asked("6 restore",
           "A restore gives back equal records: id, times, version, vector, history, links, use.",
           "integration/test_restoring.py::"
           "test_a_restored_memory_is_the_one_that_was_archived_byte_for_byte",
           "integration/test_restoring.py::"
           "test_what_was_archived_one_after_the_other_is_tied_again_in_one_call",
           "integration/test_restoring.py::test_words_are_counted_again_when_a_memory_is_back",
           "property/test_archive_properties.py::"
           "test_any_memory_comes_back_from_the_archive_byte_for_byte",
           "acceptance/test_archive.py::test_what_was_pruned_is_listed_checked_and_brought_back"),
    _asked("6 refused",
           "An id that is there, one that was erased, a copy of another digest: none comes back.",
           "integration/test_restoring.py::test_a_memory_that_is_there_is_named_and_nothing_comes_back",
           "integration/test_restoring.py::"
           "test_what_was_never_archived_or_is_erased_or_anothers_is_not_found",
           "integration/test_restoring.py::"
           "test_a_copy_that_is_not_what_was_archived_is_listed_and_the_others_come_back"),
    _asked("6 followed",
           "What was made of memories that are gone stays archived; that of superseded ones is filed.",
           "integration/test_archived_following.py::test_a_fact_whose_memory_was_deleted_stays_in_the_archive",
           "integration/test_archived_following.py::"
           "test_a_fact_of_other_words_stays_in_the_archive_until_they_are_back",
           "integration/test_archived_following.py::test_a_summary_of_deleted_words_stays_in_the_archive",
           "integration/test_archived_following.py::test_a_fact_comes_back_superseded_with_its_memory",
           "integration/test_archived_following.py::"
           "test_what_is_refused_does_not_keep_the_rest_in_the_archive"),
    _asked("6 expired", "What ran out of time in the archive does not vanish as it comes back.",
           "integration/test_restoring.py::"
           "test_what_ran_out_of_time_in_the_archive_gets_what_it_had_left"),
    _asked("6 listed", "What is archived is listed and chosen by filters, without reading a copy.",
           "integration/test_restoring.py::"
           "test_what_is_archived_is_listed_with_size_reason_and_time_page_by_page",
           "integration/test_restoring.py::test_a_filter_restores_what_matches_and_nothing_else"),
    _asked("6 sealed", "Copies can be sealed with keys that are changed, and S3 told how to keep them.",
           "conformance/test_archive.py::test_keys_are_changed_without_writing_anything_again",
           "conformance/test_archive.py::test_a_sealed_object_does_not_open_in_anothers_place",
           "conformance/test_archive.py::test_s3_is_told_how_to_keep_each_object",
           "unit/test_archive_options.py::test_a_problem_is_named_with_its_part_and_no_key_is_quoted"),
    _asked("shown crashes",
           "Killed at any fault point of a prune or restore no memory is lost or there twice.",
           "acceptance/test_archive_crashes.py::"
           "test_wherever_a_prune_or_a_restore_is_killed_nothing_is_lost_and_a_repeat_completes",
           "acceptance/test_archive_crashes.py::"
           "test_the_verdict_sees_a_prune_that_archives_after_it_deletes",
           "benchmarks/archive_crashes"),
    _asked("shown processes",
           "Eight processes on one database: no deadlock, no lost update, one leader at a time.",
           "acceptance/test_many_processes.py::"
           "test_processes_on_one_database_lose_no_update_and_have_one_leader",
           "acceptance/test_many_processes.py::test_the_verdict_sees_an_update_that_was_lost",
           "integration/test_lock_order.py::test_two_updates_that_tie_each_others_memory_are_both_made",
           "integration/test_lock_order.py::"
           "test_an_update_is_made_before_the_deletion_of_both_ends_of_its_tie",
           "integration/test_lock_order.py::"
           "test_of_a_restore_and_an_erasure_of_the_same_archived_memories_the_second_waits",
           "benchmarks/eight_processes"),
    _asked("shown S3",
           "An outage of S3 in the middle takes nothing; afterwards all goes on without a restart.",
           "integration/test_archive_outage.py::"
           "test_an_outage_in_the_middle_of_a_prune_takes_nothing_with_it",
           "integration/test_archive_outage.py::"
           "test_while_s3_is_away_nothing_goes_and_nothing_comes_back_and_then_all_goes_on"),
    _asked("export", "An export carries validity and the vectors that callers gave.",
           "acceptance/test_carried.py::"
           "test_vectors_that_callers_gave_travel_and_those_of_the_embedder_are_made_anew",
           "acceptance/test_carried.py::test_when_a_memory_was_valid_and_what_replaced_it_travels"),
    _asked("10.1", "All memories are embedded anew while the service runs, and searches go on with the old.",
           "integration/test_reembedding.py::"
           "test_all_memories_have_the_new_vectors_and_the_running_service_uses_them",
           "integration/test_reembedding.py::test_searches_go_through_an_index_at_every_step",
           "integration/test_reembedding.py::test_what_is_stored_changed_and_deleted_meanwhile_is_right"),
    _asked("10.2", "Re-embedding that was killed anywhere goes on where it ended.",
           "integration/test_reembedding.py::test_stopped_at_any_step_the_next_run_goes_on",
           "acceptance/test_reembed.py::test_a_killed_run_goes_on_and_the_service_never_stops_answering",
           "acceptance/test_reembed_crashes.py::"
           "test_wherever_it_is_killed_the_next_process_ends_with_every_vector_the_right_one",
           "acceptance/test_reembed_crashes.py::"
           "test_the_verdict_sees_a_vector_that_is_named_before_it_is_moved",
           "benchmarks/reembed_crashes"),
    _asked("10.3", "A process with other settings follows the model in force, or says how to start it again.",
           "integration/test_reembedding.py::"
           "test_a_service_with_the_old_settings_starts_with_the_model_in_force",
           "integration/test_reembedding.py::"
           "test_a_service_that_cannot_make_the_model_searches_by_words_and_says_what_to_do"),
    _asked("8 erase",
           "Everything of an agent, or of a user within it, goes from every place, and nobody else's.",
           "integration/test_erasing.py::"
           "test_all_of_an_agent_goes_from_every_place_and_nothing_of_another",
           "integration/test_erasing.py::"
           "test_a_users_memories_go_with_what_was_made_of_them_and_nobody_elses",
           "integration/test_erasing.py::"
           "test_a_copy_without_row_or_tombstone_is_read_to_learn_whose_it_is",
           "integration/test_erasing.py::test_the_vectors_of_what_is_erased_leave_the_caches",
           "integration/test_erasing.py::test_what_was_erased_cannot_be_restored",
           "integration/test_erasing_attested.py::test_it_needs_the_admin_scope",
           "conformance/test_archive.py::"
           "test_what_is_deleted_is_gone_and_what_is_absent_is_no_error"),
    _asked("8 made of them",
           "What was made of memories goes with them, when they are deleted and when their user is erased.",
           "integration/test_made_of_memories.py::"
           "test_a_deleted_message_takes_the_summary_that_quotes_it_and_the_next_is_without",
           "integration/test_made_of_memories.py::test_a_cleared_user_takes_the_summaries_that_quote_them",
           "integration/test_made_of_memories.py::"
           "test_an_erased_user_takes_a_summary_whose_source_was_archived_before",
           "integration/test_made_of_memories.py::"
           "test_an_erased_user_takes_a_summary_whose_source_is_long_gone",
           "integration/test_made_of_memories.py::"
           "test_an_erased_user_takes_an_archived_summary_whose_source_is_long_gone",
           "integration/test_made_of_memories.py::"
           "test_an_archived_memory_whose_copy_went_before_a_kill_is_still_the_users",
           "integration/test_made_of_memories.py::"
           "test_a_consolidation_that_ends_after_an_erasure_brings_nothing_back"),
    _asked("8 receipt", "A signed receipt tells what was erased; it opens nothing.",
           "integration/test_erasing_attested.py::test_the_receipt_tells_whose_what_when_and_by_whom",
           "integration/test_erasing_attested.py::test_a_receipt_that_was_changed_or_is_a_token_is_none",
           "integration/test_erasing_attested.py::test_a_receipt_opens_nothing",
           "acceptance/test_erase_command.py::"
           "test_an_erasure_is_confirmed_done_attested_and_its_receipt_checked"),
    _asked("8 check", "Every place is looked through afterwards, and what is left is told.",
           "integration/test_erasing.py::"
           "test_copies_that_a_prune_makes_meanwhile_are_waited_for_and_go",
           "integration/test_erasing.py::test_a_copy_that_cannot_be_read_is_told_and_left"),
    _asked("8 crashes", "Killed at any fault point of an erasure the same call leaves nothing.",
           "acceptance/test_archive_crashes.py::"
           "test_wherever_an_erasure_is_killed_the_same_call_leaves_nothing_and_takes_nobody_elses",
           "acceptance/test_archive_crashes.py::"
           "test_the_verdict_sees_an_erasure_that_takes_sources_before_what_was_made_of_them",
           "benchmarks/archive_crashes"),
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
    _asked("5 kept", "Pinned memories, only copies, and layers without a capacity are never taken.",
     "integration/test_capacity.py::test_neither_pinned_memories_nor_only_copies_are_taken",
     "integration/test_capacity.py::"
     "test_layers_without_a_capacity_and_working_memory_are_left_alone"),
    _asked("3 clusters", "Episodes that tell one thing become a summary that points to them; no others do.",
           "integration/test_consolidating.py::"
           "test_a_cluster_becomes_a_summary_in_its_own_words_that_points_to_its_sources",
           "integration/test_clustering.py::test_what_stands_together_belongs_together"),
    _asked("3 idempotent", "Consolidation done again, side by side or after a kill comes to the same.",
           "integration/test_consolidating.py::test_done_again_it_makes_nothing_new",
           "integration/test_consolidating.py::test_runs_side_by_side_make_one_summary",
           "integration/test_consolidating.py::test_a_run_that_is_killed_in_the_middle_is_done_to_the_same_end"),
    _asked("3 sources", "The sources may go to the archive; their summary stays and names them.",
           "integration/test_consolidating.py::"
           "test_archived_sources_leave_their_summary_which_still_names_them"),
    _asked("3 off", "Consolidation is off unless the agent is given it, and bounded.",
           "integration/test_consolidating.py::test_it_is_off_unless_the_agent_is_given_it",
           "integration/test_consolidating.py::"
           "test_a_job_archives_sources_where_the_agent_wishes_it_and_goes_on_until_done"),
)
