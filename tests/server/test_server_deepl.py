"""DeepL's own client, unchanged, against a running server; and what Weblate's DeepL engine sends."""

from __future__ import annotations

import io
from collections.abc import Iterator

import deepl
import httpx
import pytest
from running import RunningServer

from tiny import ENGLISH, GERMAN

TERM = ("the small machine gives cold coffee", "die kleine Maschine gibt kalten Kaffee")


@pytest.fixture
def client(server: RunningServer) -> Iterator[deepl.DeepLClient]:
    before = deepl.http_client.max_network_retries
    deepl.http_client.max_network_retries = 0
    yield deepl.DeepLClient("any key", server_url=server.url)
    deepl.http_client.max_network_retries = before


def test_a_text_and_a_list_are_translated_and_their_language_is_found(client: deepl.DeepLClient) -> None:
    one = client.translate_text(ENGLISH[0], target_lang="DE")
    assert (one.text, one.detected_source_lang, one.billed_characters) == (GERMAN[0], "EN", len(ENGLISH[0]))
    many = client.translate_text(
        ENGLISH[:3],
        source_lang="EN",
        target_lang="de",
        context="a manual",
        split_sentences="nonewlines",
        preserve_formatting=True,
        formality="prefer_more",
    )
    assert [own.text for own in many] == GERMAN[:3]


def test_formality_is_served_where_memories_speak_so(
    client: deepl.DeepLClient, server: RunningServer
) -> None:
    source, voices = (
        "please press the red button",
        {"more": "Drücken Sie die Taste", "less": "Drück deine Taste"},
    )
    made = []
    for voice, target in voices.items():
        memory = server.http.post("/v1/memories", json={"name": voice, "automatic": True}).json()["id"]
        example = {"source": source, "target": target, "pair": "en-de"}
        assert server.http.post(f"/v1/memories/{memory}/segments", json=example).status_code == 201
        made.append(memory)
    try:
        for voice, target in voices.items():
            for formality in (voice, f"prefer_{voice}"):
                done = client.translate_text(source, source_lang="EN", target_lang="DE", formality=formality)
                assert done.text == target
        (german,) = client.get_target_languages()
        assert german.supports_formality
        only = {"extra_body_parameters": {"kster_memories": [made[0]]}}
        asked = {"source_lang": "EN", "target_lang": "DE", **only}
        assert client.translate_text(source, formality="prefer_less", **asked).text == voices["more"]
        with pytest.raises(deepl.DeepLException, match="'formality' is not supported"):
            client.translate_text(source, formality="less", **asked)
    finally:
        for memory in made:
            server.http.delete(f"/v1/memories/{memory}")


def test_tags_of_html_and_xml_are_kept_and_ignored_ones_untranslated(client: deepl.DeepLClient) -> None:
    html = f'<p class="x">{ENGLISH[0]}<br><b>{ENGLISH[1]}</b></p>'
    done = client.translate_text(html, source_lang="EN", target_lang="DE", tag_handling="html")
    assert done.text == f'<p class="x">{GERMAN[0]}<br><b>{GERMAN[1]}</b></p>'
    xml = f"<doc><title>{ENGLISH[0]}</title><code>{ENGLISH[1]}</code><p>{ENGLISH[2]}</p></doc>"
    done = client.translate_text(
        xml, source_lang="EN", target_lang="DE", tag_handling="xml", ignore_tags="code"
    )
    assert done.text == f"<doc><title>{GERMAN[0]}</title><code>{ENGLISH[1]}</code><p>{GERMAN[2]}</p></doc>"


def test_sentences_are_split_as_asked(client: deepl.DeepLClient, server: RunningServer) -> None:
    broken = ENGLISH[0].replace(" ", "\n", 1)
    for way, expected in [("nonewlines", GERMAN[0]), ("1", None), ("0", None)]:
        done = client.translate_text(broken, source_lang="EN", target_lang="DE", split_sentences=way)
        assert (done.text == expected) == (expected is not None)
        assert ("\n" in done.text) == (expected is None)


def test_a_document_is_uploaded_translated_and_downloaded(client: deepl.DeepLClient) -> None:
    out = io.BytesIO()
    page = f"<p>{ENGLISH[0]}</p>\n<p>{ENGLISH[1]}</p>\n".encode()
    status = client.translate_document(page, out, source_lang="EN", target_lang="DE", filename="a.html")
    assert (status.done, status.billed_characters) == (True, len(page))
    assert out.getvalue().decode() == f"<p>{GERMAN[0]}</p>\n<p>{GERMAN[1]}</p>\n"


