"""Findings of FINDINGS.md (277e3a9) and issue 13 on the command line."""

from __future__ import annotations

from tests.acceptance.requirements.form import Requirement, of

_found = of("finding")
_asked = of("issue 13")
_cli = "acceptance/test_cli.py"
_memories = "acceptance/test_cli_memories.py"
_commands = "unit/test_cli_commands.py"

FINDINGS_CLI: tuple[Requirement, ...] = (
    _found("A5", "A directory's .env gives no client command a URL, token or key, and a token made here "
           "leaves this "
           "machine only where its URL is typed.",
           f"{_cli}::test_a_directorys_env_file_sends_neither_text_nor_token_elsewhere",
           f"{_cli}::test_mcp_reads_no_env_file_either",
           "integration/test_open_memory.py::test_a_directorys_env_file_names_neither_the_service_nor_the_token",
           f"{_cli}::test_a_token_made_here_goes_to_another_machine_only_where_its_url_is_typed",
           f"{_cli}::test_this_machine_may_have_a_token_made_here"),
    _found("B6", "Every command that a message or a help text suggests works; revert needs no version.",
           f"{_memories}::test_every_command_that_a_message_suggests_works",
           f"{_memories}::test_revert_takes_back_the_last_change_and_says_where_there_is_none",
           f"{_commands}::test_an_example_of_the_help_is_a_command_that_is_understood"),
    _found("B7", "The demonstration counts a question only where a current answer is among the memories "
           "shown.",
           "acceptance/test_demo.py::test_a_question_counts_only_where_a_current_answer_is_shown",
           "acceptance/test_demo.py::test_the_count_is_the_number_found_and_names_what_was_missed"),
    _found("B8", "The command line says what was superseded and why a prune takes nothing, completes, "
           "suggests what "
           "was meant, warns of no default, takes human dates, and pads no piped table.",
           f"{_memories}::test_what_was_superseded_is_told_on_storing_and_marked_in_lists",
           f"{_memories}::test_a_prune_that_takes_nothing_says_why",
           f"{_commands}::test_the_shell_completes_commands_and_their_options",
           f"{_commands}::test_a_flag_is_shown_without_a_value",
           f"{_commands}::test_a_typo_suggests_what_was_meant",
           f"{_memories}::test_a_piped_table_has_a_tab_between_cells_and_no_padding",
           f"{_memories}::test_the_defaults_of_language_models_are_shown_without_a_warning",
           f"{_memories}::test_human_dates_and_durations_are_taken_everywhere",
           "unit/test_cli_times.py::test_a_duration_is_a_time_so_long_ago"),
    _found("B14", "A capacity of the working layer applies; an extension by use that has no effect is told.",
           "integration/test_capacity.py::test_every_layer_with_a_capacity_is_kept_to_its_own",
           f"{_memories}::test_a_rule_without_effect_is_told"),
    _found("B16", "memory.prune takes the working layer, archives what goes, and the task's window shows "
           "it no more.",
           "integration/test_lifecycle.py::"
           "test_pruning_working_memory_takes_it_from_the_tasks_window_into_the_archive"),
    _found("B22", "Every number of the specification is listed, with what shows it or what is missing.",
           "architecture/test_requirements.py::"
           "test_every_number_of_the_specification_is_listed_and_no_other"),
    _asked("cli aliases", "What people type is understood: add, search, find, ls, rm, version, config.",
           f"{_commands}::test_an_alias_is_the_command_it_stands_for",
           f"{_commands}::test_the_version_is_a_command_too",
           f"{_commands}::test_the_settings_are_printed_without_secrets"),
    _asked("cli json", "Every command that prints a result prints it as JSON.",
           f"{_commands}::test_a_command_that_prints_a_result_prints_it_as_json"),
    _asked("cli start", "Commands that call a service import nothing of it, and the help imports none of "
           "them.",
           f"{_commands}::test_a_command_that_only_calls_the_service_imports_nothing_of_it",
           f"{_commands}::test_the_help_of_all_commands_imports_none_of_them",
           f"{_commands}::test_a_command_whose_package_is_missing_says_what_to_install",
           f"{_commands}::test_the_summary_of_a_command_that_is_not_imported_is_that_of_its_help"),
)
