"""Tests that the documents cover every method and error and name only existing commands, settings and
files."""

from __future__ import annotations

import json
import re
import runpy
from collections.abc import Iterator, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from agentcore.cli import MODULES
from agentcore.config import Settings
from agentcore.errors import WIRE_ERRORS, AgentCoreError, JsonRpcErrorCode
from agentcore.memory.api import METHODS, AnyMethod
from agentcore.memory.models import MemoryType
from agentcore.memory.pruning import STRATEGIES
from agentcore.memory.scoring import RetrievalWeights
from benchmarks.__main__ import names

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = ROOT / "docs" / "reference"
LEDGER = ROOT / "benchmarks" / "results" / "ledger.jsonl"
DECISIONS = sorted((ROOT / "docs" / "decisions").glob("[0-9]*.md"))
DOCUMENTS = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
TEXTS = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in DOCUMENTS}
METHODS_PAGE = (REFERENCE / "methods.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## (\S+)\n(.*?)(?=^## |\Z)", METHODS_PAGE, re.MULTILINE | re.DOTALL))
# Capitalized names in the documents that are not our settings: variables of make and boto3, constants.
OTHER_NAMES = {
    "OPENBLAS_NUM_THREADS",
    "PROMETHEUS_MULTIPROC_DIR",
    "SO_REUSEPORT",
    "FILE",
    "ARGS",
    "PYTHON",
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_DEFAULT_REGION",
    "EMBEDDERS",
    "METHODS",
    "QUERY_REWRITERS",
    "RERANKERS",
    "SUMMARISERS",
    "VECTOR_STORES",
    "SIGTERM",
    "BYPASSRLS",
    "MAIN",
    "BLAKE2B",
    "AGENTCORE_FAILPOINT",
    "HS256",
    "INFO",
    "STANDARD_IA",
    "INTELLIGENT_TIERING",
    "GLACIER_IR",
    "AES256",
    "LIBRARIAN_SECRET",
    "LIBRARIAN_TOKEN",
}
SCRIPT = runpy.run_path(str(ROOT / "scripts" / "write_reference.py"))
WRITTEN: dict[str, str] = SCRIPT["reference_files"]()
COMMANDS = {command for commands in MODULES.values() for command in commands}


def anchors(text: str) -> set[str]:
    """Returns the anchors of a page's headings, generated as on GitHub."""
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-") for heading in headings}


def without_fences(text: str) -> str:
    return re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("name", WRITTEN)
@pytest.mark.shows("issue6-7-reference")
def test_a_page_that_is_derived_is_what_the_code_says(name: str) -> None:
    committed = (ROOT / name).read_text(encoding="utf-8")
    assert committed == WRITTEN[name], "its source changed: look at it, then run scripts/write_reference.py"


@pytest.mark.shows("issue6-7-reference")
def test_every_command_stands_in_the_reference_with_an_example() -> None:
    page = TEXTS["docs/reference/cli.md"]
    sections = re.findall(r"^### agentcore ([^\n]+)\n(.*?)(?=^### |\Z)", page, re.MULTILINE | re.DOTALL)
    assert {name.split()[0] for name, _ in sections} == COMMANDS
    groups = {name.split()[0] for name, _ in sections if " " in name}
    assert [name for name, text in sections if name not in groups and "Examples:" not in text] == []


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_every_method_stands_in_the_reference_with_each_param_and_result(method: AnyMethod) -> None:
    section = SECTIONS[method.name]
    fields = [*method.params.model_fields, *method.result.model_fields]
    assert {field for field in fields if f"`{field}`" not in section} == set()
    assert f"`{method.scope}`" in section


@pytest.mark.parametrize("error", WIRE_ERRORS, ids=lambda error: error.__name__)
def test_every_error_stands_in_the_reference_with_its_code(error: type[AgentCoreError]) -> None:
    rows = TEXTS["docs/reference/errors.md"].splitlines()
    row = next(each for each in rows if f"`{error.__name__}`" in each)
    assert f"| {int(error.code)} |" in row


@pytest.mark.shows("B3")
def test_no_page_installs_a_package_that_is_not_published() -> None:
    """Anyone could publish that name on PyPI, so pages must install the wheel by its file name."""
    installs = re.compile(r"pip\s+install\s+'?agentcore[-_]memory(?![-_]?\d)")
    assert [name for name, text in TEXTS.items() if installs.search(text)] == []


def test_no_code_is_documented_that_does_not_exist() -> None:
    known = {int(code) for code in JsonRpcErrorCode}
    told = {int(code) for text in TEXTS.values() for code in re.findall(r"-32\d{3}\b", text)}
    assert known <= told
    assert told - known == set()


def test_scopes_are_told_as_they_are() -> None:
    for scope in ("memory:read", "memory:write"):
        [row] = re.findall(rf"^\| `{scope}` \| (.+) \|$", TEXTS["docs/security.md"], re.MULTILINE)
        assert set(row.split(", ")) == {method.attribute for method in METHODS if method.scope == scope}


