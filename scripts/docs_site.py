"""The MkDocs hook: adds pages outside docs/, expands directories in the menu, rewrites links."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
DOCS = "docs/"
# The README is the first page.
OUTSIDE = (
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "LICENSE",
    "SECURITY.md",
    "clients/*/README.md",
    "benchmarks/results/*",
)
FRONT = {"README.md": "index.md"}
LINK = re.compile(r"(?<=\]\()(?!\w+:|#)([^)\s#]+)")
FENCED = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)


def outside() -> dict[str, str]:
    """Returns the paths in the repository and in the site."""
    found = (str(path.relative_to(ROOT)) for pattern in OUTSIDE for path in sorted(ROOT.glob(pattern)))
    return {place: FRONT.get(place, place) for place in found}


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    pages = [
        *(path.relative_to(config.docs_dir).as_posix() for path in Path(config.docs_dir).rglob("*.md")),
        *(uri for uri in outside().values() if uri.endswith(".md")),
    ]
    named = set(_pages_of(config.nav))
    config.nav = _written_out(config.nav, sorted(set(pages) - named))
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for place, page in outside().items():
        files.append(File.generated(config, page, abs_src_path=str(ROOT / place)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    places = outside()
    here = page.file.src_uri
    source = next((place for place, uri in places.items() if uri == here), DOCS + here)

    def link(found: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(source), found[1]))
        uri = places.get(target) or (target.removeprefix(DOCS) if target.startswith(DOCS) else None)
        return found[1] if uri is None else posixpath.relpath(uri, posixpath.dirname(here) or ".")

    parts = FENCED.split(markdown)
    return "".join(part if part.startswith("```") else LINK.sub(link, part) for part in parts)


def _pages_of(menu: Any) -> Iterator[str]:
    for entry in menu:
        for part in entry.values() if isinstance(entry, dict) else [entry]:
            yield from [FRONT.get(part, part)] if isinstance(part, str) else _pages_of(part)


def _written_out(menu: Any, left: list[str]) -> list[Any]:
    """Replaces each `directory/*` of the menu by its remaining pages, sorted by name."""
    entries: list[Any] = []
    for entry in menu:
        if isinstance(entry, dict):
            entries += [
                {title: _written_out(part, left) if isinstance(part, list) else part} for title, part in entry.items()
            ]
        elif entry.endswith("*"):
            entries += [page for page in left if posixpath.dirname(page) == posixpath.dirname(entry)]
        else:
            entries.append(FRONT.get(entry, entry))
    return entries
