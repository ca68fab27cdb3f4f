"""The revisions that are read without Alembic are those of Alembic, and a start does not import it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from alembic.script import ScriptDirectory

from agentcore import migration
from agentcore.errors import StartupError

OF_MIGRATIONS = {"agentcore.migration_runner", "alembic", "mako", "sqlalchemy"}


def test_the_revisions_of_the_file_names_are_those_of_the_scripts() -> None:
    scripts = ScriptDirectory(str(migration.SCRIPTS))
    newest_first = [script.revision for script in scripts.walk_revisions()]
    assert list(migration.revisions()) == newest_first[::-1]
    assert migration.head_revision() == scripts.get_current_head()


def test_an_installation_without_migrations_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(migration, "SCRIPTS", tmp_path)
    migration.revisions.cache_clear()
    with pytest.raises(StartupError, match="install agentcore again"):
        migration.head_revision()


@pytest.mark.parametrize("module", ["agentcore.cli.serve", "agentcore.cli.operate", "agentcore.agents"])
def test_what_starts_a_service_imports_nothing_of_the_migrations(module: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", f"import sys, {module}; print(*sys.modules)"],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert set(done.stdout.split()) & OF_MIGRATIONS == set()