def test_weights_layers_and_strategies_are_told_as_they_are() -> None:
    concepts, weights = TEXTS["docs/concepts.md"], RetrievalWeights()
    terms = re.findall(r"^\| `(\w+)` \| .+ \| (0\.\d\d) \|$", concepts, re.MULTILINE)
    assert {name: float(weight) for name, weight in terms} == {
        each.name: getattr(weights, each.name) for each in fields(weights) if "_" not in each.name
    }
    assert {layer for layer in MemoryType if f"| `{layer.value}` |" not in concepts} == set()
    assert {name for name in STRATEGIES if f"`{name}`" not in concepts} == set()


@pytest.mark.parametrize("name", TEXTS)
def test_every_link_leads_somewhere(name: str) -> None:
    here = ROOT / name
    for target in re.findall(r"\]\(([^)\s]+)\)", without_fences(TEXTS[name])):
        if target.startswith("https://"):
            continue
        file, _, anchor = target.partition("#")
        there = (here.parent / file).resolve() if file else here
        assert there.exists(), target
        if anchor:
            assert anchor in anchors(there.read_text(encoding="utf-8")), target


@pytest.mark.parametrize("name", TEXTS)
def test_every_command_setting_and_file_that_is_named_exists(name: str) -> None:
    text = TEXTS[name]
    commands = set(re.findall(r"(?:`|^|bin/|\$\()agentcore ([a-z][a-z-]*)\b", text, re.MULTILINE))
    assert commands - COMMANDS == set()
    known = {setting.upper() for setting in Settings.model_fields} | OTHER_NAMES
    named = set(re.findall(r"`([A-Z][A-Z0-9_]{3,})(?==|`)", text)) | set(
        re.findall(r"^export ([A-Z_0-9]+)=", text, re.MULTILINE)
    )
    assert named - known - {error.name for error in JsonRpcErrorCode} == set()
    files = re.findall(r"`((?:agentcore|alembic|benchmarks|docs|scripts|tests)/[\w./-]+)`", text)
    assert {file for file in files if not (ROOT / file).exists()} == set()


def test_each_decision_number_has_one_record_and_all_have_their_parts() -> None:
    merged = [number for numbers in SCRIPT["MERGED_DECISIONS"].values() for number in numbers]
    numbers = [int(path.name[:4]) for path in DECISIONS] + merged + list(SCRIPT["REMOVED_DECISIONS"])
    assert sorted(numbers) == list(range(1, len(numbers) + 1))
    for path in DECISIONS:
        text = path.read_text(encoding="utf-8")
        assert text.startswith(f"# {int(path.name[:4])}. "), path.name
        assert re.search(r"^Status: \w+", text, re.MULTILINE), path.name
        positions = [text.find(f"\n## {part}\n") for part in ("Context", "Decision")]
        assert 0 < positions[0] < positions[1], path.name


def test_the_changelog_has_its_form() -> None:
    changelog = TEXTS["CHANGELOG.md"]
    assert changelog.startswith("# Changelog\n")
    first, *_ = re.findall(r"^## \[(.+)\]", changelog, re.MULTILINE)
    assert first == "Unreleased"
    kinds = set(re.findall(r"^### (\w+)$", changelog, re.MULTILINE))
    assert kinds <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    assert kinds


def test_the_readme_stays_short() -> None:
    assert len(TEXTS["README.md"].splitlines()) <= 200


# --- docs/benchmarks.md ------------------------------------------------------------------------------------


def numbers(value: Any) -> Iterator[float]:
    if isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from numbers(each)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield value


def values_of(run: dict[str, Any]) -> list[float]:
    return [*numbers(run["figures"]), *numbers(run["options"])]


def is_seen(figure: str, values: Sequence[float]) -> bool:
    """Checks whether a rounded or percentage figure equals one of the values."""
    digits = len(figure.partition(".")[2])
    told = [value * factor for value in values for factor in (1, 100)]
    return any(float(figure) == (round(value, digits) if digits else value) for value in told)


ROWS = re.findall(r"^\| `(\w+)` \| .+ \| (.+) \| (\S+), (\S+) \|$", TEXTS["docs/benchmarks.md"], re.MULTILINE)


@pytest.mark.parametrize(("benchmark", "seen", "day", "commit"), ROWS)
@pytest.mark.shows("issue6-7-figures")
def test_every_figure_that_is_told_was_seen(benchmark: str, seen: str, day: str, commit: str) -> None:
    runs = [
        run
        for run in map(json.loads, LEDGER.read_text(encoding="utf-8").splitlines())
        if (run["benchmark"], run["at"][:10], run["commit"]) == (benchmark, day, commit)
    ]
    assert runs, "no run of that day and commit stands in the ledger"
    figures = [each.replace(",", "") for each in re.findall(r"(?<![\w@.])\d[\d,]*(?:\.\d+)?(?![\w.])", seen)]
    assert figures
    unseen = [[each for each in figures if not is_seen(each, values)] for values in map(values_of, runs)]
    assert [] in unseen, unseen


def test_a_figure_that_was_not_seen_would_be_found() -> None:
    assert is_seen("61.5", [0.6154])
    assert is_seen("0.899", [0.8986])
    assert not is_seen("33.05", [33.04])
    assert not is_seen("0", [0.4, 12])


def test_every_benchmark_is_told_of() -> None:
    told = set(re.findall(r"`(\w+)`", TEXTS["docs/benchmarks.md"]))
    assert set(names()) - told == set()
