"""Tiny real checkpoints for tests: real tokenizers and real `transformers` networks, random weights.

The text is made up; a joint SentencePiece vocabulary is trained on it, so that any Unicode can be
tokenised (byte fallback). Weights are drawn with a fixed seed and scaled up a little, so that the
distributions are far from uniform and ties are rare.
"""

from __future__ import annotations

import io
import json
from pathlib import Path

import sentencepiece
import tokenizers
import torch
import transformers

ENGLISH = """the red house stands by the river
a small dog runs across the green field
open the water tank and rinse it with cold water
press the button to start the machine
the machine is ready when the light is green
do not open the lid while the machine is hot
she reads an old book about the sea
we drink coffee every morning at seven
the child gives the bird some bread
tomorrow the train leaves at nine
he cannot find his keys in the dark
clean the filter once a week""".splitlines()

GERMAN = """das rote Haus steht am Fluss
ein kleiner Hund läuft über das grüne Feld
den Wassertank öffnen und mit kaltem Wasser spülen
die Taste drücken um die Maschine zu starten
die Maschine ist bereit wenn das Licht grün ist
den Deckel nicht öffnen solange die Maschine heiß ist
sie liest ein altes Buch über das Meer
wir trinken jeden Morgen um sieben Kaffee
das Kind gibt dem Vogel etwas Brot
morgen fährt der Zug um neun ab
er kann seine Schlüssel im Dunkeln nicht finden
den Filter einmal pro Woche reinigen""".splitlines()


