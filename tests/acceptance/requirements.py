"""What is required, where that is written, and which tests show it.

`shown_by` names tests as `room/file.py::test_name` below `tests/`, or a benchmark as `benchmarks/name`. A
requirement that is not shown yet, or not in all its parts, says what is missing.
`tests/architecture/test_requirements.py` holds this list and the tests together, both ways.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.acceptance.lifecycle_requirements import CHANGED_FACTS

SPECIFICATION = "specification (seed 001)"
ISSUE = "issue 2"
RETRIEVAL_ISSUE = "issue 3"
LIFECYCLE_ISSUE = "issue 4"


@dataclass(frozen=True)
class Requirement:
    """One sentence that must be true. `number` is that of its source."""

    number: str
    source: str
    sentence: str
    shown_by: tuple[str, ...] = ()
    missing: str | None = None


def _specified(number: str, sentence: str, *shown_by: str, missing: str | None = None) -> Requirement:
    return Requirement(number, SPECIFICATION, sentence, shown_by, missing)


def _asked(number: str, sentence: str, *shown_by: str, missing: str | None = None) -> Requirement:
    return Requirement(number, ISSUE, sentence, shown_by, missing)


def _sought(number: str, sentence: str, *shown_by: str, missing: str | None = None) -> Requirement:
    return Requirement(number, RETRIEVAL_ISSUE, sentence, shown_by, missing)


FUNCTIONAL = (
    _specified("FR-1.1", "Interactions are encoded into four memory types.",
               "integration/test_reading.py::test_statistics_count_each_layer",
               "integration/test_storing.py::test_an_interaction_becomes_one_record_with_its_derived_fields"),
    _specified("FR-1.2",
               "A record holds content, summary, entities, facts, keywords, relations, relevance tracking "
               "and, for procedural memory, action-outcome pairs.",
               "integration/test_storing.py::test_an_interaction_becomes_one_record_with_its_derived_fields",
               "unit/test_encoding.py::test_each_action_is_paired_with_its_own_result_or_the_outcome_of_all"),
    _specified("FR-1.3", "Vectors come from a configurable model: OpenAI, Cohere or local.",
               "conformance/test_embedder.py::test_each_text_gets_a_row_of_unit_length",
               "integration/test_minilm.py::test_vectors_are_those_of_the_reference",
               "integration/test_openai_embedder.py::test_it_asks_as_the_interface_wants_it",
               "integration/test_cohere_embedder.py::test_it_says_what_a_text_is_embedded_for"),
    _specified("FR-2.1", "Search combines similarity, recency, access frequency and links.",
               "integration/test_searching.py::test_words_and_meaning_find_their_memory",
               "integration/test_searching.py::test_a_linked_memory_comes_in_though_no_arm_finds_it",
               "unit/test_retrieval.py::test_each_term_alone_decides_between_otherwise_equal_memories"),
    _specified("FR-2.2", "Retrieval is filtered by type, task, time range, entities and keywords.",
               "integration/test_searching.py::test_filters_hold_before_anything_is_ranked"),
    _specified("FR-2.3", "The top k memories come back ranked; k is 5 unless given.",
               "unit/test_retrieval.py::test_what_is_beyond_k_is_counted",
               "property/test_pure_properties.py::"
               "test_a_ranking_is_bounded_ordered_and_independent_of_the_order_of_arrival",
               "architecture/test_contract_files.py::test_the_fixed_defaults_and_results_stand"),
    _specified("FR-2.4", "Accesses are counted and weigh in.",
               "integration/test_searching.py::"
               "test_access_is_counted_for_what_was_given_out_and_nothing_else",
               "unit/test_scoring.py::test_frequency_grows_with_use_and_is_full_at_a_hundred"),
    _specified("FR-3.1",
               "A context has the sections Current Task Context, Relevant Past Interactions and Relevant "
               "Knowledge.",
               "integration/test_context.py::"
               "test_the_three_sections_hold_what_belongs_there_with_an_exact_count"),
    _specified("FR-3.2", "A context is cut to its token limit by hierarchical summaries.",
               "property/test_pure_properties.py::test_a_context_never_exceeds_its_budget",
               "unit/test_compression.py::test_what_is_too_long_stands_by_its_summary",
               missing="summaries of several memories together"),
    _specified("FR-3.3", "A memory sequence is compressed when it exceeds the budget.",
               "unit/test_compression.py::test_a_sequence_is_compressed_in_the_order_of_its_importance"),
    _specified("FR-4.1", "Content, context, relevance and relations of a memory can be changed.",
               "integration/test_lifecycle.py::"
               "test_a_corrected_memory_is_found_by_its_new_words_and_no_longer_by_the_old",
               "integration/test_lifecycle.py::test_added_context_extends_and_plain_fields_change",
               "integration/test_lifecycle.py::test_links_are_added_and_removed_in_both_directions"),
    _specified("FR-4.2", "Changes are kept as a history.",
               "integration/test_lifecycle.py::test_added_context_extends_and_plain_fields_change"),
    _specified("FR-5.1", "Capacity limits are enforced for each layer, and configurable.",
               "unit/test_pruning.py::test_how_many_go",
               missing="capacities of other layers than the episodic one, and enforcing without a call"),
    _specified("FR-5.2", "The strategies are least relevant, oldest first and frequency based.",
               "unit/test_pruning.py::test_least_relevant_takes_the_lowest_worth_first",
               "unit/test_pruning.py::test_oldest_first_takes_the_earliest",
               "unit/test_pruning.py::test_frequency_based_takes_the_least_used"),
    _specified("FR-5.3", "A pruned memory is archived before it is deleted, in S3 or equivalent.",
               "integration/test_lifecycle.py::test_pruning_archives_the_lowest_fifth_before_it_goes",
               "conformance/test_archive.py::test_a_memory_is_archived_under_its_agent_and_id"),
    _specified("FR-6.1", "memory.store takes an interaction and answers success and memory_id.",
               "acceptance/test_readme.py::test_each_call_by_curl_is_answered_with_a_result",
               "architecture/test_contract_files.py::test_the_fixed_defaults_and_results_stand"),
    _specified("FR-6.2", "memory.retrieve takes query, k and memory_types and answers memories.",
               "acceptance/test_readme.py::test_each_call_by_curl_is_answered_with_a_result"),
    _specified("FR-6.3",
               "memory.get_context takes query, task_id and max_tokens and answers context and count.",
               "acceptance/test_readme.py::test_each_call_by_curl_is_answered_with_a_result"),
    _specified("FR-6.4", "memory.update takes memory_id and updates and answers success.",
               "acceptance/test_readme.py::test_each_call_by_curl_is_answered_with_a_result"),
    _specified("FR-6.5", "memory.prune takes memory_layer and strategy and answers pruned_count.",
               "acceptance/test_client.py::test_a_memory_lives_its_whole_life_over_http",
               "acceptance/test_cli.py::test_prune_says_what_would_go_then_takes_it"),
)

QUALITIES = (
    _specified("NFR-1.1", "Retrieval within 100 ms at p95.", "benchmarks/retrieval_latency"),
    _specified("NFR-1.2", "Context formatting within 50 ms for 2,000 tokens.",
               "benchmarks/retrieval_latency"),
    _specified("NFR-1.3", "Encoding within 200 ms, embedding included.", "benchmarks/retrieval_latency"),
    _specified("NFR-1.4", "100 concurrent retrievals without degradation.",
               "benchmarks/retrieval_latency",
               "acceptance/test_client.py::test_concurrent_callers_get_their_own_answers"),
    _specified("NFR-3.3", "The same content has the same embedding within 1 %.",
               "integration/test_minilm.py::"
               "test_a_text_has_the_same_vector_alone_in_a_batch_and_after_a_restart"),
    _specified("NFR-4.1", "Writes are durable in PostgreSQL.",
               "integration/test_embedded_crashes.py::test_a_killed_postgresql_comes_back_with_every_row"),
    _specified("NFR-4.2", "Failures of the embedding service are met with retries and exponential backoff.",
               "integration/test_openai_embedder.py::test_passing_trouble_is_tried_again",
               "integration/test_cohere_embedder.py::test_passing_trouble_is_tried_again"),
    _specified("NFR-5.2", "Working memory is cached in Redis with a time to live.",
               "integration/test_context.py::"
               "test_the_copy_in_redis_has_the_time_to_live_and_survives_losing_redis"),
    _specified("NFR-6.1", "No agent reaches another's memories.",
               "integration/test_isolation_matrix.py::"
               "test_another_agents_things_are_as_if_they_did_not_exist_and_stay_as_they_are",
               "integration/test_row_security.py::"
               "test_selecting_without_a_condition_gives_the_own_rows_alone"),
    _specified("NFR-6.2", "Every operation needs a JWT.",
               "integration/test_server_edge.py::test_without_a_token_the_scheme_is_told_and_no_error"),
    _specified("AC-5", "p50, p95 and p99 of retrieval over 100,000 memories.",
               "benchmarks/retrieval_latency"),
    _specified("AC-7",
               "Answers are valid JSON-RPC 2.0, errors have their codes, the A2A context is preserved.",
               "conformance/test_jsonrpc_specification.py::test_the_example_answers_as_printed",
               "unit/test_rpc.py::test_the_a2a_context_comes_back_unchanged",
               "acceptance/test_client.py::test_a_conversation_and_a_trace_reach_the_memorys_provenance"),
    _specified("AC-8",
               "After a restart all memories are there, and working memory with the time it had left.",
               "integration/test_embedded.py::test_a_row_and_a_key_with_its_time_to_live_survive_a_restart",
               "benchmarks/crash_safety"),
)

BUILT = (
    _asked("1 set-up", "make serve, test, check, demo and bench do all their own set-up, from any directory.",
           "architecture/test_makefile.py::test_each_target_sets_itself_up_first",
           "architecture/test_locks.py::test_what_pyproject_asks_for_is_locked_in_a_version_that_fits"),
    _asked("1 wheel", "The wheel contains the migrations, the SQL and py.typed.",
           "architecture/test_wheel.py::test_the_wheel_holds_types_sql_and_its_license",
           "architecture/test_wheel.py::test_an_installed_wheel_finds_its_own_migrations"),
    _asked("1 serve", "make serve says where it listens, how to get a token and one call to try.",
           "acceptance/test_cli.py::test_serve_says_where_it_listens_and_what_it_prints_works"),
    _asked("2 embedded",
           "Without URLs PostgreSQL and Redis are started, listen on no public address and survive "
           "restarts.",
           "integration/test_embedded.py::test_the_parts_listen_on_no_address_and_are_closed_to_other_users",
           "integration/test_embedded.py::test_a_row_and_a_key_with_its_time_to_live_survive_a_restart"),
    _asked("2 crashes",
           "kill -9 of any of the processes is recovered from; a normal stop leaves none behind.",
           "integration/test_embedded_crashes.py::test_a_killed_redis_comes_back_with_every_key",
           "integration/test_embedded_crashes.py::"
           "test_parts_of_a_killed_server_end_and_the_next_one_finds_every_row",
           "acceptance/test_cli.py::test_ctrl_c_while_it_starts_ends_it_and_leaves_nothing"),
    _asked("2 one server", "A second server on the same home is refused with a clear sentence.",
           "acceptance/test_cli.py::test_a_second_server_on_the_home_is_refused_with_a_sentence"),
    _asked("2 external", "With DATABASE_URL and REDIS_URL the same code talks to servers elsewhere.",
           "acceptance/test_readme.py::test_a_database_set_up_as_the_guide_says_is_migrated_and_served"),
    _asked("2 doctor", "agentcore doctor checks each part and says how to mend what is wrong.",
           "acceptance/test_cli.py::test_doctor_tells_how_to_mend_what_is_wrong",
           "unit/test_doctor.py::test_what_is_wrong_comes_with_its_mend"),
    _asked("3 schema", "Memories are hash-partitioned by agent; no vector index is made by a migration.",
           "integration/test_migration.py::"
           "test_memories_are_partitioned_by_agent_and_nothing_has_a_vector_index_yet"),
    _asked("3 migrations",
           "Migrations run under a lock; a database newer than the code is refused, not damaged.",
           "integration/test_migration.py::test_two_processes_that_migrate_at_once_both_end_well",
           "integration/test_migration.py::test_a_database_newer_than_the_code_is_refused_and_not_damaged"),
    _asked("4 JSON-RPC",
           "Every example of the specification answers as printed; 204 where nothing is to be said.",
           "conformance/test_jsonrpc_specification.py::test_the_example_answers_as_printed",
           "integration/test_server_edge.py::test_where_nothing_is_said_the_status_says_so"),
    _asked("4 limits", "Rate, batch, body and nesting are limited, NaN refused, batches run bounded.",
           "integration/test_server_edge.py::test_an_agent_past_its_rate_waits_and_others_do_not",
           "integration/test_server_edge.py::test_a_batch_past_the_limit_is_too_large",
           "integration/test_server_edge.py::"
           "test_a_body_past_the_limit_is_refused_and_one_at_the_limit_taken",
           "unit/test_rpc.py::test_deep_nesting_is_refused_before_it_is_parsed",
           "unit/test_rpc.py::test_a_number_that_json_does_not_have_is_a_parse_error",
           "unit/test_rpc.py::test_a_batch_runs_as_many_calls_at_once_as_it_may_and_keeps_their_order"),
    _asked("4 traces", "a2a_context and traceparent are honoured.",
           "integration/test_server_edge.py::test_a_traceparent_is_honoured_and_answered",
           "unit/test_rpc.py::test_each_call_of_a_batch_gets_its_own_a2a_context"),
    _asked("4 discovery",
           "rpc.discover gives a valid OpenRPC document with schemas of all params and results.",
           "architecture/test_contract_files.py::test_the_openrpc_document_is_valid",
           "architecture/test_contract_files.py::test_the_schemas_judge_params"),
    _asked("5 tokens", "agentcore token prints one; the home's secret is made once with mode 0600.",
           "acceptance/test_cli.py::test_a_token_made_before_the_first_start_opens_the_service_afterwards",
           "unit/test_embedded_home.py::test_a_secret_is_made_once_and_closed_to_others"),
    _asked("5 refusals",
           "A token that is forged, expired, early, foreign or incomplete gets 401 and one reason.",
           "integration/test_server_edge.py::test_a_bad_token_is_told_its_one_reason",
           "unit/test_auth.py::test_a_claim_that_does_not_hold_is_named",
           "unit/test_auth.py::test_no_algorithm_but_ours_is_accepted"),
    _asked("5 JWKS", "Public keys come from a URL, cached, and are rotated.",
           "integration/test_auth_jwks.py::test_a_new_key_is_found_but_unknown_ids_do_not_hammer_the_server"),
    _asked("6 methods", "All methods are there, with params that refuse unknown fields by name.",
           "acceptance/test_client.py::test_a_memory_lives_its_whole_life_over_http",
           "unit/test_params.py::test_bad_values_are_refused_by_field"),
    _asked("6 batch", "store_batch is one transaction with a result for each item.",
           "integration/test_storing.py::test_a_batch_answers_for_each_item_in_order",
           "integration/test_storing.py::test_what_is_wrong_with_one_item_of_a_batch_is_its_answer_and_the_others_are_stored"),
    _asked("6 keys", "The same idempotency key stores nothing twice, also after the memory was pruned.",
           "integration/test_storing.py::test_the_same_idempotency_key_stores_nothing_twice",
           "integration/test_lifecycle.py::test_a_pruned_memorys_idempotency_key_still_answers_with_its_id"),
    _asked("6 list", "list pages by cursor, by time, importance or access count.",
           "integration/test_reading.py::test_pages_hold_each_memory_once_in_order"),
    _asked("6 delete", "delete says how many went and has no hidden limit.",
           "integration/test_lifecycle.py::test_deleting_by_id_and_by_filter_says_how_many_and_has_no_limit"),
    _asked("6 receipts", "A receipt tells what was searched, found, dropped and how long each step took.",
           "integration/test_searching.py::test_a_receipt_tells_what_was_searched_found_and_dropped"),
    _asked("7 vectors",
           "Search is exact while small; past a threshold an ivfflat index is built on its rows.",
           "integration/test_maintenance.py::"
           "test_a_partition_gets_its_index_once_it_has_rows_and_the_search_uses_it"),
    _asked("7 recall",
           "Recall is measured against exact search, how far is looked chosen from it; indexes are rebuilt "
           "without blocking, as ivfflat or HNSW; pgvector 0.7 does not come short.",
           "integration/test_index_keeper.py::test_what_was_measured_is_remembered_and_the_search_goes_by_it",
           "integration/test_index_keeper.py::test_a_partition_that_has_grown_is_measured_again",
           "integration/test_index_keeper.py::"
           "test_a_partition_that_has_doubled_gets_a_new_index_while_searches_go_on",
           "integration/test_index_keeper.py::test_another_kind_is_built_beside_the_old_which_then_goes",
           "integration/test_index_keeper.py::test_a_filter_finds_all_it_should_also_before_pgvector_0_8",
           "benchmarks/index_growth"),
    _asked("7 index", "The operator sees the vector indexes, and measures and rebuilds them.",
           "acceptance/test_cli.py::test_index_status_names_the_partitions_in_use",
           "acceptance/test_cli.py::test_index_commands_say_where_nothing_is_to_be_done"),
    _asked("7 words", "Lexical candidates come through an index, also under row security.",
           "integration/test_plans.py::test_words_go_through_the_gin_index_inside_the_owners_function"),
    _asked("7 explained", "Each term of a score is explained.",
           "unit/test_retrieval.py::test_the_terms_add_up_to_the_score"),
    _asked("8 encoding", "Encoding is deterministic and pure, without an LLM.",
           "property/test_encoding_properties.py::"
           "test_any_text_encodes_to_bounded_fields_and_always_the_same_ones"),
    _asked("8 gate", "What is not worth storing is answered with the reason, and can be forced.",
           "integration/test_storing.py::"
           "test_what_is_not_worth_storing_is_answered_with_the_reason_and_can_be_forced"),
    _asked("9 batching", "Concurrent requests are batched, off the event loop.",
           "unit/test_embeddings.py::test_requests_that_wait_are_merged_and_answered_each_with_its_own",
           "integration/test_minilm.py::test_the_event_loop_runs_on_while_texts_are_embedded"),
    _asked("9 caches", "Vectors are cached in process and in Redis, by model, dimensions and text.",
           "integration/test_embedding_cache.py::test_another_process_finds_a_querys_vector",
           "integration/test_embedding_cache.py::test_another_model_or_length_has_its_own_vectors"),
    _asked("9 dimensions", "A dimension that does not fit stops the start with the mend.",
           "integration/test_openai_embedder.py::test_dimensions_a_model_cannot_make_stop_the_start"),
    _asked("9 degraded", "Without the embedder words answer; store keeps the memory and embeds it later.",
           "integration/test_searching.py::test_without_the_embedder_words_answer_and_the_receipt_says_so",
           "integration/test_maintenance.py::test_what_could_not_be_embedded_is_stored_and_embedded_later"),
    _asked("10 working", "Working memory is bounded by tokens; Redis lost is slower and said so.",
           "integration/test_context.py::test_working_memory_is_bounded_by_its_token_budget",
           "integration/test_context.py::test_without_redis_the_rows_answer_and_the_receipt_says_so",
           "integration/test_context.py::test_a_completed_task_has_no_working_memory_and_keeps_its_memories"),
    _asked("11 context", "The token count is exact, offline, and never above max_tokens; content is quoted.",
           "integration/test_context.py::test_a_context_stays_inside_any_budget",
           "unit/test_tokens.py::test_counting_works_offline_in_a_new_process",
           "unit/test_compression.py::test_a_memory_cannot_start_a_line_or_a_section_of_its_own"),
    _asked("12 worker", "A background task embeds late and hides what expired.",
           "integration/test_maintenance.py::test_expired_memories_are_invisible_at_once_and_swept_later",
           "acceptance/test_cli.py::test_worker_attaches_to_the_service_and_ends_when_asked"),
    _asked("13 commands", "Every command is there, with a help that teaches.",
           "unit/test_cli_misuse.py::test_each_command_has_a_help_with_an_example"),
    _asked("13 import", "import resumes after a break and stores nothing twice.",
           "acceptance/test_transfer.py::test_an_import_that_was_killed_goes_on_where_it_stopped"),
    _asked("13 export", "export and import into an empty home give equal memories.",
           "acceptance/test_transfer.py::test_export_and_import_into_another_memory_give_equal_memories"),
    _asked("14 health", "/healthz, /readyz and /metrics answer, each part by name.",
           "integration/test_server_edge.py::test_readiness_names_each_part",
           "acceptance/test_readme.py::test_every_part_of_readiness_is_in_the_operators_guide"),
    _asked("14 logs", "Logs have request and trace ids and never a memory's text.",
           "integration/test_server_edge.py::test_each_call_is_one_log_line",
           "unit/test_telemetry.py::test_a_json_line_holds_the_known_fields_and_no_others"),
    _asked("14 shutdown", "A stop finishes what it took.",
           "integration/test_serving.py::test_a_stop_finishes_the_calls_it_took"),
    _asked("15 readme", "The README's commands run as printed.",
           "acceptance/test_readme.py::test_each_call_by_curl_is_answered_with_a_result",
           "acceptance/test_readme.py::test_the_python_example_runs"),
    _asked("15 demo", "make demo imports a conversation of at least 200 turns and asks it ten questions.",
           "acceptance/test_demo.py::test_the_demonstration_finds_every_answer_and_leaves_nothing_behind"),
)

SHOWN = (
    _asked("bad input",
           "Bad input gets an error with its code and the name of what is wrong; the service goes on.",
           "property/test_rpc_bytes.py::test_random_bytes",
           "unit/test_params.py::test_bad_values_are_refused_by_field",
           "integration/test_serving.py::test_ten_megabytes_are_refused_and_the_connection_stays_good"),
    _asked("house",
           "The house keeps its figures; import-linter's contracts are kept, and broken by a planted "
           "import.",
           "architecture/test_house.py::test_no_function_is_too_long_and_few_are_long",
           "architecture/test_layers.py::test_all_contracts_are_kept",
           "architecture/test_layers.py::test_a_planted_import_breaks_its_contract"),
    _asked("kill -9", "Of 20 kills during a stream of writes every acknowledged write is there, none twice.",
           "benchmarks/crash_safety",
           "acceptance/test_crash_safety.py::test_kills_lose_double_and_halve_nothing_and_a_task_keeps_its_time"),
    _asked("isolation",
           "Two agents with the same ids never see, change, count or delete each other's memories.",
           "integration/test_isolation_matrix.py::test_the_matrix_has_a_row_for_each_method_and_no_other",
           "integration/test_isolation_matrix.py::test_hostile_ids_meet_nobody",
           "property/test_isolation_properties.py::test_each_agent_sees_what_it_did_itself_and_no_more"),
    _asked("any bytes", "Any bytes sent get a legal answer or silence.",
           "property/test_rpc_bytes.py::test_random_bytes",
           "property/test_rpc_bytes.py::test_random_json"),
    _asked("benchmarks",
           "A benchmark fills 100,000 memories and measures retrieve beside bare SQL and embedding.",
           "benchmarks/retrieval_latency"),
)

UNDERSTOOD = (
    _sought("1 temporal",
            "Expressions of time in a query become windows over the time that memories speak of.",
            "unit/test_moments.py::test_words_for_a_time_become_its_days",
            "unit/test_moments.py::test_what_is_no_time_or_not_surely_one_is_left_alone",
            "property/test_moments_properties.py::"
            "test_any_text_gives_windows_in_order_with_a_length_inside_the_calendar",
            "integration/test_event_times.py::test_a_memory_keeps_the_time_it_speaks_of",
            "integration/test_plans.py::test_a_span_of_time_goes_through_its_index",
            "integration/test_understanding.py::"
            "test_a_time_in_the_query_finds_what_happened_then_though_no_word_or_vector_does",
            "integration/test_understanding.py::test_what_was_told_later_of_a_day_is_found_by_that_day",
            "unit/test_retrieval.py::"
            "test_what_speaks_of_the_time_asked_for_comes_before_what_was_only_said_then",
            missing="times told by an event (\"before the trip\")"),
    _sought("4 gate",
            "Greetings, pure tool requests and general knowledge need no memory; personal words override.",
            "unit/test_gate.py::test_what_shows_that_it_needs_no_memory_is_not_searched",
            "unit/test_gate.py::test_general_knowledge_is_passed_over_only_where_the_caller_wants_it",
            "unit/test_gate.py::test_what_speaks_of_people_or_of_the_past_is_always_searched",
            "unit/test_gate.py::test_what_may_be_in_memory_is_searched",
            "integration/test_understanding.py::test_a_context_passes_over_what_needs_no_memory_and_says_so",
            "integration/test_understanding.py::test_a_context_is_searched_for_where_the_gate_lets_it"),
    _sought("4 vague", "A vague query is joined with the key terms of the last user turns.",
            "unit/test_query.py::test_a_query_that_says_too_little_is_followed_by_key_terms_of_the_turns",
            "property/test_query_properties.py::"
            "test_a_completed_query_begins_with_itself_and_repeats_nothing"),
    _sought("3 aliases",
            "Aliases are learnt from the agent's own memories and settable per agent; each form finds both.",
            "unit/test_aliases.py::test_a_pair_that_the_text_makes_evident_is_learnt",
            "unit/test_aliases.py::test_what_only_looks_like_a_pair_is_left_alone",
            "property/test_alias_properties.py::"
            "test_whatever_is_learnt_is_short_few_and_can_be_looked_up",
            "integration/test_aliases.py::"
            "test_what_one_memory_tells_finds_what_another_says_in_the_other_form",
            "integration/test_aliases.py::test_an_alias_that_is_set_works_in_both_directions",
            "integration/test_aliases.py::test_what_was_learnt_goes_with_its_memory",
            "integration/test_aliases.py::test_another_agents_aliases_never_apply",
            "acceptance/test_transfer.py::"
            "test_aliases_that_were_set_travel_and_learnt_ones_are_learnt_anew"),
    _sought("4 prompts", "A long prompt is split into sentences and searched as several queries.",
            "unit/test_query.py::test_a_long_prompt_becomes_its_telling_sentences_in_order",
            "unit/test_query.py::test_of_code_and_logs_the_errors_and_the_names_are_left",
            "integration/test_understanding.py::test_each_question_of_a_long_prompt_is_searched"),
    _sought("1 lexical", "Words are exact for identifiers, and misspellings within reach.",
            "integration/test_wording.py::test_an_identifier_finds_its_memory_among_many_like_it",
            "integration/test_wording.py::test_a_slip_of_the_pen_is_read_as_the_word_it_is_near",
            "integration/test_wording.py::"
            "test_a_short_memory_with_the_words_is_a_candidate_before_long_ones_that_hold_them_too"),
    _sought("2 fusion", "One score in [0, 1], weights learnt by a committed script, each share explained.",
            "unit/test_retrieval.py::test_the_terms_add_up_to_the_score",
            "property/test_pure_properties.py::"
            "test_a_ranking_is_bounded_ordered_and_independent_of_the_order_of_arrival",
            "benchmarks/learn_weights", "benchmarks/retrieval_quality", "benchmarks/ranking_cost"),
    _sought("3 silence",
            "Where nothing fits nothing is given, stricter in a context, and the receipt says so.",
            "unit/test_fitness.py::test_a_good_match_is_likely_to_answer_and_a_poor_one_is_not",
            "integration/test_understanding.py::"
            "test_below_the_callers_bound_a_search_is_silent_and_counts_what_it_held_back",
            "integration/test_understanding.py::test_what_is_far_below_the_best_is_left_out_and_counted",
            "integration/test_understanding.py::"
            "test_entries_of_a_log_step_back_behind_what_says_something_else"),
    _sought("5 reranker",
            "A reranker orders the foremost inside a time budget, or is left out with a receipt.",
            "integration/test_reranked_search.py::test_it_chooses_among_more_than_are_given_back",
            "integration/test_reranked_search.py::"
            "test_a_reranker_over_its_time_is_done_without_and_then_given_less"),
)

CHANGED = tuple(Requirement(number, LIFECYCLE_ISSUE, *told) for number, *told in CHANGED_FACTS)
REQUIREMENTS: tuple[Requirement, ...] = (*FUNCTIONAL, *QUALITIES, *BUILT, *SHOWN, *UNDERSTOOD, *CHANGED)
