"""The shipped model and the example memory, served."""

from __future__ import annotations

from pathlib import Path

import pytest
import sacrebleu
from running import start

ROOT = Path(__file__).parents[2]
LINES = zip(
    (ROOT / "examples/heldout.en").read_text(encoding="utf-8").splitlines(),
    (ROOT / "examples/heldout.de").read_text(encoding="utf-8").splitlines(),
    strict=True,
)


@pytest.mark.slow
def test_the_shipped_model_learns_the_example_memory(tmp_path: Path) -> None:
    server = start(tmp_path / "data", "--model", str(ROOT / "models/en-de"))
    try:
        memory = server.http.post("/v1/memories", json={"name": "Ombravella"}).json()["id"]
        with (ROOT / "examples/ombravella.tmx").open("rb") as file:
            answer = server.http.post(f"/v1/memories/{memory}/import", files={"file": file})
        job = server.finished(answer.json())
        assert (job["state"], job["result"]["added"]) == ("done", 740)
        some = list(LINES)[:24]
        request = {"text": [source for source, _ in some], "source": "en", "target": "de", "compare": True}
        results = server.http.post("/v1/translate", json=request).json()["translations"]
        targets = [target for _, target in some]
        adapted = sacrebleu.corpus_chrf([result["text"] for result in results], [targets]).score
        base = sacrebleu.corpus_chrf([result["base"]["text"] for result in results], [targets]).score
        assert adapted > base
        assert any(word["changed"] for result in results for word in result["words"])
    finally:
        assert server.stop() == 0
