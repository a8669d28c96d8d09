"""A base translation model: a Hugging Face directory, loaded, with the few verbs the rest of KSTER needs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import torch

from kster.errors import ModelError, SettingsError
from kster.model.configuration import read_config
from kster.model.family import family_of
from kster.model.fingerprint import fingerprint_of
from kster.model.forcing import ForcedSentence, SentenceKeys, force_decode, make_keys
from kster.model.frozen import FrozenModel
from kster.model.layers import choose_precision
from kster.model.loading import read_weights, weight_files
from kster.model.network import Network
from kster.model.tokenizer import MarianTokens, Tokenizer, load_tokenizer
from kster.model_places import find_model
from kster.text.languages import is_one_language, match_rank


class BaseModel(FrozenModel):
    """A frozen translation model and its tokenizer.

    Load one with `BaseModel.load("models/en-de")` or any Marian, M2M100 or NLLB hub id. It is never trained
    here (see `kster.training` for that).
    """

    @classmethod
    def load(
        cls,
        name: str | Path,
        *,
        device: str | torch.device = "auto",
        precision: str = "auto",
        source_lang: str | None = None,
        target_lang: str | None = None,
    ) -> BaseModel:
        """Load a checkpoint from a directory or by hub id.

        Weights are read from safetensors, or from a `pytorch_model.bin` that holds nothing but tensors: what
        could run code is refused.

        Args:
            name: a directory, the name of a model on this machine (see `kster models`), or one on the hub.
            device: "cpu", "cuda", or "auto" for a GPU when there is one.
            precision: "auto" is float16 on a GPU, bfloat16 on a CPU that is made for it, else float32
                (`kster.model.layers` says what each means).
            source_lang, target_lang: needed for models of several languages; others know their own.

        Returns:
            The model, ready to translate.

        Raises:
            KsterError: if files are missing, damaged, of another kind of model, or do not fit together.
        """
        name = find_model(name) or name
        directory = _resolve(str(name))
        place = _choose_device(device)
        config = read_config(directory)
        tokenizer = load_tokenizer(directory, config)
        source, target = _languages(str(name), tokenizer, source_lang, target_lang)
        family = family_of(config, tokenizer, source, target)
        weights = read_weights(directory, config)
        chosen = choose_precision(precision, place, config.d_model)
        network = Network(config, weights, precision=chosen, device=place)
        if place.type == "cuda":
            # cuDNN plans attention anew for every shape, 15 ms each; sentences come in hundreds of shapes.
            torch.backends.cuda.enable_cudnn_sdp(False)
        fingerprint = fingerprint_of(
            directory, (source, target) if family.name == "m2m_100" else (None, target)
        )
        return cls(str(name), directory, network, tokenizer, family, fingerprint, (source, target))

    def force_decode(
        self,
        pairs: Iterable[tuple[str, str]],
        *,
        batch_tokens: int | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> Iterator[ForcedSentence]:
        """Run the decoder along given translations.

        Args:
            pairs: (source, target) texts.
            batch_tokens: Tokens of a batch; by default what suits the device.
            progress: Called with the number of sentences done so far.

        Returns:
            For each pair its `ForcedSentence`: keys, tokens and probabilities.
        """
        return force_decode(self, pairs, batch_tokens=batch_tokens, progress=progress)

    def make_keys(self, pairs: Iterable[tuple[str, str]]) -> Iterator[SentenceKeys]:
        """The keys of given translations, and no more.

        Args:
            pairs: (source, target) texts.

        Returns:
            For each pair the keys and tokens of its target.
        """
        return make_keys(self, pairs)


def _resolve(name: str) -> Path:
    """The local directory of a checkpoint: given directly, or fetched from the hub by its id."""
    if Path(name).is_dir():
        if not (Path(name) / "config.json").is_file():
            raise ModelError(f"{name}: not a model directory (it has no config.json)")
        return Path(name)
    if name.startswith((".", "/", "~")) or name.count("/") > 1:
        raise ModelError(f"{name}: no such model directory")
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
        raise ModelError(
            f"{name}: neither a directory nor a model that could be fetched ({reason})"
        ) from error


def _choose_device(device: str | torch.device) -> torch.device:
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        place = torch.device(device)
    except RuntimeError as error:
        raise SettingsError(f"device {device!r} is unknown; accepted: auto, cpu, cuda, cuda:0, …") from error
    if place.type == "cuda" and not torch.cuda.is_available():
        raise SettingsError(f"device {device!r}: no CUDA GPU here; use --device cpu")
    return place


def _languages(
    name: str, tokenizer: Tokenizer, source: str | None, target: str | None
) -> tuple[str | None, str | None]:
    """The language pair: as asked for, else as the tokenizer says.

    A model of one language each way cannot be asked for another; a tokenizer that names a group of languages
    (`ROMANCE`, `mul`) leaves the choice.
    """
    own_source, own_target = tokenizer.languages
    if isinstance(tokenizer, MarianTokens):
        for side, wanted, own in (("source", source, own_source), ("target", target, own_target)):
            if wanted and own and is_one_language(own) and not match_rank(own, wanted):
                raise ModelError(f"{name}: its {side} language is {own}; {wanted!r} was asked for")
    return source or own_source, target or own_target
