"""memory.json: what a memory directory says about itself."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kster.errors import DamagedMemory, MemoryStoreError
from kster.files import write_atomically
from kster.memory.key_maker import KeyMaker
from kster.memory.store.key_formats import FORMATS, key_format
from kster.memory.store.migrations import FORMAT, require_known

FILE = "memory.json"
FLOAT16 = "float16"


@dataclass(frozen=True, slots=True)
class Description:
    """Written when the memory is created; only its format changes."""

    format: int
    model: str  # hub id, or the absolute path of the model's directory
    model_relative: str | None  # the same path seen from the memory, for the two being moved together
    fingerprint: str
    dimension: int
    vocabulary_size: int
    source_lang: str | None
    target_lang: str | None
    entries_per_shard: int
    created: str
    keys: str = FLOAT16  # how they lie on disk (`key_formats.py`); memories that do not say so are older

    @classmethod
    def of(
        cls,
        model: KeyMaker,
        directory: Path,
        entries_per_shard: int,
        source_lang: str | None = None,
        target_lang: str | None = None,
        keys: str = FLOAT16,
    ) -> Description:
        """Languages: the model's; raises KsterError when others are given, and for an unknown key format."""
        _require_languages(model, source_lang, target_lang)
        local = Path(model.name).expanduser()
        is_local = local.is_dir()
        return cls(
            format=FORMAT,
            model=str(local.resolve()) if is_local else model.name,
            model_relative=os.path.relpath(local.resolve(), directory.resolve()) if is_local else None,
            fingerprint=model.fingerprint,
            dimension=model.dimension,
            vocabulary_size=model.vocabulary_size,
            source_lang=model.source_lang or source_lang,
            target_lang=model.target_lang,
            entries_per_shard=entries_per_shard,
            created=now(),
            keys=key_format(keys).name,
        )

    @classmethod
    def read(cls, directory: Path) -> Description:
        """Raises KsterError when this is no memory, is damaged, or was written by a newer version."""
        path = directory / FILE
        if not directory.is_dir():
            raise MemoryStoreError(f"{directory}: no such memory; make one with `kster memory create`")
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise MemoryStoreError(f"{directory}: not a memory (it has no {FILE})") from None
        except (ValueError, OSError) as error:
            raise DamagedMemory(f"{path}: cannot be read ({error}); nothing was changed") from error
        return cls._from_json(path, content)

    @classmethod
    def _from_json(cls, path: Path, content: Any) -> Description:
        if not isinstance(content, dict) or not isinstance(content.get("format"), int):
            raise DamagedMemory(f"{path}: not a memory's description (no format number)")
        require_known(content["format"], path)
        content = {"keys": FLOAT16, **content}
        names = [field.name for field in fields(cls)]
        if missing := [name for name in names if name not in content]:
            raise DamagedMemory(f"{path}: damaged (no {', '.join(missing)}); restore it from a backup")
        for field in fields(cls):
            if wanted := _complaint(str(field.type), content[field.name]):
                raise DamagedMemory(
                    f"{path}: damaged ({field.name} is {json.dumps(content[field.name])}, not {wanted}); "
                    "restore it from a backup"
                )
        if content["keys"] not in FORMATS:
            raise MemoryStoreError(
                f"{path}: its keys are stored as {content['keys']!r}, which this version does not know "
                f"({', '.join(FORMATS)}); use a newer one"
            )
        return cls(**{name: content[name] for name in names})

    def write(self, directory: Path) -> None:
        text = json.dumps(asdict(self), indent=2, ensure_ascii=False) + "\n"
        write_atomically(directory / FILE, text.encode())

    def model_location(self, directory: Path) -> str:
        """What to load the model from: where it was, else where it lies relative to the memory."""
        if self.model_relative is None or Path(self.model).is_dir():
            return self.model
        moved = (directory / self.model_relative).resolve()
        if moved.is_dir():
            return str(moved)
        raise MemoryStoreError(
            f"{directory}: its model is neither at {self.model} nor at {moved}; put it back, or give the "
            "same model by its present path"
        )

    def require(self, model: KeyMaker, directory: Path) -> None:
        """Raises KsterError unless this model made the memory."""
        if model.fingerprint != self.fingerprint:
            raise MemoryStoreError(
                f"{directory}: made with the model {self.model} ({_pair(self)}, fingerprint "
                f"{self.fingerprint}), not with {model.name} ({_pair(model)}, fingerprint "
                f"{model.fingerprint}). Keys of one model mean nothing to another: "
                "use the model it was made with, or export the memory and import it into a new one. "
                "Nothing was changed"
            )


def _pair(languages: KeyMaker | Description) -> str:
    return f"{languages.source_lang or '?'} → {languages.target_lang or '?'}"


def _require_languages(model: KeyMaker, source: str | None, target: str | None) -> None:
    """A loaded model has its languages, and will be loaded with the memory's when that is opened."""
    fits_source = source is None or model.source_lang in (source, None)
    if not fits_source or target not in (model.target_lang, None):
        raise MemoryStoreError(
            f"{model.name} was loaded for {_pair(model)}, not for "
            f"{source or '?'} → {target or '?'}; load it with these languages, or give its name instead"
        )


def _complaint(kind: str, value: object) -> str | None:
    """What a field should have been; None when it is."""
    if kind == "int":
        is_positive = isinstance(value, int) and not isinstance(value, bool) and value > 0
        return None if is_positive else "a positive whole number"
    return None if isinstance(value, str) or (value is None and "None" in kind) else "text"


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
