"""/v1: memories, segments, imports, fits, and translations that say where they come from."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from running import RunningServer

from tiny import ENGLISH, GERMAN

NEW = ("the green bird reads a book", "der grüne Vogel liest ein Buch")


@pytest.fixture
def memory(server: RunningServer) -> int:
    """A fresh memory, deleted afterwards."""
    made = server.http.post("/v1/memories", json={"name": "fresh"}).json()
    yield made["id"]
    server.http.delete(f"/v1/memories/{made['id']}")


def translate(server: RunningServer, text: str | list[str], **more: object) -> dict:
    answer = server.http.post("/v1/translate", json={"text": text, "source": "en", "target": "de", **more})
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_an_added_example_changes_the_next_translation_and_a_removed_one_changes_it_back(
    server: RunningServer, memory: int
) -> None:
    before = translate(server, NEW[0], memories=[memory])["translations"][0]["text"]
    assert before != NEW[1]
    added = server.http.post(f"/v1/memories/{memory}/segments", json={"source": NEW[0], "target": NEW[1]})
    assert added.status_code == 201
    after = translate(server, NEW[0], memories=[memory])["translations"][0]["text"]
    assert after == NEW[1]
    removed = server.http.delete(f"/v1/memories/{memory}/segments/{added.json()['id']}")
    assert removed.json() == {"removed": added.json()["id"], "beside": []}
    assert translate(server, NEW[0], memories=[memory])["translations"][0]["text"] == before


def test_a_comparison_marks_what_the_memory_changed_and_names_the_example(
    server: RunningServer, memory: int
) -> None:
    segment = server.http.post(
        f"/v1/memories/{memory}/segments", json={"source": NEW[0], "target": NEW[1]}
    ).json()
    answer = translate(server, NEW[0], memories=[memory], compare=True, explain="tokens")
    (result,) = answer["translations"]
    assert answer["method"] == "kster"
    assert answer["memories"] == [{"id": memory, "name": "fresh", "pair": "en-de"}]
    assert [word["text"] for word in result["words"]] == NEW[1].split()
    assert [result["text"][w["start"] : w["end"]] for w in result["words"]] == NEW[1].split()
    assert any(word["changed"] for word in result["words"])
    assert result["base"]["text"] != result["text"]
    assert all(word.keys() == {"text", "start", "end", "changed"} for word in result["base"]["words"])
    strongest = max(result["words"], key=lambda word: word["mixing_weight"])
    assert 0 < strongest["mixing_weight"] <= 1
    spoke, seen = strongest["segments"][0], strongest["tokens"][0]["examples"][0]
    named = answer["segments"][spoke["number"]]
    assert named == {
        **{"number": spoke["number"], "segment": segment["id"]},
        **{"memory": answer["memories"][0], "source": NEW[0], "target": NEW[1]},
    }
    assert answer["segments"][seen["number"]]["target"] == NEW[1]


def test_an_answer_names_each_segment_once_however_many_words_it_spoke_for(
    server: RunningServer, memory: int
) -> None:
    example = {"source": NEW[0], "target": NEW[1]}
    server.http.post(f"/v1/memories/{memory}/segments", json=example)
    answer = translate(server, [NEW[0], f"{NEW[0]} {NEW[0]}"], memories=[memory], explain=True)
    words = [word for each in answer["translations"] for word in each["words"]]
    assert len([word for word in words if word["segments"]]) > 1
    assert [row["number"] for row in answer["segments"]] == list(range(len(answer["segments"])))
    assert len({row["segment"] for row in answer["segments"]}) == len(answer["segments"])
    assert all(len(word["segments"]) <= 3 and "tokens" not in word for word in words)
    assert "segments" not in translate(server, NEW[0], memories=[memory], compare=True)


def test_without_memories_the_base_model_answers(server: RunningServer) -> None:
    answer = translate(server, ENGLISH[0], memories=[], compare=True)
    assert answer["method"] == "base"
    assert answer["smoother"] is None
    assert not any(word["changed"] for word in answer["translations"][0]["words"])


def test_segments_are_listed_searched_edited_and_removed(server: RunningServer, memory: int) -> None:
    url = f"/v1/memories/{memory}/segments"
    for source, target in zip(ENGLISH[:5], GERMAN[:5], strict=True):
        server.http.post(url, json={"source": source, "target": target})
    page = server.http.get(url, params={"limit": 2, "offset": 1}).json()
    assert page["total"] == 5
    assert [s["source"] for s in page["segments"]] == ENGLISH[1:3]
    newest = server.http.get(url, params={"limit": 2, "newest": True}).json()
    assert [s["source"] for s in newest["segments"]] == [ENGLISH[4], ENGLISH[3]]
    found = server.http.get(url, params={"query": "WASSERTANK"}).json()
    assert [s["source"] for s in found["segments"]] == [ENGLISH[2]]
    old = found["segments"][0]["id"]
    edited = server.http.put(f"{url}/{old}", json={"source": ENGLISH[2], "target": GERMAN[3]}).json()
    assert edited["target"] == GERMAN[3]
    assert edited["id"] != old
    assert server.http.get(f"{url}/{old}").json()["superseded_by"] == edited["id"]
    assert server.http.get(url).json()["total"] == 5
    assert server.http.delete(f"{url}/{old}").json() == {"removed": old, "beside": [edited["id"]]}
    assert server.http.get(f"{url}/{old}").status_code == 404


def test_status_history_and_restoring_through_v1(server: RunningServer, memory: int) -> None:
    url = f"/v1/memories/{memory}/segments"
    old, new = (
        server.http.post(url, json={"source": "open", "target": target}).json() for target in ("auf", "zu")
    )
    listed = server.http.get(url, params={"state": "superseded"}).json()["segments"]
    assert [(s["id"], s["superseded_by"]) for s in listed] == [(old["id"], new["id"])]
    assert server.http.post(f"{url}/{old['id']}/restore").json()["superseded_by"] is None
    assert [s["target"] for s in server.http.get(url).json()["segments"]] == ["auf"]
    events = server.http.get(f"{url}/{new['id']}/history").json()["events"]
    assert [(e["action"], e["segment"]) for e in events if e["action"] != "added"] == [
        ("superseded", old["id"]),
        ("approved", old["id"]),
        ("superseded", new["id"]),
    ]
    rejected = server.http.put(f"{url}/{old['id']}/status", json={"status": "rejected"}).json()
    assert rejected["status"] == "rejected"
    assert [s["target"] for s in server.http.get(url).json()["segments"]] == ["zu"]  # it decides again
    lately = server.http.get(f"/v1/memories/{memory}/history", params={"limit": 1}).json()["events"]
    assert (lately[0]["action"], lately[0]["segment"]) == ("approved", new["id"])
    draft = server.http.post(url, json={"source": "close", "target": "zu", "status": "draft", "context": "c"})
    assert (draft.json()["status"], draft.json()["context"]) == ("draft", "c")
    assert server.http.get(url).json()["total"] == 1
    server.http.put(f"{url}/{draft.json()['id']}/status", json={"status": "approved"})
    wanted = {"text": "close", "source": "en", "target": "de", "memories": [memory], "matches": 1}
    answer = server.http.post("/v1/translate", json={**wanted, "context": "c"}).json()
    assert answer["translations"][0]["matches"][0]["percentage"] == 101
    server.http.post(url, json={"source": "close", "target": "geschlossen", "context": "state"})
    for context, text in (("c", "zu"), ("state", "geschlossen")):
        answer = server.http.post("/v1/translate", json={**wanted, "context": context}).json()
        assert answer["translations"][0]["text"] == text
    assert server.http.put(f"{url}/999/status", json={"status": "draft"}).status_code == 404
    assert server.http.put(f"{url}/{new['id']}/status", json={"status": "good"}).status_code == 400


def test_a_change_of_status_is_undone_with_what_taught_beside_it(server: RunningServer, memory: int) -> None:
    url = f"/v1/memories/{memory}/segments"
    upload = {"file": ("two.tsv", b"source\ttarget\nopen\tauf\nopen\toffen\n")}
    server.finished(server.http.post(f"/v1/memories/{memory}/import", files=upload).json())
    first, second = (segment["id"] for segment in server.http.get(url).json()["segments"])

    def change(id: int, status: str, beside: list[int]) -> list[int]:
        wanted = {"status": status, "beside": beside}
        return server.http.put(f"{url}/{id}/status", json=wanted).json()["beside"]

    def teaching() -> list[str]:
        return [segment["target"] for segment in server.http.get(url).json()["segments"]]

    assert change(first, "rejected", []) == [second]
    assert teaching() == ["offen"]
    change(first, "approved", [second])
    assert teaching() == ["auf", "offen"]

    edited = server.http.put(f"{url}/{first}", json={"source": "open", "target": "zu"}).json()
    assert (edited["beside"], teaching()) == ([second], ["zu"])
    for id in (first, second):
        change(id, "approved", [first, second])
    assert teaching() == ["auf", "offen"]
    server.http.delete(f"{url}/{edited['id']}")
    assert change(first, "approved", []) == [second]  # it teaches already
    assert teaching() == ["auf", "offen"]


def test_an_upload_is_imported_in_the_background_and_reports_every_unit(
    server: RunningServer, memory: int, tmp_path: Path
) -> None:
    rows = ["source\ttarget", *(f"{s}\t{t}" for s, t in zip(ENGLISH, GERMAN, strict=True)), "only one side\t"]
    rows.append(f"{ENGLISH[0]}\t{GERMAN[0]}")
    answer = server.http.post(
        f"/v1/memories/{memory}/import", files={"file": ("mine.tsv", "\n".join(rows).encode())}
    )
    assert answer.status_code == 202, answer.text
    job = server.finished(answer.json())
    assert job["state"] == "done", job
    result = job["result"]
    assert (result["added"], result["duplicates"], result["rejected"]) == (len(ENGLISH), 1, 1)
    assert result["rejections"][0]["file"] == "mine.tsv"
    assert result["rejections"][0]["line"] == 14
    assert server.http.get(f"/v1/memories/{memory}").json()["segments"] == len(ENGLISH)
    exported = server.http.get(f"/v1/memories/{memory}/export", params={"format": "tsv"})
    assert GERMAN[-1] in exported.text
    assert not list((server.data / "uploads").iterdir())


def test_an_import_is_used_at_once_and_its_keys_are_made_in_the_background(
    server: RunningServer, memory: int
) -> None:
    rows = "\n".join(f"{ENGLISH[n % 12]} number {n}\t{GERMAN[n % 12]} Nummer {n}" for n in range(600))
    job = server.http.post(
        f"/v1/memories/{memory}/import?wait=true",
        files={"file": ("many.tsv", f"source\ttarget\n{rows}".encode())},
    ).json()
    assert (job["state"], job["result"]["added"]) == ("done", 600)
    text = f"{ENGLISH[7]} number 7"
    asked = {"text": text, "source": "en", "target": "de", "memories": [memory], "explain": "tokens"}
    answer = server.http.post("/v1/translate", json=asked).json()
    assert text in {segment["source"] for segment in answer["segments"]}
    (pair,) = server.http.get(f"/v1/memories/{memory}").json()["pairs"]
    left = [pair["without_keys"]]
    while left[-1]:
        time.sleep(0.05)
        (pair,) = server.http.get(f"/v1/memories/{memory}").json()["pairs"]
        left.append(pair["without_keys"])
    assert left == sorted(left, reverse=True)
    assert (pair["segments"], pair["unusable"]) == (600, 0)
    assert pair["entries"] > 600


def test_a_broken_file_changes_nothing_and_says_why(server: RunningServer, memory: int) -> None:
    broken = b"<tmx version='1.4'><header srclang='en'/><body><tu><tuv xml:lang='en'><seg>a</seg>"
    answer = server.http.post(f"/v1/memories/{memory}/import", files={"file": ("broken.tmx", broken)})
    job = server.finished(answer.json())
    assert job["state"] == "failed"
    assert "broken.tmx" in job["error"]
    assert "nothing was imported" in job["error"]
    assert str(server.data) not in json.dumps(job)
    assert server.http.get(f"/v1/memories/{memory}").json()["segments"] == 0


def test_an_unknown_kind_of_file_is_refused_at_once(server: RunningServer, memory: int) -> None:
    answer = server.http.post(f"/v1/memories/{memory}/import", files={"file": ("notes.doc", b"x")})
    assert answer.status_code == 400
    assert ".tmx" in answer.json()["error"]


def test_a_fit_shows_its_curve_while_it_runs(server: RunningServer, memory: int) -> None:
    rows = "\n".join(f"{s} {n}\t{t} {n}" for n in range(4) for s, t in zip(ENGLISH, GERMAN, strict=True))
    upload = {"file": ("more.tsv", f"source\ttarget\n{rows}".encode())}
    server.finished(server.http.post(f"/v1/memories/{memory}/import", files=upload).json())
    answer = server.http.post(
        f"/v1/memories/{memory}/fit", json={"steps": 40, "max_tokens": 2000, "metric": 4}
    )
    assert answer.status_code == 202, answer.text
    seen = []
    with server.http.stream("GET", f"/v1/jobs/{answer.json()['id']}/events") as events:
        assert events.headers["content-type"].startswith("text/event-stream")
        for line in events.iter_lines():
            if line.startswith("data: "):
                seen.append(json.loads(line.removeprefix("data: ")))
    last = seen[-1]
    assert last["state"] == "done", last
    assert len(last["curve"]) >= 2
    assert {"step", "train_loss", "dev_nll"} <= last["curve"][0].keys()
    assert last["result"]["dev"]["tokens"] > 0
    assert server.http.get(f"/v1/memories/{memory}").json()["pairs"][0]["fitted"] is True
    assert translate(server, ENGLISH[0], memories=[memory])["smoother"] == "memory"
    fit = server.http.get(f"/v1/memories/{memory}/fit").json()
    for name in ("dev", "curve", "metric"):
        assert fit[name] == last["result"][name]
    assert "measuring" in {event["phase"] for event in seen}
    assert 0 < fit["mixing_weight"] < 1
    assert (fit["since"]["added"], fit["since"]["removed"]) == (0, 0)
    jobs = server.http.get(f"/v1/memories/{memory}/jobs").json()
    assert [job["kind"] for job in jobs] == ["fit", "import"]


def test_a_memory_without_a_fit_has_no_report_of_one(server: RunningServer, memory: int) -> None:
    answer = server.http.get(f"/v1/memories/{memory}/fit")
    assert (answer.status_code, answer.json()) == (200, None)


def test_a_mistaken_fit_is_refused_at_once(server: RunningServer, memory: int) -> None:
    answer = server.http.post(f"/v1/memories/{memory}/fit", json={"kernel": "round"})
    assert answer.status_code == 400
    assert "laplacian" in answer.json()["error"]
    assert server.http.post(f"/v1/memories/{memory}/fit", json={"metric": -1}).status_code == 400


def test_memories_are_used_where_chosen_renamed_switched_off_and_deleted(
    server: RunningServer, memory: int
) -> None:
    server.http.post(f"/v1/memories/{memory}/segments", json={"source": NEW[0], "target": NEW[1]})
    assert translate(server, NEW[0])["translations"][0]["text"] != NEW[1]  # used where it was chosen
    assert translate(server, NEW[0], memories=[memory])["translations"][0]["text"] == NEW[1]
    server.http.patch(f"/v1/memories/{memory}", json={"automatic": True})
    assert translate(server, NEW[0])["translations"][0]["text"] == NEW[1]
    edited = server.http.patch(f"/v1/memories/{memory}", json={"name": "renamed", "automatic": False}).json()
    assert (edited["name"], edited["automatic"]) == ("renamed", False)
    assert translate(server, NEW[0])["translations"][0]["text"] != NEW[1]
    assert server.http.delete(f"/v1/memories/{memory}").json() == {"deleted": memory}
    assert server.http.get(f"/v1/memories/{memory}").status_code == 404
    assert not (server.data / "memories" / str(memory)).exists()


def test_a_memory_of_the_command_line_is_not_deleted_here(server: RunningServer, shared_memory: Path) -> None:
    (shared,) = [m for m in server.http.get("/v1/memories").json() if m["shared"]]
    assert shared["name"] == shared_memory.name
    assert shared["segments"] >= 2
    assert server.http.delete(f"/v1/memories/{shared['id']}").status_code == 403
    assert shared_memory.is_dir()


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/v1/translate", b"{"),
        ("POST", "/v1/translate", b"[]"),
        ("POST", "/v1/translate", b'{"text": 1, "source": "en", "target": "de"}'),
        ("POST", "/v1/translate", b'{"text": "a", "source": "en", "target": "xx"}'),
        ("POST", "/v1/translate", b'{"text": "a", "source": "en", "target": "de", "beam": 1000}'),
        ("POST", "/v1/memories", b'{"name": "  "}'),
        ("POST", "/v1/memories", b"\xff\xfe"),
        ("GET", "/v1/memories/x", b""),
        ("GET", "/v1/memories/1/segments?limit=100000", b""),
        ("POST", "/v1/memories/1/import", b"no form"),
    ],
)
def test_malformed_requests_get_a_reason(server: RunningServer, method: str, path: str, body: bytes) -> None:
    answer = server.http.request(method, path, content=body, headers={"content-type": "application/json"})
    assert answer.status_code == 400, answer.text
    assert len(answer.json()["error"]) > 10


def test_what_is_not_there_is_404(server: RunningServer) -> None:
    for path in ("/v1/memories/999", "/v1/memories/999/segments", "/v1/jobs/none", "/nothing"):
        answer = server.http.get(path)
        assert answer.status_code == 404
        assert "error" in answer.json()


def test_the_server_describes_itself(server: RunningServer) -> None:
    status = server.http.get("/v1/status").json()
    assert status["pairs"][0] | {"model": ""} == {
        "pair": "en-de",
        "source": "en",
        "target": "de",
        "source_name": "English",
        "target_name": "German",
        "model": "",
    }
    assert server.http.get("/v1/stats").json()["segments"] >= 2
    assert "/v1/translate" in server.http.get("/openapi.json").json()["paths"]
    metrics = server.http.get("/metrics").text
    assert 'kster_requests_total{route="/v1/status",status="200"}' in metrics
    assert "<html" in server.http.get("/").text
