"""A network with its tokenizer: what force-decoding, alignment and search need of a model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from kster.model.family import Family
from kster.model.layers import Precision
from kster.model.network import Network
from kster.model.tokenizer import Tokenizer


class FrozenModel:
    """The parts of a loaded checkpoint. `BaseModel` loads one and force-decodes with it."""

    def __init__(
        self,
        name: str,
        directory: Path,
        network: Network,
        tokenizer: Tokenizer,
        family: Family,
        fingerprint: str,
        languages: tuple[str | None, str | None],
    ) -> None:
        self.name = name
        self.directory = directory  # where the checkpoint lies
        self.network = network
        self.tokenizer = tokenizer
        self.layout = family
        self.family = family.name
        self.fingerprint = fingerprint
        self.source_lang, self.target_lang = languages
        config = network.config
        self.dimension: int = config.d_model
        self.vocabulary_size: int = config.output_size
        self.eos_id: int = config.eos_token_id
        self.pad_id: int = config.pad_token_id
        # The longest sequence a side may have, end of sentence included; the decoder also reads its prefix.
        self.max_length: int = config.max_position_embeddings - len(family.prefix)

    @property
    def device(self) -> torch.device:
        """Where the model runs."""
        return self.network.device

    @property
    def precision(self) -> Precision:
        """What products are computed in."""
        return self.network.precision

    @property
    def dtype(self) -> torch.dtype:
        """The type of states, and so of queries."""
        return self.network.dtype

    def tokenise_source(self, texts: Sequence[str]) -> list[list[int]]:
        """Tokenise source texts.

        Args:
            texts: Source texts.

        Returns:
            The token ids of each text, end of sentence included.
        """
        return (
            self.tokenizer.source_ids([self.layout.source_prefix + text for text in texts]) if texts else []
        )

    def tokenise_target(self, texts: Sequence[str]) -> list[list[int]]:
        """Tokenise target texts.

        Args:
            texts: Target texts.

        Returns:
            The token ids of each text, end of sentence included, without the language token that some models
            start with.
        """
        return self.tokenizer.target_ids(texts) if texts else []

    def detokenise(self, ids: Sequence[Sequence[int]]) -> list[str]:
        """The texts that target tokens stand for.

        Args:
            ids: Rows of target token ids.

        Returns:
            The text of each row, without special tokens.
        """
        return [self.tokenizer.text(row) for row in ids]

    def token_text(self, token: int) -> str:
        """A token as it stands in the vocabulary.

        Args:
            token: Its id.

        Returns:
            Its text; `▁` marks the beginning of a word.
        """
        return self.tokenizer.token(token)

    def output_log_probs(self, hidden: Tensor, tokens: Tensor, log_normaliser: Tensor) -> Tensor:
        """log p_m of chosen tokens without the whole softmax.

        Args:
            hidden: (n, d) final decoder states.
            tokens: (n, k) token ids.
            log_normaliser: (n,), as `force_decode` gives it.

        Returns:
            (n, k) float32.
        """
        rows = self.network.output_embedding[tokens].float()  # (n, k, d)
        logits = torch.einsum("nkd,nd->nk", rows, hidden.to(rows))  # (n, k)
        if self.network.output_bias is not None:
            logits = logits + self.network.output_bias[tokens].float()
        return logits - log_normaliser.to(logits)[:, None]
