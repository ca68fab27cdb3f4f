"""Changed facts: the labeled pairs by half, and a stream of them through the running service.

The pairs are judged by the rules alone. The stream comes from a generator that knows entity, attribute and
value of every fact: an answer is contradictory if it contains two values of one attribute of an entity,
independent of the service. It runs a quarter as long with free-form changes, and a tenth without
supersession.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from agentcore.memory.contradictions import judge
from agentcore.memory.statements.statements import RuleInput
from benchmarks.changing_facts import HALVES, KNOWN_WORDINGS, Facts, free_wordings
from benchmarks.ledger import append, commit, machine
from benchmarks.service import Service, run, running_service

PAIRS = Path(__file__).parent / "data" / "pairs.jsonl"
TABLE = Path(__file__).parent / "results" / "contradictions.md"
SEALED_PAIRS = """\
The sealed half was opened on 2026-11-22, after the rules were frozen: 62 of 69 contradicting pairs were
superseded (recall .899) and no other. Afterwards rules were changed for the service's tests and the
stream, not for a sealed pair. The plain wordings of the stream were in view: its first run had 45.2 %
contradictory answers. Since 7eacde3, a short correction supersedes nothing; that alone lowered the
recall to .783 (development: .941 to .882)."""
FREE_WORDINGS = """\
The author of the rules also wrote the free wordings. The sealed half was opened on 2026-11-22, after the
rules were frozen: 31 of 500 answers (6.2 %) were contradictory, 6 of 815 supersessions wrong. These
errors were corrected and the rules frozen again. Then the last set was written and opened: 102 of 500
(20.4 %), 21 of 807 wrong, most by an older rule ("works for" and "works as"). These were corrected, too,
and some words added. So the rules have seen every set below; only those two first openings measure unseen
wordings."""


def pairs() -> list[dict[str, Any]]:
    return [json.loads(line) for line in PAIRS.read_text(encoding="utf-8").splitlines()]


def verdict_of(pair: Mapping[str, Any]) -> str:
    sessions = ("s", "s" if pair["same_session"] else "t")
    old, new = (
        RuleInput(pair[side], datetime.fromisoformat(pair[f"{side}_at"]), pair[f"{side}_speaker"], None, session)
        for side, session in zip(("old", "new"), sessions, strict=True)
    )
    return judge(old, new).relation


def judged(half: str) -> dict[str, Any]:
    """Returns the verdicts by label over one half, with precision and recall of supersession."""
    verdicts: Counter[tuple[str, str]] = Counter()
    for pair in pairs():
        if int(pair["id"].rpartition("-")[2]) % 2 == HALVES.index(half):
            verdicts[pair["label"], verdict_of(pair)] += 1
    superseded = sum(count for (_, verdict), count in verdicts.items() if verdict == "superseding")
    right = verdicts["contradicting", "superseding"]
    all_contradicting = sum(count for (label, _), count in verdicts.items() if label == "contradicting")
    return {
        "pairs": sum(verdicts.values()),
        "precision": round(right / max(1, superseded), 4),
        "recall": round(right / all_contradicting, 4),
        "false_supersessions": superseded - right,
        "false_merges": sum(
            count for (label, verdict), count in verdicts.items() if verdict == "same" and label != "same"
        ),
        "verdicts": {f"{label}: {verdict}": count for (label, verdict), count in sorted(verdicts.items())},
    }


def contradictory(memories: list[dict[str, Any]]) -> bool:
    """Checks whether two of the memories state different values of one attribute of one entity."""
    values: dict[tuple[str, str], str] = {}
    for memory in memories:
        if memory["external_id"] is not None:
            entity, attribute, value = memory["external_id"].split("|")
            if values.setdefault((entity, attribute), value) != value:
                return True
    return False


async def streamed(
    service: Service,
    agent_id: str,
    retrievals: int,
    *,
    supersede: bool,
    wordings: Mapping[str, Sequence[str]] | None = None,
) -> dict[str, Any]:
    """Runs three stores per retrieval; counts contradictions, and current facts superseded by mistake."""
    facts = Facts(4, wordings)
    told: dict[str, str | None] = {}
    counts: Counter[str] = Counter()
    for _ in range(retrievals):
        for _ in range(3):
            params = facts.tell()
            stored = await service.call(agent_id, "memory.store", {**params, "supersede": supersede})
            told[stored["memory_id"]] = params.get("external_id")
            counts["superseded"] += len(stored["superseded"])
            counts["wrongly"] += sum(
                told[each] is not None and _of(told[each]) != _of(params.get("external_id"))
                for each in stored["superseded"]
            )
        query, about = facts.ask()
        asked = {"query": query, "k": 5, "min_fit": 0.0, "distinct": supersede}
        memories = (await service.call(agent_id, "memory.retrieve", asked))["memories"]
        counts["contradictory"] += contradictory(memories)
        wanted = "|".join((*about, facts.current[about]))
        counts["current"] += any(memory["external_id"] == wanted for memory in memories)
    return {
        "retrievals": retrievals,
        "stores": 3 * retrievals,
        "superseded": counts["superseded"],
        "wrongly_superseded": counts["wrongly"],
        "contradictory": counts["contradictory"],
        "contradictory_share": round(counts["contradictory"] / retrievals, 4),
        "current_value_found_share": round(counts["current"] / retrievals, 4),
    }


def _of(external_id: str | None) -> str:
    """Returns entity and attribute."""
    return (external_id or "").rpartition("|")[0]


async def streams(home: Path | None, retrievals: int, embedding_model: str) -> dict[str, Any]:
    """Runs the streams with and without supersession in one service."""
    settings: dict[str, Any] = {"embedding_model": embedding_model, "maintenance_in_server": False}
    async with running_service(home, **settings) as service:
        found: dict[str, Any] = {}
        for wording, wordings in streamed_wordings().items():
            for supersede in (True, False):
                name = f"{wording}, supersession {'on' if supersede else 'off'}"
                count = retrievals // (1 if not wordings else 4) if supersede else retrievals // 10
                found[name] = await streamed(service, name, count, supersede=supersede, wordings=wordings)
        return found


def streamed_wordings() -> dict[str, dict[str, list[str]]]:
    known = {attribute: [text] for attribute, text in KNOWN_WORDINGS.items()}
    freely = "one change in four worded freely"
    halves = {f"{freely}, {half} half": free_wordings(half) for half in HALVES}
    last = {f"{freely}, last set": free_wordings("last")}
    return {"plain wording": {}, f"{freely}, the seven known": known, **halves, **last}


def rows(found: Mapping[str, Any]) -> Iterator[str]:
    """Yields the lines of the results page."""
    yield "# Changed facts\n"
    yield "`make bench ARGS=contradictions`, on the pairs of `benchmarks/data/pairs.jsonl` and on a stream.\n"
    yield f"Commit {commit()}, {machine()['cpu']}, {machine()['cores']} cores.\n"
    yield "| Half | Pairs | Superseding: precision | recall | False supersessions | False merges |"
    yield "|---|---|---|---|---|---|"
    for half in HALVES:
        each = found[half]
        yield (
            f"| {half} | {each['pairs']} | {each['precision']:.3f} | {each['recall']:.3f} | "
            f"{each['false_supersessions']} | {each['false_merges']} |"
        )
    yield f"\n{SEALED_PAIRS}\n"
    yield "| Label: verdict | development | sealed |"
    yield "|---|---|---|"
    for name in sorted({*found["development"]["verdicts"], *found["sealed"]["verdicts"]}):
        yield f"| {name} | {' | '.join(str(found[half]['verdicts'].get(name, 0)) for half in HALVES)} |"
    if "stream" not in found:
        return
    yield f"\n{FREE_WORDINGS}"
    yield (
        "\n| Stream | Retrievals | Stores | Superseded | Wrongly superseded | Contradictory answers | "
        "Current value found |"
    )
    yield "|---|---|---|---|---|---|---|"
    for name, each in found["stream"].items():
        yield (
            f"| {name} | {each['retrievals']} | {each['stores']} | {each['superseded']} | "
            f"{each['wrongly_superseded']} | "
            f"{each['contradictory']} ({each['contradictory_share']:.1%}) | "
            f"{each['current_value_found_share']:.1%} |"
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--retrievals", type=int, default=1_000, help="0: the pairs alone")
    parser.add_argument("--embedding-model", default="local")
    parser.add_argument("--home", type=Path, default=None, help="keep the service's data here")
    options = parser.parse_args()
    found: dict[str, Any] = {half: judged(half) for half in HALVES}
    if options.retrievals:
        found["stream"] = run(streams(options.home, options.retrievals, options.embedding_model))
    page = "\n".join(rows(found)) + "\n"
    print(page)
    if options.retrievals:
        TABLE.write_text(page, encoding="utf-8")
        given = {"retrievals": options.retrievals, "embedding_model": options.embedding_model}
        append("contradictions", given, found)
    return 0
