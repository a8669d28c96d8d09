"""Progress on stderr, if it is a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from kster.cli.output import is_quiet


def is_watched() -> bool:
    """Whether somebody sees progress, so that it is worth counting what there is to do."""
    return sys.stderr.isatty() and not is_quiet()


@contextmanager
def progress_bar(
    what: str, unit: str, total: int | None = None, *, visible: bool = True
) -> Iterator[Callable[..., None]]:
    """Gives a function to call with how much is done so far, and with the total unless `total` says it."""
    with progress_bars({what: unit}, visible=visible) as show:
        yield lambda done, of=None: show(what, done, of or total)


@contextmanager
def progress_bars(jobs: Mapping[str, str], *, visible: bool = True) -> Iterator[Callable[..., None]]:
    """A bar for each job as it begins; nothing at all when stderr is not a terminal.

    jobs: name → unit. Gives a function to call with a job's name, how much of it is done so far, and the
    total.
    """
    if not visible or not is_watched():
        yield lambda job, done, total=None: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:,.0f} {task.fields[unit]}"),
        TimeElapsedColumn(),
    )
    tasks: dict[str, TaskID] = {}
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:

        def show(job: str, done: int, total: int | None = None) -> None:
            if job not in tasks:
                unit = jobs[job]
                tasks[job] = progress.add_task(
                    job, total=total, unit=f"of {total:,} {unit}" if total else unit
                )
            progress.update(tasks[job], completed=done)

        yield show
