"""Tests that the documentation site builds without warnings, has every page and loads no external
resource."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
# Attributes whose URL a browser loads automatically, by element.
LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}


class Loaded(HTMLParser):
    """Collects the URLs that a page makes a browser load."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.addresses += [value for name, value in attributes if name == LOADED.get(tag) and value]


def build(site: Path, *, configuration: Path = ROOT / "mkdocs.yml") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [
            sys.executable,
            "-m",
            "mkdocs",
            "build",
            "--strict",
            "--config-file",
            str(configuration),
            "--site-dir",
            str(site),
        ],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        text=True,
        capture_output=True,
        timeout=300,
        check=False,
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    built = tmp_path_factory.mktemp("site")
    done = build(built)
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    return built


def test_every_page_is_in_the_site(site: Path) -> None:
    pages = {path.relative_to(DOCS).with_suffix(".html") for path in DOCS.rglob("*.md")}
    outside = {Path(name) for name in ("index.html", "CONTRIBUTING.html", "clients/typescript/index.html")}
    assert {str(page) for page in pages | outside if not (site / page).exists()} == set()


@pytest.mark.shows("issue6-7-site")
def test_every_page_is_in_the_menu(site: Path) -> None:
    front = (site / "index.html").read_text(encoding="utf-8")
    menu = set(re.findall(r'<a href="([^"#:]+\.html)" class="md-nav__link', front))
    pages = {str(path.relative_to(DOCS).with_suffix(".html")) for path in DOCS.rglob("*.md")}
    assert pages - menu == set()


@pytest.mark.shows("issue6-7-site")
def test_no_page_loads_anything_from_elsewhere(site: Path) -> None:
    loaded = {
        (page.name, address)
        for page in site.rglob("*.html")
        for address in Loaded(page.read_text(encoding="utf-8")).addresses
    }
    assert len(loaded) > 50
    assert {each for each in loaded if re.match(r"\w+:|//", each[1])} == set()
    styles = [path.read_text(encoding="utf-8") for path in site.rglob("*.css")]
    assert styles
    assert [each for style in styles for each in re.findall(r"url\(['\"]?(?:https?:)?//[^)]+\)", style)] == []


def test_links_between_the_repository_and_the_site_lead_to_pages(site: Path) -> None:
    front = (site / "index.html").read_text(encoding="utf-8")
    assert 'href="quickstart.html"' in front
    assert 'href="CONTRIBUTING.html"' in front
    assert 'href="clients/typescript/index.html"' in front
    assert 'href="benchmarks/results/ledger.jsonl"' in (site / "benchmarks.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("page", "text", "said"),
    [
        ("concepts.md", "\n[there](nowhere.md)\n", "nowhere.md"),
        ("concepts.md", "\n[there](agents.md#nowhere)\n", "nowhere"),
        ("reference/unlisted.md", "# Unlisted\n", "reference/unlisted.md"),
    ],
)
@pytest.mark.shows("issue6-7-site")
def test_what_leads_nowhere_or_is_in_no_menu_ends_the_build(tmp_path: Path, page: str, text: str, said: str) -> None:
    shutil.copytree(DOCS, tmp_path / "docs")
    with (tmp_path / "docs" / page).open("a", encoding="utf-8") as file:
        file.write(text)
    broken = tmp_path / "mkdocs.yml"
    broken.write_text(
        (ROOT / "mkdocs.yml")
        .read_text(encoding="utf-8")
        .replace("docs_dir: docs", f"docs_dir: {tmp_path / 'docs'}")
        .replace("scripts/docs_site.py", str(ROOT / "scripts" / "docs_site.py")),
        encoding="utf-8",
    )
    done = build(tmp_path / "site", configuration=broken)
    assert done.returncode != 0
    assert done.stderr.count("WARNING") == 1
    assert said in done.stderr
