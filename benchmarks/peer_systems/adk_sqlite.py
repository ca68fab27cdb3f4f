"""google-adk's SqliteMemoryService: words only, in process."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack

from driver import Options, Row, System, run, time_of
from google.adk.events.event import Event
from google.adk.memory import SqliteMemoryService
from google.genai.types import Content, Part

APP = "peers"


class AdkSqlite(System):
    async def open(self, options: Options, stack: AsyncExitStack) -> None:
        self.memory = SqliteMemoryService(options.file("adk_memory.db"))
        stack.push_async_callback(self.memory.close)

    async def store(self, user: str, rows: Sequence[Row]) -> None:
        events = [
            Event(
                id=row["id"],
                author=row["speaker"],
                timestamp=time_of(row).timestamp(),
                content=Content(parts=[Part(text=row["text"])]),
            )
            for row in rows
        ]
        await self.memory.add_events_to_memory(app_name=APP, user_id=user, events=events)

    async def search(self, user: str, query: Row, k: int) -> list[str]:
        found = await self.memory.search_memory(app_name=APP, user_id=user, query=query["text"])
        return [each.custom_metadata["event_id"] for each in found.memories][:k]


if __name__ == "__main__":
    run(AdkSqlite())
