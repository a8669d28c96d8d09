"""A TMX file or a line-aligned pair is all that a model needs, and the smoother that it carries."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from kster import KsterError, Pair, Smoother
from kster.cli import main
from kster.formats import write_pairs
from kster.model import BaseModel
from kster.training import load_settings
from kster.training.from_pairs import recipe_from_pairs, scaled
from tiny import ENGLISH, GERMAN

PAIRS = [
    (f"{first} and {second} {number}", f"{erst} und {zweit} {number}")
    for number in range(10)
    for first, erst in zip(ENGLISH, GERMAN, strict=True)
    for second, zweit in zip(ENGLISH, GERMAN, strict=True)
    if first != second
]


@pytest.fixture(scope="module")
def tmx(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pairs") / "memory.tmx"
    write_pairs(path, (Pair(*pair) for pair in PAIRS), "en", "nl")  # any languages: nothing knows them
    return path


def arguments(file: Path, output: Path, *more: str) -> list[str]:
    languages = ["--source-lang", "en", "--target-lang", "nl"]
    tiny = ["network.dimension=32", "network.feed_forward=64", "network.encoder_layers=1", "training.steps=6"]
    tiny += ["vocabulary.size=450", "smoother.steps=4", "device=cpu", "report.bleu_every=-1"]
    settings = [part for key in tiny for part in ("--set", key)]
    return ["train", "--pairs", str(file), *languages, "--output", str(output), *settings, *more]


def test_a_tmx_file_becomes_a_model_with_its_smoother(
    tmx: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments(tmx, tmp_path / "en-nl", "--smoother")) == 0
    out, told = capsys.readouterr()
    assert str(tmp_path / "en-nl" / "model") in out
    assert "domain0" in told  # a line for each memory
    model = BaseModel.load(tmp_path / "en-nl" / "model")
    assert (model.source_lang, model.target_lang) == ("en", "nl")
    Smoother.load(tmp_path / "en-nl" / "model" / "smoother")
    report = json.loads((tmp_path / "en-nl" / "model" / "smoother" / "report.json").read_text())
    assert report["domains"].keys() == {"domain0", "domain1", "domain2", "domain3"}


def test_the_text_is_divided_and_nothing_of_it_is_used_twice(tmx: Path, tmp_path: Path) -> None:
    recipe = recipe_from_pairs([tmx], "en", "nl", tmp_path / "out")
    parts = {path.name: path.read_text().splitlines() for path in (tmp_path / "out" / "text").glob("*.en")}
    assert set(parts) == {"train.en", "dev.en", *(f"domain{i}.en" for i in range(4))}
    together = [line for lines in parts.values() for line in lines]
    assert sorted(together) == sorted(source for source, _ in PAIRS)
    domain = parts["domain1.en"]
    first = [source for source, _ in PAIRS].index(domain[0])
    assert domain == [source for source, _ in PAIRS[first : first + len(domain)]]  # neighbours
    assert load_settings(recipe).smoother.general[0].source == "dev.en"


def test_the_same_command_again_uses_the_recipe_as_it_is(tmx: Path, tmp_path: Path) -> None:
    recipe = recipe_from_pairs([tmx], "en", "nl", tmp_path / "out")
    recipe.write_text(recipe.read_text().replace("seed: 1", "seed: 5"))
    assert recipe_from_pairs([tmx], "en", "nl", tmp_path / "out") == recipe
    assert load_settings(recipe).seed == 5
    with pytest.raises(KsterError, match="is for en → nl; it was left untouched"):
        recipe_from_pairs([tmx], "nl", "en", tmp_path / "out")


def test_line_aligned_text_is_named_by_what_its_files_share(tmp_path: Path) -> None:
    for side, language in enumerate(("en", "de")):
        lines = "".join(f"{pair[side]}\n" for pair in PAIRS[:200])
        (tmp_path / f"corpus.{language}").write_text(lines, encoding="utf-8")
    recipe = recipe_from_pairs([tmp_path / "corpus"], "en", "de", tmp_path / "out")
    settings = load_settings(recipe)
    assert settings.smoother.domains == ()  # 200 pairs leave no text for it
    assert len((tmp_path / "out" / "text" / "train.de").read_text().splitlines()) == 190


def test_too_little_text_and_half_a_command_are_refused(
    tmx: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(KsterError, match=r"no unit is in both en and fi\. Languages found: "):
        recipe_from_pairs([tmx], "en", "fi", tmp_path / "out")
    some = tmp_path / "some.tsv"
    some.write_text("one\teins\n" * 200, encoding="utf-8")
    with pytest.raises(KsterError, match=r"some\.tsv: 1 pairs of en and de; a model needs at least 100"):
        recipe_from_pairs([some], "en", "de", tmp_path / "out")
    assert not (tmp_path / "out").exists()
    assert main(["train", "--pairs", str(tmx)]) == 2
    assert "accepted: CONFIG alone, or --pairs FILE" in capsys.readouterr().err
    few = tmp_path / "few.tsv"
    few.write_text("".join(f"{source}\t{target}\n" for source, target in PAIRS[:200]), encoding="utf-8")
    assert main(arguments(few, tmp_path / "few", "--smoother")) == 2
    assert "--smoother needs text that was not trained on" in capsys.readouterr().err


def test_more_text_gets_a_larger_network_and_vocabulary() -> None:
    few, many = scaled(PAIRS), scaled([("a" * 80, "b" * 90)] * 300_000)
    assert few["network"]["dimension"] < many["network"]["dimension"] == 512
    assert few["vocabulary"]["size"] < many["vocabulary"]["size"] == 16_000
    assert few["training"]["dropout"] > many["training"]["dropout"]
    assert many["training"]["batch_tokens"] == 40_000


def test_the_stages_run_where_only_torch_and_its_friends_are_installed() -> None:
    """On a bare GPU machine: no typer, rich, pydantic, lxml, polib or sacrebleu."""
    missing = ("typer", "rich", "pydantic", "lxml", "polib", "sacrebleu", "fastapi")
    modules = ("kster.training.__main__", "kster.training.scoring")
    code = f"import sys; sys.modules.update(dict.fromkeys({missing}))\n" + "".join(
        f"import {name}\n" for name in (*modules, "kster.training", "kster.smoothing.fitting.carried")
    )
    subprocess.run([sys.executable, "-c", code], check=True)
