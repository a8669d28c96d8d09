"""Checkpoints that we did not make: OPUS-MT between English and French, adapted and served."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import transformers
from fetching import fetch

from kster import Memory, Pair, Translator
from kster.smoothing import FitSettings, fit

TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(TESTS / "server"), str(TESTS / "page")]

from browser import launch  # noqa: E402
from playwright.sync_api import expect, sync_playwright  # noqa: E402
from running import RunningServer, start  # noqa: E402

pytestmark = pytest.mark.slow

SENTENCES = {
    "en-fr": [
        "The committee will meet again on Tuesday.",
        "Can you tell me when the next train to Lyon leaves?",
        "Press the green button to empty the drip tray.",
        "“He didn’t know what to do,” she said…",
        "Prices rose by 3.5% in the last 12 months.",
        "Save as",
    ],
    "fr-en": [
        "Le comité se réunira de nouveau mardi.",
        "Pouvez-vous me dire quand part le prochain train pour Lyon ?",
        "« Il ne savait pas quoi faire », dit-elle.",
        "Enregistrer sous…",
    ],
}
TAUGHT = (
    "Wipe the dosing funnel with a dry cloth.",
    "Essuyez la trémie de dosage avec un chiffon sec.",
)
PARTS = {
    "dosing funnel": "la trémie de dosage",
    "knock box": "la boîte à marc",
    "steam wand": "la buse vapeur",
    "drip tray": "la grille d'égouttage",
    "group gasket": "la garniture du groupe",
    "tamping mat": "la natte de tassage",
}
ACTIONS = {
    "Clean the {} every evening.": "Nettoyez {} tous les soirs.",
    "Do not put the {} in the dishwasher.": "Ne mettez pas {} au lave-vaisselle.",
    "Check the {} for cracks.": "Vérifiez que {} n'est pas fissurée.",
    "Take the {} off the machine.": "Retirez {} de la machine.",
    "Rinse the {} with warm water.": "Rincez {} à l'eau tiède.",
    "Let the {} cool down first.": "Laissez d'abord refroidir {}.",
    "Order the {} from your dealer.": "Commandez {} auprès de votre revendeur.",
}


@pytest.fixture(scope="module")
def models(request: pytest.FixtureRequest) -> Path:
    given = os.environ.get("OPUS_MT_MODELS")
    return fetch(Path(given) if given else Path(request.config.cache.mkdir("opus")))  # type: ignore[union-attr]


@pytest.mark.parametrize("pair", ["en-fr", "fr-en"])
def test_kster_and_transformers_translate_alike(pair: str, models: Path) -> None:
    translator = Translator(models / pair)
    assert (translator.model.source_lang, translator.model.target_lang) == tuple(pair.split("-"))
    network = transformers.MarianMTModel.from_pretrained(models / pair)
    tokenizer = transformers.MarianTokenizer.from_pretrained(models / pair)
    for source, ours in zip(SENTENCES[pair], translator.translate(SENTENCES[pair]), strict=True):
        inputs = tokenizer([source], return_tensors="pt")
        limit = 2 * inputs["input_ids"].shape[1] + 20
        (ids,) = network.generate(**inputs, num_beams=4, length_penalty=0.6, max_new_tokens=limit)
        assert ours.text == tokenizer.decode(ids, skip_special_tokens=True)


def test_a_memory_and_its_fit_adapt_a_checkpoint_of_others(models: Path, tmp_path: Path) -> None:
    translator = Translator(models / "en-fr")
    pairs = [
        Pair(english.format(part), french.format(theirs))
        for english, french in ACTIONS.items()
        for part, theirs in PARTS.items()
    ]
    question = "Is the dosing funnel dirty?"
    with Memory.create(tmp_path / "memory", translator.model) as memory:
        memory.import_pairs(pairs)
        (known,) = translator.translate([pairs[0].source], memory=memory)
        assert known.text == pairs[0].target
        report = fit(translator.model, memory, FitSettings(steps=40))
        assert report.dev.kster < report.dev.base
        (base,) = translator.translate([question], method="base")
        (adapted,) = translator.translate([question], memory=memory)
    assert "trémie de dosage" not in base.text
    assert "trémie de dosage" in adapted.text


@pytest.fixture(scope="module")
def server(models: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """Three languages: the two shipped models, and one of OPUS-MT."""
    shipped = [str(TESTS.parent / "models" / pair) for pair in ("en-de", "de-en")]
    named = [part for model in (*shipped, str(models / "en-fr")) for part in ("--model", model)]
    running = start(tmp_path_factory.mktemp("opus") / "data", *named)
    yield running
    assert running.stop() == 0


def test_every_api_offers_the_third_language(server: RunningServer) -> None:
    targets = {x["code"]: set(x["targets"]) for x in server.http.get("/languages").json()}
    assert targets["en"] >= {"de", "fr"}
    assert "fr" not in targets["de"]
    libre = {"q": "Good morning, colleagues.", "source": "en"}
    french = server.http.post("/translate", json={**libre, "target": "fr"}).json()["translatedText"]
    german = server.http.post("/translate", json={**libre, "target": "de"}).json()["translatedText"]
    assert "Bonjour" in french
    assert "Guten Morgen" in german
    modern = {"q": libre["q"], "source": "en", "target": "fr"}
    answer = server.http.get("/mmt/translate", params=modern).json()
    assert answer["data"]["translation"] == french
    file = {"file": ("hello.txt", libre["q"].encode(), "text/plain")}
    sent = server.http.post("/translate_file", files=file, data={"source": "en", "target": "fr"}).json()
    assert server.http.get(sent["translatedFileUrl"]).text.strip() == french


def test_one_memory_teaches_french_and_german_apart(server: RunningServer) -> None:
    memory = server.http.post("/v1/memories", json={"name": "Espresso"}).json()["id"]
    taught = {"source": TAUGHT[0], "target": TAUGHT[1], "pair": "en-fr"}
    assert server.http.post(f"/v1/memories/{memory}/segments", json=taught).status_code == 201
    asked = {"text": [TAUGHT[0]], "source": "en", "memories": [memory]}
    texts = {
        target: server.http.post("/v1/translate", json={**asked, "target": target}).json()["translations"][0][
            "text"
        ]
        for target in ("fr", "de")
    }
    assert texts["fr"] == TAUGHT[1]
    assert "trémie" not in texts["de"]


def test_the_page_translates_into_the_third_language(server: RunningServer) -> None:
    with sync_playwright() as playwright:
        browser = launch(playwright)
        page = browser.new_page(base_url=server.url)
        page.goto("/")
        page.get_by_label("From", exact=True).select_option("en")
        page.get_by_label("Into", exact=True).select_option("fr")
        page.get_by_label("Text to translate").fill("Good morning, colleagues.")
        expect(page.locator("#adapted")).to_contain_text("Bonjour", timeout=60_000)
        browser.close()
