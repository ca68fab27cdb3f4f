"""What issue 4 asks of the archive, and the tests that show it; a part of `requirements.py`."""

from __future__ import annotations

_RESTORING = "integration/test_restoring.py::"
_ARCHIVE = "conformance/test_archive.py::"

# Number, sentence, tests.
ARCHIVE: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("5 curve", "A retention curve, S growing with use, is a strategy; more than 100 % is refused.",
     ("unit/test_pruning.py::test_the_retention_curve_takes_what_is_most_forgotten",
      "unit/test_scoring.py::test_what_is_remembered_fades_with_time_and_holds_with_use",
      "unit/test_params.py::test_a_prune_of_more_than_all_is_refused_with_a_sentence")),
    ("5 dry run", "A dry run lists exactly what the real run takes; pinned memories survive any state.",
     ("property/test_archive_properties.py::"
      "test_a_prune_takes_what_its_dry_run_said_and_never_what_is_pinned", "benchmarks/archive_crashes")),
    ("6 restore", "A restore gives back equal records: id, times, version, vector, history, links, use.",
     (f"{_RESTORING}test_a_restored_memory_is_the_one_that_was_archived_byte_for_byte",
      f"{_RESTORING}test_what_was_archived_one_after_the_other_is_tied_again_in_one_call",
      f"{_RESTORING}test_words_are_counted_again_when_a_memory_is_back",
      "property/test_archive_properties.py::"
      "test_any_memory_comes_back_from_the_archive_byte_for_byte",
      "acceptance/test_archive.py::test_what_was_pruned_is_listed_checked_and_brought_back")),
    ("6 refused", "An id that is there, one that was erased and a copy of another digest change nothing.",
     (f"{_RESTORING}test_a_memory_that_is_there_is_named_and_nothing_comes_back",
      f"{_RESTORING}test_what_was_never_archived_or_is_erased_or_anothers_is_not_found",
      f"{_RESTORING}test_a_copy_that_is_not_what_was_archived_brings_nothing_back")),
    ("6 expired", "What ran out of time in the archive does not vanish as it comes back.",
     (f"{_RESTORING}test_what_ran_out_of_time_in_the_archive_gets_what_it_had_left",)),
    ("6 listed", "What is archived is listed and chosen by filters, without reading a copy.",
     (f"{_RESTORING}test_what_is_archived_is_listed_with_size_reason_and_time_page_by_page",
      f"{_RESTORING}test_a_filter_restores_what_matches_and_nothing_else")),
    ("6 sealed", "Copies can be sealed with keys that are changed, and S3 told how to keep them.",
     (f"{_ARCHIVE}test_keys_are_changed_without_writing_anything_again",
      f"{_ARCHIVE}test_a_sealed_object_does_not_open_in_anothers_place",
      f"{_ARCHIVE}test_s3_is_told_how_to_keep_each_object",
      "unit/test_archive_options.py::test_a_problem_is_named_with_its_part_and_no_key_is_quoted")),
    ("shown crashes", "Killed at any fault point of a prune or restore no memory is lost or there twice.",
     ("acceptance/test_archive_crashes.py::"
      "test_wherever_a_prune_or_a_restore_is_killed_nothing_is_lost_and_a_repeat_completes",
      "acceptance/test_archive_crashes.py::"
      "test_the_verdict_sees_a_prune_that_archives_after_it_deletes", "benchmarks/archive_crashes")),
    ("shown S3", "An outage of S3 in the middle takes nothing; afterwards all goes on without a restart.",
     ("integration/test_archive_outage.py::test_an_outage_in_the_middle_of_a_prune_takes_nothing_with_it",
      "integration/test_archive_outage.py::"
      "test_while_s3_is_away_nothing_goes_and_nothing_comes_back_and_then_all_goes_on")),
    ("export", "An export carries validity and the vectors that callers gave.",
     ("acceptance/test_carried.py::"
      "test_vectors_that_callers_gave_travel_and_those_of_the_embedder_are_made_anew",
      "acceptance/test_carried.py::test_when_a_memory_was_valid_and_what_replaced_it_travels")),
)
