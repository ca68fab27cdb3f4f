"""What issue 5 asks of language models."""

from __future__ import annotations

from tests.acceptance.requirements.form import of

_asked = of("issue 5")
_BUDGET = "integration/test_llm_budget.py::"
_FAILURES = "integration/test_llm_failures.py::"
_JUDGE = "integration/test_fact_judge.py::"
_FACTS = "integration/test_extracting.py::"
_SUMMARIES = "integration/test_session_summaries.py::"
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
           f"{_FAILURES}test_a_model_that_answers_late_is_given_up_and_its_cost_stays_on_the_account",
           f"{_JUDGE}test_pairs_of_one_store_are_asked_side_by_side",
           f"{_JUDGE}test_what_is_not_judged_in_time_the_rules_decide_and_what_is_stays_judged",
           f"{_JUDGE}test_a_judge_without_room_is_not_taken_for_a_slow_one",
           f"{_BUDGET}test_whoever_waits_for_an_answer_does_not_wait_for_room_or_an_account_for_long",
           "integration/test_reranked_search.py::"
           "test_a_rewriter_over_its_time_is_done_without_and_left_alone"),
    _asked("3 key", "A key goes to the vendor it is for; a model without a place to ask stops the start.",
           f"{_JUDGE}test_another_vendor_gets_its_own_key_and_never_that_of_openai",
           "unit/test_llm_endpoint.py::test_the_key_of_openai_goes_to_no_other",
           "unit/test_config.py::test_a_key_among_the_options_is_never_shown",
           "unit/test_config.py::test_a_model_beside_the_embedder_says_what_it_lacks"),
    _asked("3 features", "A client is told what the service's language model does.",
           f"{_JUDGE}test_what_a_language_model_does_is_among_the_features"),
    _asked("3 facts",
           "Facts and entities on write: in the background, batched, gated, capped, each memory once.",
           f"{_FACTS}test_facts_become_memories_beside_the_one_they_were_read_from",
           f"{_FACTS}test_memories_are_read_together",
           f"{_FACTS}test_a_request_holds_sixteen_kilobytes_at_most_and_no_thoughts",
           f"{_FACTS}test_what_is_of_little_worth_is_not_sent",
           "unit/test_worth_reading.py::test_what_may_hold_a_fact_is_read_however_short_it_is",
           f"{_FACTS}test_two_processes_at_once_store_each_fact_once"),
    _asked("3 form", "Structured outputs, and another form where the server refuses them.",
           f"{_FAILURES}test_a_server_that_knows_no_structured_outputs_is_asked_in_a_form_it_knows",
           f"{_FAILURES}test_what_a_model_thinks_aloud_is_passed_over"),
    _asked("3 prompts", "Prompts are files, versioned, with golden tests.",
           "integration/test_prompts.py::test_a_request_is_what_the_golden_file_says",
           "integration/test_prompts.py::test_a_prompt_that_changes_gets_a_new_version"),
    _asked("3 instructions", "Text from memories is never given the role of instructions.",
           f"{_FAILURES}test_what_memories_say_is_never_an_instruction",
           f"{_FAILURES}test_a_model_that_obeys_an_injected_instruction_is_not_believed",
           "integration/test_memory_tools.py::"
           "test_the_first_user_turn_gets_memory_as_data_and_later_turns_do_not",
           "integration/test_session_memory_kinds.py::"
           "test_an_endless_session_comes_back_within_its_budget"),
    _asked("3 consolidation", "Summaries of clusters in a model's words, with extraction beneath.",
           "integration/test_condensing.py::"
           "test_a_cluster_is_told_in_the_models_words_where_its_agent_wishes_them",
           "integration/test_condensing.py::test_what_the_model_does_not_tell_the_sentences_themselves_do"),
    _asked("2 quality", "Names, numbers and dates of the evidence survive a summary, or extraction does it.",
           f"{_PROVIDERS}test_names_numbers_and_dates_that_the_model_lost_stand_in_the_words_they_were_said_in",
           f"{_PROVIDERS}test_a_model_that_speaks_of_something_else_is_not_kept",
           "unit/test_survival.py::test_what_the_words_lost_stands_below_them_as_it_was_said"),
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
           "acceptance/test_llm_command.py::test_what_models_are_used_for_is_shown_and_set",
           "acceptance/test_llm_command.py::test_a_provisional_summary_is_said_to_be_one"),
    _asked("5 once", "Each stretch is summarised once, across processes; re-saving adds what is new.",
           f"{_SUMMARIES}test_two_processes_at_once_make_one_summary",
           f"{_SUMMARIES}test_two_workers_share_the_sessions_and_summarise_each_once",
           f"{_SUMMARIES}test_the_same_session_saved_again_adds_only_what_is_new"),
    _asked("show failures",
           "A model that is slow, fails, lies or is silent: every fallback, no call blocked, nothing lost.",
           f"{_FAILURES}test_a_model_that_fails_is_asked_again_and_then_does_all_it_would_have_done",
           f"{_FAILURES}test_of_a_model_that_goes_on_failing_plain_code_does_the_work_and_says_so",
           f"{_FAILURES}test_whoever_stores_gets_what_the_rules_decide_in_place_of_the_models_verdict",
           f"{_FAILURES}test_no_call_waits_for_a_model_that_hangs",
           f"{_FAILURES}test_beyond_the_budget_plain_code_does_the_work_at_once_and_says_so",
           f"{_FAILURES}test_the_budget_holds_through_jobs_searches_and_stores_together"),
)
