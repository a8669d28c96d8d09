"""Calling actors by name: errors say in words which of them did not answer."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

import ray
from ray.exceptions import GetTimeoutError, RayActorError, RayTaskError

from kster.cluster.wire import Part
from kster.server.errors import ApiError

log = logging.getLogger("kster.cluster")

NAMESPACE = "kster"
CATALOGUE = "catalogue"
JOBS = "jobs"
SHARD = "shard-"  # before a shard's name
SHARD_RESOURCE = "kster_shard_"  # before its name: nodes that have a shard's disk offer one of it
CATALOGUE_RESOURCE = "kster_catalogue"
ASK_SECONDS = 30.0  # for a question; actors answer in milliseconds, and the largest answers in seconds
CHANGE_SECONDS = 120.0  # for a change, while its shard may be coming back


class Unreachable(ApiError):
    """A part of the cluster does not answer; it is being started again."""

    status, kind = 503, "ServiceUnavailableException"

    def __init__(self, who: str, what: str = "nothing was changed; try again in a few seconds") -> None:
        super().__init__(f"{who} does not answer; it is being started again; {what}")
        self._of = (who, what)

    def __reduce__(self) -> tuple[Any, ...]:
        return Unreachable, self._of


def shards_offered() -> list[str]:
    """Names of the shards whose disks the cluster's nodes have."""
    offered = [name for name in ray.cluster_resources() if name.startswith(SHARD_RESOURCE)]
    return sorted(name.removeprefix(SHARD_RESOURCE) for name in offered)


_handles: dict[str, Any] = {}


def _handle(name: str) -> Any:
    if name not in _handles:
        try:
            _handles[name] = ray.get_actor(name, namespace=NAMESPACE)
        except ValueError:
            raise Unreachable(_said(name)) from None
    return _handles[name]


def forget_handles() -> None:
    """Called when a cluster is left."""
    _handles.clear()


def ask(name: str, operation: str, *arguments: Any) -> Any:
    """One question to one actor; not repeated when that dies meanwhile. Raises Unreachable."""
    return ask_each({name: (operation, *arguments)})[name]


def ask_each(questions: Mapping[str, tuple[Any, ...]], *, lost: list[str] | None = None) -> dict[str, Any]:
    """Questions to several actors at the same time; for each an operation and its arguments.

    lost: takes the names of those that do not answer, which are then left out. Raises Unreachable without it.
    """
    sent, answers = dict[str, Any](), dict[str, Any]()
    for name, question in questions.items():
        try:
            sent[name] = _handle(name).ask.remote(*question)
        except (Unreachable, RayActorError) as error:
            _give_up(name, error, lost)
    for name, reference in sent.items():
        try:
            answers[name] = got(reference, ASK_SECONDS)
        except (RayActorError, GetTimeoutError) as error:
            _give_up(name, error, lost)
    return answers


def ask_of_parts(
    parts: Sequence[Part], method: str, *arguments: Any, lost: list[str] | None = None, **named: Any
) -> dict[Part, Any]:
    """What a method of each part's memory says, by one call to each shard. lost: as above."""
    by_shard: dict[str, list[Part]] = {}
    for part in parts:
        by_shard.setdefault(SHARD + part.shard, []).append(part)
    asked = {
        name: ("read_each", [part.directory for part in own], method, arguments, named)
        for name, own in by_shard.items()
    }
    answers = ask_each(asked, lost=lost)
    found = {
        part: answer
        for name, own in answers.items()
        for part, answer in zip(by_shard[name], own, strict=True)
    }
    return {part: found[part] for part in parts if part in found}


def ask_about(part: Part, operation: str, *arguments: Any) -> Any:
    """A question to the shard of a part, about its directory. Raises Unreachable."""
    return ask(SHARD + part.shard, operation, part.directory, *arguments)


def change(name: str, operation: str, *arguments: Any, seconds: float = CHANGE_SECONDS) -> Any:
    """A change; repeated by Ray when the actor dies meanwhile, so it must be one that is done once only."""
    try:
        return got(_handle(name).change.remote(operation, *arguments), seconds)
    except (RayActorError, GetTimeoutError) as error:
        _handles.pop(name, None)
        raise Unreachable(_said(name), "whether anything was changed is not known") from error


def node_of(name: str) -> str:
    """The node that an actor runs on."""
    try:
        _, node = got(_handle(name).process.remote(), ASK_SECONDS)
    except (RayActorError, GetTimeoutError) as error:
        raise Unreachable(_said(name)) from error
    return str(node)


def change_soon(name: str, operation: str, *arguments: Any) -> Any:
    """A change whose answer `got` waits for; arguments may be answers that are still to come."""
    return _handle(name).change.remote(operation, *arguments)


def got(reference: Any, seconds: float | None = None) -> Any:
    """The answer to what was begun; errors as they were raised there."""
    try:
        return ray.get(reference, timeout=seconds)
    except RayTaskError as error:
        raise error.cause from None


def _give_up(name: str, error: Exception, lost: list[str] | None) -> None:
    _handles.pop(name, None)  # there may be a new one by that name
    if lost is None:
        raise Unreachable(_said(name)) from error
    log.warning("%s does not answer and is left out", _said(name))
    if name not in lost:
        lost.append(name)


def _said(name: str) -> str:
    return f"shard {name.removeprefix(SHARD)}" if name.startswith(SHARD) else f"the {name}"
