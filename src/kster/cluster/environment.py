"""What Ray reads from the environment when it is imported: call `prepare` before that."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from kster.server.settings import is_loopback

LOOPBACK = "127.0.0.1"
# Ray's own mode for one machine, which is the default of other systems than Linux: nodes have the loopback
# address. Otherwise it replaces "127.0.0.1" by the machine's address in the network.
ONE_MACHINE = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
CURRENT = Path(os.environ.get("RAY_TMPDIR", "/tmp")) / "ray" / "ray_current_cluster"


def prepare(address: str | None = None) -> None:
    """address: of the cluster to join; "auto" or None for the one that runs on this machine, if any does."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_NUM_REDIS_GET_RETRIES", "3")  # ten seconds each, instead of 20 times
    if token_file().is_file() or os.environ.get("RAY_AUTH_TOKEN"):
        os.environ.setdefault("RAY_AUTH_MODE", "token")
    if is_on_loopback(address_of(address)):
        os.environ.update(ONE_MACHINE)


def token_file() -> Path:
    """Where Ray looks for its token."""
    return Path(os.environ.get("RAY_AUTH_TOKEN_PATH") or "~/.ray/auth_token").expanduser()


def make_token() -> None:
    """A token for Ray's ports, unless there is one or somebody wants none."""
    if os.environ.get("RAY_AUTH_TOKEN") or os.environ.get("RAY_AUTH_MODE", "token") != "token":
        return
    file = token_file()
    if not file.is_file():
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(descriptor, "w", encoding="ascii") as opened:
            opened.write(secrets.token_hex(32))


def address_of(address: str | None) -> str:
    """As "host:port"; the loopback address where no cluster is known."""
    if address not in (None, "auto"):
        return str(address)
    if named := os.environ.get("RAY_ADDRESS"):
        return named
    try:
        return CURRENT.read_text(encoding="utf-8").strip()
    except OSError:
        return LOOPBACK


def is_on_loopback(address: str) -> bool:
    """address: a host, perhaps with a port."""
    return is_loopback((address.rpartition(":")[0] or address).strip("[]"))
