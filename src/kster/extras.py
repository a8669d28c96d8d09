"""Packages that only some commands need: what is missing is said before work begins, not in a traceback."""

from __future__ import annotations

from importlib.util import find_spec

from kster.errors import KsterError

# The modules of each extra of pyproject.toml, as they are imported.
_SERVER = ("fastapi", "uvicorn", "python_multipart", "prometheus_client", "pydantic", "yaml")
_MODULES = {
    "server": _SERVER,
    "ray": (*_SERVER, "ray"),
    "train": ("yaml",),  # TensorBoard is used if it is there
}


def require_extra(what: str, extra: str) -> None:
    """Refuse what cannot work without an extra that is not installed.

    Args:
        what: who needs it, such as "`kster serve`".
        extra: its name in pyproject.toml.

    Raises:
        KsterError: if one of the extra's packages is missing.
    """
    if any(find_spec(module) is None for module in _MODULES[extra]):
        raise KsterError(f"{what} needs the {extra} extra: pip install 'kster[{extra}]'")
