"""Findings of FINDINGS.md (277e3a9) and issue 13 on faults of PostgreSQL and Redis."""

from __future__ import annotations

from tests.acceptance.requirements.form import Requirement, of

_found = of("finding")
_asked = of("issue 13")
_faults = "integration/test_faults.py"
_circuit = "unit/test_circuit_breaker.py"

FINDINGS_FAULTS: tuple[Requirement, ...] = (
    _found("A10", "A Redis that hangs delays one call and not each.",
           f"{_faults}::test_a_hung_redis_delays_one_call_and_is_seen_in_log_metrics_and_readiness",
           "integration/test_embedding_cache.py::test_an_unreachable_redis_is_a_miss_and_its_circuit_opens"),
    _found("A11", "A call ends within its limit while PostgreSQL hangs, its cancellation included.",
           f"{_faults}::"
           "test_every_call_ends_within_its_limit_while_postgresql_hangs_and_all_goes_on_after",
           f"{_faults}::test_a_call_that_is_cancelled_while_postgresql_hangs_ends_soon",
           f"{_faults}::test_a_service_stops_while_postgresql_hangs"),
    _found("A14 /readyz writes", "A part on a full disk, or one that accepts no changes, is not ready.",
           f"{_faults}::test_a_full_disk_of_postgresql_makes_the_service_not_ready",
           f"{_faults}::test_a_primary_that_accepts_no_changes_is_not_ready",
           f"{_faults}::test_a_redis_that_answers_but_refuses_writes_is_not_ready",
           "unit/test_shared_check.py::test_an_archive_directory_is_ready_only_if_it_takes_a_byte"),
    _found("A14 /readyz work", "Requests of /readyz share one check, whose answer is reused for a second.",
           "unit/test_shared_check.py::test_callers_share_one_check_and_its_answer_for_a_second",
           "integration/test_server_edge.py::test_readiness_is_checked_once_a_second_however_often_it_is_asked"),
    _found("B12", "An outage of Redis and a retry are one readable log line each.",
           f"{_faults}::test_a_hung_redis_delays_one_call_and_is_seen_in_log_metrics_and_readiness",
           "unit/test_telemetry.py::test_a_retry_logs_what_failed_and_when_the_next_attempt_is"),
    _asked("circuit breaker", "Each dependency has one circuit, which logs that it opens and that it closes.",
           f"{_circuit}::test_it_admits_everybody_until_it_opens_and_then_one_probe_a_rest",
           f"{_circuit}::test_each_change_is_one_log_line_with_the_cause_and_the_fallback",
           f"{_circuit}::test_an_error_reply_closes_the_circuit",
           f"{_faults}::test_a_script_that_a_restarted_redis_does_not_know_closes_the_circuit",
           "integration/test_archive_outage.py::test_an_error_reply_of_s3_closes_the_circuit",
           f"{_faults}::test_an_embedding_provider_that_cannot_be_reached_is_left_alone",
           f"{_faults}::test_reads_go_to_the_primary_while_the_replica_is_away"),
    _asked("error causes", "Each cause of an unavailable dependency has its class, for clients too.",
           "integration/test_database.py::test_each_cause_of_a_servers_error_has_its_class",
           f"{_faults}::test_a_pool_that_is_in_use_is_not_an_unreachable_server",
           f"{_faults}::test_the_limit_of_a_reply_grows_with_the_statements_of_a_pipeline",
           f"{_faults}::test_a_late_reply_of_a_server_that_accepts_a_cancel_request_opens_no_circuit",
           f"{_faults}::test_a_slow_statement_ends_at_its_limit_and_opens_no_circuit",
           "unit/test_client_retries.py::test_a_cause_has_its_class_and_is_retried_only_where_that_helps",
           "unit/test_shared_check.py::test_a_full_disk_of_the_archive_has_its_class"),
    _asked("read limit of closed connections", "A closed connection whose response is not read is aborted.",
           "integration/test_connections.py"
           "::test_a_closed_connection_whose_response_is_not_read_is_aborted"),
    _asked("interrupted maintenance", "A restore or purge that was interrupted or locked out loses nothing.",
           "unit/test_embedded_home.py::test_a_refused_restore_keeps_the_draft_of_an_interrupted_one",
           "unit/test_embedded_home.py"
           "::test_a_start_of_postgresql_recycles_the_write_ahead_log_after_a_purge_that_was_killed",
           "acceptance/test_purge.py"
           "::test_a_table_that_another_process_locks_is_named_and_the_others_are_purged"),
    _asked("background outage", "Background work logs an outage once, and goes on after it.",
           f"{_faults}::test_background_work_logs_an_outage_once_and_goes_on_after"),
)
