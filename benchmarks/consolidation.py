"""Consolidation of labeled conversations: recall before, after, and with archived sources; bytes of rows.

Runs through JSON-RPC on the repository's own conversations; no parameter is tuned here. FR-4, NFR-5.1.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from agentcore.memory.parts import AccessQueue
from benchmarks.labelled import OWN_SETS, Conversation, Row, asked, conversations, remember
from benchmarks.ledger import append
from benchmarks.measures import means, measures, paired_interval
from benchmarks.service import Service, run, running_service

K = 20
BYTES = """
SELECT count(*) AS memories, sum(pg_column_size(m.*)) AS row_bytes,
       (SELECT sum(pg_column_size(l.*)) FROM memory_links l
         WHERE l.agent_id = ANY (%(agents)s)) AS link_bytes,
       (SELECT sum(size_bytes) FROM archived_memories a WHERE a.agent_id = ANY (%(agents)s)) AS archive_bytes
  FROM memories m WHERE m.agent_id = ANY (%(agents)s)
"""


def uncounted(service: Service) -> Service:
    """Returns the same service without access counts, so that questions are independent."""
    parts = replace(service.runtime.parts, accesses=AccessQueue())
    return Service(replace(service.runtime, parts=parts))


async def answers(service: Service, agents: Sequence[Conversation]) -> list[Row]:
    """Returns the measures of each answerable question; archived evidence counts as not found."""
    outcomes = []
    for agent in agents:
        for question in agent.answerable():
            found = await service.call(agent.agent_id, "memory.retrieve", asked(question, K))
            ranked = [str(each.get("external_id")) for each in found["memories"]]
            outcomes.append(measures(ranked, question["relevant_ids"]))
    return outcomes


async def stored_bytes(service: Service, agents: Sequence[Conversation]) -> Row:
    """Returns the bytes of the agents' rows, without indexes."""
    async with service.runtime.database.owner_transaction() as connection:
        values = {"agents": [each.agent_id for each in agents]}
        row = await (await connection.execute(BYTES, values)).fetchone()
    return {name: int(value or 0) for name, value in (row or {}).items()}


async def consolidated(service: Service, agents: Sequence[Conversation], show: int, **params: object) -> Row:
    """Consolidates every agent and returns counts of the results."""
    made: Row = {"clusters": 0, "sources": 0, "archived": 0}
    for agent in agents:
        complete = False
        while not complete:
            done = await service.call(agent.agent_id, "memory.consolidate", dict(params))
            complete = done["complete"]
            made["clusters"] += len(done["clusters"])
            made["sources"] += sum(len(each["source_ids"]) for each in done["clusters"])
            made["archived"] += done["archived_count"]
            for each in done["clusters"][:show]:
                print(f"\n{agent.agent_id}: {len(each['source_ids'])} memories\n{each['summary']}")
    return made


async def measured(options: argparse.Namespace) -> Row:
    agents = list(conversations(options.data))
    async with running_service(None) as service:
        for agent in agents:
            await remember(service.call, agent, lambda count: None)
        service = uncounted(service)
        before = await answers(service, agents)
        figures: Row = {"before": {**means(before), **await stored_bytes(service, agents)}}
        made = await consolidated(service, agents, options.show)
        after = await answers(service, agents)
        change = paired_interval([each["R@10"] for each in before], [each["R@10"] for each in after])
        figures["after"] = {
            **means(after),
            **await stored_bytes(service, agents),
            **made,
            "R@10 change interval": change,
        }
        archived = await consolidated(service, agents, 0, archive_sources=True)
        last = await answers(service, agents)
        figures["sources archived"] = {
            **means(last),
            **await stored_bytes(service, agents),
            "archived": archived["archived"],
        }
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=OWN_SETS / "talks.jsonl", help="a labelled set")
    parser.add_argument("--show", type=int, default=0, help="print so many clusters of each agent")
    options = parser.parse_args()
    figures = run(measured(options))
    for state, values in figures.items():
        print(f"\n{state}: " + ", ".join(f"{name} {value}" for name, value in values.items()))
    append("consolidation", {"data": options.data.name}, figures)
