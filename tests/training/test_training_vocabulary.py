"""The vocabulary loses no text and is the tokenizer that transformers loads."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import transformers

from kster.training.vocabulary import TYPOGRAPHY, Vocabulary, learn

TEXTS = ["the red house, 1999", "m² ½ … ™ ☕ 日本", "über-grün", "a", "<unk> </s> <pad>"]


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    from tiny import ENGLISH, GERMAN

    return learn((ENGLISH + GERMAN) * 3, 400)


def rows(tokens: np.ndarray, lengths: np.ndarray) -> list[list[int]]:
    return [row.tolist() for row in np.split(tokens, np.cumsum(lengths)[:-1])]


def test_ids_are_those_of_a_marian_model(vocabulary: Vocabulary) -> None:
    assert vocabulary.size <= 400
    assert vocabulary.eos_id == 0
    assert vocabulary.ids["<unk>"] == 1
    assert vocabulary.pad_id == vocabulary.size - 1


def test_any_text_survives_the_round_trip(vocabulary: Vocabulary) -> None:
    for text, ids in zip(TEXTS, rows(*vocabulary.encode(TEXTS, 0, threads=1)), strict=True):
        assert ids[-1] == vocabulary.eos_id
        assert vocabulary.decode(ids, 0) == text


def test_lookalikes_become_one(vocabulary: Vocabulary) -> None:
    variants = ["über fin AB", "u\u0308ber ﬁn ＡＢ", "über\u2003fin\u200b AB"]
    first, *others = rows(*vocabulary.encode(variants, 1, threads=1))
    assert all(other == first for other in others)


def test_transformers_tokenises_the_same(vocabulary: Vocabulary, tmp_path: Path) -> None:
    from tiny import ENGLISH

    vocabulary.save(tmp_path, ("en", "de"))
    theirs = transformers.MarianTokenizer.from_pretrained(tmp_path)
    texts = ENGLISH + TEXTS[:4]
    assert theirs(texts).input_ids == rows(*vocabulary.encode(texts, 0, threads=1))
    assert theirs(text_target=texts).input_ids == rows(*vocabulary.encode(texts, 1, threads=1))
    assert (theirs.source_lang, theirs.target_lang, theirs.pad_token_id) == ("en", "de", vocabulary.pad_id)


def test_saved_and_loaded_is_the_same(vocabulary: Vocabulary, tmp_path: Path) -> None:
    vocabulary.save(tmp_path, ("en", "de"))
    loaded = Vocabulary.load(tmp_path)
    assert (loaded.spm, loaded.ids) == (vocabulary.spm, vocabulary.ids)


def test_a_checkpoint_s_own_vocabulary_is_used_as_its_tokenizer_does(tiny_marian: Path) -> None:
    ours, theirs = Vocabulary.load(tiny_marian), transformers.MarianTokenizer.from_pretrained(tiny_marian)
    assert rows(*ours.encode(TEXTS[:4], 0, threads=1)) == theirs(TEXTS[:4]).input_ids


def test_printers_signs_and_non_breaking_spaces_are_pieces_however_rare(vocabulary: Vocabulary) -> None:
    text = "„10\u00a0km“ – »so’s« …"
    (ids,) = rows(*vocabulary.encode([text], 0, threads=1))
    assert vocabulary.decode(ids, 0) == text
    assert set(TYPOGRAPHY) <= vocabulary.ids.keys()


def test_a_piece_is_spelled_with_the_longest_pieces_and_with_bytes(vocabulary: Vocabulary) -> None:
    longest = max((piece for piece in vocabulary.ids if piece.isalpha()), key=len)
    assert len(longest) > 1
    assert vocabulary.spelling(longest) == [vocabulary.ids[longest]]
    spelled = vocabulary.spelling(f"{longest}東")
    names = {number: piece for piece, number in vocabulary.ids.items()}
    assert [names[number] for number in spelled] == [longest, "<0xE6>", "<0x9D>", "<0xB1>"]
