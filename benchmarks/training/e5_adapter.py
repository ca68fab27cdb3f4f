"""Trains the adapter of the default embedder: `python -m benchmarks.training.e5_adapter`.

Needs torch, see requirements.txt. Contrastive learning (InfoNCE, van den Oord et al. 2018): of the texts of a
batch, a question's own text should have the highest cosine. Hard negatives are the nearest texts of the same
stream or conversation that do not answer. Other answers, including outdated ones, are no negatives: the
embedder finds the subject, the ranking the newest.

Writes agentcore/providers/e5_adapter.npz. New matrices make vectors incomparable with stored ones: rename the
model in agentcore/providers/local_models.py then.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from agentcore.memory.encoding import embedding_text
from agentcore.providers import e5
from benchmarks.training.e5_torch import Encoder

DATA = Path(__file__).resolve().parent.parent / "data"
RANK, FIRST_LAYER = 8, 4
EPOCHS, BATCH, RATE, WARM_UP, TEMPERATURE = 2, 32, 6e-4, 0.1, 0.05
HARD, HARD_OF = 2, 12
MAX_TOKENS = 64
SEED = 0


@dataclass(frozen=True)
class Example:
    """A question, texts that are or were its answer, and other texts."""

    question: str
    answers: Sequence[str]
    others: Sequence[str]


def _rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def relations() -> Iterator[Example]:
    """Yields the questions of the pairs of messages."""
    for path in sorted((DATA / "relations").glob("*.jsonl")):
        for row in _rows(path):
            pair = (row["earlier"], row["later"])
            both = row["about"] == "both" or row["relation"] == "changes"
            answers = pair if both else (row[row["about"]],)
            yield Example(row["question"], answers, [each for each in pair if each not in answers])


def streams() -> Iterator[Example]:
    """Yields the questions of five files of streams; the other messages of a stream do not answer.

    Training on all 16 files changed nothing beyond noise.
    """
    for path in sorted((DATA / "streams").glob("[a-e].jsonl")):
        rows = _rows(path)
        for question in (row for row in rows if row["type"] == "question" and row["current"]):
            answers = {*question["current"], *question["outdated"]}
            texts = {
                row["id"]: embedding_text(row["text"], None if row["speaker"] == "user" else row["speaker"])
                for row in rows
                if row["type"] == "message" and row["stream"] == question["stream"]
            }
            yield _example(question["text"], texts, answers)


def talks() -> Iterator[Example]:
    """Yields the answerable questions of the conversations."""
    for talk in _rows(DATA / "talks.jsonl"):
        texts = {row["id"]: embedding_text(row["text"], row.get("speaker")) for row in talk["memories"]}
        for question in talk["queries"]:
            if answers := texts.keys() & set(question["relevant_ids"]):
                yield _example(question["text"], texts, answers)


def _example(question: str, texts: dict[str, str], answers: set[str]) -> Example:
    return Example(
        question,
        [text for each, text in texts.items() if each in answers],
        [text for each, text in texts.items() if each not in answers],
    )


@torch.no_grad()
def vectors(model: Encoder, texts: Sequence[str], kind: Any) -> Tensor:
    """Returns a row for each text."""
    model.eval()
    order = sorted(range(len(texts)), key=lambda each: len(texts[each]))
    found = torch.empty(len(texts), 384)
    for start in range(0, len(order), 2 * BATCH):
        chunk = order[start : start + 2 * BATCH]
        found[chunk] = model([model.tokens(texts[each], kind, MAX_TOKENS) for each in chunk])
    return found


def with_hard_others(model: Encoder, examples: Sequence[Example]) -> list[Example]:
    """Keeps of each example's other texts the nearest to its question."""
    texts = list(dict.fromkeys(text for each in examples for text in each.others))
    place = {text: number for number, text in enumerate(texts)}
    stored = vectors(model, texts, "document")
    asked = vectors(model, [each.question for each in examples], "query")
    found = []
    for row, each in zip(asked, examples, strict=True):
        cosines = stored[[place[text] for text in each.others]] @ row
        nearest = torch.argsort(cosines, descending=True)[:HARD_OF].tolist()
        found.append(Example(each.question, each.answers, [each.others[number] for number in nearest]))
    return found


def loss_of(model: Encoder, batch: Sequence[Example]) -> Tensor:
    """Returns the loss of one batch; other answers to a question are left out of its denominator."""
    chosen = [random.choice(each.answers) for each in batch]
    hard = [text for each in batch for text in random.sample(each.others, min(HARD, len(each.others)))]
    texts = list(dict.fromkeys([*chosen, *hard]))
    asked = model([model.tokens(each.question, "query", MAX_TOKENS) for each in batch])
    stored = model([model.tokens(text, "document", MAX_TOKENS) for text in texts])
    cosines = asked @ stored.T / TEMPERATURE
    also = torch.tensor(
        [[text in each.answers and text != own for text in texts] for each, own in zip(batch, chosen, strict=True)]
    )
    target = torch.tensor([texts.index(own) for own in chosen])
    return functional.cross_entropy(cosines.masked_fill(also, -1e4), target)


def train(model: Encoder, examples: Sequence[Example]) -> None:
    """Trains the adapters with AdamW, a linear warm-up and a linear decay."""
    trained = [each for each in model.parameters() if each.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=RATE)
    steps = EPOCHS * (len(examples) // BATCH)
    rate = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min(1.0, step / (WARM_UP * steps)) * (steps - step) / steps
    )
    began = time.monotonic()
    for epoch in range(EPOCHS):
        model.train()
        order = random.sample(range(len(examples)), len(examples))
        losses = []
        for start in range(0, len(order) - BATCH + 1, BATCH):
            loss = loss_of(model, [examples[each] for each in order[start : start + BATCH]])
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(trained, 1.0)
            optimizer.step()
            rate.step()
            losses.append(loss.item())
        print(f"epoch {epoch + 1}: loss {np.mean(losses):.3f}, {time.monotonic() - began:.0f} s", flush=True)


def main() -> None:
    random.seed(SEED)
    torch.manual_seed(SEED)
    model = Encoder(RANK, FIRST_LAYER)
    examples = with_hard_others(model, [*relations(), *streams(), *talks()])
    print(f"{len(examples)} questions", flush=True)
    train(model, examples)
    place = Path(e5.__file__).with_name(e5.ADAPTER)
    np.savez(place, **model.adapter())
    print(f"{place.name}: {place.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
