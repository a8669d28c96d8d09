"""A configuration file is read completely, or refused with a message that says what to mend."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any

import pytest

from kster.errors import KsterError
from kster.training import load_settings
from kster.training.__main__ import parse_overrides
from kster.training.settings import CorpusSettings, TrainSettings

RECIPES = Path(__file__).parents[2] / "recipes"


def test_every_recipe_is_valid() -> None:
    for path in RECIPES.glob("*.yaml"):
        load_settings(path)


def test_the_example_documents_every_key() -> None:
    written = set(re.findall(r"^[\s-]*(\w+):", (RECIPES / "example.yaml").read_text(), flags=re.MULTILINE))
    settings = load_settings(RECIPES / "example.yaml")
    parts = [
        settings,
        settings.dev,
        *(value for value in vars(settings).values() if dataclasses.is_dataclass(value)),
    ]
    keys = {field.name for part in parts for field in dataclasses.fields(part)}
    assert keys - written == set()


def test_the_example_shows_the_defaults() -> None:
    settings = load_settings(RECIPES / "example.yaml", {"cleaning.held_out": []})
    for name in ("cleaning", "vocabulary", "network", "training", "report", "export"):
        part = getattr(settings, name)
        assert part == type(part)()


def test_both_directions_share_their_prepared_data() -> None:
    there, back = (load_settings(RECIPES / f"{name}.yaml") for name in ("en-de", "de-en"))
    assert there.preparation_hash() == back.preparation_hash()
    assert there.prepared == back.prepared
    assert there.languages == ("en", "de")
    assert back.languages == ("de", "en")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"trainig": {}}, "unknown key 'trainig'; did you mean 'training'?"),
        ({"training": {"step": 3}}, "unknown key 'training.step'; did you mean 'steps'?"),
        ({"training": {"xyz": 3}}, "accepted here: steps, batch_tokens"),
        ({"training": {"steps": "many"}}, "training.steps: expected a whole number, found 'many'"),
        ({"training": {"steps": True}}, "training.steps: expected a whole number, found True"),
        ({"training": {"decay": "lineer"}}, "expected one of linear, cosine, inverse-sqrt, found 'lineer'"),
        ({"training": {"steps": 0}}, "training.steps: is 0; must be at least 1"),
        ({"corpora": "train.en"}, "corpora: expected a list, found 'train.en'"),
        ({"corpora": [{"source": "train.en"}]}, "the key 'corpora.0.target' is missing"),
        ({"corpora": []}, "at least one corpus"),
        ({"network": {"heads": 5}}, "network.heads: must divide network.dimension"),
        ({"init": "a", "vocabulary": {"reuse": "b"}}, "vocabulary.reuse: `init` brings its own vocabulary"),
        ({"seed": None}, "seed: expected a whole number, found nothing"),
        ({"seed": -1}, "seed: is -1; must be at least 0"),
        ({"seed": 2**70}, "must be at least 0 and at most 2,147,483,647"),
        ({"network": {"heads": 0}}, "network.heads: is 0; must be from 1"),
        ({"network": {"dimension": 0}}, "network.dimension: is 0; must be from 2"),
        ({"network": {"decoder_layers": -1}}, "network.decoder_layers: is -1; must be from 1"),
        ({"network": {"feed_forward": 0}}, "network.feed_forward: is 0"),
        ({"network": {"positions": 10**11}}, "network.positions: is 100000000000; must be from 2 to 65,536"),
        ({"training": {"betas": [0.9, 1.0]}}, "training.betas.1: is 1.0; must be at least 0 and below 1"),
        ({"training": {"learning_rate": float("nan")}}, "training.learning_rate: is nan; must be above 0"),
        ({"training": {"weight_decay": -1}}, "training.weight_decay: is -1.0; must be at least 0"),
        ({"training": {"chunk_pairs": 0}}, "training.chunk_pairs: is 0; must be at least 1"),
        ({"training": {"dropout": float("nan")}}, "training.dropout: is nan; must be at least 0 and below 1"),
        ({"vocabulary": {"sample": -3}}, "vocabulary.sample: is -3; must be at least 2"),
        ({"vocabulary": {"size": 99_999}}, "vocabulary.size: is 99999; must be from 300 to 65,535"),
        ({"cleaning": {"max_length_ratio": float("nan")}}, "cleaning.max_length_ratio: is nan"),
        ({"report": {"dev_pairs": 0}}, "report.dev_pairs: is 0; must be at least 1"),
        ({"export": {"num_beams": 0}}, "export.num_beams: is 0; must be from 1 to 256"),
        ({"output": ""}, "output: must not be empty"),
        (
            {"corpora": [{"source": "a", "target": "b", "weight": 0}]},
            "corpora: at least one weight must not be 0",
        ),
    ],
)
def test_a_mistake_is_named_with_its_file_and_key(config: Any, changes: dict[str, Any], message: str) -> None:
    path = config(**changes)
    with pytest.raises(KsterError, match=re.escape(message)) as error:
        load_settings(path)
    assert str(path) in str(error.value)


def test_a_missing_or_broken_file_is_an_error_for_people(tmp_path: Path) -> None:
    with pytest.raises(KsterError, match="no configuration file"):
        load_settings(tmp_path / "absent.yaml")
    (tmp_path / "broken.yaml").write_text("a: [1, 2")
    with pytest.raises(KsterError, match="not valid YAML"):
        load_settings(tmp_path / "broken.yaml")


def test_a_key_that_stands_twice_is_refused(config: Any) -> None:
    path = config()
    path.write_text(path.read_text() + "training:\n  steps: 3\n")
    with pytest.raises(KsterError, match=r"the key 'training' stands twice .*line \d+"):
        load_settings(path)


def test_overrides_win_over_the_file(config: Any) -> None:
    overrides = parse_overrides(["training.steps=7", "corpora.0.weight=0.5", "report.log_every=3", "init=x"])
    settings = load_settings(config(), overrides)
    assert settings.training.steps == 7
    assert settings.corpora[0].weight == 0.5
    assert settings.report.log_every == 3
    assert settings.init == "x"


def test_an_override_that_fits_nowhere_is_refused(config: Any) -> None:
    with pytest.raises(KsterError, match=r"--set corpora\.9\.weight"):
        load_settings(config(), {"corpora.9.weight": 1})
    with pytest.raises(KsterError, match="expected KEY=VALUE"):
        parse_overrides(["training.steps"])
    with pytest.raises(KsterError, match=r"--set training\.betas=\[: '\[' is not valid YAML"):
        parse_overrides(["training.betas=["])


def test_numbers_with_an_exponent_are_numbers(config: Any) -> None:
    overrides = parse_overrides(["training.learning_rate=1e-3", "training.betas=[9e-1, 0.98]"])
    settings = load_settings(config(), overrides)
    assert settings.training.learning_rate == 0.001
    assert settings.training.betas == (0.9, 0.98)


def test_an_unset_environment_variable_is_named(config: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KSTER_TEST_DATA", raising=False)
    settings = load_settings(config(data="${KSTER_TEST_DATA}/x"))
    with pytest.raises(KsterError, match="environment variable KSTER_TEST_DATA is not set"):
        settings.corpus_path("train.en")
    monkeypatch.setenv("KSTER_TEST_DATA", "/somewhere")
    assert settings.corpus_path("train.en") == Path("/somewhere/x/train.en")


@pytest.mark.parametrize("weight", [-1.0, 1e9, float("nan")])
def test_a_weight_is_a_number_that_can_be_drawn(config: Any, weight: float) -> None:
    with pytest.raises(KsterError, match=r"corpora\.0\.weight: is .*; must be from 0 to 1,000"):
        load_settings(config(), {"corpora.0.weight": weight})


def test_environment_variables_stand_in_every_path(
    config: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KSTER_TEST_RUNS", raising=False)
    settings = load_settings(config(prepared="${KSTER_TEST_RUNS}/data", output="${KSTER_TEST_RUNS}/out"))
    for name in ("prepared_directory", "output_directory"):
        with pytest.raises(KsterError, match="environment variable KSTER_TEST_RUNS is not set"):
            getattr(settings, name)
    monkeypatch.setenv("KSTER_TEST_RUNS", str(tmp_path))
    assert settings.prepared_directory == tmp_path / "data"
    assert settings.output_directory == tmp_path / "out"


def test_reverse_turns_the_files_round() -> None:
    assert CorpusSettings("a.de", "a.en", reverse=True).sides == ("a.en", "a.de")


def test_weights_and_direction_do_not_ask_for_new_prepared_data(config: Any) -> None:
    plain = load_settings(config())
    same = load_settings(
        config(), {"corpora.0.weight": 3, "direction": "swap", "seed": 5, "training.steps": 1}
    )
    other = load_settings(config(), {"cleaning.max_tokens": 50})
    assert plain.preparation_hash() == same.preparation_hash() != other.preparation_hash()
    assert isinstance(plain, TrainSettings)


def test_a_recipe_takes_what_it_does_not_say_from_the_one_it_is_like(config: Any) -> None:
    path = config()
    other = path.with_name("other.yaml")
    other.write_text(f"like: {path.name}\noutput: elsewhere\ntraining: {{steps: 7}}\n")
    ours, theirs = load_settings(other), load_settings(path)
    assert (ours.output, ours.training.steps) == ("elsewhere", 7)
    assert ours.training.batch_tokens == theirs.training.batch_tokens
    assert ours.corpora == theirs.corpora
    third = path.with_name("third.yaml")
    third.write_text(f"like: {other.name}\nseed: 5\n")
    assert (load_settings(third).seed, load_settings(third).output) == (5, "elsewhere")
    other.write_text(f"like: {third.name}\n")
    with pytest.raises(KsterError, match="the recipe is built on itself"):
        load_settings(other)
    other.write_text("like: missing.yaml\n")
    with pytest.raises(KsterError, match=r"there is no configuration file .*missing\.yaml"):
        load_settings(other)
