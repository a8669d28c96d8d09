"""Jobs between two servers: what a kill may cut off, and when."""

from __future__ import annotations

import time
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from starlette.datastructures import UploadFile

from kster.server.api.transfers import import_upload
from kster.server.auth.access import LOCAL
from kster.server.settings import ModelSetting, ServerSettings
from kster.server.work.engine import Engine
from kster.server.work.jobs import FINISHED, Jobs
from tiny import ENGLISH, GERMAN


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_an_import_that_was_done_when_the_server_died_has_not_failed(
    taught_marian: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = ServerSettings(data=tmp_path / "data", models=[ModelSetting(path=str(taught_marian))])
    engine = Engine(settings)
    content = f"source\ttarget\n{ENGLISH[0]}\t{GERMAN[0]}\n".encode()
    upload = UploadFile(BytesIO(content), filename="some.tsv")

    def die(*_: Any) -> None:
        raise SystemExit  # ends the thread, as a kill would right before the end is written down

    with monkeypatch.context() as patched:
        patched.setattr(Jobs, "_write_end", die)
        memory = engine.catalogue.create(LOCAL, "some")
        id = import_upload(engine, LOCAL, memory, upload, ".tsv", lambda _: engine.models[0]).id
        while any(thread.is_alive() for thread in engine.jobs._threads if "import" in thread.name):
            time.sleep(0.01)
        engine.close()

    assert (engine.uploads / id).exists()
    engine = Engine(settings)
    try:
        while (job := engine.jobs.get(id)) is None or job.state not in FINISHED:
            time.sleep(0.01)
        assert (job.state, job.error) == ("done", None)
        assert job.result is not None
        assert job.result["duplicates"] == 1
        assert not (engine.uploads / id).exists()
    finally:
        engine.close()
