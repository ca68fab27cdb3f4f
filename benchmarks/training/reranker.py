"""Trains a cross-encoder that orders messages by a question: `python -m benchmarks.training.reranker FILE`.

Needs torch, see requirements.txt. The first LAYERS layers of multilingual-e5-small with adapters read both
texts together. Listwise loss (Cao et al. 2007): of a message that answers and hard negatives of the same
stream, the answer is to have the highest score. Outdated answers are no negatives.
"""

from __future__ import annotations

import itertools
import json
import random
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from agentcore.memory.encoding import embedding_text
from agentcore.providers import e5_relations
from agentcore.providers.bert_graph import HIDDEN
from agentcore.providers.e5 import END, START
from benchmarks.training.e5_adapter import DATA, SEED, Example, with_hard_others
from benchmarks.training.e5_torch import Encoder
from benchmarks.training.relations import HELD_OUT

LAYERS, RANK, FIRST_LAYER = 6, 16, 1
EPOCHS, BATCH, OTHERS, RATE, WARM_UP = 2, 8, 3, 6e-4, 0.1
QUESTION_TOKENS, MESSAGE_TOKENS = 32, 64


class Reranker(Encoder):
    """Six layers over question and message in one sequence; a score from the first token and both means."""

    def __init__(self) -> None:
        super().__init__(RANK, FIRST_LAYER, dropout=0.0)
        self.layers = self.layers[:LAYERS]
        own = np.load(Path(e5_relations.__file__).with_name(e5_relations.ADAPTER))
        self.register_buffer("second", torch.tensor(own["segment"], dtype=torch.float32))
        self.head = nn.Sequential(nn.Linear(3 * HIDDEN, 128), nn.Tanh(), nn.Linear(128, 1))

    def pair(self, question: str, message: str) -> tuple[list[int], int]:
        """Returns the ids of both texts, and where the second begins."""
        first = self.tokenizer.encode(question)[1:-1][:QUESTION_TOKENS]
        second = self.tokenizer.encode(message)[1:-1][:MESSAGE_TOKENS]
        return [START, *first, END, END, *second, END], len(first) + 2

    def forward(self, pairs: Sequence[tuple[list[int], int]]) -> Tensor:
        """Returns a score for each pair."""
        longest = max(len(ids) for ids, _ in pairs)
        masks = torch.zeros(2, len(pairs), longest, 1)
        for row, (ids, split) in enumerate(pairs):
            masks[0, row, :split] = 1 / split
            masks[1, row, split : len(ids)] = 1 / (len(ids) - split)
        hidden = self.encoded([ids for ids, _ in pairs], (masks[1] > 0) * self.second)
        pooled = torch.cat([hidden[:, 0], (hidden * masks[0]).sum(1), (hidden * masks[1]).sum(1)], 1)
        return self.head(pooled)[:, 0]


def questions() -> Iterator[Example]:
    """Yields the questions of the streams to learn from.

    Messages that change or repeat an answer, or that an answer changes or repeats, are left out: they may
    answer, too.
    """
    rows = [json.loads(line) for path in sorted((DATA / "streams").glob("*.jsonl"))
            for line in path.read_text(encoding="utf-8").splitlines()]
    for stream, grouped in itertools.groupby(rows, key=lambda row: row["stream"]):
        own = list(grouped)
        messages = [row for row in own if row["type"] == "message"]
        links = [(row["id"], other) for row in messages for other in (*row["changes"], *row["repeats"])]
        texts = {row["id"]: embedding_text(row["text"], row["speaker"]) for row in messages}
        for row in own:
            if row["type"] == "question" and row["current"] and stream not in HELD_OUT:
                answers = {*row["current"], *row["outdated"]}
                related = {each for link in links if not answers.isdisjoint(link) for each in link}
                others = [text for each, text in texts.items() if each not in answers | related]
                yield Example(row["text"], [texts[each] for each in sorted(answers)], others)


def groups(examples: Sequence[Example]) -> list[tuple[str, list[str]]]:
    """Returns each question with one answer, then OTHERS hard negatives."""
    return [
        (each.question, [random.choice(each.answers), *random.sample(each.others, OTHERS)])
        for each in examples
        if len(each.others) >= OTHERS
    ]


def train(model: Reranker, examples: Sequence[Example]) -> None:
    """Trains adapters and head with AdamW."""
    trained = [each for each in model.parameters() if each.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=RATE)
    steps = EPOCHS * (len(examples) // BATCH)
    rate = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min(1.0, step / (WARM_UP * steps)) * max(0, steps - step) / steps
    )
    began, losses = time.monotonic(), []
    for _ in range(EPOCHS):
        model.train()
        chosen = groups(examples)
        random.shuffle(chosen)
        for start in range(0, len(chosen) - BATCH + 1, BATCH):
            batch = chosen[start : start + BATCH]
            scores = model([model.pair(question, text) for question, texts in batch for text in texts])
            loss = functional.cross_entropy(scores.view(BATCH, -1), torch.zeros(BATCH, dtype=torch.long))
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(trained, 1.0)
            optimizer.step()
            rate.step()
            losses.append(loss.item())
            if len(losses) % 50 == 0:
                print(f"step {len(losses)} of {steps}: loss {np.mean(losses[-50:]):.3f}, "
                      f"{time.monotonic() - began:.0f} s", flush=True)


def main() -> None:
    """Trains and writes the state of adapters and head."""
    random.seed(SEED)
    torch.manual_seed(SEED)
    examples = with_hard_others(Encoder(0, 0), list(questions()))
    print(f"{len(examples)} questions", flush=True)
    model = Reranker()
    train(model, examples)
    torch.save({name: each for name, each in model.state_dict().items()
                if "down" in name or "up" in name or "head" in name}, sys.argv[1])


if __name__ == "__main__":
    main()
