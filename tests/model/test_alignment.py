"""Alignment: where the decoder looks while it writes, as `transformers` itself says it."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import transformers

from kster.model import BaseModel
from kster.model.alignment import align
from kster.translation.links import links_of
from tiny import ENGLISH, GERMAN


@pytest.mark.parametrize("family", ["taught_marian", "taught_m2m100"])
def test_alignment_is_the_attention_that_transformers_gives_out(
    family: str, request: pytest.FixtureRequest
) -> None:
    directory: Path = request.getfixturevalue(family)
    model = BaseModel.load(directory, device="cpu", source_lang="en", target_lang="de")
    sources, targets = model.tokenise_source(ENGLISH[:3]), model.tokenise_target(GERMAN[:3])
    aligned = align(model, sources, targets)  # padded together
    network = transformers.AutoModelForSeq2SeqLM.from_pretrained(
        directory, attn_implementation="eager"
    ).eval()
    prefix = list(model.layout.prefix)
    for source, target, own in zip(sources, targets, aligned, strict=True):
        found = network(
            input_ids=torch.tensor([source]),
            decoder_input_ids=torch.tensor([prefix + target[:-1]]),
            output_attentions=True,
        )
        expected = found.cross_attentions[-1][0].mean(0)[len(prefix) - 1 :]  # (t, s), of two layers the last
        torch.testing.assert_close(own, expected, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("family", ["taught_marian", "taught_m2m100"])
def test_links_name_characters_of_both_texts(family: str, request: pytest.FixtureRequest) -> None:
    model = BaseModel.load(request.getfixturevalue(family), device="cpu", source_lang="en", target_lang="de")
    texts, translations = ENGLISH[:2], GERMAN[:2]
    found = links_of(
        model, texts, model.tokenise_source(texts), translations, model.tokenise_target(translations)
    )
    for text, translation, links in zip(texts, translations, found, strict=True):
        written = "".join(translation[first:last] for first, last in dict.fromkeys(link[1] for link in links))
        assert sorted(written) == sorted(translation.replace(" ", ""))  # every target token has its source
        read = "".join(text[begin:end] for begin, end in dict.fromkeys(link[0] for link in links))
        assert sorted(read) == sorted(text.replace(" ", ""))
