"""Progress on stderr, where somebody watches."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial


@contextmanager
def progress_bar(
    what: str, unit: str, total: int | None = None, *, visible: bool = True
) -> Iterator[Callable[[int], None]]:
    """Gives a function to be called with how much is done so far."""
    with progress_bars({what: (unit, total)}, visible=visible) as show:
        yield partial(show, what)


@contextmanager
def progress_bars(
    jobs: Mapping[str, tuple[str, int | None]], *, visible: bool = True
) -> Iterator[Callable[[str, int], None]]:
    """A bar for each job as it begins; nothing at all when stderr is not a terminal.

    jobs: name → (unit, total if known). Gives a function to be called with a job's name and how much of
    it is done so far.
    """
    if not (visible and sys.stderr.isatty()):
        yield lambda job, done: None
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

        def show(job: str, done: int) -> None:
            if job not in tasks:
                unit, total = jobs.get(job, ("", None))
                tasks[job] = progress.add_task(
                    job, total=total, unit=f"of {total:,} {unit}" if total else unit
                )
            progress.update(tasks[job], completed=done)

        yield show
