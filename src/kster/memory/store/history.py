"""What became of segments: their status, which newer ones took their place, who did it and when.

All of it happens in the one SQLite transaction of a `Change`. Keys stay where they are: a segment that is
rejected or superseded is only passed over, so that bringing it back needs nothing but its row.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from kster.memory.segment import Segment
from kster.memory.store.change import Change
from kster.memory.store.database import BEGINNING, COLUMNS, KEPT, LARGEST, LIVE, Database
from kster.memory.store.description import now


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened to a segment."""

    time: str  # ISO 8601, UTC
    action: str  # "added", "superseded", "edited", "removed", or the status it was given
    segment: int
    author: str | None = None
    other: int | None = None  # the segment that superseded it
    source: str | None = None  # None where the segment is gone
    target: str | None = None


def set_status(
    change: Change,
    segments: Iterable[Segment],
    status: str,
    author: str | None,
    beside: Collection[int] = (),
) -> None:
    """Approved segments supersede all others with the same source and context, except those in `beside`.
    Segments that lose their approval give back the place of those that they had superseded."""
    due = [segment for segment in segments if segment.status != status or segment.superseded_by is not None]
    change.database.connection.executemany(
        "UPDATE segments SET status = ?, superseded_by = NULL, removed = ?, changed = ?, generation = ? "
        "WHERE id = ?",
        [
            (status, LIVE if status == "approved" else KEPT, now(), change.generation, segment.id)
            for segment in due
        ],
    )
    _note(change, [segment.id for segment in due], status, author)
    if status != "approved":
        _give_back(change, [segment.id for segment in due], author)
    else:
        together = {segment.id for segment in due} | set(beside)
        for segment in due:
            supersede_others(change, segment, author, together)
            # It may have another source.
            if segment.superseded_by is not None and segment.superseded_by not in together:
                supersede(change, [segment.superseded_by], segment.id, author)


def supersede_others(
    change: Change, segment: Segment, author: str | None, together: Collection[int] = (), last: int = LARGEST
) -> None:
    """together: segments of the same change, none of which is newer; last: the newest one to supersede."""
    statement = (
        f"SELECT id FROM segments WHERE substr(source, 1, {BEGINNING}) = substr(?1, 1, {BEGINNING}) "
        "AND +source = ?1 AND context IS ?2 AND removed = 0 AND id <> ?3 AND id <= ?4"
    )
    parameters = (segment.source, segment.context, segment.id, last)
    older = [row[0] for row in change.database.execute(statement, parameters)]
    supersede(change, [id for id in older if id not in together], segment.id, author)


def supersede_older(change: Change, newest: int, author: str | None) -> None:
    """Segments up to `newest` give way to those after it, which were added by this change."""
    if not newest:
        return
    statement = (
        "SELECT old.id, MAX(new.id) FROM segments new CROSS JOIN segments old "  # in this order
        f"ON substr(old.source, 1, {BEGINNING}) = substr(new.source, 1, {BEGINNING}) "
        "AND +old.source = new.source AND old.context IS new.context AND old.removed = 0 AND old.id <= ?1 "
        "WHERE new.id > ?1 AND new.removed = 0 GROUP BY old.id"
    )
    by_newer: dict[int, list[int]] = {}
    for old, new in change.database.execute(statement, (newest,)):
        by_newer.setdefault(new, []).append(old)
    for new, older in by_newer.items():
        supersede(change, older, new, author)


def supersede(
    change: Change, ids: Collection[int], by: int, author: str | None, action: str = "superseded"
) -> None:
    """Mark those that are not superseded already. action: what was "edited" is not given back later."""
    there = change.database.by_ids(ids, state="kept").values()
    due = [segment.id for segment in there if segment.id != by and segment.superseded_by is None]
    change.database.connection.executemany(
        "UPDATE segments SET superseded_by = ?, removed = ?, changed = ?, generation = ? WHERE id = ?",
        [(by, KEPT, now(), change.generation, id) for id in due],
    )
    _note(change, due, action, author, by)


def remove(change: Change, ids: Collection[int], author: str | None) -> None:
    """Segments that these had superseded teach again; those that were edited to become these do not."""
    change.remove(ids)
    _note(change, sorted(ids), "removed", author)
    _give_back(change, ids, author)


def _give_back(change: Change, ids: Collection[int], author: str | None) -> None:
    """What these had superseded last decides again, unless something else does; all else that they had
    superseded has been superseded by that."""
    for id in ids:
        by: int | None = None
        for together in _superseded_by(change.database, id):
            heir = by or _deciding(change.database, together[0])
            if heir is None:
                change.database.connection.executemany(
                    "UPDATE segments SET superseded_by = NULL, removed = ?, changed = ?, generation = ? "
                    "WHERE id = ?",
                    [(LIVE, now(), change.generation, one) for one in together],
                )
                _note(change, together, "approved", author)
            else:
                change.database.connection.executemany(
                    "UPDATE segments SET superseded_by = ?, generation = ? WHERE id = ?",
                    [(heir, change.generation, one) for one in together],
                )
                _note(change, together, "superseded", author, heir)
            by = max(together)


