"""Public clients, unchanged, against a running server; and what Weblate and OmegaT send."""

from __future__ import annotations

import gzip
import json
import time
import urllib.parse
import urllib.request
from pathlib import Path

import httpx
import modernmt
import pytest
from deep_translator import LibreTranslator
from deep_translator.exceptions import ServerException
from libretranslatepy import LibreTranslateAPI
from running import RunningServer

from tiny import ENGLISH, GERMAN

NEW = ("the small machine gives cold coffee", "die kleine Maschine gibt kalten Kaffee")

TMX = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE tmx SYSTEM "tmx14.dtd">
<tmx version="1.4"><header srclang="en" segtype="sentence" adminlang="en" o-tmf="x" datatype="plaintext"
creationtool="x" creationtoolversion="1"/><body>
<tu tuid="a1"><tuv xml:lang="en-GB"><seg>the dog drinks cold water</seg></tuv>
<tuv xml:lang="de-DE"><seg>der Hund trinkt kaltes Wasser</seg></tuv></tu>
<tu tuid="a2"><tuv xml:lang="en-GB"><seg>untranslated</seg></tuv></tu>
</body></tmx>"""


@pytest.fixture
def mmt(server: RunningServer) -> modernmt.ModernMT:
    client = modernmt.ModernMT("any key")
    client._ModernMT__base_url = f"{server.url}/mmt"  # the client has no other way to name a server
    return client


def forget_suggestions(server: RunningServer) -> None:
    for memory in server.http.get("/v1/memories").json():
        for source in (NEW[0], ENGLISH[0]):
            found = server.http.get(f"/v1/memories/{memory['id']}/segments", params={"query": source}).json()
            for segment in found["segments"]:
                if segment["origin"] == "suggestion":
                    server.http.delete(f"/v1/memories/{memory['id']}/segments/{segment['id']}")


# LibreTranslate --------------------------------------------------------------------------------------


def test_libretranslatepy_translates_detects_and_lists_languages(server: RunningServer) -> None:
    client = LibreTranslateAPI(server.url)
    assert client.translate(ENGLISH[0], "en", "de") == GERMAN[0]
    assert client.detect("Die Maschine ist bereit, wenn das Licht grün ist.")[0]["language"] == "de"
    assert client.detect("The machine is ready when the light is green.")[0]["language"] == "en"
    languages = {language["code"]: language for language in client.languages()}
    assert languages["en"]["name"] == "English"
    assert "de" in languages["en"]["targets"]


def test_deep_translator_translates_one_and_many(server: RunningServer) -> None:
    client = LibreTranslator(source="en", target="de", api_key="any", custom_url=f"{server.url}/")
    assert client.translate(ENGLISH[3]) == GERMAN[3]
    assert client.translate_batch(ENGLISH[:2]) == GERMAN[:2]


def test_deep_translator_is_told_that_a_language_is_not_served(server: RunningServer) -> None:
    client = LibreTranslator(source="en", target="fr", api_key="any", custom_url=f"{server.url}/")
    with pytest.raises(ServerException):
        client.translate("the red house")


@pytest.mark.parametrize("how", ["json", "data", "params"])
def test_parameters_come_as_json_form_or_query(server: RunningServer, how: str) -> None:
    sent = {"q": ENGLISH[4], "source": "en", "target": "de"}
    assert server.http.post("/translate", **{how: sent}).json() == {"translatedText": GERMAN[4]}


def test_a_form_may_be_plain_utf8_as_curl_sends_it(server: RunningServer) -> None:
    kind = {"Content-Type": "application/x-www-form-urlencoded"}
    given = "q=Öl für %C3%A4ltere&source=de&target=de".encode()  # German already: it comes back as it is
    assert server.http.post("/translate", content=given, headers=kind).json() == {
        "translatedText": "Öl für ältere"
    }
    refused = server.http.post("/translate", content=b"q=\xffl&source=de&target=de", headers=kind)
    assert (refused.status_code, refused.json()["error"]) == (400, "the form cannot be read: it is not UTF-8")


def test_a_list_is_answered_by_a_list_and_auto_by_what_was_detected(server: RunningServer) -> None:
    sent = {"q": [ENGLISH[2], GERMAN[2]], "source": "auto", "target": "de"}
    answer = server.http.post("/translate", json=sent).json()
    assert answer["translatedText"] == [GERMAN[2], GERMAN[2]]
    assert [found["language"] for found in answer["detectedLanguage"]] == ["en", "de"]
    assert all(0 < found["confidence"] <= 100 for found in answer["detectedLanguage"])


def test_alternatives_are_given_when_asked_for(server: RunningServer) -> None:
    sent = {"q": ENGLISH[0], "source": "en", "target": "de", "alternatives": 2}
    answer = server.http.post("/translate", json=sent).json()
    assert answer["translatedText"] == GERMAN[0]
    assert len(answer["alternatives"]) == 2


def test_fuzzy_matches_are_named_when_asked_for(server: RunningServer) -> None:
    near = ENGLISH[0].replace("red", "old")
    sent = {"q": [ENGLISH[0], near], "source": "en", "target": "de", "matches": 1}
    answer = server.http.post("/translate", json=sent).json()
    assert answer["translatedText"][0] == GERMAN[0]  # as it was taught
    (whole,), (part,) = answer["matches"]
    assert (whole["percentage"], whole["target"]) == (100, GERMAN[0])
    assert (part["percentage"], part["source"]) == (85, ENGLISH[0])
    assert [(own["kind"], own["text"]) for own in part["changes"]][:3] == [
        ("same", "the "),
        ("removed", "red"),
        ("added", "old"),
    ]
    sent = {"text": near, "source": "en", "target": "de", "matches": 1}
    (done,) = server.http.post("/v1/translate", json=sent).json()["translations"]
    (found,) = done["matches"]
    assert (found["changes"], found["memory"]["id"]) == (part["changes"], part["memory"])
    assert found["memory"]["name"] == "house-style"


def test_html_keeps_its_tags_and_code_its_words(server: RunningServer) -> None:
    html = f'<p class="x">{ENGLISH[0]}<br><b>{ENGLISH[1]}</b> <code>{ENGLISH[2]}</code></p>'
    sent = {"q": html, "source": "en", "target": "de", "format": "html"}
    answer = server.http.post("/translate", json=sent).json()["translatedText"]
    assert answer == f'<p class="x">{GERMAN[0]}<br><b>{GERMAN[1]}</b> <code>{ENGLISH[2]}</code></p>'


def test_a_suggestion_is_learned_at_once(server: RunningServer) -> None:
    sent = {"q": NEW[0], "source": "en", "target": "de"}
    assert server.http.post("/translate", data=sent).json()["translatedText"] != NEW[1]
    answer = server.http.post("/suggest", data={**sent, "s": NEW[1]})
    assert answer.json() == {"success": True}
    try:
        assert server.http.post("/translate", data=sent).json()["translatedText"] == NEW[1]
    finally:
        forget_suggestions(server)


@pytest.mark.parametrize(
    ("path", "sent"),
    [
        ("/translate", {"source": "en", "target": "de"}),
        ("/translate", {"q": "a", "target": "de"}),
        ("/translate", {"q": "a", "source": "en"}),
        ("/translate", {"q": "a", "source": "en", "target": "tlh"}),
        ("/translate", {"q": 5, "source": "en", "target": "de"}),
        ("/translate", {"q": ["a", 5], "source": "en", "target": "de"}),
        ("/translate", {"q": "a", "source": "en", "target": "de", "format": "rtf"}),
        ("/translate", {"q": "a", "source": "en", "target": "de", "alternatives": 1000}),
        ("/detect", {}),
        ("/suggest", {"q": "a", "source": "en", "target": "de"}),
        ("/translate_file", {"source": "en", "target": "de"}),
    ],
)
def test_mistakes_are_answered_as_libretranslate_does(
    server: RunningServer, path: str, sent: dict[str, object]
) -> None:
    answer = server.http.post(path, json=sent)
    assert answer.status_code == 400
    assert isinstance(answer.json()["error"], str)


def test_frontend_settings_and_health(server: RunningServer) -> None:
    settings = server.http.get("/frontend/settings").json()
    assert settings["language"]["source"] == {"code": "en", "name": "English"}
    assert settings["keyRequired"] is False
    assert ".docx" in settings["supportedFilesFormat"]
    assert server.http.get("/health").json() == {"status": "ok"}


def test_omegat_translates_through_its_apertium_connector(server: RunningServer) -> None:
    """It sends languages with their country, and the bar between them as it is."""
    text = urllib.parse.quote_plus(ENGLISH[5])
    url = f"{server.url}/translate?q={text}&markUnknown=no&langpair=en_US|de_DE&key="
    with urllib.request.urlopen(url) as answer:
        translated = json.load(answer)
    assert translated == {
        "responseData": {"translatedText": GERMAN[5]},
        "responseDetails": None,
        "responseStatus": 200,
    }


# ModernMT --------------------------------------------------------------------------------------------


def test_modernmt_translates_one_and_many(mmt: modernmt.ModernMT) -> None:
    one = mmt.translate("en", "de", ENGLISH[0])
    assert one.translation == GERMAN[0]
    assert one.characters == len(ENGLISH[0])
    many = mmt.translate(None, "de", ENGLISH[:3], options={"alt_translations": 2})
    assert [item.translation for item in many] == GERMAN[:3]
    assert many[0].detectedLanguage == "en"
    assert len(many[0].altTranslations) == 2


def test_modernmt_makes_edits_and_deletes_memories(mmt: modernmt.ModernMT) -> None:
    memory = mmt.memories.create("terms", "of ours", "x-77")
    assert memory.name == "terms"
    assert memory.creationDate
    assert mmt.memories.get(memory.id).description == "of ours"
    assert mmt.memories.get("x-77").id == memory.id
    assert mmt.memories.edit(memory.id, name="words").name == "words"
    assert memory.id in [other.id for other in mmt.memories.list()]
    assert mmt.memories.delete(memory.id).id == memory.id
    with pytest.raises(modernmt.ModernMTException) as refused:
        mmt.memories.get(memory.id)
    assert refused.value.status == 404


def test_modernmt_teaches_and_the_hint_counts_in_the_next_translation(mmt: modernmt.ModernMT) -> None:
    memory = mmt.memories.create("taught")
    try:
        job = mmt.memories.add(memory.id, "en", "de", NEW[0], NEW[1], tuid="u1")
        assert mmt.memories.get_import_status(job.id).progress == 1.0
        assert mmt.translate("en", "de", NEW[0], hints=[memory.id]).translation == NEW[1]
        other = "die kleine Maschine gibt kaltes Wasser"
        mmt.memories.replace(memory.id, "u1", "en", "de", NEW[0], other)
        assert mmt.translate("en", "de", NEW[0], hints=[memory.id]).translation == other
    finally:
        mmt.memories.delete(memory.id)


@pytest.mark.parametrize("packed", [False, True])
def test_modernmt_imports_a_tmx(mmt: modernmt.ModernMT, tmp_path: Path, packed: bool) -> None:
    file = tmp_path / "terms.tmx"
    file.write_bytes(gzip.compress(TMX.encode()) if packed else TMX.encode())
    memory = mmt.memories.create("imported")
    try:
        job = mmt.memories.import_tmx(memory.id, str(file), compression="gzip" if packed else None)
        while (job := mmt.memories.get_import_status(job.id)).progress < 1.0:
            time.sleep(0.05)
        answer = mmt.translate("en", "de", "the dog drinks cold water", hints=[memory.id])
        assert answer.translation == "der Hund trinkt kaltes Wasser"
    finally:
        mmt.memories.delete(memory.id)


def test_modernmt_glossaries_serve_those_who_name_them(mmt: modernmt.ModernMT, tmp_path: Path) -> None:
    file = tmp_path / "terms.csv"
    file.write_text(f"en-GB,de\n{NEW[0]},{NEW[1]}\n", encoding="utf-8")
    glossary, other = mmt.memories.create("glossary"), mmt.memories.create("other")
    try:
        job = mmt.memories.import_glossary(glossary.id, str(file), "unidirectional")
        while (job := mmt.memories.get_import_status(job.id)).progress < 1.0:
            time.sleep(0.05)
        assert mmt.translate("en", "de", NEW[0]).translation != NEW[1]
        for hints in (None, [other.id]):
            answer = mmt.translate("en", "de", NEW[0], hints=hints, options={"glossaries": str(glossary.id)})
            assert answer.translation == NEW[1]
        better = "die kleine Maschine gibt kaltes Wasser"
        terms = [{"term": ENGLISH[0], "language": "en"}, {"term": better, "language": "de"}]
        mmt.memories.add_to_glossary(glossary.id, terms, "unidirectional", "t1")
        terms[0]["term"] = "the small machine gives cold water"
        mmt.memories.replace_in_glossary(glossary.id, terms, "unidirectional", "t1")
        options = {"glossaries": str(glossary.id)}
        assert mmt.translate("en", "de", terms[0]["term"], options=options).translation == better
        assert mmt.translate("en", "de", ENGLISH[0], options=options).translation == GERMAN[0]
    finally:
        mmt.memories.delete(glossary.id)
        mmt.memories.delete(other.id)


def test_a_glossary_that_cannot_be_used_is_refused(mmt: modernmt.ModernMT, tmp_path: Path) -> None:
    file = tmp_path / "terms.csv"
    memory = mmt.memories.create("glossary")
    try:
        for content, kind in [("de,en\na,b\n", "unidirectional"), ("en,de\na,b\n", "equivalent"), ("", None)]:
            file.write_text(content, encoding="utf-8")
            with pytest.raises(modernmt.ModernMTException) as refused:
                mmt.memories.import_glossary(memory.id, str(file), kind)
            assert refused.value.status == 400
        for terms in (None, [], ["a"], [{"term": 1, "language": "en"}], [{"term": "a", "language": "en"}]):
            with pytest.raises(modernmt.ModernMTException) as refused:
                mmt.memories.add_to_glossary(memory.id, terms, "unidirectional", None)
            assert refused.value.status == 400
    finally:
        mmt.memories.delete(memory.id)


def test_modernmt_is_told_its_mistakes_in_its_own_words(mmt: modernmt.ModernMT) -> None:
    for wrong in (
        lambda: mmt.translate("en", "tlh", "a"),
        lambda: mmt.translate("en", "de", "a", hints="one"),
        lambda: mmt.translate("en", "de", "a", context_vector="one:0.5"),
        lambda: mmt.translate("en", "de", "a", options={"glossaries": "one"}),
        lambda: mmt.memories.add(1, "en", "de", "", "x"),
    ):
        with pytest.raises(modernmt.ModernMTException) as refused:
            wrong()
        assert refused.value.status == 400
        assert refused.value.type == "BadRequestException"


def test_weblate_asks_both_apis_the_way_its_machinery_modules_do(server: RunningServer) -> None:
    """As Weblate 5.14 does it; tests/weblate lets it do so itself."""
    headers = {"Referer": "https://weblate.example.org/", "Accept": "application/json; charset=utf-8"}
    plain = httpx.Client(base_url=server.url, headers=headers, timeout=20)
    assert "en" in [language["code"] for language in plain.get("/languages").json()]
    sent = {"api_key": "k", "q": ENGLISH[6:8], "source": "en", "target": "de"}
    assert plain.post("/translate", json=sent).json()["translatedText"] == GERMAN[6:8]
    headers |= {"MMT-ApiKey": "k", "MMT-Platform": "Weblate", "MMT-PlatformVersion": "5.14.3"}
    keyed = httpx.Client(base_url=f"{server.url}/mmt", headers=headers, timeout=5)
    assert keyed.get("/languages").json() == {"status": 200, "data": {"en": ["de"]}}
    sent = {"q": ENGLISH[6], "source": "en", "target": "de"}
    answer = keyed.get("/translate", params=sent).json()
    assert (answer["status"], answer["data"]["translation"]) == (200, GERMAN[6])
    name = {"name": "weblate:1:en:de:1211951b2c095735"}
    glossary = keyed.post("/memories", data=name).json()["data"]["id"]
    terms = {"csv": ("terms.csv", f"en,de\r\n{NEW[0]},{NEW[1]}\r\n".encode())}
    job = keyed.post(f"/memories/{glossary}/glossary", data={"type": "unidirectional"}, files=terms).json()
    assert job["data"]["progress"] == 1.0  # Weblate translates by it at once, and keeps what it gets
    assert name["name"] in [memory["name"] for memory in keyed.get("/memories").json()["data"]]
    sent = {"q": NEW[0], "source": "en", "target": "de", "glossaries": glossary, "context_vector": "1:0.5"}
    assert keyed.get("/translate", params=sent).json()["data"]["translation"] == NEW[1]
    assert keyed.delete(f"/memories/{glossary}").status_code == 200
    assert keyed.delete(f"/memories/{glossary}").status_code == 404
