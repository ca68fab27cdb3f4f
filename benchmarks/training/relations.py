"""Trains the classifier of pairs of messages: `python -m benchmarks.training.relations`.

Needs torch, see requirements.txt. A cross-encoder decides whether a later message changes a statement of an
earlier one, repeats it, or neither. Writes agentcore/providers/e5_relations.npz.
"""

from __future__ import annotations

import json
import random
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from agentcore.memory.encoding import embedding_text
from agentcore.providers import e5
from agentcore.providers.bert_graphs import HIDDEN
from agentcore.providers.e5 import END, MAX_PAIR_TOKENS, START
from benchmarks.training.e5_adapter import DATA, FIRST_LAYER, RANK, SEED, vectors
from benchmarks.training.e5_torch import Encoder
from benchmarks.training.held_out import HELD_OUT

CHANGES, REPEATS, NEITHER = range(3)
RELATIONS = {"changes": CHANGES, "repeats": REPEATS}
EPOCHS, BATCH, RATE, WARM_UP = 1, 32, 6e-4, 0.08
CLASS_WEIGHTS = (1.0, 1.0, 0.7)
NEAR = 8

Pair = tuple[str, str, int]


class Classifier(Encoder):
    """The encoder over two texts in one sequence; a head over its first token and the mean of each text."""

    def __init__(self) -> None:
        super().__init__(RANK, FIRST_LAYER, dropout=0.0)
        # Frozen: a gradient at the first layer would make each step a third slower.
        own = np.load(Path(e5.__file__).with_name(e5.RELATIONS_ADAPTER))
        self.register_buffer("second", torch.tensor(own["segment"], dtype=torch.float32))
        self.head = nn.Sequential(nn.Linear(3 * HIDDEN, 128), nn.Tanh(), nn.Dropout(0.1), nn.Linear(128, 3))

    def pair(self, earlier: str, later: str) -> tuple[list[int], int]:
        """Returns the ids of both texts, and where the second begins."""
        first, second = (self.tokenizer.encode(text)[1:-1][:MAX_PAIR_TOKENS] for text in (earlier, later))
        return [START, *first, END, END, *second, END], len(first) + 2

    def forward(self, pairs: Sequence[tuple[list[int], int]]) -> Tensor:
        """Returns the logits, a row for each pair."""
        longest = max(len(ids) for ids, _ in pairs)
        masks = torch.zeros(2, len(pairs), longest, 1)
        for row, (ids, split) in enumerate(pairs):
            masks[0, row, :split] = 1 / split
            masks[1, row, split : len(ids)] = 1 / (len(ids) - split)
        added = (masks[1] > 0) * self.second
        hidden = self.encoded([ids for ids, _ in pairs], added)
        return self.head(torch.cat([hidden[:, 0], (hidden * masks[0]).sum(1), (hidden * masks[1]).sum(1)], 1))


def pairs_of_relations() -> list[Pair]:
    """Returns the scenes of data/relations."""
    rows = [
        json.loads(line)
        for path in sorted((DATA / "relations").glob("*.jsonl"))
        for line in path.read_text(encoding="utf-8").splitlines()
    ]
    return [(row["earlier"], row["later"], RELATIONS.get(row["relation"], NEITHER)) for row in rows]


def pairs_of_streams(encoder: Encoder) -> tuple[list[Pair], list[Pair]]:
    """Returns training pairs and held-out pairs of the streams.

    Each message is paired with those it changes or repeats, and with the nearest earlier others. Excluded are
    the messages that those changed in turn, since the labels do not cover them.
    """
    messages = defaultdict(list)
    for path in sorted((DATA / "streams").glob("*.jsonl")):
        for row in map(json.loads, path.read_text(encoding="utf-8").splitlines()):
            if row["type"] == "message":
                messages[row["stream"]].append(row)
    learned: list[Pair] = []
    held_out: list[Pair] = []
    for stream, rows in messages.items():
        texts = {row["id"]: embedding_text(row["text"], row["speaker"]) for row in rows}
        stored = vectors(encoder, [*texts.values()], "document")
        found = _pairs(rows, texts, stored, every=stream in HELD_OUT)
        (held_out if stream in HELD_OUT else learned).extend(found)
    return learned, held_out


