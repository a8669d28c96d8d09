"""A base translation model: a Hugging Face directory, loaded, with the few verbs the rest of KSTER needs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
import transformers
from torch import Tensor

from kster.errors import KsterError
from kster.model.family import Family, family_of, require_supported
from kster.model.fingerprint import fingerprint_of
from kster.model.forcing import ForcedSentence, force_decode
from kster.model.loading import load_network, load_tokenizer, model_type_of, read_config, weight_files
from kster.model.marian_tokens import MarianTokens
from kster.text.languages import is_one_language, match_rank

transformers.logging.disable_progress_bar()


class BaseModel:
    """A frozen translation model and its tokenizer.

    Load one with `BaseModel.load("models/en-de")` or any Marian, M2M100 or NLLB hub id. The network is in
    evaluation mode and never trained here (see `kster.training` for that).
    """

    def __init__(
        self,
        name: str,
        network: Any,
        tokenizer: Any,
        family: Family,
        fingerprint: str,
        languages: tuple[str | None, str | None],
    ) -> None:
        self.name = name
        self.network = network
        self.tokenizer = tokenizer
        # Tokenizers switch between languages, and the tap hooks into the network: one thread at a time each.
        # Two locks, so that text need not wait for a batch that is being force-decoded.
        self.tokenizer_lock, self.tap_lock = threading.RLock(), threading.RLock()
        self._source_tokens = self._target_tokens = None
        if family.name == "marian":
            self._source_tokens = MarianTokens(tokenizer, target=False)
            self._target_tokens = MarianTokens(tokenizer, target=True)
        self.layout = family
        self.family = family.name
        self.fingerprint = fingerprint
        self.source_lang, self.target_lang = languages
        config = network.config
        self.dimension: int = config.d_model
        self.vocabulary_size: int = network.get_output_embeddings().weight.shape[0]
        self.eos_id: int = config.eos_token_id
        self.pad_id: int = config.pad_token_id
        # The longest sequence a side may have, end of sentence included; the decoder also reads its prefix.
        self.max_length: int = config.max_position_embeddings - len(family.prefix)

    @classmethod
    def load(
        cls,
        name: str | Path,
        *,
        device: str | torch.device = "auto",
        dtype: torch.dtype | None = None,
        source_lang: str | None = None,
        target_lang: str | None = None,
    ) -> BaseModel:
        """Load a checkpoint from a directory or by hub id.

        device: "auto" takes a GPU when there is one. dtype: float32 on the CPU and float16 on a GPU unless
        given. Languages are read from the tokenizer where it knows them; multilingual models need both.
        Weights are read from safetensors, or from a `pytorch_model.bin` that holds nothing but tensors: what
        could run code is refused.
        """
        directory = _resolve(str(name))
        place = _choose_device(device)
        dtype = dtype or (torch.float16 if place.type == "cuda" else torch.float32)
        require_supported(model_type_of(directory), str(name))
        config = read_config(directory)
        tokenizer = load_tokenizer(directory, config)
        source, target = _languages(str(name), tokenizer, source_lang, target_lang)
        family = family_of(config, tokenizer, source, target)
        network = load_network(directory, dtype)
        network = network.to(place).eval().requires_grad_(False)
        if network.device.type == "cuda":
            # cuDNN plans attention anew for every shape, 15 ms each; sentences come in hundreds of shapes.
            torch.backends.cuda.enable_cudnn_sdp(False)
        fingerprint = fingerprint_of(
            directory, (source, target) if family.name == "m2m_100" else (None, target)
        )
        return cls(str(name), network, tokenizer, family, fingerprint, (source, target))

    def save(self, directory: str | Path) -> None:
        """Write the checkpoint as a Hugging Face directory (safetensors)."""
        self.network.save_pretrained(directory)
        self.tokenizer.save_pretrained(directory)

    @property
    def device(self) -> torch.device:
        return self.network.device

    @property
    def dtype(self) -> torch.dtype:
        return self.network.dtype

    # Text and tokens ---------------------------------------------------------------------------------

    def tokenise_source(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids per text, end of sentence included."""
        if not texts:
            return []
        prefixed = [self.layout.source_prefix + text for text in texts]
        with self.tokenizer_lock:
            if self._source_tokens is not None:
                return self._source_tokens.ids(prefixed)
            return self.tokenizer(prefixed, truncation=False)["input_ids"]

    def tokenise_target(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids per text, end of sentence included, without the language token some models start with."""
        if not texts:
            return []
        with self.tokenizer_lock:
            if self._target_tokens is not None:
                return self._target_tokens.ids(texts)
            # Where the language token stands differs between tokenizers; here it is not wanted at all.
            rows = self.tokenizer(text_target=list(texts), truncation=False, add_special_tokens=False)
        return [[*row, self.eos_id] for row in rows["input_ids"]]

    def detokenise(self, ids: Sequence[Sequence[int]]) -> list[str]:
        with self.tokenizer_lock:
            return [self.tokenizer.decode(list(row), skip_special_tokens=True) for row in ids]

    def token_text(self, token: int) -> str:
        """One token as it stands in the vocabulary (`▁` marks a word's beginning)."""
        return self.tokenizer.convert_ids_to_tokens([token])[0]

    # The network -------------------------------------------------------------------------------------

    def force_decode(
        self,
        pairs: Iterable[tuple[str, str]],
        *,
        batch_tokens: int | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> Iterator[ForcedSentence]:
        """Run the decoder along given translations; see `kster.model.forcing`."""
        return force_decode(self, pairs, batch_tokens=batch_tokens, progress=progress)

    def output_projection(self) -> tuple[Tensor, Tensor | None]:
        """The output embedding (V, d) and its bias (V,), if the model has one."""
        bias = getattr(self.network, "final_logits_bias", None)
        return self.network.get_output_embeddings().weight, None if bias is None else bias[0]

    def output_log_probs(self, hidden: Tensor, tokens: Tensor, log_normaliser: Tensor) -> Tensor:
        """log p_m of chosen tokens without the whole softmax.

        hidden: (n, d) final decoder states; tokens: (n, k); log_normaliser: (n,). Returns (n, k) float32.
        """
        embedding, bias = self.output_projection()
        rows = embedding[tokens].float()  # (n, k, d)
        logits = torch.einsum("nkd,nd->nk", rows, hidden.to(rows))  # (n, k)
        if bias is not None:
            logits = logits + bias[tokens].float()
        return logits - log_normaliser.to(logits)[:, None]


def _resolve(name: str) -> Path:
    """The local directory of a checkpoint: given directly, or fetched from the hub by its id."""
    if Path(name).is_dir():
        if not (Path(name) / "config.json").is_file():
            raise KsterError(f"{name}: not a model directory (it has no config.json)")
        return Path(name)
    if name.startswith((".", "/", "~")) or name.count("/") > 1:
        raise KsterError(f"{name}: no such model directory")
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    wanted = ["*.json", "*.safetensors", "*.spm", "*.model", "*.txt"]
    try:
        directory = Path(snapshot_download(name, allow_patterns=wanted))
        if not weight_files(directory):  # most older checkpoints have nothing else
            snapshot_download(name, allow_patterns="pytorch_model*.bin*")
        return directory
    except (HfHubHTTPError, HFValidationError, LocalEntryNotFoundError, OSError) as error:
        reason = str(error).splitlines()[0]
        raise KsterError(
            f"{name}: neither a directory nor a model that could be fetched ({reason})"
        ) from error


def _choose_device(device: str | torch.device) -> torch.device:
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        place = torch.device(device)
    except RuntimeError as error:
        raise KsterError(f"device {device!r} is unknown; accepted: auto, cpu, cuda, cuda:0, …") from error
    if place.type == "cuda" and not torch.cuda.is_available():
        raise KsterError(f"device {device!r}: no CUDA GPU here; use --device cpu")
    return place


def _languages(
    name: str, tokenizer: Any, source: str | None, target: str | None
) -> tuple[str | None, str | None]:
    """The language pair: as asked for, else as the tokenizer says.

    A model of one language each way cannot be asked for another; a tokenizer that names a group of languages
    (`ROMANCE`, `mul`) leaves the choice.
    """
    own_source, own_target = getattr(tokenizer, "source_lang", None), getattr(tokenizer, "target_lang", None)
    for side, wanted, own in (("source", source, own_source), ("target", target, own_target)):
        if wanted and own and is_one_language(own) and not match_rank(own, wanted):
            raise KsterError(f"{name}: its {side} language is {own}; {wanted!r} was asked for")
    return (
        source or own_source or getattr(tokenizer, "src_lang", None),
        target or own_target or getattr(tokenizer, "tgt_lang", None),
    )