def _superseded_by(database: Database, id: int) -> list[list[int]]:
    """Approved segments that wait behind this one: those superseded at once together, the last ones first.

    Events of one moment have consecutive numbers; before a segment can supersede again, others happen.
    """
    statement = (
        "SELECT s.id, MAX(h.id) AS event FROM history h JOIN segments s ON s.id = h.segment "
        "WHERE h.other = ?1 AND h.action = 'superseded' AND s.superseded_by = ?1 AND s.status = 'approved' "
        "AND s.removed = ?2 "
        "GROUP BY s.id ORDER BY event DESC"
    )
    groups: list[list[int]] = []
    last = 0
    for segment, event in database.execute(statement, (id, KEPT)).fetchall():
        if groups and event == last - 1:
            groups[-1].append(segment)
        else:
            groups.append([segment])
        last = event
    return groups


def _deciding(database: Database, id: int) -> int | None:
    """The newest live segment with the source and context of this one."""
    statement = (
        "SELECT MAX(s.id) FROM segments own JOIN segments s "
        f"ON substr(s.source, 1, {BEGINNING}) = substr(own.source, 1, {BEGINNING}) "
        "AND +s.source = own.source AND s.context IS own.context AND s.removed = 0 WHERE own.id = ?"
    )
    found: int | None = database.execute(statement, (id,)).fetchone()[0]
    return found


def _note(
    change: Change, ids: Collection[int], action: str, author: str | None, other: int | None = None
) -> None:
    if ids:
        change.has_changed = True
    change.database.connection.executemany(
        "INSERT INTO history (segment, time, author, action, other) VALUES (?, ?, ?, ?, ?)",
        [(id, now(), author, action, other) for id in ids],
    )


# Reading ---------------------------------------------------------------------------------------------

_EVENTS = (
    "SELECT h.time, h.action, h.segment, h.author, h.other, s.source, s.target, h.id FROM history h "
    "LEFT JOIN segments s ON s.id = h.segment AND s.removed <> 1 "
)
_ADDITIONS = (
    "SELECT created, 'added', id, author, NULL, iif(removed = 1, NULL, source), "
    "iif(removed = 1, NULL, target), 0 FROM segments "
)


def latest_events(database: Database, limit: int, offset: int) -> list[Event]:
    """Of the whole memory, the newest first."""
    most = limit + offset
    rows = database.execute(_EVENTS + "ORDER BY h.id DESC LIMIT ?", (most,)).fetchall()
    rows += database.execute(_ADDITIONS + "ORDER BY id DESC LIMIT ?", (most,)).fetchall()
    return list(_events(sorted(rows, key=_order, reverse=True)[offset:most]))


def events_of(database: Database, segment: Segment) -> list[Event]:
    """Events of a segment and its other versions, the oldest first."""
    ids = [version.id for version in versions_of(database, segment)]
    marks = ",".join("?" * len(ids))
    rows = database.execute(_EVENTS + f"WHERE h.segment IN ({marks})", ids).fetchall()
    rows += database.execute(_ADDITIONS + f"WHERE id IN ({marks})", ids).fetchall()
    return list(_events(sorted(rows, key=_order)))


def versions_of(database: Database, segment: Segment) -> list[Segment]:
    """A segment, those with its source and context, and those that edits made of them; by id."""
    found = {segment.id: segment}
    new = [segment]
    while new:
        one = new.pop()
        same = (
            f"substr(source, 1, {BEGINNING}) = substr(?1, 1, {BEGINNING}) AND +source = ?1 AND context IS ?2"
        )
        rows = [
            row
            for state in (LIVE, KEPT)  # each has an index of its own
            for row in database.execute(
                f"SELECT {COLUMNS} FROM segments WHERE removed = {state} AND {same}",
                (one.source, one.context),
            )
        ]
        linked = "SELECT {} FROM segments WHERE removed <> 1 AND (id = ?1 OR id IN {})"
        replaced = "(SELECT segment FROM history WHERE other = ?2)"
        rows += database.execute(linked.format(COLUMNS, replaced), (one.superseded_by, one.id)).fetchall()
        for version in (Segment(*row) for row in rows):
            if version.id not in found:
                found[version.id] = version
                new.append(version)
    return [found[id] for id in sorted(found)]


def _order(row: tuple[object, ...]) -> tuple[object, ...]:
    time, _, segment, *_, id = row
    return time, id, segment


def _events(rows: Iterable[tuple[object, ...]]) -> Iterator[Event]:
    for *columns, _ in rows:
        yield Event(*columns)  # type: ignore[arg-type]
