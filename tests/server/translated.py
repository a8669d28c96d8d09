"""Files given to a server, and files of which every piece comes back in capitals."""

from __future__ import annotations

from running import RunningServer

from kster.documents.kinds import open_document


def translate_file(server: RunningServer, name: str, content: bytes, source: str = "en") -> bytes:
    answer = server.http.post(
        "/translate_file", files={"file": (name, content)}, data={"source": source, "target": "de"}
    )
    assert answer.status_code == 200, answer.text
    url = answer.json()["translatedFileUrl"]
    assert url.startswith(f"{server.url}/download_file/")
    fetched = server.http.get(url)
    assert fetched.status_code == 200, fetched.text
    return fetched.content


def capitals(name: str, content: bytes) -> bytes:
    document = open_document(name, content, "en", "de")
    return document.with_translations([piece.upper() for piece in document.pieces])
