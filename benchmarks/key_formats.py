"""What do keys of 8 bits cost?

    python benchmarks/key_formats.py DATA law/train_nonEU law/test [--model models/en-de] [--segments 2500]
                                     [--lines 200]

The same segments as two memories, with keys in float16 and in int8. Printed for each: bytes on disk, BLEU and
chrF of the test's first lines, how many translations are those of float16, how many of 100 sources of the
memory are translated as taught, processor time, and which neighbours are the same. Texts are
DATA/<corpus>/<split>.<language>.xz.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
import sacrebleu
import torch

from corpora import pairs_of, sample
from kster.memory import Memory
from kster.memory.report import bytes_under
from kster.memory.store.key_formats import FORMATS
from kster.model import BaseModel
from kster.translation import Translator
from machine import describe

TAUGHT = 100
QUERIED = 40  # lines of the test whose reference's contexts are looked up
K = 32


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("memory")
    parser.add_argument("test")
    parser.add_argument("--model", default="models/en-de")
    parser.add_argument("--segments", type=int, default=2_500)
    parser.add_argument("--lines", type=int, default=200)
    wanted = parser.parse_args()
    print(describe(**vars(wanted)), flush=True)
    model = BaseModel.load(wanted.model, device="cpu")
    languages = (model.source_lang or "en", model.target_lang or "de")
    pairs = sample(pairs_of(wanted.data, wanted.memory, languages), wanted.segments)
    held_out_pairs = pairs_of(wanted.data, wanted.test, languages, wanted.lines)
    test, references = [pair.source for pair in held_out_pairs], [pair.target for pair in held_out_pairs]
    held_out = model.make_keys(list(zip(test, references, strict=True))[:QUERIED])
    queries = torch.cat([forced.keys for forced in held_out]).float()
    taught = {pair.source: pair.target for pair in pairs[:TAUGHT]}
    first_texts, first_ids = list[str](), np.zeros((0, K))
    with tempfile.TemporaryDirectory(prefix="kster-") as folder:
        for name in FORMATS:
            directory = Path(folder) / name
            with Memory.create(directory, model, key_format=name) as memory, Translator(memory=memory) as own:
                memory.add_many(pairs)
                began = time.process_time()
                texts = [str(translation) for translation in own.translate(test)]
                seconds = time.process_time() - began
                again = [str(translation) for translation in own.translate(list(taught))]
                ids = memory.search(queries, K).ids.numpy()
                size = bytes_under(directory) / memory.entry_count
            first_texts, first_ids = first_texts or texts, ids if name == "float16" else first_ids
            same = np.mean([len(np.intersect1d(a, b)) / K for a, b in zip(ids, first_ids, strict=True)])
            print(
                f"{name}: {size:.0f} bytes an entry, {sacrebleu.corpus_bleu(texts, [references]).score:.2f} "
                f"BLEU, {sacrebleu.corpus_chrf(texts, [references]).score:.2f} chrF, "
                f"{sum(map(str.__eq__, texts, first_texts))} of {len(texts)} as with float16, "
                f"{sum(map(str.__eq__, again, taught.values()))} of {len(taught)} as taught, "
                f"{1000 * seconds / len(texts):.0f} ms of a core a sentence; of the {K} nearest {same:.3f} "
                f"the same, the first in {np.mean(ids[:, 0] == first_ids[:, 0]):.3f} of {len(ids)} contexts",
                flush=True,
            )


if __name__ == "__main__":
    main()
