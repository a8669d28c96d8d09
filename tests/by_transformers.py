"""What `transformers` itself says about a model of ours: its taps, distributions and translations."""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path
from typing import Any

import torch
import transformers

from kster.model import BaseModel
from tiny import ENGLISH

# A search that meets a tie goes on with either hypothesis; what both end in scores alike to this much.
TIE = 1e-3


@cache
def _loaded(directory: Path, device: torch.device, dtype: torch.dtype) -> Any:
    network = transformers.AutoModelForSeq2SeqLM.from_pretrained(directory, dtype=dtype)
    return network.to(device).eval().requires_grad_(False)


def network_of(model: BaseModel) -> Any:
    """The checkpoint as `transformers` loads it, in the precision of the model's states."""
    return _loaded(model.directory, model.device, model.dtype)


def tokenizer_of(model: BaseModel) -> Any:
    """The tokenizer of `transformers`; a special token in a text is text, as with us."""
    languages = {"src_lang": model.source_lang, "tgt_lang": model.target_lang}
    given = languages if model.family != "marian" else {}
    return transformers.AutoTokenizer.from_pretrained(model.directory, split_special_tokens=True, **given)


def hooked(model: BaseModel, source: str, target: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Tap (t, d) and log-probabilities (t, V), by the network's own forward and a hook of our own on it."""
    seen: list[torch.Tensor] = []
    layer = network_of(model).get_decoder().layers[-1].fc1
    handle = layer.register_forward_hook(lambda module, inputs, output: seen.append(inputs[0]))
    prefix = list(model.layout.prefix)
    ids = model.tokenise_target([target])[0]
    logits = network_of(model)(
        input_ids=torch.tensor(model.tokenise_source([source]), device=model.device),
        decoder_input_ids=torch.tensor([prefix + ids[:-1]], device=model.device),
    ).logits
    handle.remove()
    start = len(prefix) - 1
    return seen[0][0, start:], logits[0, start:].float().log_softmax(-1)


def shuffled_sentences(count: int) -> list[str]:
    """Word salad of many lengths: distributions are flat there, so beams cross and hypotheses compete."""
    words = sorted({word for line in ENGLISH for word in line.split()})
    dice = random.Random(7)
    return [" ".join(dice.choices(words, k=dice.randint(1, 14))) for _ in range(count)]


def generated(
    model: BaseModel, texts: list[str], *, beam: int, length_penalty: float, limit: int
) -> list[tuple[list[int], float]]:
    """Of each text the whole n-best list of `generate`, best first: tokens and score."""
    prefix = model.layout.prefix
    output = network_of(model).generate(
        **tokenizer_of(model)(texts, return_tensors="pt", padding=True).to(model.device),
        num_beams=beam,
        num_return_sequences=beam,
        length_penalty=length_penalty,
        max_new_tokens=limit + len(prefix) - 1,
        early_stopping="never" if length_penalty >= 1.0 else False,
        do_sample=False,
        bad_words_ids=[[model.pad_id]],
        forced_bos_token_id=prefix[1] if len(prefix) > 1 else None,
        return_dict_in_generate=True,
        output_scores=True,
    )
    rows = []
    for row in output.sequences.tolist():
        row = row[len(prefix) :]
        row = row[: row.index(model.eos_id)] if model.eos_id in row else row
        rows.append([token for token in row if token != model.pad_id])
    return list(zip(rows, output.sequences_scores.tolist(), strict=True))
