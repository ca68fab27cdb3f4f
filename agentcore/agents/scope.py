"""Which part of an agent's memory an agent's tools and turns act in."""

from __future__ import annotations

from typing import Any

from agentcore.memory.models import Identifier, MemoryRecord, Strict

# Where session memory keeps messages, which name no user.
SESSION_MESSAGES = "session_messages"


class MemoryScope(Strict):
    """Whose and which memories, beyond the token: the model can neither widen nor name it.

    Everything is read within `user_id` and `namespace` alone, and stored with all four.
    """

    user_id: Identifier | None = None
    namespace: Identifier | None = None
    session_id: Identifier | None = None
    task_id: Identifier | None = None

    def filters(self) -> dict[str, Any]:
        """The filters of a search."""
        return self.model_dump(include={"user_id", "namespace"}, exclude_none=True)

    def labels(self) -> dict[str, Any]:
        """What a store carries."""
        return self.model_dump(exclude_none=True)

    def holds(self, record: MemoryRecord) -> bool:
        """Whether the memory lies within it."""
        return all(getattr(record, name) == value for name, value in self.filters().items())
