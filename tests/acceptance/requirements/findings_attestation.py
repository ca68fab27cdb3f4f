"""Findings of FINDINGS.md (277e3a9) and issue 13 on erase receipts, archives and token secrets."""

from __future__ import annotations

from tests.acceptance.requirements.form import Requirement, of

_found = of("finding")
_asked = of("issue 13")

FINDINGS_ATTESTATION: tuple[Requirement, ...] = (
    _found("A8 content", "An erasure removes no copy whose content names another agent.",
           "integration/test_other_archives.py::test_a_copy_that_names_another_agent_is_not_erased"),
    _found("A9", "A missing or damaged copy blocks no restore of the others; it is listed.",
           "integration/test_restoring.py::test_one_lost_copy_of_thirty_does_not_block_the_others",
           "integration/test_restoring.py::"
           "test_a_copy_that_is_not_what_was_archived_is_listed_and_the_others_come_back",
           "integration/test_restoring.py::test_a_copy_that_is_gone_is_named"),
    _found("A13", "An erasure never says verified about a copy in another server's archive.",
           "integration/test_other_archives.py::"
           "test_an_erasure_never_says_verified_about_a_copy_in_another_archive",
           "integration/test_other_archives.py::"
           "test_a_users_erasure_counts_copies_elsewhere_that_may_be_the_users",
           "integration/test_other_archives.py::"
           "test_a_local_copy_goes_though_the_tombstone_is_of_another_archive",
           "integration/test_other_archives.py::"
           "test_a_copy_that_a_restore_left_elsewhere_is_unreachable_until_it_is_erased_there",
           "integration/test_other_archives.py::"
           "test_a_copy_that_a_killed_prune_left_elsewhere_is_unreachable",
           "integration/test_other_archives.py::test_a_restored_copy_of_an_older_version_is_recorded",
           "integration/test_other_archives.py::test_merged_archives_count_once_they_are_adopted",
           "integration/test_other_archives.py::"
           "test_an_archive_that_is_replaced_during_an_erasure_ends_it_and_nothing_is_lost",
           "integration/test_other_archives.py::"
           "test_a_tombstone_of_an_older_version_belongs_to_this_archive_if_its_copy_is_here"),
    _found("A13 Redis", "An erasure never says verified about working memory in another Redis.",
           "integration/test_erasing.py::"
           "test_an_erasure_never_says_verified_about_working_memory_in_another_redis",
           "integration/test_erasing.py::"
           "test_a_server_without_redis_does_not_say_verified_about_working_memory",
           "integration/test_erasing.py::"
           "test_a_redis_that_is_replaced_is_recorded_before_it_contains_a_text"),
    _found("A14 copies", "A prune that fails leaves no copy behind.",
           "integration/test_other_archives.py::test_a_prune_that_fails_midway_leaves_no_copy_behind"),
    _found("A14 modes", "Directories and files of the archive are closed to other users.",
           "conformance/test_archive.py::test_directories_and_files_of_the_archive_are_closed_to_others"),
    _found("A14 role", "The login of agents' calls cannot reset its role to the owner's.",
           "integration/test_embedded.py::test_the_login_of_the_services_role_can_act_as_nobody_else",
           "integration/test_row_security.py::"
           "test_a_login_of_its_own_serves_agents_and_cannot_become_the_owner"),
    _found("A14 secret", "A token secret that is easy to guess is refused with a fix.",
           "unit/test_auth.py::test_a_secret_that_is_easy_to_guess_is_refused_with_a_fix",
           "unit/test_auth.py::test_random_secrets_are_accepted"),
    _found("A14 timestamps", "A timestamp far in the future is refused and hides no later fact.",
           "integration/test_storing.py::"
           "test_a_timestamp_far_in_the_future_is_refused_and_hides_no_later_fact"),
    _found("B11", "A change of JWT_SECRET_KEY ends no token at once and invalidates no receipt.",
           "unit/test_auth.py::"
           "test_of_several_secrets_the_first_signs_and_all_verify_until_one_is_removed",
           "acceptance/test_cli.py::"
           "test_a_rotated_secret_of_a_home_ends_no_token_until_the_old_one_is_dropped",
           "integration/test_erasing_attested.py::"
           "test_a_receipt_verifies_after_the_token_secret_has_changed"),
    _asked("archive ids", "Servers that open a new archive at once agree on its id, stored in it.",
           "conformance/test_archive.py::test_servers_that_open_a_new_archive_at_once_agree_on_its_id",
           "conformance/test_archive.py::test_the_id_of_a_sealed_archive_is_read_with_other_keys",
           "conformance/test_archive.py::test_s3_keeps_the_id_in_no_cold_storage_class"),
    _asked("other archives", "Start, doctor, /readyz, lists, checks and restores name the others' copies.",
           "integration/test_other_archives.py::test_start_doctor_and_readyz_name_the_other_archive",
           "integration/test_other_archives.py::test_copies_of_an_unknown_archive_are_reported",
           "integration/test_other_archives.py::"
           "test_a_service_without_an_archive_reports_the_archived_copies",
           "integration/test_other_archives.py::test_the_list_marks_which_copies_are_elsewhere",
           "integration/test_other_archives.py::"
           "test_a_restore_continues_with_the_rest_and_lists_what_is_elsewhere",
           "integration/test_other_archives.py::"
           "test_a_single_id_that_is_elsewhere_is_not_found_and_its_archive_is_named",
           "integration/test_other_archives.py::"
           "test_the_check_of_copies_calls_them_unreachable_and_adopts_them_once_they_are_merged"),
    _asked("receipt totals", "The receipt of an erasure in several calls states what all of them erased.",
           "integration/test_erasing_attested.py::"
           "test_the_last_receipt_of_several_calls_states_the_sum_of_all",
           "integration/test_erasing_attested.py::"
           "test_only_an_unfinished_erasure_of_the_same_whose_can_be_continued",
           "acceptance/test_erase_command.py::"
           "test_each_call_continues_the_one_before_so_that_the_last_receipt_is_of_all"),
    _asked("receipt keys", "Receipts have a key of their own, shared by all servers.",
           "integration/test_erasing_attested.py::test_the_services_role_cannot_read_the_keys_of_receipts",
           "integration/test_erasing_attested.py::"
           "test_two_servers_sign_with_keys_of_the_database_and_read_each_others_receipts"),
)
