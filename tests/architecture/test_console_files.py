"""The console's copies of packages are those that the lock file names."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ROOT / "console" / "node_modules"
UPLOT = PACKAGES / "uplot" / "dist"
VENDORED = {
    "htmx.min.js": PACKAGES / "htmx.org" / "dist" / "htmx.min.js",
    "uPlot.iife.min.js": UPLOT / "uPlot.iife.min.js",
    "uPlot.min.css": UPLOT / "uPlot.min.css",
}
STATIC = ROOT / "agentcore" / "console" / "static"
MAX_BYTES = 300_000


def test_vendored_scripts_are_those_of_the_lock_file() -> None:
    assert {path.name for path in (STATIC / "vendor").iterdir()} == set(VENDORED)
    for name, original in VENDORED.items():
        assert (STATIC / "vendor" / name).read_bytes() == original.read_bytes(), "run: npm run vendor, in console/"


def test_the_bundle_is_small() -> None:
    assert sum(path.stat().st_size for path in STATIC.rglob("*") if path.is_file()) < MAX_BYTES
