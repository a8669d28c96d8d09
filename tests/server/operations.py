"""Every operation of the server as its OpenAPI description has it, and a request for each that is right."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx

METHODS = ("get", "post", "put", "patch", "delete")
FORM = "multipart/form-data"
# What operations ask for by these names, whichever of them it is.
VALUES = {
    "q": "a dog",
    "s": "ein Hund",
    "text": "a dog",
    "source": "en",
    "target": "de",
    "langpair": "en|de",
    "name": "a name",
    "sentence": "a dog",
    "translation": "ein Hund",
    "tuid": "unit 1",
    "source_lang": "en",
    "target_lang": "de",
    "entries": "cat\tKatze",
    "document_key": "wrong",
    "status": "approved",
}
TERMS = [{"term": "cat", "language": "en"}, {"term": "Katze", "language": "de"}]
TRANSLATING = ("q", "source", "target", "langpair")
FILES = {"file": ("pairs.po", b'msgid "a cat"\nmsgstr "eine Katze"\n')}


@dataclass(frozen=True)
class Operation:
    method: str
    path: str
    description: dict[str, Any]
    schemas: dict[str, Any]

    def __str__(self) -> str:
        return f"{self.method} {self.path}"

    @property
    def of_somebody(self) -> bool:
        """Whether its path names a thing that belongs to a key."""
        return "{id}" in self.path or "{job}" in self.path

    def send(self, client: httpx.Client, **parts: object) -> httpx.Response:
        """parts: of the path. A stream is read to its end."""
        path = self.path.format(**{"name": "nothing", **parts})
        content = self.description.get("requestBody", {}).get("content", {})
        if "application/json" in content and "properties" not in content["application/json"]["schema"]:
            return client.request(self.method, path, json=self._required(content["application/json"]))
        if self.method in ("GET", "DELETE"):
            asked = {name: VALUES[name] for name in TRANSLATING} if "translate" in self.path else {}
            return client.request(self.method, path, params=asked)
        if self.path == "/v1/terms/{id}/import":
            return client.request(self.method, path, files={"file": ("terms.tsv", b"en\tde\ncat\tKatze\n")})
        if FORM in content or self.path in ("/translate_file", "/v2/document"):
            return client.request(self.method, path, data=VALUES, files=FILES)
        terms = {"terms": TERMS} if "glossary" in self.path else {}
        return client.request(self.method, path, json={**VALUES, **terms})

    def _required(self, content: dict[str, Any]) -> dict[str, Any]:
        schema = content["schema"]
        options = schema.get("anyOf", [schema])
        name = options[0]["$ref"].rpartition("/")[2]
        needed = {field: VALUES[field] for field in self.schemas[name].get("required", [])}
        return needed | ({"target": VALUES["target"]} if name == "NewTerm" else {})


def operations(description: dict[str, Any]) -> Iterator[Operation]:
    for path, methods in description["paths"].items():
        for method, own in methods.items():
            if method in METHODS:
                yield Operation(method.upper(), path, own, description["components"]["schemas"])
