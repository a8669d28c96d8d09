"""A memory is used where it was chosen: by parameters, or by the address that a client was given."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import httpx
import modernmt
import pytest
from libretranslatepy import LibreTranslateAPI
from running import RunningServer

from kster.server.settings import ServerSettings

SOURCE = "the small machine gives cold coffee"
TAUGHT = ("die kleine Maschine gibt kalten Kaffee", "das rote Haus steht am Fluss")


@pytest.fixture(scope="module")
def projects(server: RunningServer) -> list[int]:
    """Two memories that nobody is served by unasked; they teach the same sentence differently."""
    ids = []
    for number, target in enumerate(TAUGHT):
        id = server.http.post("/v1/memories", json={"name": f"project {number}"}).json()["id"]
        example = {"source": SOURCE, "target": target}
        assert server.http.post(f"/v1/memories/{id}/segments", json=example).status_code == 201
        ids.append(id)
    return ids


def by_libretranslate(url: str) -> str:
    return str(LibreTranslateAPI(url).translate(SOURCE, "en", "de"))


def by_file(url: str) -> str:
    file = {"file": ("a.txt", SOURCE.encode())}
    answer = httpx.post(f"{url}/translate_file", data={"source": "en", "target": "de"}, files=file).json()
    return httpx.get(answer["translatedFileUrl"]).text


def by_omegat(url: str) -> str:
    answer = httpx.get(f"{url}/translate", params={"q": SOURCE, "langpair": "en|de"}).json()
    return str(answer["responseData"]["translatedText"])


def by_modernmt(url: str) -> str:
    client = modernmt.ModernMT("any key")
    client._ModernMT__base_url = f"{url}/mmt"  # the client has no other way to name a server
    return str(client.translate("en", "de", SOURCE).translation)


def by_deepl(url: str) -> str:
    asked = {"text": SOURCE, "source_lang": "EN", "target_lang": "DE"}
    return str(httpx.post(f"{url}/v2/translate", json=asked).json()["translations"][0]["text"])


def by_v1(url: str) -> str:
    asked = {"text": SOURCE, "source": "en", "target": "de"}
    return str(httpx.post(f"{url}/v1/translate", json=asked).json()["translations"][0]["text"])


@pytest.mark.parametrize("door", [by_libretranslate, by_file, by_omegat, by_modernmt, by_deepl, by_v1])
def test_a_project_is_chosen_by_the_address_that_its_client_is_given(
    server: RunningServer, projects: list[int], door: Callable[[str], str]
) -> None:
    assert [door(f"{server.url}/memories/{id}") for id in projects] == list(TAUGHT)
    alone, automatic = door(f"{server.url}/memories/none"), door(server.url)
    assert TAUGHT[1] not in (alone, automatic)


def test_a_project_may_have_several_memories(server: RunningServer, projects: list[int]) -> None:
    address = "/memories/" + ",".join(map(str, projects))
    asked = {"text": SOURCE, "source": "en", "target": "de", "matches": 2}
    answer = server.http.post(f"{address}/v1/translate", json=asked).json()
    assert [memory["id"] for memory in answer["memories"]] == projects
    assert {match["target"] for match in answer["translations"][0]["matches"]} == set(TAUGHT)


def test_a_project_is_chosen_by_a_parameter(server: RunningServer, projects: list[int]) -> None:
    asked = {"q": SOURCE, "source": "en", "target": "de"}
    for id, target in zip(projects, TAUGHT, strict=True):
        for named in ([id], str(id)):
            answer = server.http.post("/translate", json={**asked, "memories": named}).json()
            assert answer["translatedText"] == target
    other = server.http.post(f"/memories/{projects[0]}/translate", json={**asked, "memories": [projects[1]]})
    assert other.json()["translatedText"] == TAUGHT[1]  # the request knows better than the address


def test_a_memory_that_is_not_there_is_refused(server: RunningServer) -> None:
    asked = {"q": SOURCE, "source": "en", "target": "de"}
    assert server.http.post("/memories/99999/translate", json=asked).status_code == 404
    assert server.http.post("/translate", json={**asked, "memories": "mine"}).status_code == 400


def test_the_demonstration_shares_no_data_with_a_server_of_one_s_own() -> None:
    root = Path(__file__).parents[2]
    (served,) = re.findall(r"kster serve .*--data (\S+)", (root / "Makefile").read_text())
    documented = (root / "README.md").read_text() + (root / "docs" / "server.md").read_text()
    used = re.findall(r"^kster serve .*--data (\S+)", documented, re.MULTILINE)
    assert served not in {*used, str(ServerSettings().data)}
