"""Findings of FINDINGS.md (277e3a9) and issue 13 on installation and the Python package."""

from __future__ import annotations

from tests.acceptance.requirements.form import Requirement, of

_found = of("finding")
_asked = of("issue 13")
_WHEEL = "acceptance/test_wheel.py::"
_CALLS = "unit/test_keyword_calls.py::"
_NAMES = "unit/test_exports.py::"

FINDINGS_PACKAGING: tuple[Requirement, ...] = (
    _found("B1", "The installed wheel serves with nothing set, after `agentcore model install`.",
           _WHEEL + "test_the_service_of_the_wheel_stores_and_finds_by_meaning"),
    _found("B2", "`/mcp` answers in the service of `make serve` and of `[server]`.",
           _WHEEL + "test_mcp_answers_without_another_extra",
           "architecture/test_locks.py::test_make_serve_installs_what_mcp_needs"),
    _found("B3", "The guides install the checkout or its wheel: no package is published.",
           "architecture/test_documentation.py::test_no_page_installs_a_package_that_is_not_published"),
    _found("B4", "The base install is the client: small, quick to import, with one place for its names.",
           _WHEEL + "test_the_base_install_is_the_client_and_small",
           _WHEEL + "test_the_client_imports_few_modules_and_none_of_the_services_packages",
           _WHEEL + "test_the_client_of_the_readme_runs_in_the_base_install",
           _NAMES + "test_the_exported_names_are_the_clients_the_errors_and_the_params_of_every_method",
           _NAMES + "test_importing_the_package_imports_nothing_else_and_a_star_imports_every_name"),
    _found("B4 keywords", "`store(\"text\")` stores: methods take the fields of their params.",
           _CALLS + "test_fields_become_the_params",
           _CALLS + "test_a_wrong_name_or_value_is_refused_before_anything_is_sent",
           _CALLS + "test_the_client_without_await_takes_them_too"),
    _found("B5", "The README says how to run its Python examples.",
           "acceptance/test_readme.py::test_the_readme_says_how_to_run_its_python"),
    _found("B18", "Params and results are named after their methods.",
           _NAMES + "test_params_and_results_are_named_after_their_method"),
    _found("B20 anyio", "Every third-party module that the package imports is declared.",
           "architecture/test_locks.py::test_the_check_compares_imports_with_declared_dependencies"),
    _asked("extras", "Each documented set of extras installs and works.",
           _WHEEL + "test_with_all_extras_every_provider_can_be_chosen",
           _WHEEL + "test_each_integration_imports_over_the_base_install",
           _WHEEL + "test_a_memory_in_the_process_needs_no_service"),
    _asked("missing extra", "Without the service the command line and `open_memory` name the extra.",
           _WHEEL + "test_the_base_install_names_the_extra_that_commands_and_open_memory_need"),
    _asked("operations", "Each method of the API has one operation with the declared types.",
           _CALLS + "test_the_manager_has_an_operation_of_the_same_types"),
)
