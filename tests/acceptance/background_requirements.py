"""What issue 4 asks of background work and automatic pruning: number, sentence, tests that show it."""

BACKGROUND: tuple[tuple[str, ...], ...] = (
    ("9 jobs", "A job is enqueued in the transaction that asks for it, and holds ids alone.",
     "integration/test_jobs.py::test_a_job_is_enqueued_only_if_its_transaction_is",
     "integration/test_jobs.py::test_a_job_waits_for_everybody_who_counted_on_it",
     "integration/test_jobs.py::test_jobs_are_those_of_the_agent_of_the_transaction_alone"),
    ("9 retries", "A job is tried again with backoff, and done again after its worker was killed.",
     "integration/test_jobs.py::test_a_job_that_fails_is_tried_again_later_and_says_why",
     "integration/test_capacity.py::"
     "test_a_job_whose_worker_is_killed_in_the_middle_is_done_to_the_same_end"),
    ("9 operators", "Jobs are listed, explained, cancelled and retried by hand.",
     "acceptance/test_background_jobs.py::test_a_job_that_failed_is_listed_explained_and_tried_again",
     "acceptance/test_background_jobs.py::test_a_job_that_waits_is_cancelled",
     "integration/test_jobs.py::test_a_running_job_is_stopped_and_not_tried_again"),
    ("9 schema", "The job library's schema is written by our migrations.",
     "integration/test_migration.py::"
     "test_the_schema_of_the_job_library_is_that_of_the_installed_version"),
    ("5 automatic", "A layer is pruned when its limit is passed, and on schedule by one leader.",
     "integration/test_capacity.py::"
     "test_a_thousand_stores_side_by_side_make_one_job_and_end_at_the_capacity",
     "integration/test_capacity.py::test_the_leader_finds_the_layers_that_no_store_saw",
     "integration/test_capacity.py::test_what_one_run_has_no_time_for_the_next_ones_do"),
    ("5 kept", "Pinned memories, working memory and only copies are never taken.",
     "integration/test_capacity.py::test_neither_pinned_memories_nor_only_copies_are_taken",
     "integration/test_capacity.py::"
     "test_layers_without_a_capacity_and_working_memory_are_left_alone"),
)
