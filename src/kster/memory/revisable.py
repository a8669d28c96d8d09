"""What changes a memory without a model: statuses, removal, compaction."""

from __future__ import annotations

from collections.abc import Iterable

from kster.errors import KsterError
from kster.memory.readable import ReadableMemory
from kster.memory.report import CompactReport, bytes_under
from kster.memory.segment import STATUSES, Segment
from kster.memory.store import history
from kster.memory.store.store import Change


class RevisableMemory(ReadableMemory):
    """A memory whose segments can be approved, rejected and removed."""

    def set_status(
        self,
        ids: int | Iterable[int],
        status: str,
        *,
        author: str | None = None,
        beside: Iterable[int] = (),
    ) -> list[Segment]:
        """Approve segments, reject them, or make drafts of them.

        Only approved segments teach. An approved one takes the place of all others with its source and
        context, which stay in the history: to bring one back, approve it.

        Args:
            ids: a segment's id, or several.
            status: "approved", "rejected" or "draft".
            author: who wants it.
            beside: ids of others whose place approved ones do not take, as when a rejection is undone.

        Returns:
            The segments as they are now, by id.

        Raises:
            KsterError: if there is no such segment or status; nothing is changed then.
        """
        if status not in STATUSES:
            raise KsterError(f"status is {status!r}; accepted: {', '.join(STATUSES)}; nothing was changed")
        wanted = {ids} if isinstance(ids, int) else set(ids)
        with self._store.writing() as change:
            found = self._found(change, wanted, "changed")
            history.set_status(change, found, status, author, set(beside))
            now = change.database.by_ids(wanted, state="kept")
        return [now[id] for id in sorted(now)]

    def remove(self, ids: int | Iterable[int], *, author: str | None = None) -> int:
        """Remove segments for good.

        Args:
            ids: a segment's id, or several.
            author: who wants it.

        Returns:
            How many were removed.

        Raises:
            KsterError: if there is no segment with one of the ids; none is removed then.
        """
        wanted = {ids} if isinstance(ids, int) else set(ids)
        with self._store.writing() as change:
            self._found(change, wanted, "removed")
            history.remove(change, wanted, author)
        return len(wanted)

    def remove_pair(self, source: str, target: str, *, author: str | None = None) -> int:
        """Remove the segments with exactly this source and target.

        Args:
            source: Their source.
            target: Their target.
            author: Who wants it.

        Returns:
            How many there were: mostly 1, or 0.
        """
        with self._store.writing() as change:
            found = {segment.id for segment in change.database.by_pair(source, target)}
            if found:
                history.remove(change, found, author)
        return len(found)

    def _found(self, change: Change, ids: set[int], done: str) -> list[Segment]:
        found = change.database.by_ids(ids, state="kept")
        if unknown := sorted(ids - found.keys()):
            named = ", ".join(map(str, unknown[:10])) + (" …" if len(unknown) > 10 else "")
            raise KsterError(f"{self.directory}: no segment {named}; nothing was {done}")
        return [found[id] for id in sorted(found)]

    def compact(self) -> CompactReport:
        """Free the space of removed segments. The ids of the others do not change.

        Returns:
            How many segments and entries were removed for good, and how many bytes that freed.
        """
        before = bytes_under(self.directory)
        segments, entries = self._store.compact()
        return CompactReport(segments, entries, max(0, before - bytes_under(self.directory)))
