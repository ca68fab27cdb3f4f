"""Storage size: bytes of a memory in the database, in the archive, and as plain text with its vector.

Imports a conversation for several agents into a new home, measures every relation of the service, prunes all
memories and measures the copies. Plain storage is the text in UTF-8 and the vector as 32-bit numbers,
unindexed. Agents of this size are searched exactly: the figures include no vector index.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from pathlib import Path
from typing import Any

from agentcore.memory.api import Caller
from agentcore.memory.manager import MemoryManager
from agentcore.memory.models import MemoryType
from agentcore.memory.params.archived import ArchivedParams
from agentcore.memory.params.memories import PruneParams, StoreBatchParams, StoreParams
from agentcore.runtime import Runtime
from benchmarks.ledger import append
from benchmarks.service import run, running_service

CONVERSATION = Path(__file__).resolve().parents[1] / "agentcore" / "cli" / "demo_data" / "conversation.jsonl"
BATCH = 250
SIZES = """
SELECT CASE WHEN c.relkind = 'i' THEN 'indexes' WHEN c.relname LIKE 'memories_p%' THEN 'memories'
            ELSE 'tables beside' END AS kind,
       sum(pg_relation_size(c.oid) + coalesce(
           (SELECT pg_total_relation_size(c.reltoastrelid) WHERE c.reltoastrelid <> 0), 0))::bigint AS bytes
  FROM pg_class c
 WHERE c.relkind IN ('r', 'i') AND c.relnamespace = 'public'::regnamespace
 GROUP BY 1"""


async def sizes(runtime: Runtime) -> dict[str, int]:
    """Returns the bytes of the tables with their TOAST, and of the indexes."""
    async with runtime.database.owner_transaction() as connection:
        rows = await (await connection.execute(SIZES)).fetchall()
    return {row["kind"]: int(row["bytes"]) for row in rows}


async def measure(file: Path, agents: int, embedder: str) -> dict[str, Any]:
    """Returns the figures of one conversation, stored once for each agent."""
    text = await asyncio.to_thread(file.read_text, encoding="utf-8")
    lines = [json.loads(line) for line in text.splitlines() if line.strip()]
    items = [
        StoreParams(content=line["text"], speaker=line.get("role"), session_id=line.get("session"), force=True)
        for line in lines
    ]
    async with running_service(None, embedding_model=embedder, maintenance_in_server=False) as service:
        parts = service.runtime.parts
        memories = [MemoryManager(parts, Caller(f"size-{number}")) for number in range(agents)]
        empty = await sizes(service.runtime)
        for memory in memories:
            for start in range(0, len(items), BATCH):
                await memory.store_batch(StoreBatchParams(items=items[start : start + BATCH]))
        full = await sizes(service.runtime)
        copies: list[int] = []
        for memory in memories:
            await memory.prune(PruneParams(memory_layer=MemoryType.EPISODIC, target=1.0))
            params: ArchivedParams | None = ArchivedParams(limit=1_000)
            while params is not None:
                page = await memory.archived(params)
                copies += [each.size_bytes for each in page.memories]
                following = page.next_cursor
                params = None if following is None else ArchivedParams(limit=1_000, cursor=following)
    count = len(items) * agents
    plain = sum(len(item.content.encode()) for item in items if item.content) / len(items) + 4 * 384
    archived = sum(copies) / len(copies)
    grown = {kind: round((full[kind] - empty[kind]) / count) for kind in full}
    return {
        "memories": count,
        "bytes_a_memory": {**grown, "database": sum(grown.values()), "archive": round(archived), "plain": round(plain)},
        "archive_share_of_database": round(archived / sum(grown.values()), 3),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--file", type=Path, default=CONVERSATION, help="lines of text, role and session")
    parser.add_argument("--agents", type=int, default=10, help="each gets the conversation once")
    parser.add_argument("--embedder", default="local", help="EMBEDDING_MODEL")
    options = parser.parse_args()
    figures = run(measure(options.file, options.agents, options.embedder))
    print(json.dumps(figures, indent=2))
    append("storage_size", {**vars(options), "file": options.file.name}, figures)
