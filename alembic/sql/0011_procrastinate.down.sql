-- Takes the job library's schema away, with every job in it.
DROP FUNCTION procrastinate_fetch_job_v2;
DROP TABLE procrastinate_events, procrastinate_periodic_defers, procrastinate_jobs, procrastinate_workers;
DROP FUNCTION procrastinate_defer_jobs_v1, procrastinate_defer_periodic_job_v2, procrastinate_finish_job_v1,
              procrastinate_cancel_job_v1, procrastinate_retry_job_v1, procrastinate_retry_job_v2,
              procrastinate_notify_queue_job_inserted_v1, procrastinate_notify_queue_abort_job_v1,
              procrastinate_trigger_function_status_events_insert_v1,
              procrastinate_trigger_function_status_events_update_v1,
              procrastinate_trigger_function_scheduled_events_v1,
              procrastinate_trigger_abort_requested_events_procedure_v1, procrastinate_unlink_periodic_defers_v1,
              procrastinate_register_worker_v1, procrastinate_unregister_worker_v1,
              procrastinate_update_heartbeat_v1, procrastinate_prune_stalled_workers_v1;
DROP TYPE procrastinate_job_to_defer_v1, procrastinate_job_status, procrastinate_job_event_type;
