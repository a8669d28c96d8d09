"""Settings: where they come from, which wins, and what is said about mistakes."""

from __future__ import annotations

from pathlib import Path

import pytest

from kster.errors import KsterError
from kster.server.middleware import Buckets
from kster.server.settings import read_settings
from kster.text.detection import Detector


def test_the_command_line_wins_over_variables_and_those_over_the_file(tmp_path: Path) -> None:
    config = tmp_path / "server.yaml"
    config.write_text("port: 1\nbeam: 2\nhost: localhost\ndata: mine\nmodels: [m, {path: n, source: en}]\n")
    settings = read_settings(config, {"port": 3, "host": None}, {"KSTER_PORT": "2", "KSTER_BEAM": "5"})
    assert (settings.port, settings.beam, settings.host) == (3, 5, "localhost")
    assert settings.data == tmp_path / "mine"
    assert [(m.path, m.source) for m in settings.models] == [("m", None), ("n", "en")]
    listed = read_settings(None, {}, {"KSTER_MODELS": "a, b", "KSTER_CONFIG": str(config)})
    assert [m.path for m in listed.models] == ["a", "b"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("prot: 80", ["prot is not a setting", "port"]),
        ("port: many", ["port is 'many'"]),
        ("port: 99999", ["port is 99999", "65535"]),
        ("log_level: loud", ["log_level"]),
        ("- port", ["name: value"]),
        ("port: [", ["not valid YAML"]),
    ],
)
def test_a_mistake_in_the_file_is_named(tmp_path: Path, content: str, words: list[str]) -> None:
    config = tmp_path / "server.yaml"
    config.write_text(content)
    with pytest.raises(KsterError) as refused:
        read_settings(config, {}, {})
    for word in (str(config), *words):
        assert word in str(refused.value)


def test_a_variable_that_is_no_setting_is_named() -> None:
    with pytest.raises(KsterError, match=r"KSTER_PROT.*port"):
        read_settings(None, {}, {"KSTER_PROT": "80"})


def test_a_mistake_is_named_by_where_it_was_made(tmp_path: Path) -> None:
    config = tmp_path / "server.yaml"
    config.write_text("beam: 99\n")
    with pytest.raises(KsterError, match=r"^KSTER_PORT: port is 'many'"):
        read_settings(None, {}, {"KSTER_PORT": "many"})
    with pytest.raises(KsterError, match=r"^the command line: port is 70000"):
        read_settings(None, {"port": 70_000}, {"KSTER_PORT": "many"})
    with pytest.raises(KsterError) as refused:
        read_settings(config, {}, {"KSTER_PORT": "many", "KSTER_HOST": "localhost"})
    assert "KSTER_PORT: port is 'many'" in str(refused.value)
    assert f"{config}: beam is 99" in str(refused.value)
    assert "KSTER_HOST" not in str(refused.value)


def test_keys_are_needed_wherever_others_can_reach_the_server() -> None:
    for host, needed in [("127.0.0.1", False), ("localhost", False), ("::1", False), ("0.0.0.0", True)]:
        assert read_settings(None, {"host": host}, {}).keys_required is needed
    assert read_settings(None, {"host": "example.org"}, {}).keys_required is True
    assert read_settings(None, {"require_keys": True}, {}).keys_required is True


def test_a_bucket_empties_and_fills_again() -> None:
    buckets = Buckets(per_minute=40)
    assert [buckets.wait("a") == 0 for _ in range(11)] == [True] * 10 + [False]
    assert 0 < buckets.wait("a") <= 1.5
    assert buckets.wait("b") == 0


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Please read the manual before you use the machine.", "en"),
        ("Bitte lesen Sie die Anleitung vor dem Gebrauch.", "de"),
        ("the water tank", "en"),
        ("Größe ändern", "de"),
        ("Veuillez lire le manuel avec attention.", "fr"),
        ("Прочтите инструкцию", "ru"),
        ("取扱説明書をお読みください", "ja"),
    ],
)
def test_the_language_of_a_short_text_is_told(text: str, language: str) -> None:
    detector = Detector({"en", "de", "fr", "ru", "ja"})
    assert detector.best(text)[0] == language
    assert sum(confidence for _, confidence in detector.detect(text)) == pytest.approx(100, abs=0.5)


def test_a_text_without_words_leaves_little_confidence() -> None:
    assert Detector({"en", "de"}).best("12345")[1] == 50.0
