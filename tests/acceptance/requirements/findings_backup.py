"""Findings of FINDINGS.md (277e3a9) and issue 13 on purge, backup and restore."""

from __future__ import annotations

from tests.acceptance.requirements.form import Requirement, of

_found = of("finding")
_asked = of("issue 13")

FINDINGS_BACKUP: tuple[Requirement, ...] = (
    _found("A12", "After a purge erased text is in no file of the home; the receipt states what was purged.",
           "acceptance/test_purge.py::test_erased_text_is_in_no_file_of_the_home_after_a_purge"),
    _found("B10", "The documented backup commands work under load, and on a home that never archived.",
           "acceptance/test_backup.py::"
           "test_a_backup_made_under_load_restores_all_that_was_acknowledged_before_it",
           "acceptance/test_backup.py::"
           "test_a_stopped_home_that_never_archived_is_backed_up_and_put_back_in_place_of_a_later_state"),
    _found("B13", "A foreign file in a home under root is named, with what to do about it.",
           "unit/test_embedded_home.py::"
           "test_a_home_is_opened_to_its_account_unless_it_is_somebodys_home_directory",
           "unit/test_embedded_home.py::"
           "test_a_foreign_file_in_a_home_that_can_be_entered_is_named_with_what_to_do",
           "unit/test_embedded_home.py::"
           "test_what_the_service_itself_and_the_file_system_leave_in_a_home_is_not_foreign"),
    _asked("purge remains", "What could not be purged is named with the reason, and the command fails.",
           "acceptance/test_purge.py::test_a_purge_says_what_it_could_not_remove_and_who_must",
           "acceptance/test_purge.py::test_without_a_running_service_nothing_is_purged"),
    _asked("backup whole", "A damaged copy is named in the backup; a damaged backup changes nothing.",
           "acceptance/test_backup.py::"
           "test_a_damaged_copy_is_named_in_the_backup_and_the_rest_is_backed_up",
           "acceptance/test_backup.py::test_without_anything_to_read_nothing_is_made"),
    _asked("backup external", "With an external database the local rest is backed up, and a dump is served.",
           "acceptance/test_backup.py::"
           "test_with_a_database_of_ones_own_the_local_rest_is_backed_up_and_a_dump_is_served"),
    _asked("backup readme", "The README states the commands for backup and restore.",
           "acceptance/test_backup.py::test_the_readme_says_how_to_back_up_and_restore"),
)
