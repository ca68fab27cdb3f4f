"""Requirements of issue 6 on MCP and A2A."""

from __future__ import annotations

from tests.acceptance.requirements.form import of

_asked = of("issue 6")

CONNECTED = (
    _asked("5 MCP", "The running service answers MCP at /mcp with the same JWT, and agentcore mcp on stdio.",
           "acceptance/test_mcp.py::test_a_memory_lives_its_life_by_tools_alone",
           "acceptance/test_documentation_examples.py::test_the_examples_of_a_page_run_as_printed",
           "acceptance/test_mcp.py::test_the_configuration_of_the_guide_starts_a_server_that_answers",
           "acceptance/test_mcp.py::test_stdio_prints_nothing_but_messages_and_ends_when_asked",
           "acceptance/test_mcp.py::test_open_clients_neither_hold_up_a_stop_nor_mind_a_restart"),
    _asked("5 MCP gate", "Before /mcp stand the token, scopes, sizes and rates of the JSON-RPC endpoint.",
           "integration/test_mcp_edge.py::test_a_message_without_a_good_token_is_401_with_a_challenge",
           "integration/test_mcp_edge.py::test_messages_and_calls_of_an_agent_are_counted_together",
           "integration/test_mcp_edge.py::test_a_message_larger_than_the_service_takes_is_413",
           "integration/test_mcp_edge.py::test_a_page_of_another_origin_is_refused_whatever_token_it_has",
           "acceptance/test_mcp.py::test_a_token_that_may_only_read_can_recall_and_not_save"),
    _asked("5 MCP owner", "Through MCP, too, another agent's memory is as if it did not exist.",
           "acceptance/test_mcp.py::test_the_memory_of_another_agent_is_not_to_be_reached"),
    _asked("5 MCP extra", "The service runs without the mcp extra, and says at /mcp what to install.",
           "integration/test_mcp_edge.py::"
           "test_without_the_extra_the_answer_says_what_to_install_and_the_rest_works",
           "acceptance/test_mcp.py::test_a_command_that_cannot_work_says_why_on_stderr_alone"),
    _asked("5 A2A card", "An agent card at /.well-known/agent-card.json is one by the A2A SDK's own types.",
           "unit/test_agent_card.py::"
           "test_the_sdk_reads_the_card_without_an_unknown_field_and_misses_no_required_one",
           "acceptance/test_a2a.py::test_the_services_card_is_found_by_the_sdk_without_a_token"),
    _asked("5 A2A agent", "An example agent on a2a-sdk remembers across conversations, called with a JWT.",
           "acceptance/test_a2a.py::"
           "test_the_agent_answers_nobody_without_a_good_token_and_keeps_who_called",
           "acceptance/test_a2a.py::test_the_commands_of_the_guide_work_as_printed",
           "acceptance/test_a2a.py::test_a_token_made_for_something_else_calls_nobody",
           "acceptance/test_a2a.py::test_a_callers_token_opens_no_memory"),
    _asked("Shows tools", "One tool definition yields the same schema in MCP.",
           "acceptance/test_mcp.py::test_the_tools_are_those_of_the_one_definition_with_the_same_schemas"),
    _asked("Shows restart MCP",
           "Parrots and Hawaii's budget in one session, asked for in the next, over both transports.",
           "acceptance/test_mcp.py::test_what_one_session_saved_the_next_recalls_after_a_restart"),
    _asked("Shows restart A2A",
           "The same through A2A, agent and service restarted in between; and Hawaii's budget.",
           "acceptance/test_a2a.py::"
           "test_what_one_conversation_told_the_agent_the_next_is_answered_after_all_was_restarted"),
)
