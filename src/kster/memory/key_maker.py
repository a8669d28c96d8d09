"""What a memory needs from a base model: little enough that a test can bring its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from torch import Tensor


class ForcedKeys(Protocol):
    """The part of a force-decoded sentence that is stored; n target tokens, end of sentence included."""

    @property
    def keys(self) -> Tensor: ...  # (n, d) float16

    @property
    def tokens(self) -> Tensor: ...  # (n,) int32


class KeyMaker(Protocol):
    """`kster.model.BaseModel`, as far as a memory can see."""

    @property
    def name(self) -> str: ...

    @property
    def fingerprint(self) -> str: ...

    @property
    def dimension(self) -> int: ...

    @property
    def vocabulary_size(self) -> int: ...

    @property
    def max_length(self) -> int: ...  # the most tokens a side may have

    @property
    def source_lang(self) -> str | None: ...

    @property
    def target_lang(self) -> str | None: ...

    def tokenise_source(self, texts: Sequence[str]) -> list[list[int]]: ...

    def tokenise_target(self, texts: Sequence[str]) -> list[list[int]]: ...

    def make_keys(self, pairs: Iterable[tuple[str, str]]) -> Iterator[ForcedKeys]: ...
