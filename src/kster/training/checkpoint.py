"""Hugging Face Marian directories: a new configuration, an old checkpoint, the finished model."""

from __future__ import annotations

import filecmp
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
import transformers
from torch import Tensor

from kster.errors import KsterError
from kster.files import new_directory
from kster.model.configuration import read_config
from kster.model.loading import read_weights, require_weights
from kster.training.network import Layout, check_trainable
from kster.training.settings import ExportSettings, NetworkSettings, OptimisationSettings
from kster.training.vocabulary import Vocabulary


def new_config(
    network: NetworkSettings, training: OptimisationSettings, vocabulary: Vocabulary
) -> transformers.MarianConfig:
    """The configuration of a network that is trained from scratch."""
    encoder_layers, decoder_layers = network.depth
    return transformers.MarianConfig(
        vocab_size=vocabulary.size,
        d_model=network.dimension,
        encoder_layers=encoder_layers,
        decoder_layers=decoder_layers,
        encoder_attention_heads=network.heads,
        decoder_attention_heads=network.heads,
        encoder_ffn_dim=network.feed_forward,
        decoder_ffn_dim=network.feed_forward,
        max_position_embeddings=network.positions,
        activation_function=network.activation,
        dropout=training.dropout,
        attention_dropout=training.attention_dropout,
        activation_dropout=0.0,
        scale_embedding=True,
        share_encoder_decoder_embeddings=True,
        tie_word_embeddings=True,
        pad_token_id=vocabulary.pad_id,
        eos_token_id=vocabulary.eos_id,
        decoder_start_token_id=vocabulary.pad_id,
        bos_token_id=None,
        forced_eos_token_id=None,
    )


def check_init(path: Path, max_tokens: int, *, swap: bool) -> None:
    """Refuse, before any work is done, a directory that cannot be fine-tuned."""
    if not (path / "config.json").is_file():
        raise KsterError(f"init: {path} is not a Hugging Face model directory (no config.json)")
    with _of_init():
        config = read_config(path)
    check_trainable(config, str(path), max_tokens)
    with _of_init():
        require_weights(path)
    spm = [path / name for name in ("source.spm", "target.spm")]
    if swap and all(file.is_file() for file in spm) and spm[0].read_bytes() != spm[1].read_bytes():
        raise KsterError(
            f"direction: swap would exchange the tokenizers of {path}, which has one for each language; "
            f"leave it out, name the languages as the model translates them and set `reverse` for the corpora"
        )


def load_init(
    path: Path, training: OptimisationSettings
) -> tuple[transformers.MarianConfig, dict[str, Tensor], Tensor]:
    """(config, state, final logits bias) of a checkpoint to fine-tune, on the CPU."""
    with _of_init():
        weights = read_weights(path, read_config(path))
    config = transformers.MarianConfig.from_pretrained(path)
    config.dropout, config.attention_dropout = training.dropout, training.attention_dropout
    bias = weights.get("final_logits_bias", torch.zeros(1, config.vocab_size))
    return config, weights, bias[0].float()


def with_vocabulary(
    config: transformers.MarianConfig,
    state: dict[str, Tensor],
    bias: Tensor,
    old: Vocabulary,
    new: Vocabulary,
) -> tuple[transformers.MarianConfig, dict[str, Tensor], Tensor]:
    """The same network for another vocabulary: a piece that both have keeps its embedding, a new one gets the
    mean of those that the old vocabulary spells it with."""
    pieces = sorted(new.ids, key=new.ids.__getitem__)
    spelled = [[old.ids[piece]] if piece in old.ids else old.spelling(piece) for piece in pieces]

    def carried(rows: Tensor) -> Tensor:  # (V, …) → (V', …)
        return torch.stack([rows[torch.tensor(ids)].mean(dim=0) for ids in spelled])

    config.vocab_size = config.decoder_vocab_size = new.size
    config.pad_token_id = config.decoder_start_token_id = new.pad_id
    config.eos_token_id = new.eos_id
    return config, {**state, "model.shared.weight": carried(state["model.shared.weight"])}, carried(bias)


def languages_of(path: Path) -> tuple[str, str] | None:
    """(from, into) of a checkpoint, if its tokenizer says."""
    try:
        config = json.loads((path / "tokenizer_config.json").read_text(encoding="utf-8"))
        return str(config["source_lang"]), str(config["target_lang"])
    except (OSError, ValueError, KeyError, TypeError):
        return None  # not every checkpoint has them, and training does not need them


@contextmanager
def _of_init() -> Iterator[None]:
    """Say which key of the recipe named the checkpoint."""
    try:
        yield
    except KsterError as error:
        raise KsterError(f"init: {error}") from error


def build(
    config: transformers.MarianConfig,
    layout: Layout,
    flat: Tensor,
    bias: Tensor | None,
    export: ExportSettings,
) -> transformers.MarianMTModel:
    """A `transformers` network with these weights, on the CPU in float32, ready to generate."""
    with torch.random.fork_rng(devices=[]):  # initial weights must not disturb the run's random numbers
        network = transformers.MarianMTModel(config)
    state = network.state_dict()
    with torch.no_grad():
        for name, view in layout.theirs(flat.float().cpu()):
            state[name].copy_(view)
        if bias is not None:
            network.final_logits_bias.copy_(bias[None].cpu())
    network.generation_config = transformers.GenerationConfig(
        num_beams=export.num_beams,
        length_penalty=export.length_penalty,
        max_length=config.max_position_embeddings,
        bad_words_ids=[[config.pad_token_id]],
        pad_token_id=config.pad_token_id,
        eos_token_id=config.eos_token_id,
        decoder_start_token_id=config.decoder_start_token_id,
        forced_eos_token_id=None,
    )
    return network.eval()


def export_directory(
    directory: Path,
    network: transformers.MarianMTModel,
    vocabulary: Vocabulary,
    languages: tuple[str, str],
    export: ExportSettings,
    *,
    swap: bool,
) -> None:
    """Write the finished model; `directory` appears complete or not at all."""
    with new_directory(directory, replace=True) as partial:
        network.to(getattr(torch, export.dtype)).save_pretrained(partial)
        (partial / "model.safetensors").chmod(0o644)  # written readable by its owner only
        # `from_pretrained` computes in the precision that config.json names, however the weights are
        # stored; in half precision some lines would come out otherwise than with `kster translate` on a CPU.
        config = json.loads((partial / "config.json").read_text(encoding="utf-8"))
        text = json.dumps({**config, "dtype": "float32"}, indent=2, sort_keys=True)
        (partial / "config.json").write_text(f"{text}\n", encoding="utf-8")
        vocabulary.save(partial, languages, swap=swap, longest=network.config.max_position_embeddings)
        if directory.exists():
            _keep_additions(directory, partial)


def _keep_additions(old: Path, new: Path) -> None:
    """What others put beside the same weights (a model card, a smoother) stays when they are written anew."""
    weights = old / "model.safetensors"
    if not weights.is_file() or not filecmp.cmp(weights, new / weights.name, shallow=False):
        return
    for entry in old.iterdir():
        if not (new / entry.name).exists():
            copy = shutil.copytree if entry.is_dir() else shutil.copy2
            copy(entry, new / entry.name)
