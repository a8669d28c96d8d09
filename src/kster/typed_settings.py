"""Settings as dataclasses: what a field accepts is its type, with a range beside it where that matters.

`read_dataclass` builds one from values that people wrote; `require_valid`, called in `__post_init__`, checks
one that a program made. Messages name the place, the key and what is accepted.
"""

from __future__ import annotations

import dataclasses
import difflib
import math
import re
import types
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from kster.errors import SettingsError

T = TypeVar("T")
MANY = 2**31 - 1


@dataclasses.dataclass(frozen=True)
class Range:
    """The numbers that a value may be, written beside its type: Annotated[int, Range(1)]."""

    low: float
    high: float = MANY
    ends: Literal["[]", "[)", "(]", "()"] = "[]"  # which of the two ends belong to it

    def holds(self, value: float) -> bool:  # not nan, either
        above = self.low <= value if self.ends[0] == "[" else self.low < value
        return above and (value <= self.high if self.ends[1] == "]" else value < self.high)

    def __str__(self) -> str:
        least = f"{'at least' if self.ends[0] == '[' else 'above'} {self.low:,}"
        if self.high == math.inf:
            return least
        if self.ends == "[]" and self.high != MANY:
            return f"from {self.low:,} to {self.high:,}"
        return f"{least} and {'at most' if self.ends[1] == ']' else 'below'} {self.high:,}"


FRACTION = Range(0, 1, ends="[)")
POSITIVE = Range(0, math.inf, ends="()")

_EXPONENT = re.compile(r"[-+]?\d+(\.\d*)?[eE][-+]?\d+")  # 1e-3, which PyYAML takes for text
_WORDS = {str: "text", int: "a whole number", float: "a number", bool: "true or false", type(None): "nothing"}


def read_dataclass(kind: type[T], content: Any, *, file: str, key: str = "") -> T:
    """An instance of the dataclass `kind` from a mapping; unknown, missing and ill-typed keys are errors."""
    if not isinstance(content, Mapping):
        raise SettingsError(
            f"{file}{f': {key}' if key else ''}: expected keys and values, found {_describe(content)}"
        )
    hints = get_type_hints(kind, include_extras=True)
    fields = {field.name: field for field in dataclasses.fields(kind)}  # type: ignore[arg-type]
    for name in content:
        if name not in fields:
            raise SettingsError(
                f"{file}: unknown key {_join(key, str(name))!r}{_suggest(str(name), list(fields))}"
            )
    values = {}
    for name, field in fields.items():
        place = _join(key, name)
        if name in content:
            values[name] = _read_value(hints[name], content[name], file=file, key=place)
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            raise SettingsError(f"{file}: the key {place!r} is missing")
    try:
        return kind(**values)
    except SettingsError as error:
        raise SettingsError(f"{file}: {error}") from None


def require_valid(settings: object, what: str) -> None:
    """Raise SettingsError for the first field whose value is not what its annotation accepts."""
    for name, hint in get_type_hints(type(settings), include_extras=True).items():
        _read_value(hint, getattr(settings, name), file=what, key=name)


def _read_value(hint: Any, value: Any, *, file: str, key: str) -> Any:
    if get_origin(hint) is Annotated:
        inner, accepted = get_args(hint)
        read = _read_value(inner, value, file=file, key=key)
        if read is not None and not accepted.holds(read):
            raise SettingsError(f"{file}: {key}: is {read}; must be {accepted}")
        return read
    if dataclasses.is_dataclass(hint):
        return read_dataclass(hint, value if value is not None else {}, file=file, key=key)  # type: ignore[arg-type]
    if hint is float and isinstance(value, str) and _EXPONENT.fullmatch(value):
        return float(value)
    origin = get_origin(hint)
    if origin is tuple:
        if not isinstance(value, list | tuple):
            raise SettingsError(f"{file}: {key}: expected a list, found {_describe(value)}")
        inner = get_args(hint)[0]
        return tuple(_read_value(inner, item, file=file, key=f"{key}.{i}") for i, item in enumerate(value))
    if origin in (Union, types.UnionType):
        for choice in get_args(hint):
            if _fits(choice, value):
                return _read_value(choice, value, file=file, key=key)
    elif _fits(hint, value):
        return float(value) if hint is float else value
    hinted = value if isinstance(value, str) else ""
    near = _suggest(hinted, _choices(hint), listing=False) if _choices(hint) else ""
    raise SettingsError(f"{file}: {key}: expected {_expected(hint)}, found {_describe(value)}{near}")


def _fits(hint: Any, value: Any) -> bool:
    if get_origin(hint) is Literal:
        return any(value == choice and type(value) is type(choice) for choice in get_args(hint))
    if isinstance(value, bool):
        return hint is bool
    if hint is float:
        return isinstance(value, int | float)
    return isinstance(value, hint)


def _choices(hint: Any) -> list[str]:
    if get_origin(hint) is Literal:
        return [str(choice) for choice in get_args(hint)]
    return [choice for part in get_args(hint) for choice in _choices(part)]


def _expected(hint: Any) -> str:
    if get_origin(hint) is Literal:
        return "one of " + ", ".join(_choices(hint))
    if get_origin(hint) in (Union, types.UnionType):
        return " or ".join(_expected(part) for part in get_args(hint))
    return _WORDS.get(hint, str(hint))


def _describe(value: Any) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, Mapping):
        return "keys and values"
    if isinstance(value, list):
        return "a list"
    return repr(value)


def _suggest(name: str, accepted: list[str], *, listing: bool = True) -> str:
    near = difflib.get_close_matches(name, accepted, n=1)
    if near:
        return f"; did you mean {near[0]!r}?"
    return f"; accepted here: {', '.join(accepted)}" if listing else ""


def _join(key: str, name: str) -> str:
    return f"{key}.{name}" if key else name
