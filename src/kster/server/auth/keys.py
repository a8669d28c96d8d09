"""API keys: a random token shown once, of which only a hash is kept."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass

from kster.errors import KsterError
from kster.server.database import ServerDatabase, now
from kster.server.settings import ServerSettings

SCOPES = ("read", "write", "admin")
"""What a key may do: translate and look; also change its own memories; everything."""

TOKEN_PREFIX = "kster_"
TOKEN_BYTES = 32


@dataclass(frozen=True, slots=True)
class Key:
    id: int
    name: str
    scope: str
    created: str
    revoked: str | None = None


class Keys:
    """The keys of one data directory. Changes take effect at once, including those of another process."""

    def __init__(self, database: ServerDatabase) -> None:
        self._database = database

    def add(self, name: str, scope: str) -> tuple[Key, str]:
        """A new key and its token, which is never shown again."""
        if scope not in SCOPES:
            raise KsterError(f"scope {scope!r} is unknown; accepted: {', '.join(SCOPES)}; no key was made")
        if not name.strip():
            raise KsterError("a key needs a name that tells it from others; no key was made")
        if any(key.name == name and key.revoked is None for key in self.list()):
            raise KsterError(f"there is a key {name!r} already; revoke it first or choose another name")
        token = TOKEN_PREFIX + secrets.token_urlsafe(TOKEN_BYTES)
        created = now()
        _, id = self._database.change(
            "INSERT INTO keys (name, scope, hash, created) VALUES (?, ?, ?, ?)",
            (name, scope, _hash(token), created),
        )
        return Key(id, name, scope, created), token

    def list(self) -> list[Key]:
        rows = self._database.all("SELECT id, name, scope, created, revoked FROM keys ORDER BY id")
        return [Key(*row) for row in rows]

    def revoke(self, name_or_id: str) -> Key:
        for key in self.list():
            if key.revoked is None and name_or_id in (key.name, str(key.id)):
                self._database.change("UPDATE keys SET revoked = ? WHERE id = ?", (now(), key.id))
                return key
        raise KsterError(f"no key {name_or_id!r} in use; nothing was revoked")

    def find(self, token: str) -> Key | None:
        """The key in use with this token. A token has 256 random bits: equal hashes mean equal tokens."""
        row = self._database.one(
            "SELECT id, name, scope, created FROM keys WHERE hash = ? AND revoked IS NULL", (_hash(token),)
        )
        return Key(*row) if row is not None else None

    @property
    def any_in_use(self) -> bool:
        return self._database.one("SELECT 1 FROM keys WHERE revoked IS NULL LIMIT 1") is not None

    def require_some(self, settings: ServerSettings) -> None:
        """Raises KsterError when keys are needed and there is none: nobody could use such a server."""
        if settings.keys_required and not self.any_in_use:
            why = "keys are required" if settings.on_loopback else f"{settings.host} can be reached by others"
            raise KsterError(
                f"{why}, and there is no API key yet; make one with `kster keys add NAME --data "
                f"{settings.data}`, or bind to 127.0.0.1"
            )


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
