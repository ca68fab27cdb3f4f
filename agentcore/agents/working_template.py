"""A working-memory template: named fields that an agent fills in and keeps, in one memory of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated

from pydantic import AfterValidator, Field, TypeAdapter, ValidationError

from agentcore.agents.scope import MemoryScope
from agentcore.errors import Conflict, InvalidParams, NotFound
from agentcore.memory.api import MemoryApi
from agentcore.memory.change_params import UpdateParams, Updates
from agentcore.memory.fencing import fenced
from agentcore.memory.keys import encode_segment
from agentcore.memory.models import FilledText, Identifier, MemoryRecord, MemoryType
from agentcore.memory.params import DeleteParams, ListParams, StoreParams

NAMESPACE = "working_template"
MAX_FIELDS, MAX_FIELD_CHARS = 32, 2_000
ATTEMPTS = 10

FieldName = Annotated[Identifier, Field(max_length=64), AfterValidator(str.strip)]
_FIELDS = TypeAdapter(Annotated[
    dict[FieldName, Annotated[FilledText, Field(max_length=500)]],
    Field(min_length=1, max_length=MAX_FIELDS)])


class WorkingTemplate:
    """What an agent always has at hand of a user or a session: at most 32 fields of 2,000 characters each.

    `fields` name each field and say what belongs into it. It is kept for the scope's user, namespace, session
    and task; what two processes fill in at the same time is all kept. It is pinned: no rule forgets it.
    """

    def __init__(self, memory: MemoryApi, fields: Mapping[str, str], scope: MemoryScope | None = None, *,
                 name: str = "template") -> None:
        """Raises InvalidParams for fields that cannot be."""
        try:
            self.fields = _FIELDS.validate_python(dict(fields))
        except ValidationError as cause:
            raise InvalidParams("fields: needs 1 to 32 short names, each described") from cause
        self._memory = memory
        self._scope = scope or MemoryScope()
        # A namespace for each scope; no segment of it can hold the sign between two.
        parts = (name, *(getattr(self._scope, part) or "" for part in MemoryScope.model_fields))
        self._place = f"{NAMESPACE}:{encode_segment('/'.join(encode_segment(part) for part in parts))}"

    async def values(self) -> dict[str, str]:
        """What is filled in, in the fields' order."""
        return self._values(await self._kept())

    async def text(self) -> str:
        """The template as Markdown, empty fields with what belongs into them."""
        return self._text(await self.values())

    async def prompt(self) -> str:
        """The same for a prompt, fenced as data."""
        return fenced(self._lines(await self.values()))

    async def fill(self, values: Mapping[str, str | None]) -> dict[str, str]:
        """Fill fields in, null or blank empties one; all that is filled in then.

        Raises InvalidParams for a field that the template does not have, and for a value that is too long.
        """
        told = self._checked(values)
        for _ in range(ATTEMPTS):
            kept = await self._kept()
            filled = {**self._values(kept), **told}
            ordered = {name: filled[name] for name in self.fields if filled.get(name)}
            try:
                if await self._keep(kept, ordered):
                    return ordered
            except (Conflict, NotFound):
                continue  # another process filled something in meanwhile: its fields are kept as well
        raise Conflict("The template changes faster than it can be filled in: try again.")

    def _checked(self, values: Mapping[str, str | None]) -> dict[str, str]:
        """The values by field, blank where one is emptied. Raises InvalidParams."""
        for name, value in values.items():
            if name not in self.fields:
                raise InvalidParams(f"there is no field {name!r}; there are {', '.join(self.fields)}")
            if value is not None and len(value) > MAX_FIELD_CHARS:
                raise InvalidParams(f"{name}: is longer than {MAX_FIELD_CHARS} characters")
        return {name: (value or "").strip() for name, value in values.items()}

    async def clear(self) -> None:
        """Forget what is filled in."""
        await self._memory.delete(DeleteParams(namespace=self._place, confirm=True))

    def instructions(self) -> str:
        """What to tell a model that fills the template in."""
        lines = "\n".join(f"- {name}: {meaning}" for name, meaning in self.fields.items())
        return (
            "You keep a working memory with these fields. Fill a field in as soon as you learn what belongs "
            f"into it, correct it when it changes, and leave the others alone:\n{lines}")

    async def _kept(self) -> Sequence[MemoryRecord]:
        """The memory, if there is one; more only where two processes made it at the same time."""
        page = await self._memory.list(ListParams(namespace=self._place, descending=False))
        return page.memories

    async def _keep(self, kept: Sequence[MemoryRecord], values: dict[str, str]) -> bool:
        """Whether the values stand in one memory now; else another process made one as well."""
        content, metadata = self._text(values), {"fields": values}
        if not kept:
            await self._memory.store(StoreParams(
                content=content, metadata=metadata, memory_type=MemoryType.SEMANTIC, namespace=self._place,
                user_id=self._scope.user_id, session_id=self._scope.session_id, pinned=True, force=True,
                supersede=False))
            return len(await self._kept()) == 1
        first, *others = kept
        await self._memory.update(UpdateParams(memory_id=first.memory_id, updates=Updates(
            content=content, metadata=metadata, if_version=first.version)))
        if others:
            await self._memory.delete(DeleteParams(memory_ids=[other.memory_id for other in others]))
        return True

    def _values(self, kept: Sequence[MemoryRecord]) -> dict[str, str]:
        held: dict[str, str] = {}
        for record in kept:
            held |= record.metadata.get("fields", {})
        return {name: held[name] for name in self.fields if held.get(name)}

    def _text(self, values: Mapping[str, str]) -> str:
        return "\n".join(self._lines(values))

    def _lines(self, values: Mapping[str, str]) -> list[str]:
        return [
            f"- {name}: {values[name]}" if name in values else f"- {name}: (empty: {meaning})"
            for name, meaning in self.fields.items()]
