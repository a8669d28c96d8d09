"""Every operation in the OpenAPI description: with every kind of key, and with requests that are made up."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import hypothesis
import pytest
import schemathesis
from hypothesis import strategies as st
from operations import Operation, operations
from running import RunningServer, start
from test_server_security import make_key

from tiny import ENGLISH, GERMAN

PUBLIC = {
    *("GET /health", "GET /live", "GET /ready", "GET /frontend/settings", "GET /download_file/{name}"),
    *("GET /languages", "POST /languages", "GET /mmt/languages", "GET /mmt/translate/languages"),
}
DEEPL_DOCUMENTS = {"POST /v2/document/{id}", "POST /v2/document/{id}/result"}  # each has a key of its own
# Whatever else is no GET changes something.
READING = {
    *("POST /translate", "POST /detect", "POST /translate_file", "POST /v1/translate", "POST /v2/translate"),
    *(
        "POST /v1/terms/{id}/check",
        "POST /v2/languages",
        "POST /v2/usage",
        "POST /v2/document",
        *DEEPL_DOCUMENTS,
    ),
}
SECRET = "quite secret"
MADE_UP = 4  # requests an operation


@dataclass(frozen=True)
class World:
    """What belongs to Anna."""

    id: int
    segment: int
    job: str
    glossary: str
    terms: int
    term: int


class KeyedServer:
    """A server that wants keys, and a client for each kind of them."""

    def __init__(self, running: RunningServer, tokens: dict[str, str]) -> None:
        self.running = running
        self.clients = {
            name: httpx.Client(base_url=running.url, headers={"Authorization": f"Bearer {token}"}, timeout=60)
            for name, token in {**tokens, "wrong": "kster_wrong"}.items()
        } | {"none": running.http}
        description = running.http.get("/openapi.json").json()
        self.description, self.operations = description, list(operations(description))

    def new_world(self) -> World:
        anna = self.clients["owner"]
        memory = anna.post("/v1/memories", json={"name": SECRET}).json()["id"]
        example = {"source": f"{ENGLISH[0]} {SECRET}", "target": GERMAN[0]}
        segment = anna.post(f"/v1/memories/{memory}/segments", json=example).json()["id"]
        files = {"file": ("a.tsv", f"source\ttarget\n{ENGLISH[1]}\t{GERMAN[1]}".encode())}
        job = anna.post(f"/v1/memories/{memory}/import?wait=true", files=files).json()["id"]
        terms = {"name": SECRET, "source_lang": "en", "target_lang": "de", "entries": "cat\tKatze"}
        glossary = anna.post("/v2/glossaries", json=terms).json()["glossary_id"]
        base = anna.post("/v1/terms", json={"name": SECRET, "automatic": False}).json()["id"]
        term = anna.post(f"/v1/terms/{base}/terms", json={"source": SECRET, "target": "geheim"}).json()["id"]
        return World(memory, segment, job, glossary, base, term)

    def ask(self, operation: Operation, key: str, world: World) -> httpx.Response:
        ids: dict[str, object] = {
            "/mmt/import-jobs": world.job,
            "/v2/glossaries": world.glossary,
            "/v2/document": "a" * 32,
            "/v1/terms": world.terms,
        }
        own = next((id for path, id in ids.items() if operation.path.startswith(path)), world.id)
        return operation.send(
            self.clients[key], id=own, segment=world.segment, job=world.job, term=world.term
        )


@pytest.fixture(scope="module")
def keyed_server(
    taught_marian: Path, shared_memory: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[KeyedServer]:
    data = tmp_path_factory.mktemp("operations") / "data"
    scopes = {"owner": "write", "other": "write", "read": "read", "admin": "admin"}
    tokens = {name: make_key(data, name, scope) for name, scope in scopes.items()}
    named = ("--model", str(taught_marian), "--memory", str(shared_memory))
    running = start(data, *named, KSTER_REQUIRE_KEYS="true", KSTER_TIMEOUT_SECONDS="20")
    yield KeyedServer(running, tokens)
    assert running.stop() == 0
    assert "Traceback" not in running.log.read_text()


def test_every_operation_answers_each_kind_of_key_as_it_must(keyed_server: KeyedServer) -> None:
    """A new route need not be listed here: a GET needs a key, anything else one that writes."""
    wrong = []
    world = keyed_server.new_world()
    for operation in keyed_server.operations:
        for key in ("none", "wrong", "read", "other", "owner", "admin"):
            if key in ("owner", "admin") and operation.method in ("PUT", "DELETE"):  # each gets its own
                world = keyed_server.new_world()
            answer = keyed_server.ask(operation, key, world)
            if answer.status_code >= 500 or not _is_right(operation, key, answer):
                wrong.append(f"{operation} with key {key}: {answer.status_code} {answer.text[:200]}")
            if key not in ("owner", "admin") and SECRET in answer.text:
                wrong.append(f"{operation} tells {key} what is not theirs")
        if operation.method == "DELETE":
            world = keyed_server.new_world()
    assert not wrong, "\n".join(wrong)


def _is_right(operation: Operation, key: str, answer: httpx.Response) -> bool:
    status = answer.status_code
    if str(operation) in PUBLIC:
        return status not in (401, 403)
    if key == "none":  # LibreTranslate's clients expect 400, DeepL's 403
        return status in (400, 401, 403) and "API key is needed" in answer.text
    if key == "wrong":
        return status == 403
    reading = operation.method == "GET" or str(operation) in READING
    if key == "read" and not reading:
        return status == 403
    if key in ("read", "other") and operation.of_somebody:
        return status == 404
    if str(operation) in DEEPL_DOCUMENTS:
        return status == 404
    return status < 400 or status == 409  # of a job that is done already


def test_requests_made_up_from_the_description_never_meet_a_bug(keyed_server: KeyedServer) -> None:
    schema = schemathesis.openapi.from_dict(keyed_server.description)
    bugs, world = list[str](), keyed_server.new_world()
    for found in schema.get_all_operations():
        operation = found.ok()
        bugs += _bugs_met(keyed_server, operation, world)
        if operation.method.upper() == "DELETE":
            world = keyed_server.new_world()
    assert not bugs, "\n\n".join(bugs)


def _bugs_met(server: KeyedServer, operation: schemathesis.APIOperation, world: World) -> list[str]:
    headers, bugs = dict(server.clients["admin"].headers), list[str]()
    cases = [
        operation.as_strategy(generation_mode=mode)
        for mode in (schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE)
    ]

    @hypothesis.settings(
        max_examples=MADE_UP,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[hypothesis.Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(case=st.one_of(cases), known=st.booleans())
    def send(case: schemathesis.Case, known: bool) -> None:
        if known and "id" in case.path_parameters and not operation.path.endswith("/fit"):  # which takes long
            case.path_parameters["id"] = world.id
        answer = case.call(base_url=server.running.url, headers=headers, timeout=60)
        if answer.status_code >= 500:
            bugs.append(f"{case.as_curl_command()}\n{answer.status_code} {answer.text}")

    with contextlib.suppress(hypothesis.errors.Unsatisfiable):  # where nothing can be wrong with a request
        send()
    return bugs
