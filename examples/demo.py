"""The demo: one model, one product manual, before and after it was shown the translation memory.

Run it with `make demo`. It imports examples/ombravella.tmx and translates held-out segments: with the base
model, with the memory as it is, and with kNN-MT tuned and KSTER fitted on that memory alone. Then it shows
what changed and why, and learns one correction on the spot.
"""

from __future__ import annotations

import difflib
import logging
import shutil
import time
from collections.abc import Sequence
from pathlib import Path

import sacrebleu
from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from rich.text import Text

from kster import BaseModel, Memory, Translator
from kster.evaluation import evaluate
from kster.smoothing import fit, tune
from kster.translation import Example, Method, TokenExplanation, Translation
from kster.translation.words import words_of

HERE = Path(__file__).parent
MODEL = HERE.parent / "models" / "en-de"
MEMORY = HERE.parent / "runs" / "demo" / "ombravella"
UNFITTED = "unfitted"
NAMES = {
    "base": "base model",
    "knn": "kNN-MT, tuned",
    UNFITTED: "KSTER, nothing fitted",
    "kster": "KSTER, fitted",
}

SHOWN = 5  # before/after lines

# Not in the memory: what somebody corrects, and what comes next in their document.
CORRECTION = (
    "Wipe the dosing funnel with a dry cloth.",
    "Den Dosiertrichter mit einem trockenen Tuch abwischen.",
)
NEXT = ["Can I order a new dosing funnel?", "Place the dosing funnel on the portafilter."]

console = Console(highlight=False)


def main() -> None:
    started = time.monotonic()
    logging.getLogger("kster").setLevel(logging.ERROR)
    console.rule("[bold]KSTER: the same model, before and after it has seen your memory")
    model = BaseModel.load(MODEL)
    translator = Translator(model, import_memory(model))
    sources, references = lines("heldout.en"), lines("heldout.de")
    translations = {
        "base": translate(translator, sources, "base"),
        UNFITTED: translate(translator, sources, "kster", UNFITTED),
    }
    learn(translator)
    translations |= {method: translate(translator, sources, method) for method in ("knn", "kster")}
    show_scores(translations, references)
    show_changes(translator, translations, references)
    correct_one(translator)
    show_next(time.monotonic() - started)


def lines(name: str) -> list[str]:
    return (HERE / name).read_text(encoding="utf-8").splitlines()


def import_memory(model: BaseModel) -> Memory:
    shutil.rmtree(MEMORY, ignore_errors=True)
    memory = Memory.create(MEMORY, model)
    with console.status("importing examples/ombravella.tmx …"):
        report = memory.import_file(HERE / "ombravella.tmx")
    console.print(f"imported [bold]{report.added}[/] segments: {memory.entry_count:,} keys")
    return memory


def learn(translator: Translator) -> None:
    """Tune kNN-MT and fit KSTER on the memory; the held-out segments are not touched."""
    model, memory = translator.model, translator.memory
    assert isinstance(memory, Memory)
    with console.status("tuning kNN-MT on the memory itself …"):
        tuned = tune(model, memory)
    console.print(
        f"tuned kNN-MT: k {tuned.best.k}, σ {tuned.best.bandwidth:g}, λ {tuned.best.mixing_weight:g}"
    )
    with console.status("fitting KSTER on the memory itself …"):
        fitted = fit(model, memory)
    dev = fitted.dev
    console.print(
        f"fitted KSTER in {fitted.seconds['total']:.0f} s; loss a token on unseen segments: "
        f"base {dev.base:.2f}, kNN-MT {dev.knn:.2f}, KSTER [bold]{dev.kster:.2f}[/]",
        soft_wrap=True,
    )


def translate(
    translator: Translator, sources: list[str], method: Method, name: str | None = None
) -> list[Translation]:
    # Where nobody watches a bar would only leave an empty line.
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(NAMES[name or method], total=len(sources))
        return translator.translate(
            sources, method=method, progress=lambda done: progress.update(task, completed=done)
        )


def show_scores(translations: dict[str, list[Translation]], references: list[str]) -> None:
    hypotheses = {method: [str(t) for t in found] for method, found in translations.items()}
    report = evaluate(hypotheses, references, target_lang="de")
    console.rule(f"[bold]{len(references)} held-out segments")
    table = Table("", "BLEU", "chrF", "p against base")
    for method in NAMES:
        bleu, chrf = report[method].metrics["BLEU"], report[method].metrics["chrF2"]
        p = "" if bleu.p_value is None else f"{bleu.p_value:.3f}"
        table.add_row(NAMES[method], f"{bleu.score:.1f}", f"{chrf.score:.1f}", p)
    console.print(table)
    console.print(f"[dim]{report.signatures['BLEU']}[/]\n")


