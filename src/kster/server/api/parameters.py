"""Parameters of the borrowed APIs, which come as JSON, as form fields or in the query."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Annotated, Any
from urllib.parse import parse_qsl

from fastapi import Depends
from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException
from starlette.requests import Request

from kster.errors import KsterError
from kster.server.work.owned import require_whole

URLENCODED, MULTIPART = "application/x-www-form-urlencoded", "multipart/form-data"
MOST_FIELDS = 1_000


class Texts(list[str]):
    """alone: whether a single text came, not in a list; the answer is then not a list, either."""

    alone = False

    def answer(self, values: list[Any]) -> Any:
        return values[0] if self.alone else values


class Parameters:
    """Looked up by name; the body overrides the query. memories: those that the address names, if any."""

    def __init__(
        self, values: dict[str, Any], files: dict[str, UploadFile], memories: list[int] | None = None
    ) -> None:
        self.values, self.files = values, files
        self._memories = memories

    @classmethod
    async def of(cls, request: Request) -> Parameters:
        """Raises KsterError for a body that cannot be read as its content type."""
        values = _fields(request.query_params.multi_items())
        files: dict[str, UploadFile] = {}
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind == URLENCODED:
            values |= _fields(_urlencoded(await request.body()))
        elif kind == MULTIPART:
            try:
                form = await request.form(max_files=8, max_fields=MOST_FIELDS)
            except MultiPartException as error:
                raise KsterError(f"the form cannot be read: {error.message}") from None
            files = {name: field for name, field in form.multi_items() if isinstance(field, UploadFile)}
            values |= _fields(
                (name, field) for name, field in form.multi_items() if not isinstance(field, UploadFile)
            )
        else:
            values |= _json(await request.body(), kind)
        return cls(values, files, memories_of_address(request))

    def text(self, name: str) -> str | None:
        """None when it is missing or empty."""
        value = self.values.get(name)
        if value is None or value == "":
            return None
        if not isinstance(value, str | int | float) or isinstance(value, bool):
            raise KsterError(f"`{name}` must be text")
        return require_whole(str(value), f"`{name}`")

    def require(self, name: str) -> str:
        value = self.text(name)
        if value is None:
            raise KsterError(f"Invalid request: missing {name} parameter")
        return value

    def texts(self, name: str) -> Texts:
        """A text or a list of texts; it may be empty, but not missing."""
        value = self.values.get(name)
        if value is None:
            raise KsterError(f"Invalid request: missing {name} parameter")
        texts = Texts([value] if isinstance(value, str) else value if isinstance(value, list) else [value])
        if not all(isinstance(text, str) for text in texts):
            raise KsterError(f"`{name}` must be a text or a list of texts")
        texts.alone = isinstance(value, str)
        return texts

    def listed(self, name: str) -> list[str]:
        """Values that come as a list, or as one text with commas between them."""
        value = self.values.get(name)
        given = value if isinstance(value, list) else [] if value is None else [value]
        return [part.strip() for item in given for part in str(item).split(",") if part.strip()]

    def ids(self, name: str) -> list[int]:
        """Ids of memories, as "1,2" or as a list."""
        return [memory_id(part, name) for part in self.listed(name)]

    def memories(self, name: str) -> list[int] | None:
        """Ids of the memories to use, by this parameter or by the address; None: the automatic ones."""
        return self.ids(name) if name in self.values else self._memories

    def flag(self, name: str, *, default: bool = False) -> bool:
        value = self.values.get(name)
        value = str(default if value is None or value == "" else value).lower()
        if value not in ("true", "false", "1", "0"):
            raise KsterError(f"`{name}` is {value!r}; accepted: true, false")
        return value in ("true", "1")

    def number(self, name: str, default: int, most: int) -> int:
        value = self.values.get(name)
        if value is None or value == "":
            return default
        try:
            number = int(value)
        except (TypeError, ValueError, OverflowError):
            raise KsterError(f"`{name}` must be a whole number") from None
        if not 0 <= number <= most:
            raise KsterError(f"`{name}` is {number}; accepted: 0 to {most}")
        return number


def memories_of_address(request: Request) -> list[int] | None:
    """The memories of `/memories/1,2/translate`, for clients that only let you set an address."""
    named: str | None = request.scope["state"].get("memories")
    if named is None:
        return None
    return [memory_id(part, "memories") for part in named.removeprefix("none").split(",") if part]


Given = Annotated[Parameters, Depends(Parameters.of)]


def whole_number(text: str) -> int | None:
    """An id from its text; None if the text is not a whole number."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else None


def memory_id(text: str, name: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise KsterError(f"`{name}` must be ids of memories, such as 1,2") from None


def _urlencoded(body: bytes) -> list[tuple[str, str]]:
    """`curl -d` sends "q=Größe" as it is: so a form may have bytes of UTF-8 that are not escaped."""
    try:
        return parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=MOST_FIELDS)
    except UnicodeDecodeError:
        raise KsterError("the form cannot be read: it is not UTF-8") from None
    except ValueError as error:
        raise KsterError(f"the form cannot be read: {error}") from None


def _fields(pairs: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """The values of a repeated name are collected in a list."""
    values: dict[str, Any] = {}
    for name, value in pairs:
        if name in values:
            before = values[name]
            values[name] = [*before, value] if isinstance(before, list) else [before, value]
        else:
            values[name] = value
    return values


def _json(body: bytes, kind: str) -> dict[str, Any]:
    if not body.strip():
        return {}
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        if kind and "json" not in kind:
            raise KsterError(
                f"content type {kind} is not accepted; send JSON, form fields or a query"
            ) from None
        raise KsterError("the body is not valid JSON") from None
    if not isinstance(content, dict):
        raise KsterError("the body must be a JSON object")
    return content
