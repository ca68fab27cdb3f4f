"""A running process follows the switch of a re-embedding."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from agentcore import assembly
from agentcore.config import Settings
from agentcore.database import Database
from agentcore.errors import AgentCoreError, ConfigurationError, DependencyUnavailable, StartupError
from agentcore.memory.embeddings import Embedder, EmbeddingKind, Vectors
from agentcore.memory.parts import MemoryParts
from agentcore.memory.query_samples import query_samples
from agentcore.memory.rows.vector_rows import KnownModel, model_in_force
from agentcore.readiness import WatchedEmbedder


class UnfitEmbedder:
    """Fails every request with the same message."""

    distinguishes_queries = False
    batch_size = 64
    parallel_requests = 1

    def __init__(self, model: str, dimensions: int, sentence: str) -> None:
        self.model = model
        self.dimensions = dimensions
        self._sentence = sentence

    async def open(self) -> None:
        """No resources to open."""

    async def close(self) -> None:
        """No resources to close."""

    async def embed(self, texts: Sequence[str], kind: EmbeddingKind) -> Vectors:
        raise DependencyUnavailable(self._sentence, data={"restart": True})


logger = logging.getLogger(__name__)
# Polling interval. Old vectors are removed much later than this after a switch.
WATCH_SECONDS = 1.0

OpenEmbedder = Callable[[WatchedEmbedder | None, Settings], Awaitable[Embedder | None]]
Adopt = Callable[[MemoryParts, WatchedEmbedder | None], None]


def settings_in_force(settings: Settings, found: KnownModel | None) -> Settings:
    """EMBEDDING_MODEL=none is kept."""
    if found is None or settings.embedding_model == "none":
        return settings
    return settings.model_copy(
        update={
            "embedding_model": found.provider,
            "embedding_model_name": found.model_name,
            "embedding_dimensions": found.dimensions,
        }
    )


def restart_sentence(found: KnownModel) -> str:
    return (
        f"The memories have vectors of {found.model} now, which this process cannot make: "
        f"start it again with {found.sentence()}."
    )


class ModelWatch:
    """Polls the model in force until stopped, and passes new parts to `adopt`; a running call keeps its parts."""

    def __init__(
        self,
        settings: Settings,
        database: Database,
        parts: Callable[[], MemoryParts],
        open_embedder: OpenEmbedder,
        adopt: Adopt,
        found: KnownModel | None,
    ) -> None:
        self._settings = settings
        self._database = database
        self._parts = parts
        self._open_embedder = open_embedder
        self._adopt = adopt
        self._followed = _followed(found)
        self._stopping = asyncio.Event()
        self._told: str | None = None

    def stop(self) -> None:
        self._stopping.set()

    async def run(self) -> None:
        """Polls until stopped; retries after a database error."""
        if self._settings.embedding_model == "none":
            return
        while not self._stopping.is_set():
            try:
                await asyncio.wait_for(self._stopping.wait(), WATCH_SECONDS)
            except TimeoutError:
                await self._look_or_wait()

    async def _look_or_wait(self) -> None:
        try:
            await self.look()
            self._told = None
        except AgentCoreError as failure:
            if failure.message != self._told:  # logged once per problem
                logger.warning("the model in force is not known for now: %s", failure.message)
            self._told = failure.message

    async def look(self) -> None:
        found = await model_in_force(self._database)
        if found is None or _followed(found) == self._followed:
            return
        settings = settings_in_force(self._settings, found)
        parts = self._parts()
        embedder, base_embedder = parts.embedder, None
        if parts.vector_model != found.model:
            base_embedder, embedder = await self._embedder(settings, found)
        samples = await query_samples(embedder, assembly.cache_of(settings))
        adopted = replace(
            parts,
            vectors=assembly.make_vectors(settings, self._database, found, parts.vectors.external),
            embedder=embedder,
            policy=assembly.make_policy(settings),
            vectors_moving=found.moving,
            samples=samples,
        )
        self._adopt(adopted, base_embedder)
        self._followed = _followed(found)
        logger.info("searches go by %s now", found.model)

    async def _embedder(self, settings: Settings, found: KnownModel) -> tuple[WatchedEmbedder | None, Embedder | None]:
        try:
            base_embedder = assembly.make_embedder(settings)
            return base_embedder, await self._open_embedder(base_embedder, settings)
        except (ConfigurationError, StartupError) as failure:
            sentence = restart_sentence(found)
            logger.error("%s", sentence, extra={"failure": failure.message})
            unfit = WatchedEmbedder(UnfitEmbedder(found.model, found.dimensions, sentence))
            unfit.problem = sentence
            return unfit, unfit


def _followed(found: KnownModel | None) -> tuple[str, bool] | None:
    return None if found is None else (found.model, found.moving)
