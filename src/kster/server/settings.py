"""How a server runs: defaults, a YAML file, `KSTER_*` variables, the command line; later ones override."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from kster.errors import SettingsError
from kster.model_places import HOME_VARIABLE

PREFIX = "KSTER_"
CONFIG_VARIABLE = "KSTER_CONFIG"  # where the YAML file is; not a setting itself


class ModelSetting(BaseModel):
    """A model to serve; languages are needed for models of many languages only."""

    model_config = ConfigDict(extra="forbid")
    path: str
    source: str | None = None
    target: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _named(cls, value: Any) -> Any:
        return {"path": value} if isinstance(value, str) else value


class ServerSettings(BaseModel):
    """Every setting of the server; the strings below them are what the documentation says."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    host: str = "127.0.0.1"
    """The address to listen on. Anything but loopback needs API keys."""
    port: int = Field(8017, ge=0, le=65535)
    """The port to listen on; 0 takes a free one."""
    models: list[ModelSetting] = []
    """Base models, each a directory, a name or a hub id; models of several languages as `{path, source,
    target}`."""
    memories: list[Path] = []
    """Directories of memories that serve every client; only admins change them."""
    data: Path = Path("kster-data")
    """Where memories made through the API, keys and jobs are kept. Relative to the file, if it stands in
    one."""
    device: str = "auto"
    """`cpu`, `cuda`, `cuda:0` …, or `auto` for a GPU when there is one."""
    precision: str = Field("auto", pattern="^(auto|int8|bfloat16|float16|float32)$")
    """What matrix products are computed in: `int8`, `bfloat16`, `float16`, `float32`, or `auto`."""
    beam: int = Field(4, ge=1, le=16)
    """How many hypotheses the search keeps at each step."""
    split_sentences: bool = True
    """Whether the sentences of a line are translated one by one."""

    batching: bool = True
    """Whether sentences of several requests are translated together."""
    batch_window_ms: float = Field(4.0, ge=0, le=1000)
    """How many milliseconds the first request waits for others to join its batch."""
    batch_sentences: int = Field(32, ge=1, le=1024)
    """How many sentences a batch has at most."""
    timeout_seconds: float = Field(60.0, gt=0)
    """How long the translation of a request may take; after that it is answered with 504."""
    shutdown_seconds: float = Field(30.0, gt=0)
    """Seconds that requests in progress get to finish after a signal; then they are answered with 503."""

    require_keys: bool | None = None
    """Whether clients need a key. By default they do unless the server listens on loopback."""
    max_characters: int = Field(50_000, ge=1)
    """How many characters a request may have (else 400)."""
    max_texts: int = Field(256, ge=1)
    """How many texts a request may have (else 400)."""
    max_body_mb: float = Field(4.0, gt=0)
    """How many megabytes a request may have that uploads no file (else 413)."""
    max_upload_mb: float = Field(256.0, gt=0)
    """How many megabytes a request with a file may have (else 413)."""
    max_connections: int = Field(512, ge=1)
    """How many connections may be open at once (else 503); fewer where the system allows few open files."""
    header_seconds: float = Field(15.0, gt=0)
    """How long a client may take to send the head of its request (else 408)."""
    requests_per_minute: int | None = Field(None, ge=0)
    """How many requests a key or an address may make in a minute (else 429); 0 is no limit. By default
    600, and no limit on loopback."""
    cors_origins: list[str] = []
    """Web sites whose pages may use the server, such as `https://example.org`."""
    allowed_hosts: list[str] = []
    """Other host names by which a server on loopback may be addressed."""
    log_level: str = Field("info", pattern="^(debug|info|warning|error)$")
    """`debug`, `info`, `warning` or `error`."""

    @field_validator("models", "memories", "cors_origins", "allowed_hosts", mode="before")
    @classmethod
    def _parts(cls, value: Any) -> Any:
        """Variables have lists as texts with commas between the parts."""
        if isinstance(value, str):
            return [part.strip() for part in value.split(",") if part.strip()]
        return [] if value is None else value

    @property
    def on_loopback(self) -> bool:
        return is_loopback(self.host)

    @property
    def keys_required(self) -> bool:
        return not self.on_loopback if self.require_keys is None else self.require_keys

    @property
    def rate(self) -> int:
        """Requests a minute for one client; 0 is no limit."""
        if self.requests_per_minute is not None:
            return self.requests_per_minute
        return 0 if self.on_loopback else 600


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def read_settings(
    config: Path | None = None,
    given: Mapping[str, Any] | None = None,
    environment: Mapping[str, str] | None = None,
) -> ServerSettings:
    """given: settings of the command line; None where it says nothing."""
    environment = os.environ if environment is None else environment
    if config is None and environment.get(CONFIG_VARIABLE):
        config = Path(environment[CONFIG_VARIABLE])
    variables = _from_environment(environment)
    on_command_line = {name: value for name, value in (given or {}).items() if value not in (None, [])}
    merged = {**(_from_file(config) if config is not None else {}), **variables, **on_command_line}
    try:
        return ServerSettings(**merged)
    except ValidationError as error:
        origins = {name: f"{PREFIX}{name.upper()}" for name in variables}
        origins |= dict.fromkeys(on_command_line, "the command line")
        raise SettingsError(_for_people(error, origins, str(config or "the settings"))) from None


def _from_file(path: Path) -> dict[str, Any]:
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"{path}: cannot be read ({error.strerror})") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path}: not valid YAML ({' '.join(str(error).split())})") from None
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise SettingsError(f"{path}: expected settings as `name: value` lines; accepted: {_names()}")
    for name in ("data", "memories"):  # relative to the file, wherever the server is started
        if content.get(name):
            value = content[name]
            base = path.parent
            content[name] = [base / v for v in value] if isinstance(value, list) else base / value
    return content


def _from_environment(environment: Mapping[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for variable, text in environment.items():
        if not variable.startswith(PREFIX) or variable in (CONFIG_VARIABLE, HOME_VARIABLE):
            continue
        name = variable[len(PREFIX) :].lower()
        if name not in ServerSettings.model_fields:
            raise SettingsError(
                f"{variable}: no such setting; accepted: {CONFIG_VARIABLE} and {PREFIX} before {_names()}"
            )
        found[name] = text
    return found


def _names() -> str:
    return ", ".join(ServerSettings.model_fields)


def _for_people(error: ValidationError, origins: Mapping[str, str], otherwise: str) -> str:
    """origins: where each setting comes from that does not come from `otherwise`."""
    problems = []
    for problem in error.errors():
        name = ".".join(str(part) for part in problem["loc"])
        where = origins.get(str(problem["loc"][0]), otherwise)
        if problem["type"] == "extra_forbidden":
            problems.append(f"{where}: {name} is not a setting (accepted: {_names()})")
        else:
            problems.append(f"{where}: {name} is {problem['input']!r}: {problem['msg'].lower()}")
    return "; ".join(problems)
