"""A working-memory template: named fields that an agent fills in, stored in one memory."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Annotated
from uuid import UUID

from pydantic import AfterValidator, Field, TypeAdapter, ValidationError, create_model

from agentcore.agents.scope import MemoryScope
from agentcore.errors import Conflict, InvalidParams, NotFound
from agentcore.memory.api import MemoryApi
from agentcore.memory.contexts.fencing import fenced
from agentcore.memory.keys import encode_segment
from agentcore.memory.models import FilledText, Identifier, MemoryRecord, MemoryType, Strict
from agentcore.memory.params.changes import UpdateParams, Updates
from agentcore.memory.params.memories import DeleteParams, ListParams, StoreParams

NAMESPACE = "working_template"
MAX_FIELDS, MAX_FIELD_CHARS = 32, 2_000
ATTEMPTS, FIRST_PAUSE_SECONDS = 10, 0.005
DEFAULT_NAME = "template"
# The values are in the metadata, so searches do not find the template.
PLACEHOLDER_CONTENT = "(...)"

FieldName = Annotated[Identifier, Field(max_length=64), AfterValidator(str.strip)]
_FIELDS = TypeAdapter(
    Annotated[dict[FieldName, Annotated[FilledText, Field(max_length=500)]], Field(min_length=1, max_length=MAX_FIELDS)]
)


def namespace_of(scope: MemoryScope, name: str = DEFAULT_NAME) -> str:
    """Returns the namespace of a scope's template, unique because encoded segments contain no "/"."""
    parts = (name, *(getattr(scope, part) or "" for part in MemoryScope.model_fields))
    return f"{NAMESPACE}:{encode_segment('/'.join(encode_segment(part) for part in parts))}"


def is_template(namespace: str | None) -> bool:
    """Whether the namespace is a template's, which tools neither find nor change."""
    return namespace is not None and namespace.startswith(f"{NAMESPACE}:")


class FillTemplate(Strict):
    """Fill in or correct your working memory as soon as you learn what belongs in one of its fields. Fields
    that you leave out stay as they are; an empty text empties one. The fields, and what belongs in each:
    """

    fields: Annotated[dict[str, str], Field(min_length=1, max_length=MAX_FIELDS)] = Field(
        description="The text of each field that changes, by the field's name."
    )


class WorkingTemplate:
    """Fields that an agent always has available for a user or session: up to 32 of 2,000 characters each.

    `fields` maps names to descriptions. The template belongs to the scope's user, namespace, session and
    task; concurrent changes of different fields are merged. It is pinned: no rule forgets it.
    """

    def __init__(
        self,
        memory: MemoryApi,
        fields: Mapping[str, str],
        scope: MemoryScope | None = None,
        *,
        name: str = DEFAULT_NAME,
    ) -> None:
        """Raises InvalidParams for invalid fields."""
        try:
            self.fields = _FIELDS.validate_python(dict(fields))
        except ValidationError as cause:
            raise InvalidParams("fields: needs 1 to 32 short names, each described") from cause
        self._memory = memory
        self._scope = scope or MemoryScope()
        self._cleared = 0
        self._namespace = namespace_of(self._scope, name)

    async def values(self) -> dict[str, str]:
        """Returns the filled fields, in the order of the fields."""
        return self._known(_stored(await self._read()))

    async def text(self) -> str:
        """Returns the template as Markdown, empty fields with their descriptions."""
        return "\n".join(self._lines(await self.values()))

    async def prompt(self) -> str:
        """Returns the template for a prompt, fenced as data."""
        return fenced(self._lines(await self.values()))

    async def fill(self, values: Mapping[str, str | None]) -> dict[str, str]:
        """Fills in fields (null or blank empties one); returns all filled fields.

        Stored fields that this template does not have are kept: another process may have a newer version of it.
        Raises InvalidParams for an unknown field or a value that is too long, Conflict if all retries fail.
        """
        told = self._checked(values)
        for attempt in range(ATTEMPTS):
            if attempt:
                await asyncio.sleep(FIRST_PAUSE_SECONDS * 2 ** (attempt - 1))
            kept = await self._read()
            fields = {**_stored(kept), **told}
            filled = self._known(fields)
            others = {name: value for name, value in fields.items() if name not in self.fields}
            # If another process changed it concurrently, retry and merge its fields.
            with suppress(Conflict, NotFound):
                if kept is None:
                    await self._create(filled | others)
                else:
                    await self._change(kept.memory_id, kept.version, filled | others)
                return filled
        raise Conflict("The template changes faster than it can be filled in: try again.")

    def arguments(self) -> type[FillTemplate]:
        """Returns the arguments of the tool that fills in this template."""
        fields = "; ".join(f"{name}: {meaning}" for name, meaning in self.fields.items())
        return create_model("FillTemplate", __base__=FillTemplate, __doc__=f"{FillTemplate.__doc__} {fields}.")

    def _checked(self, values: Mapping[str, str | None]) -> dict[str, str]:
        for name, value in values.items():
            if name not in self.fields:
                raise InvalidParams(f"there is no field {name!r}; there are {', '.join(self.fields)}")
            if value is not None and len(value) > MAX_FIELD_CHARS:
                raise InvalidParams(f"{name}: is longer than {MAX_FIELD_CHARS} characters")
        return {name: (value or "").strip() for name, value in values.items()}

    async def clear(self) -> None:
        """Deletes all values."""
        await self._memory.delete(DeleteParams(namespace=self._namespace, confirm=True))

    def instructions(self) -> str:
        """Returns the instructions for a model that fills in the template."""
        lines = "\n".join(f"- {name}: {meaning}" for name, meaning in self.fields.items())
        return (
            "You keep a working memory with these fields. Fill a field in as soon as you learn what belongs "
            f"in it, correct it when it changes, and leave the others alone:\n{lines}"
        )

    async def _read(self) -> MemoryRecord | None:
        page = await self._memory.list(ListParams(namespace=self._namespace, descending=False, consistent=True))
        return next(iter(page.memories), None)

    async def _create(self, values: dict[str, str]) -> None:
        """Creates one memory, also concurrently, by an idempotency key; a key whose memory was cleared is followed
        by the next.
        """
        while True:
            made = await self._memory.store(
                StoreParams(
                    content=PLACEHOLDER_CONTENT,
                    metadata={"fields": {}},
                    memory_type=MemoryType.SEMANTIC,
                    pinned=True,
                    force=True,
                    supersede=False,
                    idempotency_key=f"{self._namespace}:{self._cleared}",
                    **(self._scope.labels() | {"namespace": self._namespace}),
                )
            )
            if made.memory_id is None:
                raise InvalidParams(made.reason or "The template was rejected.")
            try:
                return await self._change(made.memory_id, 1, values)
            except NotFound:
                self._cleared += 1

    async def _change(self, memory_id: UUID, version: int, values: dict[str, str]) -> None:
        await self._memory.update(
            UpdateParams(memory_id=memory_id, updates=Updates(metadata={"fields": values}, if_version=version))
        )

    def _known(self, fields: Mapping[str, str]) -> dict[str, str]:
        return {name: fields[name] for name in self.fields if fields.get(name)}

    def _lines(self, values: Mapping[str, str]) -> list[str]:
        return [
            f"- {name}: {values[name]}" if name in values else f"- {name}: (empty: {meaning})"
            for name, meaning in self.fields.items()
        ]


def _stored(kept: MemoryRecord | None) -> dict[str, str]:
    return {} if kept is None else dict(kept.metadata.get("fields", {}))
