"""multilingual-e5-small in torch with trainable adapters (LoRA, Hu et al. 2021), from the published file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from agentcore.memory.embeddings import EmbeddingKind
from agentcore.providers import e5
from agentcore.providers.bert_graphs import EPSILON, HEADS, HIDDEN
from agentcore.providers.e5 import PREFIXES, UnigramTokenizer
from agentcore.providers.e5_file import E5File, dequantized
from agentcore.providers.local_models import E5

LAYERS = 12
# The width of the input of a layer's dense parts, by their short names.
DENSE_INPUTS = {"q": 384, "k": 384, "v": 384, "ao": 384, "fi": 384, "fo": 1536}
PADDING = 1
# Alpha divided by the rank, in the terms of the paper.
SCALE = 2.0


class Adapted(nn.Module):
    """A frozen dense layer plus a trainable product of two matrices of this rank."""

    def __init__(self, weight: Tensor, bias: Tensor, rank: int) -> None:
        super().__init__()
        self.register_buffer("weight", weight)
        self.register_buffer("bias", bias)
        inputs, outputs = weight.shape[1], weight.shape[0]
        self.down = nn.Parameter(torch.randn(inputs, rank) / inputs**0.5) if rank else None
        self.up = nn.Parameter(torch.zeros(rank, outputs)) if rank else None

    def forward(self, rows: Tensor) -> Tensor:
        projected = functional.linear(rows, self.weight, self.bias)
        return projected if self.down is None else projected + SCALE * (rows @ self.down @ self.up)


class Layer(nn.Module):
    """One BERT layer with frozen weights of its own."""

    def __init__(self, file: E5File, number: int, rank: int, dropout: float) -> None:
        super().__init__()
        self.dense = nn.ModuleDict(
            {
                name: Adapted(
                    torch.tensor(dequantized(file.blocks(f"l{number}.{name}.w", inputs))),
                    _floats(file, f"l{number}.{name}.b"),
                    rank,
                )
                for name, inputs in DENSE_INPUTS.items()
            }
        )
        self.norms = nn.ModuleDict({name: _norm(file, f"l{number}.{name}") for name in ("aln", "oln")})
        self.dropout = nn.Dropout(dropout)

    def forward(self, hidden: Tensor, mask: Tensor) -> Tensor:
        texts, tokens, _ = hidden.shape
        heads = [self.dense[part](hidden).view(texts, tokens, HEADS, -1).transpose(1, 2) for part in "qkv"]
        attended = functional.scaled_dot_product_attention(*heads, attn_mask=mask).transpose(1, 2)
        mixed = self.dense["ao"](attended.reshape(texts, tokens, HIDDEN))
        hidden = self.norms["aln"](hidden + self.dropout(mixed))
        narrowed = self.dense["fo"](functional.gelu(self.dense["fi"](hidden)))
        return self.norms["oln"](hidden + self.dropout(narrowed))


class Encoder(nn.Module):
    """The embedder: centered mean of the last layer, of unit length. Adapters from layer `first` on."""

    def __init__(self, rank: int, first: int, dropout: float = 0.05) -> None:
        super().__init__()
        self.file = E5File(E5.verified_directory() / e5.WEIGHTS)
        self.tokenizer = UnigramTokenizer(self.file.vocabulary)
        self.words = self.file.blocks("emb.word", HIDDEN)
        self.layers = nn.ModuleList(
            Layer(self.file, number, rank if number >= first else 0, dropout) for number in range(LAYERS)
        )
        self.register_buffer("positions", _floats(self.file, "emb.pos").view(-1, HIDDEN))
        self.register_buffer("segment", _floats(self.file, "emb.type").view(2, HIDDEN)[:1])
        self.register_buffer("mean", torch.tensor(e5._mean()))
        self.norm = _norm(self.file, "emb.ln")

    def tokens(self, text: str, kind: EmbeddingKind, most: int) -> list[int]:
        """Returns the ids of a text with its prefix, `most` at most."""
        ids = self.tokenizer.encode(PREFIXES[kind] + text)
        return ids if len(ids) <= most else [*ids[: most - 1], e5.END]

    def encoded(self, tokens: Sequence[Sequence[int]], added: Tensor | float = 0.0) -> Tensor:
        """Returns the last layer, (texts, tokens, 384); `added` to the word embeddings."""
        ids = np.full((len(tokens), max(map(len, tokens))), PADDING, np.int64)
        for row, each in enumerate(tokens):
            ids[row, : len(each)] = each
        mask = torch.tensor(ids != PADDING)
        words = torch.tensor(dequantized(self.words[ids.reshape(-1)])).view(*ids.shape, HIDDEN)
        hidden = self.norm(words + self.positions[: ids.shape[1]] + self.segment + added)
        for layer in self.layers:
            hidden = layer(hidden, mask[:, None, None, :])
        return hidden

    def forward(self, tokens: Sequence[Sequence[int]]) -> Tensor:
        """Returns a row of unit length for each text."""
        hidden = self.encoded(tokens)
        lengths = torch.tensor([len(each) for each in tokens])
        shares = (torch.arange(hidden.shape[1]) < lengths[:, None]).float().unsqueeze(-1)
        pooled = functional.normalize((hidden * shares).sum(1) / shares.sum(1), dim=1)
        return functional.normalize(pooled - self.mean, dim=1)

    def adapter(self) -> dict[str, Any]:
        """Returns the matrices of the adapters, float16, by the names that `e5_graph` reads."""
        found = {}
        for number, layer in enumerate(self.layers):
            for name, dense in layer.dense.items():
                if dense.down is not None:
                    found[f"l{number}.{name}.down"] = dense.down.detach().numpy().astype(np.float16)
                    found[f"l{number}.{name}.up"] = (SCALE * dense.up.detach().numpy()).astype(np.float16)
        return found


def _floats(file: E5File, name: str) -> Tensor:
    return torch.tensor(np.array(file.floats(name)))


def _norm(file: E5File, name: str) -> nn.LayerNorm:
    norm = nn.LayerNorm(HIDDEN, eps=EPSILON)
    norm.weight = nn.Parameter(_floats(file, f"{name}.w"), requires_grad=False)
    norm.bias = nn.Parameter(_floats(file, f"{name}.b"), requires_grad=False)
    return norm
