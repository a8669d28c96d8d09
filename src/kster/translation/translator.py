"""The translator: texts in, translations out, with or without a memory."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TypedDict, Unpack, overload

from kster.errors import KsterError
from kster.memory import SearchableMemory
from kster.model import BaseModel
from kster.model.step import StepDecoder
from kster.smoothing import ResolvedSmoother, Smoother, resolve_smoother
from kster.text.codes import CodedText
from kster.translation.decoding import Decoding
from kster.translation.explanation import score_forced
from kster.translation.files import TranslatedFile, translate_file
from kster.translation.known_texts import KnownTexts
from kster.translation.open_memories import (
    NamedMemory,
    first_directory,
    model_of,
    open_memory,
    opened,
)
from kster.translation.outputs import longest_translation, outputs_of
from kster.translation.predictor import (
    LookedUp,
    Method,
    require_method,
    require_same_model,
)
from kster.translation.result import Output, Translation
from kster.translation.service import Cutting, Round, Steps, Text, run, translation_steps, without_surrogates
from kster.translation.taught_words import TaughtWords
from kster.translation.term_guide import NamedTerms, TermGuide

log = logging.getLogger("kster.translation")

# What is longer than this many tokens is cut: models are trained on sentences, and lose the thread long
# before their position table ends.
LONGEST_PIECE = 256


class TranslateOptions(TypedDict, total=False):
    """The options of `Translator.translate`, which explains them."""

    memory: NamedMemory | None
    terms: NamedTerms | None
    method: Method | None
    smoother: Smoother | None
    beam: int
    length_penalty: float | None
    n_best: int
    explain: bool
    confidence: bool
    context: str | None
    exact_matches: bool
    split_sentences: bool | None
    batch_sentences: int | None
    progress: Callable[[int], None] | None


class Translator:
    """Translates with a base model, and with whatever memories a call names.

    Translator(memory="my.memory")                # a memory knows its model
    Translator(memory=["mine", "ours"])           # several are searched as one
    Translator("models/en-de")                    # base translation only, or memories per call

    As a context manager it closes the memories that it opened itself.
    """

    def __init__(
        self,
        model: BaseModel | str | Path | None = None,
        memory: NamedMemory | None = None,
        *,
        terms: NamedTerms | None = None,
        device: str = "auto",
        precision: str = "auto",
        source_lang: str | None = None,
        target_lang: str | None = None,
        split_sentences: bool = True,
        keep_codes: bool = True,
    ) -> None:
        """Load a model, open memories.

        Args:
            model: a model, its directory, or its name on the hub; left out, the memory's.
            memory: an open memory, a group, a directory, or a list of them.
            terms: a term base, its file, or a list of terms, which translations keep.
            device: "cpu", "cuda", or "auto" for a GPU when there is one.
            precision: of matrix products, "float32", "int8", …, or "auto" for the fastest that is as good.
            source_lang, target_lang: for models of several languages.
            split_sentences: whether the sentences of a line are translated one by one, which is how models
                were trained; every call of `translate` can choose differently.
            keep_codes: whether placeholders, tags and addresses are kept; without it the model reads all text
                as it is.

        Raises:
            KsterError: for a model or memory that cannot be read, or that do not belong together.
        """
        if model is None and memory is None:
            raise KsterError("a translator needs a model or a memory")
        directory = first_directory(memory)
        if directory is not None and not isinstance(model, BaseModel):
            model = model_of(
                directory,
                model,
                device=device,
                precision=precision,
                source_lang=source_lang,
                target_lang=target_lang,
            )
        if isinstance(model, str | Path):
            model = BaseModel.load(
                model, device=device, precision=precision, source_lang=source_lang, target_lang=target_lang
            )
        self._opened = ExitStack()
        own = open_memory(memory, model, self._opened.enter_context)
        self.model: BaseModel = model if model is not None else own.model  # type: ignore[union-attr]
        self.memory = own
        if own is not None:
            require_same_model(self.model, own)
        self.decoder = StepDecoder(self.model)
        self._taught = TaughtWords(self.model)
        self.terms = None if terms is None else TermGuide.of(terms, self.model)
        self.split_sentences, self.keep_codes = split_sentences, keep_codes

    def close(self) -> None:
        """Close the memories that were opened here; those that were given open stay so."""
        self._opened.close()

    def __enter__(self) -> Translator:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Translating -------------------------------------------------------------------------------------

    @overload
    def translate(  # type: ignore[overload-overlap]  # a string is a sequence of strings, too
        self, texts: Text, **options: Unpack[TranslateOptions]
    ) -> Translation: ...

    @overload
    def translate(self, texts: Sequence[Text], **options: Unpack[TranslateOptions]) -> list[Translation]: ...

    def translate(
        self,
        texts: Text | Sequence[Text],
        *,
        memory: NamedMemory | None = None,
        terms: NamedTerms | None = None,
        method: Method | None = None,
        smoother: Smoother | None = None,
        beam: int = 4,
        length_penalty: float | None = None,
        n_best: int = 1,
        explain: bool = False,
        confidence: bool = False,
        context: str | None = None,
        exact_matches: bool = True,
        split_sentences: bool | None = None,
        batch_sentences: int | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> Translation | list[Translation]:
        """Translate a text, or a list of texts in order.

        Placeholders, tags, addresses and the like come back as they were: see `Translation.repaired`. Empty
        lines stay empty, line breaks stay, and a text that the memory holds as a whole comes back as taught.

        Args:
            texts: a string, a `CodedText`, or a list of these.
            memory: searched instead of the translator's own; a directory is opened for this call alone, so
                open a `Memory` to use it often.
            terms: kept instead of the translator's own; [] for none.
            method: "base", "knn" or "kster"; by default "kster" with a memory and "base" without.
            smoother: used instead of the one the method resolves to.
            beam: how many hypotheses are kept at each step.
            length_penalty: above 0 favours longer ones; by default what the memory's fit chose, or else 0.6.
            n_best: how many translations of each; all but the best are `Translation.alternatives`.
            explain: whether `Translation.tokens` is to say where every word comes from.
            confidence: whether `Translation.confidence` and `.words` are to say how likely it is right.
            context: where the texts stand, as segments name it: of several translations that a text was
                taught with, the one from there is taken.
            exact_matches: whether a text that the memory holds as a whole comes back as taught; without, it
                is translated like any other, with the memory's help.
            split_sentences: whether the sentences of a line are translated one by one; by default as the
                translator was made.
            batch_sentences: how many are translated at once.
            progress: called with the number of sentences done.

        Returns:
            One `Translation` for one text, a list of them for a list.

        Raises:
            KsterError: for options that make no sense, and for a memory of another model.
        """
        wanted_texts: Sequence[Text] = [texts] if isinstance(texts, str | CodedText) else texts
        decoding = Decoding(beam, length_penalty, n_best, explain, confidence=confidence)
        guide = None if terms is None else TermGuide.of(terms, self.model)
        done = 0

        def count(pieces: int) -> None:
            if progress is not None:
                progress(done + pieces)

        def outputs(wanted: Round) -> list[Output]:
            nonlocal done
            found = self.translate_pieces(
                wanted.texts,
                replace(decoding, align=wanted.align),
                memory=given,
                terms=guide,
                method=method,
                smoother=smoother,
                batch_sentences=batch_sentences,
                progress=count,
            )
            done += len(found)
            return found

        with opened(memory, self.model) as given:
            steps = self.steps(
                wanted_texts,
                decoding,
                memory=given,
                method=method,
                context=context,
                exact_matches=exact_matches,
                split_sentences=split_sentences,
            )
            translations = run(steps, outputs)
        return translations[0] if isinstance(texts, str | CodedText) else translations

    def translate_file(
        self, input: str | Path, output: str | Path, **options: Unpack[TranslateOptions]
    ) -> TranslatedFile:
        """Translate a document: text is replaced, every other byte stays.

        Args:
            input: a file of a kind that `kster.documents.kinds.SUFFIXES` names (.docx, .html, .md, .po, …).
            output: where the translated file is put, whole or not at all; its suffix is the input's.
            options: as of `translate`.

        Returns:
            How many texts were translated, and where codes had to be put back.

        Raises:
            KsterError: for a file that cannot be read, is of no known kind, or is too much; `output` is then
                as it was.
        """
        return translate_file(
            Path(input), Path(output), self.model, lambda texts: self.translate(texts, **options)
        )

    def steps(
        self,
        texts: Sequence[Text],
        decoding: Decoding,
        *,
        memory: SearchableMemory | None = None,
        method: Method | None = None,
        context: str | None = None,
        exact_matches: bool = True,
        split_sentences: bool | None = None,
    ) -> Steps:
        """All of `translate` except running the model: `translate_pieces` takes what is yielded.

        Args:
            texts, memory, method, context, exact_matches, split_sentences: as for `translate`.
            decoding: how hypotheses are searched for, and what is to be known of them.

        Returns:
            A generator that yields pieces, is sent what became of them, and returns the translations.
        """
        _require_texts(texts)
        if split_sentences is None:
            split_sentences = self.split_sentences
        chosen = self._chosen(memory, method)
        memories = chosen.memories if chosen is not None and exact_matches else []
        taught = KnownTexts(memories, [str(text) for text in texts], context)
        what = "sentences" if split_sentences else "lines"

        def warn() -> None:
            log.warning(
                "some %s are longer than %d tokens and were translated in parts; nothing was left out",
                what,
                self._longest,
            )

        languages = self.model.source_lang or "", self.model.target_lang or ""
        cutting = Cutting(self._fits, taught, split_sentences, self.keep_codes, languages)
        return translation_steps(texts, decoding, cutting, on_cut=warn)

    def score(
        self,
        sources: Sequence[str],
        targets: Sequence[str],
        *,
        memory: NamedMemory | None = None,
        method: Method | None = None,
        smoother: Smoother | None = None,
    ) -> list[float]:
        """log p(target | source) of given translations, end of sentence included.

        Args:
            sources: texts, each of one sentence.
            targets: their translations.
            memory, method, smoother: as in `translate`.

        Returns:
            One log-probability (in nats) for each pair.

        Raises:
            KsterError: if they do not pair up, or the memory is another model's.
        """
        _require_texts(sources)
        _require_texts(targets)
        if len(sources) != len(targets):
            raise KsterError(f"{len(sources)} sources but {len(targets)} targets; they must pair up")
        with opened(memory, self.model) as given:
            chosen, smoother = self._choose(given, method, smoother)
            pairs = zip(map(without_surrogates, sources), map(without_surrogates, targets), strict=True)
            forced = self.model.force_decode(pairs)
            looked_up = None
            if chosen is not None and smoother is not None:
                read = self.model.tokenise_source(list(sources))
                looked_up = LookedUp.of(chosen, smoother, sources, self.model, read)
            return list(score_forced(self.model, forced, looked_up, smoother))

    def resolve(self, method: Method, memory: NamedMemory | None = None) -> ResolvedSmoother | None:
        """The smoother a method would use, and where it comes from.

        Args:
            method: "base", "knn" or "kster".
            memory: By default the translator's own.

        Returns:
            The smoother; None for "base", and without a memory.
        """
        with opened(memory or self.memory, self.model) as given:
            if method == "base" or given is None:
                return None
            return resolve_smoother(method, [member.directory for member in given.memories], self.model)

    def _choose(
        self, memory: SearchableMemory | None, method: Method | None, smoother: Smoother | None
    ) -> tuple[SearchableMemory | None, Smoother | None]:
        """The memory and smoother of a call; both None for base translation and for an empty memory."""
        chosen = self._chosen(memory, method)
        if chosen is None:
            return None, None
        resolved = smoother or self.resolve(method or "kster", chosen)
        return chosen, resolved.smoother if isinstance(resolved, ResolvedSmoother) else resolved

    def _chosen(self, memory: SearchableMemory | None, method: Method | None) -> SearchableMemory | None:
        if memory is not None:
            require_same_model(self.model, memory)
        memory = memory or self.memory
        method = method or ("base" if memory is None else "kster")
        require_method(method)
        if method == "base":
            return None
        if memory is None:
            raise KsterError(f"method {method!r} needs a memory; without one only 'base' is possible")
        for member in memory.memories:
            member.use_model(self.model)
        return None if memory.is_empty else memory

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
        terms: TermGuide | None = None,
        method: Method | None = None,
        smoother: Smoother | None = None,
        batch_sentences: int | None = None,
        progress: Callable[[int], None] | None = None,
        on_search: Callable[[float], None] | None = None,
    ) -> list[Output]:
        """What the model makes of pieces of text that it reads whole, batched by length.

        Args:
            pieces: as `steps` yields them.
            decoding: how hypotheses are searched for, and what is to be known of them.
            memory, method, smoother, batch_sentences, progress: as for `translate`.
            terms: what must be kept; by default the translator's own terms.
            on_search: on a CPU, called with the seconds that a batch's examples were searched for.

        Returns:
            The outputs, in the pieces' order.

        Raises:
            KsterError: if batch_sentences is less than 1.
        """
        if batch_sentences is not None and batch_sentences < 1:
            raise KsterError(f"batch_sentences is {batch_sentences}; accepted: at least 1, or None")
        with opened(memory, self.model) as given:
            chosen, smoother = self._choose(given, method, smoother)
            return outputs_of(
                self.decoder,
                pieces,
                decoding,
                chosen,
                smoother,
                batch_sentences,
                progress or (lambda _: None),
                terms if terms is not None else self.terms,
                on_search,
                self._taught if smoother is not None and smoother.settings.similarity else None,
            )

    def longest_translation(self, source_tokens: int) -> int:
        """The most tokens a translation may have: twice its source and a little, as far as the model goes.

        Args:
            source_tokens: how many its source has.

        Returns:
            The number of tokens.
        """
        return longest_translation(self.model, source_tokens)


def _require_texts(texts: Sequence[Text]) -> None:
    if isinstance(texts, str):  # which is a sequence of strings, too
        raise TypeError("a list of strings is wanted; for one text pass [text]")
    for i, text in enumerate(texts):
        if not isinstance(text, str | CodedText):
            raise TypeError(f"texts is a list of strings; texts[{i}] is {type(text).__name__}")