def test_a_document_on_its_way_says_how_far_it_is(server: RunningServer) -> None:
    text = "\n\n".join(
        f"{i} {ENGLISH[i % len(ENGLISH)]}" for i in range(1500)
    )  # takes more than one question
    sent = {"target_lang": "DE", "source_lang": "EN"}
    document = server.http.post("/v2/document", data=sent, files={"file": ("a.txt", text)}).json()
    said = []
    while True:
        asked = {"document_key": document["document_key"]}
        now = server.http.post(f"/v2/document/{document['document_id']}", json=asked).json()
        if now["status"] == "done":
            break
        said.append(now["kster_progress"])
    assert said == sorted(said)
    assert 0 < said[-1] <= 1


def test_a_document_that_cannot_be_translated_is_refused(client: deepl.DeepLClient) -> None:
    for name, content, said in [
        ("a.xyz", b"x", "Invalid file type"),
        ("a.json", b"{", "a.json"),
        ("a.txt", b"\x00\xff\x00", "a.txt"),
    ]:
        with pytest.raises(deepl.DeepLException, match=said):
            client.translate_document(
                content, io.BytesIO(), source_lang="EN", target_lang="DE", filename=name
            )
    unknown = deepl.DocumentHandle("0" * 32, "1" * 64)
    with pytest.raises(deepl.DeepLException, match="not found"):
        client.translate_document_get_status(unknown)


def test_a_glossary_is_made_used_listed_read_and_deleted(client: deepl.DeepLClient) -> None:
    entries = {TERM[0]: TERM[1], "lid": "Deckel"}
    glossary = client.create_glossary("ours", "EN", "DE", entries)
    try:
        assert (glossary.name, glossary.source_lang, glossary.target_lang) == ("ours", "EN", "DE")
        assert (glossary.ready, glossary.entry_count) == (True, 2)
        assert client.get_glossary_entries(glossary) == entries
        assert glossary.glossary_id in [own.glossary_id for own in client.list_glossaries()]
        assert client.get_glossary(glossary.glossary_id).creation_time == glossary.creation_time
        assert client.translate_text(TERM[0], source_lang="EN", target_lang="DE").text != TERM[1]
        used = client.translate_text(TERM[0], source_lang="EN", target_lang="DE", glossary=glossary)
        assert used.text == TERM[1]
    finally:
        client.delete_glossary(glossary)
    with pytest.raises(deepl.GlossaryNotFoundException):
        client.get_glossary(glossary.glossary_id)
    pairs = [(pair.source_lang, pair.target_lang) for pair in client.get_glossary_languages()]
    assert pairs == [("en", "de")]


def test_a_glossary_s_terms_are_kept_in_texts_and_documents(client: deepl.DeepLClient) -> None:
    glossary = client.create_glossary("terms", "EN", "DE", {"river": "Kaffee"})
    try:
        asked = {"source_lang": "EN", "target_lang": "DE", "glossary": glossary}
        assert "Kaffee" in client.translate_text(ENGLISH[0], **asked).text
        out = io.BytesIO()
        client.translate_document(ENGLISH[0].encode(), out, filename="a.txt", **asked)
        assert "Kaffee" in out.getvalue().decode()
    finally:
        client.delete_glossary(glossary)


def test_a_glossary_comes_as_csv_and_a_broken_one_leaves_nothing(client: deepl.DeepLClient) -> None:
    glossary = client.create_glossary_from_csv("csv", "EN", "DE", 'a,"b, c",EN,DE\n\nd,e\n')
    assert client.get_glossary_entries(glossary) == {"a": "b, c", "d": "e"}
    client.delete_glossary(glossary)
    before = len(client.list_glossaries())
    for broken in ("a,b\na,c\n", "a\n", "a,b,c\n", "", 'a,"b'):
        with pytest.raises(deepl.DeepLException):
            client.create_glossary_from_csv("broken", "EN", "DE", broken)
    with pytest.raises(deepl.DeepLException):
        client.create_glossary_from_csv("broken", "EN", "FR", "a,b\n")
    assert len(client.list_glossaries()) == before


