"""The difficulty of ac2.jsonl.gz: BM25 alone and the local model alone, by category, as a Markdown table.

Usage: baselines.py. It is independent of the product's ranking. `--show ID` prints a query, its relevant
memories, and the top ten of both rankings.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import math
import tempfile
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agentcore.memory.embeddings import EmbedderOptions
from agentcore.memory.lexical import terms
from agentcore.providers.e5 import E5Embedder
from agentcore.providers.e5_file import HIDDEN
from agentcore.providers.local_models import E5

SET = Path(__file__).resolve().parent.parent / "ac2.jsonl.gz"
K1, B = 1.2, 0.75
K = 5
ALONE = ("BM25", "dense")

Table = Mapping[str, Any]
Scores = NDArray[np.float64]


def conversations() -> list[Table]:
    """Returns every agent of the set."""
    with gzip.open(SET, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def bm25(texts: Sequence[str], queries: Sequence[str]) -> Scores:
    """Returns a row per query: Robertson's formula with its usual constants, over stemmed words."""
    counts = [Counter(terms(text)) for text in texts]
    lengths = np.array([count.total() for count in counts], dtype=float)
    shrink = K1 * (1 - B + B * lengths / lengths.mean())
    scores = np.zeros((len(queries), len(texts)))
    for row, query in enumerate(queries):
        for term in set(terms(query)):
            frequency = np.array([count[term] for count in counts], dtype=float)
            found = np.count_nonzero(frequency)
            idf = math.log(1 + (len(texts) - found + 0.5) / (found + 0.5))
            scores[row] += idf * frequency * (K1 + 1) / (frequency + shrink)
    return scores


async def cosine(embedder: E5Embedder, texts: Sequence[str], queries: Sequence[str]) -> Scores:
    """Returns a row per query."""
    documents = np.asarray(await embedder.embed(texts, "document"), dtype=float)
    asked = np.asarray(await embedder.embed(queries, "query"), dtype=float)
    return np.asarray(asked @ documents.T)


async def rankings(directory: Path) -> list[tuple[Table, Table, Mapping[str, list[str]]]]:
    """Returns each query with its conversation and the ids of each ranking. The directory is scratch
    space."""
    ranked: list[tuple[Table, Table, Mapping[str, list[str]]]] = []
    embedder = E5Embedder(EmbedderOptions(model_name=E5.name, dimensions=HIDDEN, cache_directory=directory))
    await embedder.open()
    for conversation in conversations():
        ids = [memory["id"] for memory in conversation["memories"]]
        texts = [memory["text"] for memory in conversation["memories"]]
        asked = [query["text"] for query in conversation["queries"]]
        scores = dict(zip(ALONE, (bm25(texts, asked), await cosine(embedder, texts, asked)), strict=True))
        for row, query in enumerate(conversation["queries"]):
            order = {
                name: [ids[each] for each in np.argsort(-score[row], kind="stable")] for name, score in scores.items()
            }
            ranked.append((conversation, query, order))
    await embedder.close()
    return ranked


def table(ranked: Sequence[tuple[Table, Table, Mapping[str, list[str]]]]) -> str:
    """Returns P@5 as a share of the maximum that the labels allow, and hit@3, by category."""
    shares: dict[str, dict[str, list[tuple[float, float]]]] = defaultdict(lambda: defaultdict(list))
    for _, query, order in ranked:
        relevant = set(query["relevant_ids"])
        for name in ALONE if relevant else ():
            share = len(relevant & set(order[name][:K])) / min(K, len(relevant))
            hit = float(bool(relevant & set(order[name][:3])))
            for category in (query["category"], "all"):
                shares[category][name].append((share, hit))
    rows = [
        "| Category | Queries | BM25 P@5 of best | hit@3 | dense P@5 of best | hit@3 |",
        "|---|---|---|---|---|---|",
    ]
    for category in sorted(shares, key=lambda each: (each == "all", each)):
        means = [np.mean(shares[category][name], axis=0) for name in ALONE]
        figures = [f"{100 * value:.1f}" for mean in means for value in mean]
        rows.append(f"| {category} | {len(shares[category]['BM25'])} | {' | '.join(figures)} |")
    return "\n".join(rows)


def shown(conversation: Table, query: Table, order: Mapping[str, list[str]]) -> str:
    """Formats one query for inspection; `*` marks the relevant memories."""
    memories = {memory["id"]: memory for memory in conversation["memories"]}

    def line(each: str) -> str:
        mark = "*" if each in query["relevant_ids"] else " "
        said = memories[each]["text"].replace("\n", " // ")
        return f"  {mark} {each} {memories[each]['timestamp'][:10]} {memories[each]['speaker']}: {said}"

    parts = [f"{query['id']} {query['category']} {query['asked_at'][:10]}: {query['text']}"]
    for name, ids in (("relevant", query["relevant_ids"]), *((name, order[name][:10]) for name in ALONE)):
        parts += [f" {name}", *map(line, ids)]
    return "\n".join(parts)


def main() -> None:
    """Prints the table, or the requested queries."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--show", nargs="+", default=[], metavar="ID")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        ranked = asyncio.run(rankings(Path(directory)))
    if not options.show:
        print(table(ranked))
    for conversation, query, order in ranked:
        if query["id"] in options.show:
            print(shown(conversation, query, order), end="\n\n")


if __name__ == "__main__":
    main()
