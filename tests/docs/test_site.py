"""The documentation builds, without a broken link and without anything fetched from elsewhere."""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_site_builds_and_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(tmp_path)],
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert "--memory" in (tmp_path / "reference" / "command-line.html").read_text(encoding="utf-8")
    for page in tmp_path.rglob("*.html"):
        if "experiments" not in page.parts:
            loaded = re.findall(
                r'<(?:script|link|img)[^>]+(?:src|href)="(https?:[^"]+)', page.read_text("utf-8")
            )
            assert not [address for address in loaded if "canonical" not in address], page


def test_every_setting_of_the_server_is_explained() -> None:
    from kster.server.settings import ServerSettings

    assert [name for name, field in ServerSettings.model_fields.items() if not field.description] == []
