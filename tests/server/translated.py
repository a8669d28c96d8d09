"""Files given to a server."""

from __future__ import annotations

from running import RunningServer


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