def show_changes(
    translator: Translator, translations: dict[str, list[Translation]], references: list[str]
) -> None:
    """The largest gains, and the largest loss, by sentence chrF: chosen by the numbers, not by hand."""

    def chrf(method: str, i: int) -> float:
        return sacrebleu.sentence_chrf(str(translations[method][i]), [references[i]]).score

    gains = sorted(range(len(references)), key=lambda i: chrf("base", i) - chrf("kster", i))
    console.rule(f"[bold]the {SHOWN} largest gains, and the largest loss")
    for i in [*gains[:SHOWN], gains[-1]]:
        source = translations["base"][i].source
        (adapted,) = translator.translate([source], method="kster", explain=True)
        show_change(translator, str(translations["base"][i]), adapted, references[i])


def show_change(translator: Translator, before: str, adapted: Translation, reference: str) -> None:
    tokens = adapted.tokens or ()
    end = translator.model.token_text(translator.model.eos_id)
    words = [word for word in words_of([t.token for t in tokens], end) if word.text != "⏎"]
    kept = before.split()
    changed = changed_words(kept, [word.text for word in words])
    console.print(f"[dim]source[/]   {adapted.source}", soft_wrap=True)
    console.print(f"[dim]base[/]     {before}", soft_wrap=True)
    line = Text("KSTER    ", style="dim")
    learned: dict[int, tuple[str, Example]] = {}
    for i, word in enumerate(words):
        own = tokens[word.first : word.last]
        from_memory = i in changed and max(token.memory_share for token in own) > 0.5
        line.append(" " if word.after_space else "", style="not dim")
        line.append(word.text, style="not dim bold green" if from_memory else "not dim")
        if from_memory and len(word.text) > 3:  # articles and the like teach nobody anything
            best = teacher(word.text, own)
            if best.segment not in learned or len(learned[best.segment][0]) < len(word.text):
                learned[best.segment] = (word.text, best)  # of several words the one that says most
    console.print(line, soft_wrap=True)
    console.print(f"[dim]wanted[/]   {reference}", soft_wrap=True)
    for text, best in list(learned.values())[:3]:
        how = "learned" if text in best.target else "in part"
        segment = f"#{best.segment} {best.source} → {best.target}"
        console.print(f"         [green]{text}[/] [dim]{how} from {segment}[/]", soft_wrap=True)
    console.print()


def teacher(word: str, tokens: Sequence[TokenExplanation]) -> Example:
    """The example with the most weight behind the word: one in which all of it stands, if there is one."""
    spoke = [
        (word in example.target, token.memory_share * example.weight, example)
        for token in tokens
        for example in token.examples
        if example.token == token.token
    ]
    return max(spoke, key=lambda found: found[:2])[2]


def changed_words(before: list[str], after: list[str]) -> set[int]:
    """Which words of `after` do not stand in `before` at their place."""
    matcher = difflib.SequenceMatcher(None, [w.strip(".,:;!?") for w in before], after, autojunk=False)
    return {i for tag, _, _, low, high in matcher.get_opcodes() if tag != "equal" for i in range(low, high)}


def correct_one(translator: Translator) -> None:
    assert isinstance(translator.memory, Memory)
    source, target = CORRECTION
    before = translator.translate([source, *NEXT])
    added = translator.memory.add(source, target, origin="correction")
    after = translator.translate([source, *NEXT])
    console.rule("[bold]one correction, used by the next sentence")
    console.print(f"[dim]source[/]     {source}\n[dim]KSTER[/]      {before[0]}", soft_wrap=True)
    learned = f"[dim](segment {added.id}, learned at once)[/]"
    console.print(f"[dim]corrected[/]  [green]{target}[/]  {learned}\n", soft_wrap=True)
    for text, old, new in zip(NEXT, before[1:], after[1:], strict=True):
        lines = f"[dim]next[/]       {text}\n[dim]before[/]     {old}\n[dim]now[/]        [green]{new}[/]\n"
        console.print(lines, soft_wrap=True)


def show_next(seconds: float) -> None:
    memory = MEMORY.relative_to(HERE.parent)
    console.rule(f"[bold]done in {seconds:.0f} s; now try")
    console.print(
        f'echo "Empty the knock box." | .venv/bin/kster translate --memory {memory}', soft_wrap=True
    )
    console.print(f'.venv/bin/kster memory add {memory} "your source" "your target"', soft_wrap=True)
    explain = f".venv/bin/kster translate --memory {memory} --explain html"
    console.print(f"head -20 examples/heldout.en | {explain} > why.html", soft_wrap=True)


if __name__ == "__main__":
    main()
