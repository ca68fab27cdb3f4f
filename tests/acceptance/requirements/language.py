"""What issue 5 asks of language models."""

from __future__ import annotations

from tests.acceptance.requirements.form import of

_asked = of("issue 5")
_BUDGET = "integration/test_llm_budget.py::"
_FAILURES = "integration/test_llm_failures.py::"
_FACTS = "integration/test_extracting.py::"
_SUMMARIES = "integration/test_session_summaries.py::"
_REFRESHED, _GONE = "integration/test_refreshing.py::", "integration/test_sources_gone.py::"
_PERIODS, _PERIODS_GONE = "integration/test_period_summaries.py::", "integration/test_periods_gone.py::"
_CONTEXT = "unit/test_compression.py::"
_PROVIDERS = "integration/test_summary_providers.py::"

WRITTEN = (
    _asked("3 budget", "A token and cost budget per agent and day holds for all uses and processes.",
           f"{_BUDGET}test_a_budget_is_held_to_the_token_however_many_ask_at_once",
           f"{_BUDGET}test_several_processes_share_one_budget_and_it_outlasts_them",
           f"{_BUDGET}test_a_budget_in_money_is_held_by_the_prices",
           f"{_BUDGET}test_what_it_cost_stands_in_the_metrics",
           f"{_BUDGET}test_a_store_beyond_the_budget_goes_by_the_rules_alone"),
    _asked("3 limits", "Timeout, retries where nobody waits, and a number of requests at once.",
           f"{_BUDGET}test_no_more_requests_than_allowed_run_at_once_and_the_background_leaves_room",
           f"{_FAILURES}test_a_passing_failure_is_mended_within_the_same_run",
           f"{_FAILURES}test_a_model_that_answers_late_is_given_up_and_its_cost_stays_on_the_account"),
    _asked("3 facts",
           "Facts and entities on write: in the background, batched, gated, capped, each memory once.",
           f"{_FACTS}test_facts_become_memories_beside_the_one_they_were_read_from",
           f"{_FACTS}test_memories_are_read_together",
           f"{_FACTS}test_a_request_holds_sixteen_kilobytes_at_most_and_no_thoughts",
           f"{_FACTS}test_what_is_of_little_worth_is_not_sent",
           f"{_FACTS}test_two_processes_at_once_store_each_fact_once"),
    _asked("3 form", "Structured outputs, and another form where the server refuses them.",
           f"{_FAILURES}test_a_server_that_knows_no_structured_outputs_is_asked_in_a_form_it_knows",
           f"{_FAILURES}test_what_a_model_thinks_aloud_is_passed_over"),
    _asked("3 prompts", "Prompts are files, versioned, with golden tests.",
           "integration/test_prompts.py::test_a_request_is_what_the_golden_file_says",
           "integration/test_prompts.py::test_a_prompt_that_changes_gets_a_new_version"),
    _asked("3 instructions", "Text from memories is never given the role of instructions.",
           f"{_FAILURES}test_what_memories_say_is_never_an_instruction",
           f"{_FAILURES}test_a_model_that_obeys_an_injected_instruction_is_not_believed"),
    _asked("3 consolidation", "Summaries of clusters in a model's words, with extraction beneath.",
           "integration/test_condensing.py::"
           "test_a_cluster_is_told_in_the_models_words_where_its_agent_wishes_them",
           "integration/test_condensing.py::test_what_the_model_does_not_tell_the_sentences_themselves_do"),
    _asked("4 providers", "Summaries by a model, by the caller's compactions, as said; a custom prompt.",
           f"{_PROVIDERS}test_the_callers_compactions_are_used_and_the_model_is_asked_for_the_rest",
           f"{_PROVIDERS}test_passed_through_what_was_said_is_kept_as_it_was_said",
           f"{_PROVIDERS}test_the_agents_own_wish_stands_behind_the_rules_and_not_in_their_place",
           f"{_PROVIDERS}test_a_long_session_gives_several_summaries_each_of_what_one_request_holds"),
    _asked("4 matrix", "The behaviour matrix of summaries and vectors, with its warnings.",
           "unit/test_llm_options.py::"
           "test_the_matrix_of_summaries_and_vectors_warns_of_what_is_unwise",
           f"{_PROVIDERS}test_without_a_model_its_work_is_done_by_extraction_and_that_is_told"),
    _asked("5 triggers", "Turns, messages, inactivity, compaction and the session's end, in the background.",
           f"{_SUMMARIES}test_every_five_user_turns_a_stretch_is_summarised_in_the_background",
           f"{_SUMMARIES}test_a_number_of_messages_ends_a_stretch_whoever_speaks",
           f"{_SUMMARIES}test_inactivity_ends_a_stretch_and_another_message_puts_it_off",
           f"{_SUMMARIES}test_the_end_of_a_session_summarises_what_is_left",
           f"{_PROVIDERS}test_each_compaction_is_a_memory_at_once_and_costs_no_request"),
    _asked("5 wishes", "An agent's wishes and account are shown and set at the command line.",
           "acceptance/test_llm_command.py::test_what_models_are_used_for_is_shown_and_set"),
    _asked("5 once", "Each stretch is summarised once, across processes; re-saving adds what is new.",
           f"{_SUMMARIES}test_two_processes_at_once_make_one_summary",
           f"{_SUMMARIES}test_two_workers_share_the_sessions_and_summarise_each_once",
           f"{_SUMMARIES}test_the_same_session_saved_again_adds_only_what_is_new"),
    _asked("2 refreshed", "Summaries are made anew when their sources change, in their place, once.",
           f"{_REFRESHED}test_a_summary_follows_a_message_that_is_changed_in_its_place",
           f"{_REFRESHED}test_without_rules_the_summary_of_a_sessions_end_follows_within_its_own_budget",
           f"{_REFRESHED}test_what_no_longer_holds_leaves_a_summary_and_comes_back_with_it",
           f"{_REFRESHED}test_a_summary_is_made_anew_by_the_agents_rules",
           f"{_REFRESHED}test_a_summary_in_its_callers_words_is_not_written_over",
           f"{_REFRESHED}test_a_callers_compaction_is_never_touched",
           f"{_REFRESHED}test_two_workers_at_once_write_a_summary_once",
           f"{_REFRESHED}test_a_message_changed_while_the_model_reads_is_read_again",
           "property/test_summary_properties.py::test_summaries_tell_all_that_holds_and_nothing_else",
           "integration/test_plans.py::test_what_is_made_of_a_memory_is_looked_up_by_keys"),
    _asked("2 gone", "What is deleted is told no more, what is archived or expired still is.",
           f"{_GONE}test_what_lost_its_summary_has_another_at_once_whatever_the_trigger",
           f"{_GONE}test_two_deletions_from_one_session_at_once_leave_a_summary_of_the_rest",
           f"{_GONE}test_what_a_summary_says_of_archived_messages_stays_when_another_is_changed",
           f"{_GONE}test_a_models_words_of_archived_messages_stay_and_what_changed_stands_behind_them",
           f"{_GONE}test_a_summary_outlives_expired_messages_and_keeps_what_it_says_of_them",
           f"{_GONE}test_restored_messages_are_told_anew_with_what_was_changed_meanwhile"),
    _asked("2 facts", "Facts read from words that are no more go with them.",
           f"{_FACTS}test_facts_read_from_words_that_are_no_more_go_and_the_new_words_are_read"),
    _asked("2 periods", "Hierarchical summaries: memory, session, period; stored, refreshed, deleted.",
           f"{_PERIODS}test_two_sessions_of_a_week_have_a_summary_together",
           f"{_PERIODS}test_the_agents_rules_say_of_what_time_there_are_summaries",
           f"{_PERIODS}test_users_and_namespaces_have_periods_of_their_own",
           f"{_PERIODS}test_another_session_of_the_week_is_told_in_the_same_summary",
           f"{_PERIODS}test_what_changes_in_a_message_reaches_the_period",
           f"{_PERIODS}test_the_model_tells_of_periods_where_it_tells_of_sessions",
           f"{_PERIODS}test_a_model_that_fails_for_long_is_done_without_and_that_is_told",
           f"{_PERIODS}test_sessions_summarised_before_the_rule_are_told_too",
           f"{_PERIODS}test_two_workers_at_once_tell_a_period_once",
           f"{_PERIODS_GONE}"
           "test_a_deleted_message_takes_the_summaries_above_it_at_once_and_the_rest_is_told_again",
           f"{_PERIODS_GONE}test_what_a_period_says_of_archived_sessions_stays",
           f"{_PERIODS_GONE}test_a_users_erasure_reaches_the_periods_that_tell_of_it"),
    _asked("2 reused", "Stored summaries are reused, and nothing is told twice.",
           f"{_CONTEXT}test_a_summary_adds_nothing_to_its_sources",
           f"{_CONTEXT}test_a_periods_summary_adds_nothing_to_those_of_its_sessions_or_to_what_they_are_of",
           f"{_CONTEXT}test_of_what_does_not_fit_its_summary_stands_there_before_any_shortening",
           "integration/test_reused_summaries.py::"
           "test_a_context_leaves_a_summary_out_whose_messages_stand_there",
           "integration/test_reused_summaries.py::"
           "test_what_is_older_than_a_summary_on_call_reads_is_told_by_its_summaries"),
    _asked("show failures",
           "A model that is slow, fails, lies or is silent: every fallback, no call blocked, nothing lost.",
           f"{_FAILURES}test_a_model_that_fails_is_asked_again_and_then_does_all_it_would_have_done",
           f"{_FAILURES}test_of_a_model_that_goes_on_failing_plain_code_does_the_work_and_says_so",
           f"{_FAILURES}test_whoever_stores_gets_what_the_rules_decide_in_place_of_the_models_verdict",
           f"{_FAILURES}test_no_call_waits_for_a_model_that_hangs",
           f"{_FAILURES}test_beyond_the_budget_plain_code_does_the_work_at_once_and_says_so",
           f"{_FAILURES}test_the_budget_holds_through_jobs_searches_and_stores_together"),
)
