"""Term bases on a server: kept in every translation of their owner, through every door."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest
from running import RunningServer

TEXT = "do not open the lid while the machine is hot"
MACHINE = {"source": "machine", "target": "Wassermaschine", "part_of_speech": "noun", "note": "never Gerät"}


@pytest.fixture
def base(server: RunningServer) -> Iterator[str]:
    made = server.http.post("/v1/terms", json={"name": "House terms", "pair": "en-de"})
    assert made.status_code == 201
    path = f"/v1/terms/{made.json()['id']}"
    yield path
    assert server.http.delete(path).json() == {"deleted": made.json()["id"]}
    assert server.http.get(path).status_code == 404


def translated(http: httpx.Client, **more: object) -> dict:
    body = {"text": TEXT, "source": "en", "target": "de", **more}
    answer = http.post("/v1/translate", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_a_term_base_is_kept_by_every_door_and_can_be_chosen_or_left_out(
    server: RunningServer, base: str
) -> None:
    http = server.http
    without = translated(http)["translations"][0]["text"]
    assert "Wassermaschine" not in without
    added = http.post(f"{base}/terms", json=MACHINE)
    assert added.status_code == 201
    assert added.json()["note"] == "never Gerät"
    answer = translated(http)
    expected = answer["translations"][0]["text"]
    assert "Wassermaschine" in expected
    assert [one["name"] for one in answer["term_bases"]] == ["House terms"]
    asked = {"q": TEXT, "source": "en", "target": "de"}
    assert http.post("/translate", json=asked).json()["translatedText"] == expected
    assert http.get("/mmt/translate", params=asked).json()["data"]["translation"] == expected
    sent = {"text": [TEXT], "source_lang": "EN", "target_lang": "DE"}
    assert http.post("/v2/translate", json=sent).json()["translations"][0]["text"] == expected
    assert translated(http, term_bases=[])["translations"][0]["text"] == without
    none = http.post("/translate", json={**asked, "term_bases": []})
    assert none.json()["translatedText"] == without
    assert http.patch(base, json={"automatic": False}).json()["automatic"] is False
    assert translated(http)["translations"][0]["text"] == without
    number = int(base.rpartition("/")[2])
    assert translated(http, term_bases=[number])["translations"][0]["text"] == expected
    assert http.post("/v1/translate", json={**asked, "text": "a", "term_bases": [999]}).status_code >= 400
    given = {"source": "machine", "target": "Hundemaschine", "part_of_speech": "noun"}
    own = translated(http, term_bases=[number], terms=[given])["translations"][0]["text"]
    assert "Hundemaschine" in own  # what the request says comes before the base


def test_terms_are_listed_removed_imported_exported_and_checked(server: RunningServer, base: str) -> None:
    http = server.http
    tsv = b"en\tde\npart\tTeil\ndog\tHund\n\tnothing\n"
    report = http.post(f"{base}/import", files={"file": ("terms.tsv", tsv)}).json()
    assert (report["added"], len(report["rejected"])) == (2, 1)
    assert report["rejected"][0]["file"] == "terms.tsv"
    listed = http.get(f"{base}/terms", params={"query": "HUND"}).json()
    assert [(one["source"], one["targets"]) for one in listed["terms"]] == [("dog", ["Hund"])]
    assert http.get(base).json()["terms"] == 2
    for format in ("tbx", "tsv", "csv"):
        exported = http.get(f"{base}/export", params={"format": format})
        assert "Hund" in exported.text
        again = http.post(f"{base}/import", files={"file": (f"again.{format}", exported.content)}).json()
        assert (again["added"], again["replaced"], again["unchanged"]) == (0, 0, 2)
    pairs = [{"source": "the dogs", "target": "die Hunde"}, {"source": "a dog", "target": "eine Katze"}]
    checked = http.post(f"{base}/check", json={"pairs": pairs}).json()
    assert [(one["line"], one["term"]) for one in checked["problems"]] == [(2, "dog")]
    assert http.post(f"{base}/check", json={}).json() == {"ok": True, "problems": []}
    http.post(f"{base}/terms", json={"source": "Dog", "target": "Köter"})
    assert not http.post(f"{base}/check", json={}).json()["ok"]
    removed = http.delete(f"{base}/terms/{listed['terms'][0]['id']}")
    assert removed.status_code == 200
    assert http.delete(f"{base}/terms/{listed['terms'][0]['id']}").status_code == 404
    assert http.get(f"{base}/terms").json()["total"] == 2


@pytest.mark.parametrize(
    ("path", "body", "said"),
    [
        ("", {"name": " ", "pair": "en-de"}, "1 to 200 characters"),
        ("", {"name": "a", "pair": "en-fr"}, "no model for en-fr"),
        ("/terms", {"source": "machine"}, "no target"),
        ("/terms", {"source": "...", "target": "x"}, "no letter"),
    ],
)
def test_what_makes_no_term_base_and_no_term_is_refused_by_name(
    server: RunningServer, base: str, path: str, body: dict, said: str
) -> None:
    answer = server.http.post(f"{base}{path}" if path else "/v1/terms", json=body)
    assert answer.status_code == 400
    assert said in str(answer.json())


def test_a_broken_file_of_terms_changes_nothing(server: RunningServer, base: str) -> None:
    broken = server.http.post(f"{base}/import", files={"file": ("terms.tbx", b"<martif><text>")})
    assert broken.status_code == 400
    assert server.http.get(base).json()["terms"] == 0
