"""A data directory in miniature, laid out like the real one: made-up sentences in made-up domains."""

from __future__ import annotations

import json
import random
from pathlib import Path

from experiments.data import write_lines

from tiny import ENGLISH, GERMAN

__all__ = ["ENGLISH", "GERMAN", "make_data", "make_wordnet"]

SPLITS = {
    "koran": {"train": 60, "dev": 12, "test": 8},
    "it": {"train": 60, "dev": 12, "test": 8},
    "law": {"dev": 1_512, "test": 8},
    "newstest": {"train_2008_2012": 40, "newstest2013": 10, "newstest2014": 8},
    "europarl": {"train": 40, "dev": 8, "test": 8},
    "ted": {"dev": 8, "test": 8},
    "docs_adobe": {"train": 60, "dev": 12, "test": 8},
}


def make_data(directory: Path) -> Path:
    """Each domain is made of four of the tiny sentences: their beginnings and ends in new combinations."""
    for number, (corpus, splits) in enumerate(SPLITS.items()):
        rng = random.Random(number)
        own = [(number % 5 * 2 + i) % len(ENGLISH) for i in range(4)]
        for split, count in splits.items():
            english, german = [], []
            for _ in range(count):
                a, b = rng.sample(own, 2)
                english.append(" ".join(ENGLISH[a].split()[:4] + ENGLISH[b].split()[-3:]))
                german.append(" ".join(GERMAN[a].split()[:4] + GERMAN[b].split()[-3:]))
            write_lines(directory / corpus / f"{split}.en.xz", english)
            write_lines(directory / corpus / f"{split}.de.xz", german)
    contrasts = [
        {
            "source": english,
            "reference": german,
            "errors": [{"contrastive": german.replace("die", "das")}, {"contrastive": german + " nicht"}],
            "ambig word": "the",
            "sense": "die",
        }
        for english, german in zip(ENGLISH, GERMAN, strict=True)
    ]
    (directory / "wsd").mkdir()
    (directory / "wsd" / "contrawsd.en-de.json").write_text(json.dumps(contrasts), encoding="utf-8")
    return directory


def make_wordnet(directory: Path) -> Path:
    """A WordNet of a few synsets, in the format of the real one's files."""
    licence = "  1 a line of the licence\n"
    synsets = {
        "noun": [
            "00001740 03 n 02 house 0 home 0 000 | a building",
            "00001930 03 n 02 dog 0 hound 0 000 | a pet",
        ],
        "verb": [
            "00002000 29 v 03 run 0 sprint 0 go_fast 0 000 | move",
            "00002100 29 v 02 leave 0 depart 0 000 | go",
        ],
        "adj": ["00003000 00 a 02 red 0 crimson(p) 0 000 | a colour"],
        "adv": ["00004000 02 r 02 quickly 0 fast 0 000 | with speed"],
    }
    for part, lines in synsets.items():
        (directory / f"data.{part}").write_text(licence + "".join(f"{line}\n" for line in lines))
        (directory / f"{part}.exc").write_text("ran run\nleft leave\n" if part == "verb" else "")
    return directory
