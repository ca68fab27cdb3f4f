"""Retrieval on labelled conversations, through the whole product: recall of turns, by arm and by term.

The labelled sets are not part of the repository: `--data` names a directory with `*_dev.jsonl.gz` files, one
conversation a line, and `metrics.py`, which defines the measures. Every memory is stored with its own time,
speaker and session, every question asked at its own time; nothing is tuned here. FR-2, AC-2.
"""

from __future__ import annotations

import argparse
import gzip
import importlib.util
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from types import ModuleType
from typing import Any

from rich.progress import track

from agentcore.memory.api import Caller
from agentcore.memory.manager import MemoryManager
from agentcore.memory.params import RetrieveParams
from agentcore.memory.scoring import RetrievalWeights
from benchmarks.ledger import append
from benchmarks.service import Service, run, running_service

BATCH = 250
DEEPEST = 20
TERMS = tuple(each.name for each in fields(RetrievalWeights) if "_" not in each.name)
LEAST_WEIGHT = 1e-9
Row = dict[str, Any]


def loaded_metrics(directory: Path) -> ModuleType:
    """The directory's own definitions of recall and hits."""
    spec = importlib.util.spec_from_file_location("labelled_metrics", directory / "metrics.py")
    if spec is None or spec.loader is None:
        raise SystemExit(f"{directory} holds no metrics.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def conversations(path: Path) -> Iterator[Row]:
    """One conversation a line."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


async def remember(service: Service, agent_id: str, memories: Sequence[Row]) -> None:
    """Store a conversation, unless it is there already."""
    there = (await service.call(agent_id, "memory.count", {}))["count"]
    if there == len(memories):
        return
    for start in track(range(0, len(memories), BATCH), f"storing {agent_id}", transient=True):
        items = [
            {
                "content": each["text"],
                "speaker": each.get("speaker"),
                "session_id": each.get("session_id"),
                "timestamp": f"{each['timestamp']}Z",
                "external_id": each["id"],
                "force": True,
            }
            for each in memories[start : start + BATCH]
        ]
        kept = [{name: value for name, value in item.items() if value is not None} for item in items]
        answer = await service.call(agent_id, "memory.store_batch", {"items": kept})
        if not answer["success"]:
            raise RuntimeError(f"not all of {agent_id} was stored")


def variants() -> dict[str, RetrievalWeights]:
    """The whole ranking, each of its arms alone, and the whole without each of its terms."""
    whole = RetrievalWeights()
    alone = {
        f"{kept} alone": replace(
            whole, **{name: 1.0 if name == kept else LEAST_WEIGHT for name in TERMS}, assistant_share=1.0
        )
        for kept in ("similarity", "words")
    }
    without = {f"without {name}": replace(whole, **{name: LEAST_WEIGHT}) for name in TERMS}
    return {"fusion": whole, **alone, **without, "assistants in full": replace(whole, assistant_share=1.0)}


async def ask(service: Service, agent_id: str, question: Row, weights: RetrievalWeights) -> list[str]:
    """The external ids found, best first."""
    parts = service.runtime.parts
    parts = replace(parts, policy=replace(parts.policy, weights=weights))
    params: Row = {"query": question["text"], "k": DEEPEST}
    if question.get("asked_at"):
        params["asked_at"] = f"{question['asked_at']}Z"
    found = await MemoryManager(parts, Caller(agent_id)).retrieve(RetrieveParams.model_validate(params))
    return [str(memory.external_id) for memory in found.memories]


async def judged(
    service: Service, agents: Mapping[str, Row], weights: RetrievalWeights, metrics: ModuleType, every: int
) -> dict[str, float]:
    """The measures over the answerable questions of all conversations, in per cent.

    Of memories with the same words by the same speaker a search gives the newest alone: `R@10 by text` counts
    it for all of them.
    """
    sums: dict[str, list[float]] = {"R@5": [], "R@10": [], "R@20": [], "hit@3": [], "R@10 by text": []}
    for agent_id, conversation in agents.items():
        known = {each["id"]: f"{each.get('speaker')}: {each['text']}" for each in conversation["memories"]}
        for question in conversation["queries"][::every]:
            relevant = [each for each in question["relevant_ids"] if each in known]
            if not relevant or not question.get("answerable", True):
                continue
            ranked = await ask(service, agent_id, question, weights)
            for k in (5, 10, 20):
                sums[f"R@{k}"].append(metrics.recall_at_k(ranked, relevant, k))
            sums["hit@3"].append(metrics.hit_at_k(ranked, relevant, 3))
            said = [known[each] for each in ranked]
            sums["R@10 by text"].append(metrics.recall_at_k(said, {known[each] for each in relevant}, 10))
    return {name: round(100 * sum(values) / len(values), 1) for name, values in sums.items()}


async def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Store every set, ask every question under every variant; the measures."""
    metrics = loaded_metrics(options.data)
    figures: dict[str, Any] = {}
    async with running_service(options.home, maintenance_in_server=False) as service:
        for path in sorted(options.data.glob("*_dev.jsonl.gz")):
            name = path.name.removesuffix("_dev.jsonl.gz")
            if options.only and name not in options.only:
                continue
            agents = {f"{name}-{each['conversation_id']}": each for each in conversations(path)}
            for agent_id, conversation in agents.items():
                await remember(service, agent_id, conversation["memories"])
            await service.runtime.maintenance.round()
            chosen = variants() if options.ablate else {"fusion": RetrievalWeights()}
            for variant, weights in chosen.items():
                figures[f"{name}: {variant}"] = await judged(service, agents, weights, metrics, options.every)
                print(f"{name:<14} {variant:<22} {figures[f'{name}: {variant}']}", flush=True)
    return figures


def main() -> int:
    """Parse, measure, note."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="the directory of the labelled sets")
    parser.add_argument("--only", nargs="*", help="of these sets alone, by name")
    parser.add_argument("--ablate", action="store_true", help="also each arm alone and without each term")
    parser.add_argument("--every", type=int, default=1, help="ask every nth question")
    parser.add_argument("--home", type=Path, help="keep the filled home here, and use it again")
    options = parser.parse_args()
    figures = run(measure(options))
    noted = {name: value for name, value in vars(options).items() if name not in {"home", "data"}}
    append("retrieval_quality", noted, figures)
    return 0
