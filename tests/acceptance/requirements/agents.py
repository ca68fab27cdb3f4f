"""Requirements of issue 6 and the seeds on the client, agents and their tools."""

from __future__ import annotations

from tests.acceptance.requirements.form import of

_asked = of("issue 6")
_specified = of("specification (seed 001)")
_tools = "integration/test_memory_tools.py"
_agent = "integration/test_memory_enabled_agent.py"
_turns = "integration/test_agent_turns.py"
_template = "integration/test_template_tool.py"
_opening = "integration/test_open_memory.py"
_without = "integration/test_bindings_without_memory.py"
_ending = "integration/test_ending_conversations.py"
_cited = "integration/test_cited_lines.py"
_modes = "unit/test_client_modes.py"
_tokens = "unit/test_client_tokens.py"

AGENTS = (
    _asked("1 one suite", "Manager, in-process client, HTTP client and sync face promise the same.",
           "conformance/test_memory_api.py::test_what_is_stored_is_found_with_its_terms_and_a_receipt",
           "conformance/test_memory_api.py::test_failures_are_the_same_classes_with_the_same_words",
           "conformance/test_memory_api.py::"
           "test_what_json_has_no_type_for_is_stored_in_its_form_by_every_face",
           "conformance/test_memory_api.py::test_what_json_cannot_say_reaches_no_face",
           "unit/test_json_values.py::test_what_has_none_is_refused_by_its_path",
           "conformance/test_memory_api.py::test_the_suite_calls_every_method"),
    _asked("1 sync face", "Code without await has every method, derived from the async client's.",
           f"{_modes}::test_a_call_waits_for_its_answer",
           f"{_modes}::test_every_method_of_the_contract_waits_too",
           f"{_modes}::test_on_a_running_loop_a_waiting_call_says_so_instead_of_holding_it_up",
           f"{_modes}::test_closing_waits_for_no_source_that_hangs_and_who_waits_hears_that_it_is_closed"),
    _asked("1 fail open", "A service that does not answer gives an empty context; mistakes still raise.",
           f"{_modes}::test_failing_open_a_search_is_empty_and_says_why",
           f"{_modes}::test_failing_open_hides_no_mistake_of_the_caller",
           f"{_modes}::test_failing_open_waits_no_longer_than_its_time_in_all",
           f"{_without}::test_what_a_binding_reads_is_empty_with_one_warning",
           f"{_without}::test_what_a_binding_would_lose_raises",
           f"{_without}::test_items_of_a_session_wait_while_memory_is_away_and_are_kept_once_in_their_order",
           f"{_without}::test_a_run_of_the_agents_sdk_goes_on_without_memory"),
    _asked("1 token refresh", "A token's source that fails or hangs is a part that does not answer.",
           f"{_tokens}::test_a_source_that_fails_is_a_part_that_does_not_answer",
           f"{_tokens}::test_a_source_is_waited_for_no_longer_than_a_call",
           f"{_tokens}::test_failing_open_an_agent_goes_on_without_a_source",
           f"{_tokens}::test_what_is_no_token_is_said_also_failing_open"),
    _asked("1 batching", "Calls made at the same time go as one request, each with its own answer.",
           f"{_modes}::test_calls_made_at_the_same_time_are_one_request_with_answers_of_their_own",
           f"{_modes}::test_a_batch_that_breaks_fails_for_all_who_wait_for_it"),
    _asked("1 TypeScript", "A typed client, written from the contract, works under node.",
           "architecture/test_typescript_client.py::test_a_derived_file_is_what_the_contract_would_write",
           "acceptance/test_typescript_client.py::test_a_memory_lives_its_whole_life_from_javascript",
           "acceptance/test_typescript_client.py::"
           "test_the_compiler_holds_the_declarations_to_what_they_promise"),
    _asked("2 agent", "One class to subclass: context before a query, storage after it, once a turn.",
           f"{_agent}::test_what_one_conversation_was_told_the_next_one_knows",
           f"{_agent}::test_a_turn_is_stored_under_one_key",
           f"{_agent}::test_a_call_may_go_without_looking_or_without_storing",
           f"{_agent}::test_an_error_is_stored_as_the_outcome_and_raised",
           f"{_agent}::test_notes_of_a_task_come_first_and_end_with_it",
           f"{_agent}::test_memory_that_cannot_be_reached_holds_no_turn_up"),
    _asked("2 answer kept", "No answer is lost for what could not be stored, and a refusal stays not unseen.",
           f"{_turns}::test_whatever_was_noted_the_answer_and_the_turn_are_kept",
           f"{_turns}::test_of_too_many_actions_the_turn_is_kept_and_the_rest_is_told_of",
           f"{_turns}::test_a_query_that_cannot_be_searched_is_answered_all_the_same",
           f"{_turns}::test_a_token_that_may_not_store_costs_no_answer_and_is_raised_before_the_next",
           f"{_turns}::test_a_tool_that_is_refused_is_logged_with_its_code",
           f"{_turns}::test_a_store_that_was_not_answered_is_tried_once_more_and_is_there_once",
           f"{_turns}::test_an_object_that_cannot_be_shown_costs_no_answer",
           f"{_turns}::test_a_note_that_cannot_be_kept_costs_no_answer",
           f"{_turns}::test_a_turn_whose_answer_is_stored_below_another_query_is_stored_once",
           f"{_turns}::test_an_error_lasts_without_its_secrets_unless_that_is_wished"),
    _asked("2 end", "A conversation ends: its summary is kept, its notes last or are over, framed too.",
           f"{_ending}::"
           "test_the_end_of_the_block_ends_the_conversation_with_a_summary_that_the_next_one_reads",
           f"{_ending}::test_notes_of_the_conversation_end_with_it_or_last_and_those_of_a_named_task_stay",
           f"{_ending}::test_a_session_of_the_agents_sdk_ends_with_a_summary_of_what_was_said",
           f"{_ending}::test_a_session_of_adk_ends_with_a_summary_for_its_user",
           f"{_ending}::test_a_session_that_two_users_share_by_its_name_is_not_told_to_either",
           f"{_ending}::test_where_memory_does_not_answer_a_conversation_ends_with_a_warning"),
    _asked("2 lines", "An agent can trace, judge and forget the memory of each line it is given.",
           f"{_cited}::test_the_lines_of_a_turns_context_name_the_memories_they_are_of",
           f"{_cited}::test_a_context_of_another_query_and_a_chat_name_their_memories_too",
           f"{_tools}::test_the_lines_of_a_prefetched_block_are_named_for_the_other_tools"),
    _asked("2 own turn", "An agent within another's turn sees nothing of it and notes nothing in it.",
           f"{_turns}::test_an_agent_within_anothers_turn_sees_and_notes_nothing_of_it",
           f"{_turns}::test_what_an_agent_does_for_another_it_still_notes_in_its_own_turn"),
    _asked("2 beside a service", "A memory in a process uses the parts of the service that runs on its home.",
           f"{_opening}::test_a_second_memory_of_a_home_uses_the_parts_that_run",
           "acceptance/test_agent_examples.py::"
           "test_an_agent_without_a_token_uses_the_parts_of_the_service_that_runs",
           "acceptance/test_framework_examples.py::"
           "test_the_lines_of_the_guides_run_beside_the_service_of_the_quickstart"),
    _asked("2 same code", "Embedded or remote an agent is the same code.",
           f"{_agent}::test_the_same_agent_runs_on_a_service_and_in_its_own_process",
           "acceptance/test_readme.py::test_the_example_of_an_agent_runs"),
    _asked("3 tools", "A model saves, recalls, corrects, forgets in two steps and drills down by tools.",
           f"{_tools}::test_what_one_conversation_saves_the_next_one_recalls",
           f"{_tools}::test_forgetting_proposes_first_and_deletes_only_what_was_confirmed",
           f"{_tools}::test_a_confirmation_holds_for_no_other_memory",
           f"{_tools}::test_a_confirmation_expires",
           "integration/test_forgetting.py::test_only_what_is_surely_meant_is_proposed_to_be_forgotten",
           "integration/test_forgetting.py::test_fewer_than_were_proposed_may_be_confirmed",
           f"{_turns}::test_what_one_turn_proposes_to_forget_the_next_confirms",
           f"{_tools}::test_a_found_memory_leads_to_its_session",
           f"{_tools}::test_a_session_named_by_its_id_is_read_from_its_end_within_the_scope",
           f"{_tools}::test_neighbours_of_one_time_stand_in_their_order_each_on_its_side"),
    _asked("3 strict", "The tools have a form that OpenAI's strict mode takes, from the same definition.",
           "unit/test_tool_definitions.py::"
           "test_the_strict_form_holds_what_strict_mode_knows_and_takes_what_the_tool_takes",
           "integration/test_openai_tools.py::"
           "test_what_strict_mode_makes_a_model_say_null_for_is_left_out"),
    _asked("3 one definition", "One tool definition yields the same schema in all bindings.",
           "integration/test_openai_tools.py::test_one_definition_gives_the_same_schema_in_every_form",
           "integration/test_openai_agents.py::test_one_definition_gives_the_same_function_tools",
           "integration/test_langchain.py::test_one_definition_gives_the_same_tools",
           "integration/test_google_adk.py::"
           "test_a_model_uses_the_tools_of_the_one_definition_for_its_own_user",
           "acceptance/test_mcp.py::test_the_tools_are_those_of_the_one_definition_with_the_same_schemas"),
    _asked("4 template tool", "A model fills the working template in, by the same tool in every binding.",
           f"{_template}::test_a_model_fills_the_template_in_and_corrects_it",
           f"{_template}::test_every_binding_has_the_tool_with_the_same_schema",
           f"{_template}::test_an_agent_keeps_its_template_from_one_conversation_to_the_next",
           f"{_template}::test_a_template_is_found_by_no_search_and_by_no_other_tool",
           f"{_template}::test_a_template_is_one_memory_where_what_is_read_lags_behind"),
    _asked("3 prefetch", "The first user turn gets memory as fenced data, never as a turn.",
           f"{_tools}::test_the_first_user_turn_gets_memory_as_data_and_later_turns_do_not",
           f"{_tools}::test_the_block_and_its_fence_take_no_more_tokens_than_asked_for",
           f"{_tools}::test_a_memory_cannot_end_the_fence_it_is_quoted_in"),
    _asked("Shows restart", "What was told before a restart is known after it.",
           "acceptance/test_agent_examples.py::"
           "test_an_agent_with_a_memory_of_its_own_remembers_after_a_restart"),
    _specified("Feature 8", "The specification's example of an agent runs to the letter and stores once.",
               f"{_agent}::test_the_example_of_the_specification_stores_once"),
    _specified("NFR-4.3", "A failing retrieval blocks no agent: its context is empty.",
               f"{_agent}::test_memory_that_cannot_be_reached_holds_no_turn_up",
               f"{_agent}::test_memory_that_stays_silent_is_waited_for_no_longer_than_set_in_all_of_a_turn",
               f"{_opening}::test_what_cannot_be_read_is_empty_and_says_why",
               f"{_opening}::test_a_memory_in_this_process_fails_open_where_its_database_goes_away"),
)