def train_sentencepiece(vocab_size: int = 420, **ids: int) -> bytes:
    """A joint unigram model with byte fallback over the sentences above."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter((ENGLISH + GERMAN) * 4),
        model_writer=model,
        vocab_size=vocab_size,
        model_type="unigram",
        byte_fallback=True,
        character_coverage=1.0,
        hard_vocab_limit=False,
        minloglevel=2,
        **ids,
    )
    return model.getvalue()


def _sharpen(network: torch.nn.Module, scale: float) -> None:
    with torch.no_grad():
        for parameter in network.parameters():
            if parameter.dim() == 2:
                parameter.mul_(scale)


def make_marian(
    directory: Path, *, dimension: int = 32, layers: int = 2, sharpness: float = 4.0, seed: int = 0
) -> Path:
    """A post-norm Marian checkpoint: a Hugging Face directory like every OPUS-MT model."""
    directory.mkdir(parents=True, exist_ok=True)
    spm = train_sentencepiece(unk_id=1, eos_id=0, bos_id=-1, pad_id=-1)
    pieces = sentencepiece.SentencePieceProcessor(model_proto=spm)
    vocabulary = {pieces.id_to_piece(i): i for i in range(pieces.vocab_size())}
    vocabulary["<pad>"] = len(vocabulary)
    for side in ("source", "target"):
        (directory / f"{side}.spm").write_bytes(spm)
    (directory / "vocab.json").write_text(json.dumps(vocabulary, ensure_ascii=False), encoding="utf-8")
    tokenizer = transformers.MarianTokenizer(
        source_spm=str(directory / "source.spm"),
        target_spm=str(directory / "target.spm"),
        vocab=str(directory / "vocab.json"),
        source_lang="en",
        target_lang="de",
        model_max_length=512,
    )
    tokenizer.save_pretrained(directory)
    torch.manual_seed(seed)
    pad = vocabulary["<pad>"]
    network = transformers.MarianMTModel(
        transformers.MarianConfig(
            vocab_size=len(vocabulary),
            d_model=dimension,
            encoder_layers=layers,
            decoder_layers=layers,
            encoder_attention_heads=4,
            decoder_attention_heads=4,
            encoder_ffn_dim=2 * dimension,
            decoder_ffn_dim=2 * dimension,
            max_position_embeddings=512,
            activation_function="swish",
            scale_embedding=True,
            pad_token_id=pad,
            eos_token_id=0,
            forced_eos_token_id=None,
            decoder_start_token_id=pad,
            bos_token_id=None,
        )
    )
    _sharpen(network, sharpness)
    network.generation_config = transformers.GenerationConfig(
        pad_token_id=pad, eos_token_id=0, decoder_start_token_id=pad, bad_words_ids=[[pad]]
    )
    network.save_pretrained(directory)
    return directory


def make_m2m100(
    directory: Path, *, dimension: int = 32, layers: int = 2, sharpness: float = 4.0, seed: int = 0
) -> Path:
    """A pre-norm M2M100 checkpoint with language tokens."""
    directory.mkdir(parents=True, exist_ok=True)
    spm = train_sentencepiece(unk_id=3, eos_id=2, bos_id=0, pad_id=1)
    pieces = sentencepiece.SentencePieceProcessor(model_proto=spm)
    (directory / "sentencepiece.bpe.model").write_bytes(spm)
    vocabulary = {pieces.id_to_piece(i): i for i in range(pieces.vocab_size())}
    (directory / "vocab.json").write_text(json.dumps(vocabulary, ensure_ascii=False), encoding="utf-8")
    tokenizer = transformers.M2M100Tokenizer(
        vocab_file=str(directory / "vocab.json"),
        spm_file=str(directory / "sentencepiece.bpe.model"),
        src_lang="en",
        tgt_lang="de",
    )
    tokenizer.save_pretrained(directory)
    # Language tokens lie behind the pieces.
    _save_m2m100(directory, max(tokenizer.id_to_lang_token) + 1, dimension, layers, sharpness, seed)
    return directory


def _save_m2m100(
    directory: Path, vocabulary: int, dimension: int, layers: int, sharpness: float, seed: int
) -> None:
    torch.manual_seed(seed)
    network = transformers.M2M100ForConditionalGeneration(
        transformers.M2M100Config(
            vocab_size=vocabulary,
            d_model=dimension,
            encoder_layers=layers,
            decoder_layers=layers,
            encoder_attention_heads=4,
            decoder_attention_heads=4,
            encoder_ffn_dim=2 * dimension,
            decoder_ffn_dim=2 * dimension,
            max_position_embeddings=512,
            encoder_layerdrop=0.0,
            decoder_layerdrop=0.0,
            scale_embedding=True,
            bos_token_id=0,
            pad_token_id=1,
            eos_token_id=2,
            decoder_start_token_id=2,
        )
    )
    _sharpen(network, sharpness)
    network.save_pretrained(directory)


def make_nllb(directory: Path, *, dimension: int = 32, layers: int = 2, legacy: bool = False) -> Path:
    """A checkpoint like NLLB's: M2M100's network, a tokenizer of its own, languages like `eng_Latn`.

    legacy: the language of a text stands behind it, as in the first release.
    """
    directory.mkdir(parents=True, exist_ok=True)
    bpe = tokenizers.Tokenizer(tokenizers.models.BPE(unk_token="<unk>"))
    bpe.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace()  # type: ignore[assignment]
    special = ["<s>", "<pad>", "</s>", "<unk>"]
    bpe.train_from_iterator(
        ENGLISH + GERMAN, tokenizers.trainers.BpeTrainer(vocab_size=400, special_tokens=special)
    )
    learned = json.loads(bpe.to_str())["model"]
    merges = [tuple(merge) for merge in learned["merges"]]
    tokenizer = transformers.NllbTokenizer(vocab=learned["vocab"], merges=merges, legacy_behaviour=legacy)
    tokenizer.save_pretrained(directory)
    _save_m2m100(directory, len(tokenizer), dimension, layers, sharpness=4.0, seed=0)
    return directory


def teach(directory: Path, *, steps: int = 150, learning_rate: float = 4e-3, seed: int = 0) -> Path:
    """Train a checkpoint on the sentences above, in place: a model that translates, and ends its sentences.

    It knows these twelve sentences and little else, so a memory of others has much to add.
    """
    from kster.model import BaseModel
    from kster.model.forcing import pad

    model = BaseModel.load(directory, device="cpu", source_lang="en", target_lang="de")
    network = transformers.AutoModelForSeq2SeqLM.from_pretrained(directory).train()
    sources = model.tokenise_source(ENGLISH)
    targets = model.tokenise_target(GERMAN)
    prefix = list(model.layout.prefix)
    inputs = {
        "input_ids": pad(sources, model.pad_id, model.device),
        "attention_mask": pad([[1] * len(row) for row in sources], 0, model.device),
        "decoder_input_ids": pad([prefix + row[:-1] for row in targets], model.eos_id, model.device),
    }
    gold = pad([[-100] * (len(prefix) - 1) + row for row in targets], -100, model.device)
    torch.manual_seed(seed)
    optimizer = torch.optim.Adam(network.parameters(), lr=learning_rate)
    for _ in range(steps):
        logits = network(**inputs).logits
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), gold.flatten(), label_smoothing=0.1)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    network.save_pretrained(directory)
    return directory
