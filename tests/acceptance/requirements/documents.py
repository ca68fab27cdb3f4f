"""Requirements of issue 6 on the documentation."""

from __future__ import annotations

from tests.acceptance.requirements.form import of

_asked = of("issue 6")
_site = "architecture/test_site.py"
_pages = "architecture/test_documentation.py"
_examples = "acceptance/test_documentation_examples.py"

DOCUMENTED = (
    _asked("7 site", "`make docs` builds the documentation, with warnings as errors.",
           f"{_site}::test_every_page_is_in_the_menu",
           f"{_site}::test_what_leads_nowhere_or_is_in_no_menu_ends_the_build",
           f"{_site}::test_no_page_loads_anything_from_elsewhere"),
    _asked("7 examples", "The examples of the documentation are executed in tests.",
           f"{_examples}::test_the_examples_of_a_page_run_as_printed",
           f"{_examples}::test_few_examples_are_not_run",
           f"{_examples}::test_every_fenced_block_of_code_is_seen"),
    _asked("7 reference", "Methods, settings and commands are written from the code.",
           f"{_pages}::test_a_page_that_is_derived_is_what_the_code_says",
           f"{_pages}::test_every_command_stands_in_the_reference_with_an_example"),
    _asked("7 figures", "The benchmarks' figures in the documentation are those that were seen.",
           f"{_pages}::test_every_figure_that_is_told_was_seen"),
)
