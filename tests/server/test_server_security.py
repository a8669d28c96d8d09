"""Keys, isolation and limits, on a server that wants keys."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import deepl
import httpx
import pytest
from running import RunningServer, start

from tiny import ENGLISH, GERMAN

PAIR = {"source": "the red bird runs", "target": "der rote Vogel läuft"}


@pytest.fixture(scope="module")
def keyed(
    taught_marian: Path, shared_memory: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningServer]:
    """A server that wants keys, with small limits from a configuration file."""
    directory = tmp_path_factory.mktemp("keyed")
    config = directory / "server.yaml"
    config.write_text(
        f"memories: [{shared_memory}]\nmodels: [{taught_marian}]\nrequire_keys: true\n"
        "max_characters: 400\nmax_texts: 4\nmax_upload_mb: 0.05\nmax_body_mb: 0.02\n"
        "requests_per_minute: 400\n"
    )
    data = directory / "data"
    keys = {
        name: make_key(data, name, scope)
        for name, scope in [
            ("reader", "read"),
            ("anna", "write"),
            ("bert", "write"),
            ("boss", "admin"),
            ("eager", "read"),
            ("gone", "write"),
        ]
    }
    running = start(data, "--config", str(config))
    running.keys = keys  # type: ignore[attr-defined]
    yield running
    assert running.stop() == 0
    assert "Traceback" not in running.log.read_text()


def kster_keys(data: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "kster", "keys", *arguments, "--data", str(data)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def make_key(data: Path, name: str, scope: str) -> str:
    from kster.server.auth.keys import Keys
    from kster.server.database import ServerDatabase

    database = ServerDatabase(data)
    _, token = Keys(database).add(name, scope)
    database.close()
    return token


def of(server: RunningServer, name: str) -> httpx.Client:
    token = server.keys[name]  # type: ignore[attr-defined]
    return httpx.Client(base_url=server.url, headers={"Authorization": f"Bearer {token}"}, timeout=60)


def test_without_a_key_nothing_is_translated_and_nothing_is_seen(keyed: RunningServer) -> None:
    sent = {"q": ENGLISH[0], "source": "en", "target": "de"}
    assert keyed.http.post("/translate", json=sent).status_code == 400  # as LibreTranslate
    assert keyed.http.post("/translate", json={**sent, "api_key": "wrong"}).status_code == 403
    assert keyed.http.get("/v1/memories").status_code == 401
    assert keyed.http.get("/metrics").status_code == 401
    refused = keyed.http.get("/mmt/memories", headers={"MMT-ApiKey": "wrong"})
    assert refused.status_code == 403
    assert refused.json()["error"]["type"] == "ForbiddenException"
    assert keyed.http.get("/health").status_code == 200


def test_a_key_is_accepted_wherever_clients_put_it(keyed: RunningServer) -> None:
    token = keyed.keys["reader"]  # type: ignore[attr-defined]
    sent = {"q": ENGLISH[0], "source": "en", "target": "de"}
    for answer in (
        keyed.http.post("/translate", json={**sent, "api_key": token}),
        keyed.http.post("/translate", data={**sent, "api_key": token}),
        keyed.http.post("/translate", params={**sent, "api_key": token}),
        keyed.http.post("/translate", json=sent, headers={"X-API-Key": token}),
    ):
        assert answer.json() == {"translatedText": GERMAN[0]}
    omegat = {"q": ENGLISH[0], "langpair": "en|de", "key": token}
    assert keyed.http.get("/translate", params=omegat).json()["responseStatus"] == 200
    assert keyed.http.get("/mmt/memories", headers={"MMT-ApiKey": token}).json()["status"] == 200


def test_deepl_s_client_has_keys_with_scopes_and_sees_its_own_glossaries(keyed: RunningServer) -> None:
    def client(token: str) -> deepl.DeepLClient:
        return deepl.DeepLClient(token, server_url=keyed.url)

    tokens: dict[str, str] = keyed.keys  # type: ignore[attr-defined]
    reader, anna, bert = (client(tokens[name]) for name in ("reader", "anna", "bert"))
    assert reader.translate_text(ENGLISH[0], target_lang="DE").text == GERMAN[0]
    with pytest.raises(deepl.AuthorizationException):
        reader.create_glossary("terms", "EN", "DE", {"bird": "Vogel"})
    with pytest.raises(deepl.AuthorizationException):
        client("made up").translate_text(ENGLISH[0], target_lang="DE")
    refused = keyed.http.post("/v2/translate", json={"text": [ENGLISH[0]], "target_lang": "DE"})
    assert refused.status_code == 403
    assert "key" in refused.json()["message"]
    glossary = anna.create_glossary("terms", "EN", "DE", {"bird": "Vogel"})
    assert [own.name for own in anna.list_glossaries()] == ["terms"]
    assert bert.list_glossaries() == []
    with pytest.raises(deepl.GlossaryNotFoundException):
        bert.get_glossary(glossary.glossary_id)
    anna.delete_glossary(glossary)
    handle = reader.translate_document_upload(ENGLISH[0], target_lang="DE", filename="a.txt")
    with pytest.raises(deepl.DeepLException, match="not found"):
        bert.translate_document_get_status(deepl.DocumentHandle(handle.document_id, "another key"))
    with pytest.raises(deepl.DeepLException, match="MB"):
        reader.translate_document_upload("a " * 100_000, target_lang="DE", filename="a.txt")


def test_a_read_key_changes_nothing(keyed: RunningServer) -> None:
    reader = of(keyed, "reader")
    suggestion = {"q": "a", "s": "b", "source": "en", "target": "de"}
    assert reader.post("/v1/memories", json={"name": "mine"}).status_code == 403
    assert reader.post("/v1/memories/1/segments", json=PAIR).status_code == 403
    assert reader.post("/suggest", json=suggestion).status_code == 403
    assert reader.post("/v1/memories/1/fit", json={}).status_code == 403


def test_keys_do_not_see_each_others_memories_and_an_admin_sees_all(keyed: RunningServer) -> None:
    anna, bert, boss = of(keyed, "anna"), of(keyed, "bert"), of(keyed, "boss")
    mine = anna.post("/v1/memories", json={"name": "anna's", "automatic": True}).json()["id"]
    segment = anna.post(f"/v1/memories/{mine}/segments", json=PAIR).json()["id"]
    request = {"text": PAIR["source"], "source": "en", "target": "de"}

    def text(client: httpx.Client, **more: object) -> str:
        return client.post("/v1/translate", json={**request, **more}).json()["translations"][0]["text"]

    assert text(anna) == PAIR["target"]
    assert text(bert) != PAIR["target"]
    assert text(boss) != PAIR["target"]  # not mixed into an admin's own translations …
    assert text(boss, memories=[mine]) == PAIR["target"]  # … unless named
    for path in ("", "/segments", f"/segments/{segment}", "/export", "/jobs"):
        assert bert.get(f"/v1/memories/{mine}{path}").status_code == 404
        assert boss.get(f"/v1/memories/{mine}{path}").status_code == 200
    assert bert.post("/v1/translate", json={**request, "memories": [mine]}).status_code == 404
    assert (
        bert.get(
            "/mmt/translate", params={"q": "a", "source": "en", "target": "de", "hints": mine}
        ).status_code
        == 404
    )
    assert bert.delete(f"/v1/memories/{mine}").status_code == 404
    assert bert.delete(f"/v1/memories/{mine}/segments/{segment}").status_code == 404
    job = anna.post(f"/v1/memories/{mine}/import", files={"file": ("a.tsv", b"source\ttarget\na\tb")}).json()
    assert bert.get(f"/v1/jobs/{job['id']}").status_code == 404
    assert keyed.finished(job, keyed.keys["anna"])["state"] == "done"  # type: ignore[attr-defined]
    assert mine not in [m["id"] for m in bert.get("/v1/memories").json()]
    assert anna.delete(f"/v1/memories/{mine}").status_code == 200


def test_the_page_needs_no_key_and_is_not_counted(keyed: RunningServer) -> None:
    for path in ("/", "/docs", *["/page/js/main.js"] * 150):  # more than a client without a key has to spend
        answer = keyed.http.get(path)
        assert answer.status_code == 200
        assert "default-src 'self'" in answer.headers["content-security-policy"]
        assert "unsafe-inline" not in answer.headers["content-security-policy"]
    assert keyed.http.get("/page/../app.py").status_code == 404
    assert keyed.http.get("/page/%2e%2e/app.py").status_code == 404


def test_shared_memories_are_seen_by_all_and_changed_by_admins_only(keyed: RunningServer) -> None:
    anna, boss = of(keyed, "anna"), of(keyed, "boss")
    (shared,) = [m for m in anna.get("/v1/memories").json() if m["shared"]]
    assert shared["writable"] is False
    assert anna.post(f"/v1/memories/{shared['id']}/segments", json=PAIR).status_code == 403
    added = boss.post(f"/v1/memories/{shared['id']}/segments", json=PAIR)
    assert added.status_code == 201
    assert boss.delete(f"/v1/memories/{shared['id']}/segments/{added.json()['id']}").status_code == 200


def test_a_suggestion_of_a_key_teaches_its_own_memory(keyed: RunningServer) -> None:
    anna, bert = of(keyed, "anna"), of(keyed, "bert")
    sent = {"q": PAIR["source"], "source": "en", "target": "de"}
    assert anna.post("/suggest", json={**sent, "s": PAIR["target"]}).json() == {"success": True}
    assert anna.post("/translate", json=sent).json()["translatedText"] == PAIR["target"]
    assert bert.post("/translate", json=sent).json()["translatedText"] != PAIR["target"]


def test_a_revoked_key_is_useless_at_once(keyed: RunningServer) -> None:
    gone = of(keyed, "gone")
    assert gone.get("/v1/status").status_code == 200
    revoked = kster_keys(keyed.data, "revoke", "gone")
    assert revoked.returncode == 0, revoked.stderr
    assert gone.get("/v1/status").status_code == 403
    listed = json.loads(kster_keys(keyed.data, "list", "--json").stdout)
    assert [key["name"] for key in listed if key["revoked"]] == ["gone"]


def test_keys_are_kept_as_hashes_only(keyed: RunningServer) -> None:
    files = [path.read_bytes() for path in keyed.data.glob("server.sqlite*")]
    for token in keyed.keys.values():  # type: ignore[attr-defined]
        assert not any(token.encode() in content for content in files)
        assert token not in keyed.log.read_text()


def test_too_much_text_is_refused(keyed: RunningServer) -> None:
    anna = of(keyed, "anna")
    long = {"q": "a" * 401, "source": "en", "target": "de"}
    assert anna.post("/translate", json=long).status_code == 400
    assert "400" in anna.post("/translate", json=long).json()["error"]
    assert anna.post("/translate", json={**long, "q": ["a"] * 5}).status_code == 400
    assert anna.post("/suggest", json={**long, "s": "b"}).status_code == 400
    assert anna.get("/mmt/translate", params=long).status_code == 400


def test_too_large_a_body_is_refused_by_its_length_and_while_it_streams(keyed: RunningServer) -> None:
    anna = of(keyed, "anna")
    assert anna.post("/translate", json={"q": "a" * 30_000}).status_code == 413

    def endless() -> Iterator[bytes]:
        yield b'{"q": "'
        for _ in range(100):
            yield b"a" * 10_000

    streamed = anna.post("/translate", content=endless(), headers={"content-type": "application/json"})
    assert streamed.status_code == 413
    streamed = anna.post("/v1/translate", content=endless(), headers={"content-type": "application/json"})
    assert streamed.status_code == 413
    mine = anna.post("/v1/memories", json={"name": "uploads"}).json()["id"]
    upload = anna.post(f"/v1/memories/{mine}/import", files={"file": ("a.tmx", b"a" * 60_000)})
    assert upload.status_code == 413
    assert not list((keyed.data / "uploads").iterdir())
    terms = anna.post("/v1/terms", json={"name": "uploads", "pair": "en-de"}).json()["id"]
    lines = "".join(
        f"machine {i}\tMaschine {i}\n" for i in range(1_500)
    )  # more than a body, less than an upload
    imported = anna.post(f"/v1/terms/{terms}/import", files={"file": ("a.tsv", lines.encode())})
    assert imported.json()["added"] == 1_500


def test_too_many_requests_are_told_to_wait_and_others_are_not(keyed: RunningServer) -> None:
    eager, reader = of(keyed, "eager"), of(keyed, "reader")
    answer = eager.get("/languages")
    assert answer.status_code == 200
    for _ in range(2_000):  # the slower they come, the more are let through
        if answer.status_code != 200:
            break
        answer = eager.get("/languages")
    assert answer.status_code == 429
    assert "slow down" in answer.json()["error"]
    assert int(answer.headers["retry-after"]) >= 1
    assert reader.get("/languages").status_code == 200


def test_made_up_keys_bring_no_more_requests(keyed: RunningServer) -> None:
    token = keyed.keys["reader"]  # type: ignore[attr-defined]
    body = {"q": "a", "api_key": token}
    status = 200
    for number in range(2_000):
        if status != 200:
            break
        status = keyed.http.post("/detect", json=body, headers={"X-API-Key": f"made-up-{number}"}).status_code
    assert status == 429


def test_a_server_that_others_can_reach_does_not_start_without_keys(
    taught_marian: Path, tmp_path: Path
) -> None:
    command = [sys.executable, "-m", "kster", "serve", "--host", "0.0.0.0", "--port", "0"]
    command += ["--model", str(taught_marian), "--data", str(tmp_path / "data")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 2
    assert "kster keys add" in done.stderr