def test_languages_and_usage(client: deepl.DeepLClient) -> None:
    assert [(own.code, own.name) for own in client.get_source_languages()] == [("EN", "English")]
    (target,) = client.get_target_languages()
    assert (target.code, target.name, target.supports_formality) == ("DE", "German", False)
    before = client.get_usage().character
    client.translate_text(ENGLISH[0], target_lang="DE")
    after = client.get_usage().character
    assert after.valid
    assert not after.limit_reached
    assert after.count - before.count == len(ENGLISH[0])


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        ({"target_lang": "DE"}, "Parameter 'text' not specified."),
        ({"text": ["a"]}, "Parameter 'target_lang' not specified."),
        ({"text": ["a"], "target_lang": "FR"}, "Value for 'target_lang' not supported."),
        ({"text": ["a"], "target_lang": "DE", "source_lang": "FR"}, "Value for 'source_lang' not supported."),
        (
            {"text": ["a"], "source_lang": "EN", "target_lang": "DE", "formality": "more"},
            "'formality' is not supported for given",
        ),
        ({"text": ["a"], "target_lang": "DE", "formality": "rude"}, "Value for 'formality' not supported."),
        ({"text": ["a"], "target_lang": "DE", "tag_handling": "rtf"}, "Value for 'tag_handling' not"),
        ({"text": ["a"], "target_lang": "DE", "split_sentences": "2"}, "Value for 'split_sentences' not"),
        ({"text": ["a"], "target_lang": "DE", "glossary_id": "7"}, "requires the 'source_lang' parameter"),
        ({"text": ["a"], "target_lang": "DE", "kster_memories": "x"}, "ids of memories"),
    ],
)
def test_mistakes_are_answered_as_deepl_does(
    server: RunningServer, sent: dict[str, object], said: str
) -> None:
    for how in ("json", "data"):
        answer = server.http.post("/v2/translate", **{how: sent})  # type: ignore[arg-type]
        assert answer.status_code == 400
        assert said in answer.json()["message"]


def test_memories_and_fuzzy_matches_are_extensions(client: deepl.DeepLClient, server: RunningServer) -> None:
    sent = {"text": [ENGLISH[0]], "source_lang": "EN", "target_lang": "DE", "kster_matches": 1}
    (done,) = server.http.post("/v2/translate", json=sent).json()["translations"]
    (match,) = done["kster_matches"]
    assert (match["percentage"], match["source"], match["target"]) == (100, ENGLISH[0], GERMAN[0])
    sent |= {"kster_memories": []}
    (alone,) = server.http.post("/v2/translate", json=sent).json()["translations"]
    assert alone["kster_matches"] == []


def test_weblate_asks_as_its_deepl_module_does(server: RunningServer) -> None:
    headers = {"Authorization": "DeepL-Auth-Key k", "Referer": "https://weblate.example.org/"}
    weblate = httpx.Client(base_url=f"{server.url}/v2", headers=headers, timeout=20)
    assert [own["language"] for own in weblate.get("/languages", params={"type": "source"}).json()] == ["EN"]
    assert [own["language"] for own in weblate.get("/languages", params={"type": "target"}).json()] == ["DE"]
    pairs = weblate.get("/glossary-language-pairs").json()["supported_languages"]
    assert pairs == [{"source_lang": "en", "target_lang": "de"}]
    made = {"name": "weblate:1:en:de:ab", "source_lang": "EN", "target_lang": "DE", "entries_format": "tsv"}
    assert weblate.post("/glossaries", json=made | {"entries": "\t".join(TERM)}).status_code == 201
    (glossary,) = weblate.get("/glossaries").json()["glossaries"]
    sent = {
        "text": [TERM[0], f'{ENGLISH[0]} <x id="4"></x>', "a &lt;b&gt; &amp; c\nd"],
        "source_lang": "EN",
        "target_lang": "DE",
        "formality": "default",
        "tag_handling": "xml",
        "ignore_tags": ["x"],
        "glossary_id": glossary["glossary_id"],
    }
    first, second, third = weblate.post("/translate", json=sent).json()["translations"]
    assert first["text"] == TERM[1]
    assert second["text"].count('<x id="4"></x>') == 1
    assert third["text"].count("\n") == 1
    assert "<" not in third["text"]
    assert weblate.delete(f"/glossaries/{glossary['glossary_id']}").status_code == 204
    assert weblate.delete(f"/glossaries/{glossary['glossary_id']}").status_code == 404
