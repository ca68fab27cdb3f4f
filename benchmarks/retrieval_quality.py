"""Retrieval on labeled conversations through JSON-RPC: recall, precision, abstention; by retriever and term.

`--data` names files in the labeled format (benchmarks/labelled.py) or directories of them; the default is the
repository's own sets. Every memory is stored with its own time, speaker and session, every question asked at
its own time; no parameter is tuned here. FR-2, AC-2.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import httpx
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from agentcore.auth import mint_token
from agentcore.memory.parts import AccessQueue
from agentcore.memory.retrieval import TERMS
from agentcore.memory.scoring import RetrievalWeights
from benchmarks.labelled import OWN_SETS, Call, Conversation, Row, asked, conversations, files, foreign, remember
from benchmarks.ledger import append
from benchmarks.measures import interval, means, measures, paired_interval
from benchmarks.service import Service, run, running_service

DEEPEST = 20
SHOWN = 10
LEAST_WEIGHT = 1e-9
ARMS = ("similarity", "words")


@dataclass(frozen=True)
class Outcome:
    """The result of one question: its measures, abstention, and the tokens of its top ten."""

    category: str
    answerable: bool
    measures: Mapping[str, float]
    fit: float | None
    silent: bool
    shown_chars: int


def variants(ablate: bool) -> dict[str, RetrievalWeights]:
    """Returns the full ranking; with `ablate` also each retriever alone, and the ranking without each
    term."""
    whole = RetrievalWeights()
    chosen = {"fusion": whole}
    for arm in ARMS if ablate else ():
        only: Row = {name: 1.0 if name == arm else LEAST_WEIGHT for name in TERMS}
        chosen[f"{arm} alone"] = replace(whole, **only, assistant_share=1.0)
    for name in TERMS if ablate else ():
        least: Row = {name: LEAST_WEIGHT}
        chosen[f"without {name}"] = replace(whole, **least)
    if ablate:
        chosen["assistants in full"] = replace(whole, assistant_share=1.0)
    return chosen


def weighed(service: Service, weights: RetrievalWeights) -> Service:
    """Returns the same service with other weights and without access counts."""
    parts = service.runtime.parts
    parts = replace(parts, policy=replace(parts.policy, weights=weights), accesses=AccessQueue())
    return Service(replace(service.runtime, parts=parts))


async def judged(call: Call, agents: Sequence[Conversation], every: int, progress: Progress) -> list[Outcome]:
    """Runs every nth question of all conversations, answerable or not."""
    strange = foreign(agents)
    questions = [
        (each.agent_id, question, answerable)
        for each in agents
        for answerable, kind in (
            (True, each.answerable()),
            (False, each.unanswerable()),
            (False, strange.get(each.agent_id, [])),
        )
        for question in kind[::every]
    ]
    outcomes = []
    for agent_id, question, answerable in progress.track(questions, description="asking"):
        found = await call(agent_id, "memory.retrieve", asked(question, DEEPEST))
        ranked = [str(each.get("external_id")) for each in found["memories"]]
        outcomes.append(
            Outcome(
                str(question.get("category")),
                answerable,
                measures(ranked, question["relevant_ids"]) if answerable else {},
                found["receipt"].get("fit"),
                not ranked,
                sum(len(each["content"]) for each in found["memories"][:SHOWN]),
            )
        )
    return outcomes


def figures(outcomes: Sequence[Outcome]) -> Row:
    """Returns means over the answerable questions, the interval of R@10, and the abstention."""
    found = [each for each in outcomes if each.answerable]
    nothing = [each for each in outcomes if not each.answerable]
    values: Row = {
        "questions": len(found),
        **means([each.measures for each in found]),
        "R@10 interval": interval([each.measures["R@10"] for each in found]),
        "characters shown": round(sum(each.shown_chars for each in found) / len(found)),
        "silent on answerable": round(100 * sum(each.silent for each in found) / len(found), 1),
    }
    for name, of_kind in (
        ("unanswerable", [each for each in nothing if each.category != "foreign"]),
        ("foreign", [each for each in nothing if each.category == "foreign"]),
    ):
        if of_kind:
            values[f"{name} questions"] = len(of_kind)
            values[f"silent on {name}"] = round(100 * sum(each.silent for each in of_kind) / len(of_kind), 1)
    return values


def by_category(outcomes: Sequence[Outcome]) -> dict[str, Row]:
    """Returns the same for each category of answerable questions."""
    groups: dict[str, list[Mapping[str, float]]] = defaultdict(list)
    for each in outcomes:
        if each.answerable:
            groups[each.category].append(each.measures)
    return {name: {"questions": len(rows), **means(rows)} for name, rows in sorted(groups.items())}


def against(one: Sequence[Outcome], other: Sequence[Outcome]) -> tuple[float, float]:
    """Returns the paired interval of `other - one` in R@10."""
    first, second = ([each.measures["R@10"] for each in outcomes if each.answerable] for outcomes in (one, other))
    return paired_interval(first, second)


@asynccontextmanager
async def remote(url: str) -> AsyncIterator[Call]:
    """Connects to a running service, with tokens created from its secret (JWT_SECRET_KEY)."""
    secret = os.environ.get("JWT_SECRET_KEY")
    if not secret:
        raise SystemExit("--url needs JWT_SECRET_KEY, the secret of that service, to make each agent's token")
    async with httpx.AsyncClient(base_url=url, timeout=120) as client:

        async def call(agent_id: str, method: str, params: Row) -> Row:
            token = mint_token(secret, agent_id, ["memory:read", "memory:write"], 3_600, now=time.time())
            body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
            headers = {"authorization": f"Bearer {token}"}
            answer = (await client.post("/api/v1/jsonrpc", json=body, headers=headers)).json()
            if "error" in answer:
                raise RuntimeError(f"{method}: {answer['error']}")
            result: Row = answer["result"]
            return result

        yield call


def table(results: Mapping[str, Row]) -> str:
    columns = ("questions", "R@5", "R@10", "R@20", "hit@3", "P@5", "P@5 of best", "nDCG@10", "MRR")
    lines = ["| | " + " | ".join(columns) + " |", "|---" * (len(columns) + 1) + "|"]
    lines += [
        f"| {name} | " + " | ".join(str(row.get(column, "")) for column in columns) + " |"
        for name, row in results.items()
    ]
    return "\n".join(lines)


def _progress() -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return Progress(*columns, transient=True)


async def measure(options: argparse.Namespace) -> dict[str, Row]:
    """Stores every set, runs every question with every variant, and returns the figures."""
    paths = files(options.data or [OWN_SETS])
    if options.url:
        async with remote(options.url) as call:
            return await _measured(options, paths, {"fusion": call})
    async with running_service(options.home, maintenance_in_server=False) as service:
        calls = {name: weighed(service, weights).call for name, weights in variants(options.ablate).items()}
        return await _measured(options, paths, calls, service)


async def _measured(
    options: argparse.Namespace, paths: Sequence[Path], calls: Mapping[str, Call], service: Service | None = None
) -> dict[str, Row]:
    results: dict[str, Row] = {}
    for path in paths:
        agents = list(conversations(path))
        if options.only and agents[0].set_name not in options.only:
            continue
        outcomes: dict[str, list[Outcome]] = {}
        with _progress() as progress:
            task = progress.add_task("storing", total=sum(len(each.memories) for each in agents))
            advance = partial(progress.advance, task)
            for each in agents:
                await remember(calls["fusion"], each, advance)
            if service is not None:
                await service.settle()
            for variant, call in calls.items():
                outcomes[variant] = await judged(call, agents, options.every, progress)
        results |= _told(agents[0].set_name, outcomes, options.categories)
    return results


def _told(name: str, outcomes: Mapping[str, Sequence[Outcome]], categories: bool) -> dict[str, Row]:
    results = {f"{name}: {variant}": figures(each) for variant, each in outcomes.items()}
    arms = [variant for variant in outcomes if variant.endswith(" alone")]
    if arms:
        best = max(arms, key=lambda arm: results[f"{name}: {arm}"]["R@10"])
        results[f"{name}: fusion"]["gain over the best arm"] = against(outcomes[best], outcomes["fusion"])
    if categories:
        results |= {f"{name}: fusion, {category}": row for category, row in by_category(outcomes["fusion"]).items()}
    print(table(results), flush=True)
    for row, values in results.items():
        more = {key: value for key, value in values.items() if key not in measures(["a"], ["a"])}
        print(f"  {row}: {json.dumps(more)}", flush=True)
    return results


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, nargs="*", help="files or directories of labelled sets")
    parser.add_argument("--only", nargs="*", help="of these sets alone, by name")
    parser.add_argument("--ablate", action="store_true", help="also each arm alone and without each term")
    parser.add_argument("--categories", action="store_true", help="also the fusion by category of question")
    parser.add_argument("--every", type=int, default=1, help="ask every nth question")
    parser.add_argument("--home", type=Path, help="keep the filled home here, and use it again")
    parser.add_argument("--url", help="measure a running service; its secret is in JWT_SECRET_KEY")
    parser.add_argument("--markdown", type=Path, help="write the table there, too")
    options = parser.parse_args()
    results = run(measure(options))
    if options.markdown:
        options.markdown.write_text(table(results) + "\n", encoding="utf-8")
    noted = {name: value for name, value in vars(options).items() if name in {"only", "ablate", "every"}}
    append("retrieval_quality", noted, results)
    return 0
