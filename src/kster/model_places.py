"""Where models are found, by one rule for all of KSTER, and whether their files are as they were published.

A model is named by its directory. A plain name (`en-de`) is looked for in `$KSTER_MODEL_HOME`, then in
`./models`, then in the user's data directory; a name found in none of them is taken for one on the hub.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

from kster.errors import ModelError

HOME_VARIABLE = "KSTER_MODEL_HOME"
CHECKSUMS = "checksums.txt"  # in a model's directory, as `sha256sum` writes it


def places() -> list[Path]:
    """The directories in which models are looked for by name, the first one first."""
    own = [Path(os.environ[HOME_VARIABLE]).expanduser()] if os.environ.get(HOME_VARIABLE) else []
    data = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return [*own, Path("models"), Path(data) / "kster" / "models"]


def find_model(name: str | Path) -> Path | None:
    """The directory of a model: as given, or by its name in one of `places`; None if it is in neither."""
    if Path(name).is_dir():
        return Path(name)
    if len(Path(name).parts) != 1 or str(name) in ("", ".", ".."):
        return None
    return next((place / name for place in places() if _is_model(place / name)), None)


def require_model(name: str | Path) -> Path:
    """As `find_model`.

    Raises:
        KsterError: if there is no such model on this machine.
    """
    found = find_model(name)
    if found is None or not _is_model(found):
        looked = ", ".join(map(str, places()))
        raise ModelError(f"{name}: not a model directory, and no model of that name in {looked}")
    return found


def list_models() -> Iterator[Path]:
    """The models that can be used by name; of several with one name, the first, which is the one used."""
    seen: set[str] = set()
    for place in places():
        for directory in sorted(place.iterdir()) if place.is_dir() else []:
            if _is_model(directory) and directory.name not in seen:
                seen.add(directory.name)
                yield directory


def verify_model(directory: Path) -> list[str]:
    """What is wrong with a model's files, by its checksums; empty if nothing is.

    Raises:
        KsterError: if the model has no checksums, or they cannot be read.
    """
    listing = directory / CHECKSUMS
    try:
        lines = listing.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        raise ModelError(
            f"{directory}: has no {CHECKSUMS} to verify it by; `sha256sum` in a copy that you trust makes one"
        ) from None
    problems = []
    for number, line in enumerate(lines, 1):
        wanted, _, name = line.partition("  ")
        if len(wanted) != 64 or not name:
            raise ModelError(f"{listing}, line {number}: accepted: a SHA-256 sum, two spaces, a file's name")
        path = directory / name
        if not path.is_file():
            problems.append(f"{path}: missing")
        elif _sha256(path) != wanted:
            problems.append(f"{path}: not as it was published")
    return problems


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _is_model(directory: Path) -> bool:
    return (directory / "config.json").is_file()
