"""All doors of the server, the command line and Python give the same text for the same input."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import deepl as deepl_package
import modernmt as modernmt_package
import pytest
from deep_translator import LibreTranslator
from libretranslatepy import LibreTranslateAPI
from running import RunningServer
from translated import translate_file

from kster import Translator
from kster.terms import term
from tiny import ENGLISH, GERMAN

TEXTS = [
    f"{ENGLISH[0].capitalize()}. {ENGLISH[1].capitalize()}!",
    "Press <b>%(button)s</b> and open the {part}.",
    "{n, plural, one {# dog runs} other {# dogs run}}",
    "the red house",
]


def v1(server: RunningServer, text: str) -> str:
    body = {"text": text, "source": "en", "target": "de", "explain": True}
    answer = server.http.post("/v1/translate", json=body)
    return str(answer.json()["translations"][0]["text"])


def libretranslate(server: RunningServer, text: str) -> str:
    answer = server.http.post("/translate", json={"q": text, "source": "en", "target": "de"})
    return str(answer.json()["translatedText"])


def modernmt(server: RunningServer, text: str) -> str:
    answer = server.http.get("/mmt/translate", params={"q": text, "source": "en", "target": "de"})
    return str(answer.json()["data"]["translation"])


def deepl(server: RunningServer, text: str) -> str:
    sent = {"text": [text], "source_lang": "EN", "target_lang": "DE"}
    return str(server.http.post("/v2/translate", json=sent).json()["translations"][0]["text"])


def apertium(server: RunningServer, text: str) -> str:
    answer = server.http.get("/translate", params={"q": text, "langpair": "en|de"})
    return str(answer.json()["responseData"]["translatedText"])


def file(server: RunningServer, text: str) -> str:
    return translate_file(server, "a.txt", text.encode()).decode()


def deepl_client(server: RunningServer, text: str) -> str:
    client = deepl_package.DeepLClient("any key", server_url=server.url)
    done = client.translate_text(text, source_lang="EN", target_lang="DE")
    assert isinstance(done, deepl_package.TextResult)
    return done.text


def modernmt_client(server: RunningServer, text: str) -> str:
    client = modernmt_package.ModernMT("any key")
    client._ModernMT__base_url = f"{server.url}/mmt"  # the client has no other way to name a server
    return str(client.translate("en", "de", text).translation)


def libretranslatepy_client(server: RunningServer, text: str) -> str:
    return str(LibreTranslateAPI(server.url).translate(text, "en", "de"))


def deep_translator_client(server: RunningServer, text: str) -> str:
    client = LibreTranslator(source="en", target="de", api_key="any", custom_url=f"{server.url}/")
    return str(client.translate(text))


CLIENTS = [deepl_client, modernmt_client, libretranslatepy_client, deep_translator_client]


def test_the_command_line_translates_as_python_does(taught_marian: Path, shared_memory: Path) -> None:
    with Translator(taught_marian, memory=shared_memory, device="cpu") as translator:
        expected = [done.text for done in translator.translate(TEXTS)]
    command = [sys.executable, "-m", "kster", "translate", "--memory", str(shared_memory), "--device", "cpu"]
    done = subprocess.run(command, input="\n".join(TEXTS), capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == expected


@pytest.mark.parametrize("door", [v1, libretranslate, modernmt, deepl, apertium, file, *CLIENTS])
def test_every_door_translates_as_python_does(
    server: RunningServer, door: Callable[[RunningServer, str], str], taught_marian: Path, shared_memory: Path
) -> None:
    with Translator(taught_marian, memory=shared_memory, device="cpu") as translator:
        expected = [done.text for done in translator.translate(TEXTS)]
    assert [door(server, text) for text in TEXTS] == expected


HTML = [
    f"<p>{ENGLISH[0]}</p>",
    f'<p class="x">{ENGLISH[0].capitalize()}. <b>{ENGLISH[1]}</b>!</p><ul><li>{ENGLISH[2]}</li></ul>',
    'Press <a href="https://example.org/?a=1&amp;b=2">%(button)s</a> and <br> open the {part} &amp; the lid.',
]


def libretranslate_html(server: RunningServer, text: str) -> str:
    asked = {"q": text, "source": "en", "target": "de", "format": "html"}
    return str(server.http.post("/translate", json=asked).json()["translatedText"])


def modernmt_html(server: RunningServer, text: str) -> str:
    asked = {"q": text, "source": "en", "target": "de", "format": "text/html"}
    return str(server.http.get("/mmt/translate", params=asked).json()["data"]["translation"])


def deepl_html(server: RunningServer, text: str) -> str:
    sent = {"text": [text], "source_lang": "EN", "target_lang": "DE", "tag_handling": "html"}
    return str(server.http.post("/v2/translate", json=sent).json()["translations"][0]["text"])


def apertium_html(server: RunningServer, text: str) -> str:
    asked = {"q": text, "langpair": "en|de", "format": "html"}
    return str(server.http.get("/translate", params=asked).json()["responseData"]["translatedText"])


def file_html(server: RunningServer, text: str) -> str:
    return translate_file(server, "a.html", text.encode()).decode()


def deepl_client_html(server: RunningServer, text: str) -> str:
    client = deepl_package.DeepLClient("any key", server_url=server.url)
    done = client.translate_text(text, source_lang="EN", target_lang="DE", tag_handling="html")
    assert isinstance(done, deepl_package.TextResult)
    return done.text


def deepl_document(server: RunningServer, text: str) -> str:
    client, made = deepl_package.DeepLClient("any key", server_url=server.url), io.BytesIO()
    client.translate_document(text.encode(), made, source_lang="EN", target_lang="DE", filename="a.html")
    return made.getvalue().decode()


@pytest.mark.parametrize(
    "door",
    [
        libretranslate_html,
        modernmt_html,
        deepl_html,
        apertium_html,
        file_html,
        deepl_client_html,
        deepl_document,
    ],
)
def test_every_door_translates_html_as_python_does(
    server: RunningServer,
    door: Callable[[RunningServer, str], str],
    taught_marian: Path,
    shared_memory: Path,
    tmp_path: Path,
) -> None:
    with Translator(taught_marian, memory=shared_memory, device="cpu") as translator:
        for text in HTML:
            (tmp_path / "in.html").write_text(text, encoding="utf-8")
            translator.translate_file(tmp_path / "in.html", tmp_path / "out.html")
            assert door(server, text) == (tmp_path / "out.html").read_text(encoding="utf-8")


def test_the_command_line_translates_html_as_python_does(
    taught_marian: Path, shared_memory: Path, tmp_path: Path
) -> None:
    (tmp_path / "in.html").write_text(HTML[1], encoding="utf-8")
    with Translator(taught_marian, memory=shared_memory, device="cpu") as translator:
        translator.translate_file(tmp_path / "in.html", tmp_path / "expected.html")
    command = [sys.executable, "-m", "kster", "translate", str(tmp_path / "in.html")]
    command += ["-o", str(tmp_path / "out.html"), "--memory", str(shared_memory), "--device", "cpu"]
    subprocess.run(command, capture_output=True, check=True)
    assert (tmp_path / "out.html").read_bytes() == (tmp_path / "expected.html").read_bytes()


TERMS = [term("machine", ["Wassermaschine"], part_of_speech="noun")]
WITH_TERM = "do not open the lid while the machine is hot"


def test_every_door_keeps_terms(server: RunningServer, taught_marian: Path, shared_memory: Path) -> None:
    with Translator(taught_marian, memory=shared_memory, device="cpu") as translator:
        expected = translator.translate(WITH_TERM, terms=TERMS).text
    assert "Wassermaschine" in expected
    given = {"source": "machine", "target": "Wassermaschine", "part_of_speech": "noun"}
    body = {"text": WITH_TERM, "source": "en", "target": "de", "explain": True, "terms": [given]}
    (one,) = server.http.post("/v1/translate", json=body).json()["translations"]
    assert one["text"] == expected
    terms = {word["text"].startswith("Wassermaschine"): word.get("term") for word in one["words"]}
    assert terms == {True: "machine", False: None}
    asked = {"q": WITH_TERM, "source": "en", "target": "de"}
    for terms in ([given], json.dumps([given])):
        answer = server.http.post("/translate", json={**asked, "terms": terms})
        assert answer.json()["translatedText"] == expected
    short = server.http.post("/translate", json={**asked, "terms": {"machine": "Wassermaschine"}})
    assert "Wassermaschine" in short.json()["translatedText"]


def test_a_modernmt_glossary_is_kept(server: RunningServer) -> None:
    glossary = server.http.post("/mmt/memories", data={"name": "glossary"}).json()["data"]["id"]
    terms = [{"term": "machine", "language": "en"}, {"term": "Wassermaschine", "language": "de"}]
    sent = {"terms": terms, "type": "unidirectional"}
    assert server.http.post(f"/mmt/memories/{glossary}/glossary", json=sent).status_code == 200
    asked = {"q": WITH_TERM, "source": "en", "target": "de"}
    assert "Wassermaschine" not in modernmt(server, WITH_TERM)
    answer = server.http.get("/mmt/translate", params={**asked, "glossaries": glossary})
    assert "Wassermaschine" in answer.json()["data"]["translation"]


@pytest.mark.parametrize("terms", ["no JSON", 7, [{"source": "a"}], [{"target": "b"}], {"a": ["b"]}])
def test_terms_that_are_none_are_refused_by_name(server: RunningServer, terms: object) -> None:
    asked = {"q": "a", "source": "en", "target": "de", "terms": terms}
    answer = server.http.post("/translate", json=asked)
    assert answer.status_code == 400
    assert "term" in answer.json()["error"]


def switched(server: RunningServer, text: str, exact: bool | None) -> dict[str, str]:
    """What the doors with a switch for exact matches answer. exact: None to leave it out."""
    own = {} if exact is None else {"exact_matches": exact}
    deepls = {f"kster_{name}": value for name, value in own.items()}
    pair, langs = {"source": "en", "target": "de"}, {"source_lang": "EN", "target_lang": "DE"}
    post = server.http.post
    stream = post("/v1/translate", json={"text": text, **pair, **own, "stream": True}).text.splitlines()
    lines = [json.loads(line) for line in stream[1:]]
    html, file = f"<p>{text}</p>".encode(), ("a.html", f"<p>{text}</p>".encode())
    link = post("/translate_file", files={"file": file}, data={**pair, **own}).json()["translatedFileUrl"]
    client, made = deepl_package.DeepLClient("any key", server_url=server.url), io.BytesIO()
    extra = {name: str(value).lower() for name, value in deepls.items()}
    client.translate_document(
        html,
        made,
        **langs,
        filename="a.html",
        extra_body_parameters=extra,  # type: ignore[arg-type]
    )
    v2 = post("/v2/translate", json={"text": [text], **langs, **deepls}).json()
    mmt = server.http.get("/mmt/translate", params={"q": text, **pair, **own}).json()
    return {
        "/v1": post("/v1/translate", json={"text": text, **pair, **own}).json()["translations"][0]["text"],
        "/v1, in parts": "".join(
            line.get("before", "") + line.get("text", line.get("after")) for line in lines
        ),
        "LibreTranslate": post("/translate", json={"q": text, **pair, **own}).json()["translatedText"],
        "ModernMT": mmt["data"]["translation"],
        "DeepL": v2["translations"][0]["text"],
        "a file": server.http.get(link).text.removeprefix("<p>").removesuffix("</p>"),
        "a DeepL document": made.getvalue().decode().removeprefix("<p>").removesuffix("</p>"),
    }


def test_every_door_with_the_switch_translates_a_taught_text_like_any_other(server: RunningServer) -> None:
    sentences = [f"{ENGLISH[0].capitalize()}.", f"{ENGLISH[1].capitalize()}!"]
    text, taught = " ".join(sentences), f"{GERMAN[2].capitalize()}!"
    memory = server.http.post("/v1/memories", json={"name": "whole lines", "automatic": True}).json()["id"]
    server.http.post(f"/v1/memories/{memory}/segments", json={"source": text, "target": taught})
    try:
        free = " ".join(v1(server, sentence) for sentence in sentences)
        assert free != taught
        for exact, expected in ((None, taught), (True, taught), (False, free)):
            assert set(switched(server, text, exact).values()) == {expected}
    finally:
        server.http.delete(f"/v1/memories/{memory}")


def test_doors_that_can_say_how_sure_they_are_agree(
    server: RunningServer, taught_marian: Path, shared_memory: Path
) -> None:
    with Translator(taught_marian, memory=shared_memory, device="cpu") as translator:
        (expected,) = translator.translate([TEXTS[0]], confidence=True)
    about = pytest.approx(expected.confidence, abs=0.02)  # other sentences in a batch move it a little
    body = {"text": TEXTS[0], "source": "en", "target": "de"}
    (one,) = server.http.post("/v1/translate", json={**body, "confidence": True}).json()["translations"]
    assert one["confidence"] == about
    assert [word["text"] for word in one["words"]] == [word.text for word in expected.words or ()]
    assert all(0 <= word["confidence"] <= 1 for word in one["words"])
    both = {**body, "confidence": True, "explain": True}
    (explained,) = server.http.post("/v1/translate", json=both).json()["translations"]
    assert explained["words"][0]["confidence"] == pytest.approx(one["words"][0]["confidence"], abs=0.02)
    (without,) = server.http.post("/v1/translate", json=body).json()["translations"]
    assert "confidence" not in without
    asked = {"q": TEXTS[0], "source": "en", "target": "de", "confidence": "true"}
    assert server.http.post("/translate", data=asked).json()["confidence"] == about
    html = server.http.post("/translate", json={**asked, "format": "html", "q": "<p>%s</p>"}).json()
    assert html["confidence"] == 1.0
    sent = {"text": [TEXTS[0]], "source_lang": "EN", "target_lang": "DE", "kster_confidence": True}
    (translated,) = server.http.post("/v2/translate", json=sent).json()["translations"]
    assert translated["kster_confidence"] == about
    wrong = server.http.post("/translate", json={**asked, "confidence": "perhaps"})
    assert wrong.status_code == 400
    assert "accepted: true, false" in wrong.json()["error"]
