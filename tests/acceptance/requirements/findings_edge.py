"""Findings of FINDINGS.md (277e3a9) and issue 13 on limits of requests and responses."""

from __future__ import annotations

from tests.acceptance.requirements.form import Requirement, of

_found = of("finding")
_asked = of("issue 13")

FINDINGS_EDGE: tuple[Requirement, ...] = (
    _found("A2", "No JSON body blocks the event loop: members, values and digits have limits.",
           "unit/test_rpc_sizes.py::test_a_body_of_too_many_members_is_refused_before_it_is_parsed",
           "unit/test_rpc_sizes.py::test_an_object_of_too_many_members_is_refused",
           "unit/test_rpc_sizes.py::test_many_unknown_params_are_named_within_bounds",
           "acceptance/test_limits.py::test_no_request_beyond_a_limit_delays_or_enlarges_the_service"),
    _found("A3", "A page and a response have a byte budget: a page ends early, and a batch answers -32003.",
           "integration/test_page_bytes.py::test_a_page_of_large_memories_ends_early_and_the_cursor_continues",
           "integration/test_page_bytes.py::test_a_search_drops_what_is_beyond_a_page_and_its_receipt_says_so",
           "unit/test_rpc_sizes.py::test_a_batch_executes_nothing_once_its_response_is_full",
           "acceptance/test_limits.py::test_no_request_beyond_a_limit_delays_or_enlarges_the_service"),
    _found("A6", "Headers are limited to 64 KiB, and answered with 431 while they still arrive.",
           "integration/test_connections.py::test_headers_beyond_64_kib_are_answered_with_431_while_they_arrive"),
    _found("A7", "A connection has a deadline for its headers, and there is a limit of connections.",
           "integration/test_connections.py::test_a_connection_beyond_the_limit_is_answered_with_503",
           "integration/test_connections.py::test_files_are_left_for_the_pools",
           "acceptance/test_limits.py::test_no_request_beyond_a_limit_delays_or_enlarges_the_service"),
    _found("A14 rate limit", "The rate limit counts what a call embeds and reads, not calls.",
           "unit/test_ratelimit.py::test_a_call_costs_what_it_embeds_and_reads",
           "unit/test_ratelimit.py::test_a_default_costs_what_it_costs_when_it_is_given"),
    _found("A14 JWKS", "A key set that is too deep or too large is one that does not answer.",
           "integration/test_auth_jwks.py::test_the_last_keys_serve_while_the_endpoint_fails"),
    _asked("bodies", "All bodies of a process share a byte budget, and large ones are read one at a time.",
           "unit/test_body_budget.py::test_large_bodies_of_many_agents_leave_half_to_small_ones",
           "unit/test_body_budget.py::test_small_bodies_of_one_agent_leave_half_to_others",
           "integration/test_server_edge.py::"
           "test_an_unfinished_body_leaves_room_for_small_ones_and_for_other_agents",
           "integration/test_server_edge.py::test_large_bodies_are_read_one_at_a_time"),
    _asked("limits table",
           "One table of every limit in the code, reported by memory.capabilities and documented.",
           "acceptance/test_limits.py::test_each_limit_of_the_table_is_exceeded",
           "integration/test_page_bytes.py::test_capabilities_report_every_limit_in_force",
           "benchmarks/limits"),
)
