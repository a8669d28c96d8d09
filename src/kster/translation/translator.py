"""The translator: texts in, translations out, with or without a memory."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from pathlib import Path

from kster.errors import KsterError
from kster.model import BaseModel
from kster.model.step import Predict, StepDecoder
from kster.smoothing import ResolvedSmoother, Smoother, resolve_smoother
from kster.translation.batches import batches
from kster.translation.beam import Hypothesis, beam_search
from kster.translation.decoding import Decoding
from kster.translation.explanation import TokenExplanation, explain, score_forced
from kster.translation.known_texts import HeldTexts
from kster.translation.open_memories import (
    NamedMemory,
    OpenMemory,
    first_directory,
    members,
    model_of,
    open_memory,
    opened,
)
from kster.translation.predictor import (
    Method,
    SmoothedPredictor,
    base_predictor,
    require_method,
    require_same_model,
)
from kster.translation.result import Output, Translation, assemble
from kster.translation.splitting import SplitText, split_text

log = logging.getLogger("kster.translation")

# What is longer than this many tokens is cut: models are trained on sentences, and lose the thread long
# before their position table ends.
LONGEST_PIECE = 256


class Translator:
    """Translates with a base model, and with whatever memories a call names.

    Translator(memory="my.memory")                # a memory knows its model
    Translator(memory=["mine", "ours"])           # several are searched as one
    Translator("models/en-de")                    # base translation only, or memories per call
    """

    def __init__(
        self,
        model: BaseModel | str | Path | None = None,
        memory: NamedMemory | None = None,
        *,
        device: str = "auto",
        source_lang: str | None = None,
        target_lang: str | None = None,
        split_sentences: bool = False,
    ) -> None:
        """split_sentences: what `translate` does with a line of several sentences, unless a call says."""
        if model is None and memory is None:
            raise KsterError("a translator needs a model or a memory")
        directory = first_directory(memory)
        if directory is not None and not isinstance(model, BaseModel):
            model = model_of(
                directory, model, device=device, source_lang=source_lang, target_lang=target_lang
            )
        if isinstance(model, str | Path):
            model = BaseModel.load(model, device=device, source_lang=source_lang, target_lang=target_lang)
        own = open_memory(memory, model)
        self.model: BaseModel = model if model is not None else own.model  # type: ignore[union-attr]
        self.memory = own
        if own is not None:
            require_same_model(self.model, own)
        self.decoder = StepDecoder(self.model)
        self.split_sentences = split_sentences

    # Translating -------------------------------------------------------------------------------------

    def translate(
        self,
        texts: Sequence[str],
        *,
        memory: NamedMemory | None = None,
        method: Method | None = None,
        smoother: Smoother | None = None,
        beam: int = 4,
        length_penalty: float = 0.6,
        n_best: int = 1,
        explain: bool = False,
        split_sentences: bool | None = None,
        batch_sentences: int | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> list[Translation]:
        """Translate texts, in order.

        memory: searched instead of the translator's own; a directory is opened for this call alone, so open a
        `Memory` to use it often. method: "base", "knn" or "kster"; by default
        "kster" with a memory and "base" without. smoother: used instead of the one the method resolves to.
        split_sentences: whether the sentences of a line are translated one by one, as the models were
        trained; a line that the memory holds as a whole is not split. Empty lines stay empty, line breaks
        stay, what is too long for the model is cut with a warning. progress: called with the number of
        pieces done.
        """
        decoding = Decoding(beam, length_penalty, n_best, explain)
        with opened(memory, self.model) as given:
            split = self.split(texts, memory=given, method=method, split_sentences=split_sentences)
            outputs = self.translate_pieces(
                [piece.text for one in split for piece in one.pieces],
                decoding,
                memory=given,
                method=method,
                smoother=smoother,
                batch_sentences=batch_sentences,
                progress=progress,
            )
        waiting = iter(outputs)
        return [assemble(one, waiting, decoding) for one in split]

    def split(
        self,
        texts: Sequence[str],
        *,
        memory: NamedMemory | None = None,
        method: Method | None = None,
        split_sentences: bool | None = None,
    ) -> list[SplitText]:
        """The first half of `translate`: the pieces that a model can read, for `translate_pieces`.

        What the memory holds as a whole is one piece.
        """
        _require_list(texts)
        if split_sentences is None:
            split_sentences = self.split_sentences
        with opened(memory, self.model) as given:
            is_held = HeldTexts(members(self._chosen(given, method)))
            split = [
                SplitText(
                    text, *split_text(text, self._fits, split_sentences=split_sentences, is_whole=is_held)
                )
                for text in map(_without_surrogates, texts)
            ]
        if any(piece.torn for one in split for piece in one.pieces):
            what = "sentences" if split_sentences else "lines"
            log.warning("some %s are longer than %d tokens and were cut", what, self._longest)
        return split

    def score(
        self,
        sources: Sequence[str],
        targets: Sequence[str],
        *,
        memory: NamedMemory | None = None,
        method: Method | None = None,
        smoother: Smoother | None = None,
    ) -> list[float]:
        """log p(target | source) of given translations, end of sentence included, under a method."""
        _require_list(sources)
        _require_list(targets)
        if len(sources) != len(targets):
            raise KsterError(f"{len(sources)} sources but {len(targets)} targets; they must pair up")
        with opened(memory, self.model) as given:
            chosen, smoother = self._choose(given, method, smoother)
            pairs = zip(map(_without_surrogates, sources), map(_without_surrogates, targets), strict=True)
            forced = self.model.force_decode(pairs)
            return list(score_forced(self.model, forced, chosen, smoother))

    def resolve(self, method: Method, memory: NamedMemory | None = None) -> ResolvedSmoother | None:
        """The smoother a method would use, and where it comes from; None for "base" and without a memory."""
        with opened(memory or self.memory, self.model) as given:
            if method == "base" or given is None:
                return None
            return resolve_smoother(method, [member.directory for member in members(given)], self.model)

    def _choose(
        self, memory: OpenMemory | None, method: Method | None, smoother: Smoother | None
    ) -> tuple[OpenMemory | None, Smoother | None]:
        """The memory and smoother of a call; both None for base translation and for an empty memory."""
        chosen = self._chosen(memory, method)
        if chosen is None:
            return None, None
        resolved = smoother or self.resolve(method or "kster", chosen)
        return chosen, resolved.smoother if isinstance(resolved, ResolvedSmoother) else resolved

    def _chosen(self, memory: OpenMemory | None, method: Method | None) -> OpenMemory | None:
        if memory is not None:
            require_same_model(self.model, memory)
        memory = memory or self.memory
        method = method or ("base" if memory is None else "kster")
        require_method(method)
        if method == "base":
            return None
        if memory is None:
            raise KsterError(f"method {method!r} needs a memory; without one only 'base' is possible")
        return memory if memory.entry_count else None

    # Pieces ------------------------------------------------------------------------------------------

    @property
    def _longest(self) -> int:
        return min(LONGEST_PIECE, self.model.max_length)

    def _fits(self, text: str) -> bool:
        # Even a short text has to be asked: some tokenizers write one character as dozens of tokens.
        return len(self.model.tokenise_source([text])[0]) <= self._longest

    def translate_pieces(
        self,
        pieces: list[str],
        decoding: Decoding,
        *,
        memory: NamedMemory | None = None,
        method: Method | None = None,
        smoother: Smoother | None = None,
        batch_sentences: int | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> list[Output]:
        """The other half of `translate`: pieces that fit, batched by length; outputs in the pieces' order."""
        if batch_sentences is not None and batch_sentences < 1:
            raise KsterError(f"batch_sentences is {batch_sentences}; accepted: at least 1, or None")
        with opened(memory, self.model) as given:
            chosen, smoother = self._choose(given, method, smoother)
            return self._decode(pieces, decoding, chosen, smoother, batch_sentences, progress)

    def _decode(
        self,
        pieces: list[str],
        decoding: Decoding,
        memory: OpenMemory | None,
        smoother: Smoother | None,
        batch_sentences: int | None,
        progress: Callable[[int], None] | None,
    ) -> list[Output]:
        predict: Predict = base_predictor
        if memory is not None and smoother is not None:
            predict = SmoothedPredictor(memory, smoother)
        ids = self.model.tokenise_source(pieces)
        order = sorted(range(len(pieces)), key=lambda i: -len(ids[i]))
        limits = [self.longest_translation(len(ids[i])) for i in order]
        outputs: dict[int, Output] = {}
        for part in batches(self.model, limits, decoding.beam, batch_sentences):
            batch = order[part]
            sources = [ids[i] for i in batch]
            found = self._search(sources, predict, decoding)
            tokens: list[tuple[TokenExplanation, ...] | None] = [None] * len(batch)
            if decoding.explain:
                targets = [[*hypotheses[0].tokens, self.model.eos_id] for hypotheses in found]
                tokens = [tuple(t) for t in explain(self.model, sources, targets, memory, smoother)]
            for i, hypotheses, explanation in zip(batch, found, tokens, strict=True):
                written = self.model.detokenise([hypothesis.tokens for hypothesis in hypotheses])
                scores = [hypothesis.score for hypothesis in hypotheses]
                outputs[i] = Output(tuple(zip(written, scores, strict=True)), explanation)
            if progress is not None:
                progress(len(outputs))
        return [outputs[i] for i in range(len(pieces))]

    def _search(
        self, sources: list[list[int]], predict: Predict, decoding: Decoding
    ) -> list[list[Hypothesis]]:
        return beam_search(
            self.decoder,
            sources,
            predict,
            beam=decoding.beam,
            length_penalty=decoding.length_penalty,
            limits=[self.longest_translation(len(row)) for row in sources],
            n_best=decoding.n_best,
        )

    def longest_translation(self, source_tokens: int) -> int:
        """The most tokens a translation may have: twice its source and a little, as far as the model goes."""
        return min(2 * source_tokens + 20, self.model.max_length)


def _require_list(texts: Sequence[str]) -> None:
    if isinstance(texts, str):  # which is a sequence of strings, too
        raise TypeError("texts is a list of strings; for one text pass [text]")
    for i, text in enumerate(texts):
        if not isinstance(text, str):
            raise TypeError(f"texts is a list of strings; texts[{i}] is {type(text).__name__}")


def _without_surrogates(text: str) -> str:
    """Half a character is none: lone surrogates, which no tokenizer takes, become U+FFFD."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
