"""Requirements of issue 6 on memory in other frameworks."""

from __future__ import annotations

from tests.acceptance.requirements.form import of

_asked = of("issue 6")
_EXAMPLES = "acceptance/test_framework_examples.py"

FRAMED = (
    _asked("5 google-adk", "All methods of google-adk's BaseMemoryService, each event kept once.",
           "integration/test_google_adk.py::test_a_session_added_again_adds_what_is_new_alone",
           "integration/test_google_adk.py::"
           "test_a_session_added_again_after_its_keys_are_forgotten_adds_nothing",
           "integration/test_google_adk.py::test_facts_are_kept_as_they_are_given_once_for_each_id",
           "integration/test_google_adk.py::test_what_is_deleted_does_not_come_back_with_its_session",
           "integration/test_google_adk.py::"
           "test_what_one_session_of_a_runner_said_the_model_loads_in_the_next"),
    _asked("5 LangGraph", "A BaseStore that answers as LangGraph's own: namespaces, filters, TTL, batch.",
           "conformance/test_langgraph_store.py::test_a_value_comes_back_exactly_as_it_was_put",
           "integration/test_langgraph_store.py::"
           "test_a_value_without_a_form_in_json_is_named_and_nothing_of_its_batch_is_put",
           "conformance/test_langgraph_store.py::test_filters_mean_the_same",
           "conformance/test_langgraph_store.py::test_namespaces_are_listed_the_same",
           "conformance/test_langgraph_store.py::"
           "test_a_batch_answers_in_order_reads_what_was_there_before_and_keeps_the_last_put",
           "integration/test_langgraph_store.py::"
           "test_a_time_to_live_is_in_minutes_and_a_read_renews_it",
           "integration/test_langgraph_store.py::"
           "test_nodes_with_and_without_await_use_the_store_of_their_graph"),
    _asked("5 LangGraph workers", "Several stores over one memory lose no put, whoever reads beside it.",
           "integration/test_langgraph_store.py::"
           "test_a_read_that_renews_takes_nothing_from_a_put_at_the_same_time",
           "integration/test_langgraph_store.py::"
           "test_stores_that_put_one_new_key_at_the_same_time_make_one_item_of_it",
           "integration/test_langgraph_store.py::"
           "test_of_an_item_in_two_memories_the_newer_value_is_read_and_a_put_leaves_one"),
    _asked("5 replica", "Behind a replica that lags the frameworks decide on what was just written.",
           "integration/test_reading.py::"
           "test_a_consistent_reading_shows_what_was_just_written_where_a_replica_lags",
           "integration/test_langgraph_store.py::"
           "test_a_put_is_decided_and_an_item_got_on_what_was_just_put_where_a_replica_lags",
           "integration/test_openai_agents.py::"
           "test_a_session_goes_on_from_what_was_just_added_where_a_replica_lags",
           "integration/test_google_adk.py::"
           "test_what_was_just_kept_is_known_and_can_be_deleted_where_a_replica_lags"),
    _asked("5 OpenAI Agents", "A session of the OpenAI Agents SDK whose items come back to the letter.",
           "integration/test_openai_agents.py::test_items_come_back_to_the_letter_and_in_their_order",
           "integration/test_openai_agents.py::test_items_are_popped_from_the_end_until_there_is_none",
           "integration/test_openai_agents.py::"
           "test_an_agent_of_the_sdk_goes_on_with_its_session_and_recalls_in_the_next",
           "integration/test_openai_agents.py::"
           "test_recall_does_not_answer_with_the_very_question_that_the_sdk_has_just_stored"),
    _asked("5 LangChain", "A LangChain retriever, awaited and not.",
           "integration/test_langchain.py::"
           "test_documents_are_the_memories_that_fit_with_what_is_known_of_them",
           "integration/test_langchain.py::"
           "test_a_program_without_await_opens_its_memory_in_a_thread",
           "integration/test_langchain.py::"
           "test_a_thread_that_the_memorys_loop_waits_for_does_not_wait_for_it"),
    _asked("5 extras", "None of the frameworks is needed by the service; each says what to install.",
           f"{_EXAMPLES}::test_the_service_needs_none_of_the_frameworks",
           f"{_EXAMPLES}::test_without_its_package_an_integration_says_what_to_install"),
    _asked("5 owner", "Through the frameworks, too, agents, users and apps do not meet.",
           "integration/test_google_adk.py::test_apps_users_and_agents_do_not_meet",
           "integration/test_langgraph_store.py::test_agents_and_users_of_a_scope_do_not_meet",
           "integration/test_openai_agents.py::test_sessions_of_one_id_do_not_meet_beyond_their_scope",
           "integration/test_langchain.py::test_a_scope_goes_before_filters_and_agents_do_not_meet"),
    _asked("Shows tools frameworks",
           "One tool definition yields the same schema in google-adk, the Agents SDK and LangChain.",
           "integration/test_google_adk.py::"
           "test_a_model_uses_the_tools_of_the_one_definition_for_its_own_user",
           "integration/test_openai_agents.py::test_one_definition_gives_the_same_function_tools",
           "integration/test_langchain.py::test_one_definition_gives_the_same_tools"),
    _asked("Shows restart frameworks",
           "Parrots and Hawaii's budget over a restart through each framework, embedded and remote.",
           f"{_EXAMPLES}::test_what_one_session_was_told_the_next_answers_from_a_memory_of_its_own",
           f"{_EXAMPLES}::test_what_one_session_was_told_the_next_answers_after_the_service_was_restarted"),
    _asked("Shows lines", "The lines of code that memory needs in each framework are in the docs, and run.",
           f"{_EXAMPLES}::test_the_lines_of_the_guide_run_as_they_stand_and_are_as_many_as_it_says",
           f"{_EXAMPLES}::test_the_lines_of_the_agents_page_are_as_many_as_it_says",
           "acceptance/test_a2a.py::test_the_lines_that_memory_costs_an_agent_are_those_of_the_example"),
)