def _pairs(rows: Sequence[dict[str, Any]], texts: dict[str, str], stored: Tensor, *, every: bool) -> list[Pair]:
    ids, found, outdated = [*texts], [], defaultdict(set)
    for place, row in enumerate(rows[1:], 1):
        changed, repeated = set(row["changes"]), set(row["repeats"])
        unclear = set().union(*(outdated[each] for each in changed | repeated))
        outdated[row["id"]] = changed | unclear
        nearest = torch.argsort(stored[:place] @ stored[place], descending=True)[:NEAR].tolist()
        others = [ids[each] for each in nearest if ids[each] not in changed | repeated | unclear]
        chosen = others if every else [*others[:1], *random.sample(others[1:], min(1, len(others[1:])))]
        labels = [(CHANGES, changed), (REPEATS, repeated - changed), (NEITHER, chosen)]
        found += [(texts[each], texts[row["id"]], label) for label, of in labels for each in of]
    return found


def train(model: Classifier, pairs: Sequence[Pair]) -> None:
    """Trains adapters and head with AdamW; the head learns twice as fast."""
    head = [*model.head.parameters()]
    trained = [each for each in model.parameters() if each.requires_grad]
    body = [each for each in trained if all(each is not own for own in head)]
    optimizer = torch.optim.AdamW([{"params": body, "lr": RATE}, {"params": head, "lr": 2 * RATE}])
    steps = EPOCHS * (len(pairs) // BATCH)
    rate = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min(1.0, step / (WARM_UP * steps)) * (steps - step) / steps
    )
    weights, began = torch.tensor(CLASS_WEIGHTS), time.monotonic()
    tokens = [model.pair(earlier, later) for earlier, later, _ in pairs]
    for epoch in range(EPOCHS):
        model.train()
        losses = []
        for batch in _batches([len(ids) for ids, _ in tokens]):
            logits = model([tokens[each] for each in batch])
            target = torch.tensor([pairs[each][2] for each in batch])
            loss = functional.cross_entropy(logits, target, weight=weights)
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_([*body, *head], 1.0)
            optimizer.step()
            rate.step()
            losses.append(loss.item())
            if len(losses) % 50 == 0:
                print(f"  step {len(losses)}: loss {np.mean(losses[-50:]):.3f}", flush=True)
        print(f"epoch {epoch + 1}: loss {np.mean(losses):.3f}, {time.monotonic() - began:.0f} s", flush=True)


def _batches(lengths: Sequence[int]) -> list[list[int]]:
    """Returns batches of texts of about the same length, in random order."""
    order = random.sample(range(len(lengths)), len(lengths))
    sorted_: list[int] = []
    for start in range(0, len(order), 8 * BATCH):
        sorted_ += sorted(order[start : start + 8 * BATCH], key=lengths.__getitem__)
    batches = [sorted_[start : start + BATCH] for start in range(0, len(sorted_) - BATCH + 1, BATCH)]
    return random.sample(batches, len(batches))


@torch.no_grad()
def area_under_curve(model: Classifier, pairs: Sequence[Pair]) -> float:
    """Returns the probability that a change scores higher than another pair."""
    model.eval()
    tokens = [model.pair(earlier, later) for earlier, later, _ in pairs]
    found = torch.cat([model(tokens[start : start + BATCH]) for start in range(0, len(tokens), BATCH)])
    chances = found.softmax(1)[:, CHANGES].numpy()
    changes = np.array([label == CHANGES for _, _, label in pairs])
    return float((chances[changes][:, None] > chances[~changes][None]).mean())


def main() -> None:
    """Trains, judges on the held-out streams, and writes the weights."""
    random.seed(SEED)
    torch.manual_seed(SEED)
    learned, held_out = pairs_of_streams(Encoder(0, FIRST_LAYER))
    model, pairs = Classifier(), [*pairs_of_relations(), *learned]
    print(f"{len(pairs)} pairs, {len(held_out)} held out", flush=True)
    train(model, pairs)
    print(f"area under the curve, held-out streams: {area_under_curve(model, held_out):.3f}")
    own = {
        "segment": model.second,
        **{
            f"head.{number}.{part}": getattr(model.head[layer], part)
            for number, layer in enumerate((0, 3))
            for part in ("weight", "bias")
        },
    }
    place = Path(e5.__file__).with_name(e5.RELATIONS_ADAPTER)
    arrays = {name: each.detach().numpy().astype(np.float16) for name, each in own.items()}
    np.savez(place, **model.adapter(), **arrays)
    print(f"{place.name}: {place.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
