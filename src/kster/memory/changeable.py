"""What changes a memory segment by segment: adding, editing, statuses, removal; and compaction."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from kster.errors import KsterError
from kster.formats import Pair
from kster.memory.adding import Origin, add_all, edit_segment, replace_unit, require_flawless
from kster.memory.key_maker import KeyMaker
from kster.memory.key_making import Demand
from kster.memory.readable import ReadableMemory
from kster.memory.report import CompactReport, bytes_under
from kster.memory.search.settings import SearchSettings
from kster.memory.segment import STATUSES, Segment
from kster.memory.store import history
from kster.memory.store.change import Change
from kster.memory.store.compaction import compact
from kster.memory.store.description import Description


class ChangeableMemory(ReadableMemory):
    """A memory whose segments can be added, edited, approved, rejected and removed."""

    def __init__(
        self,
        directory: Path,
        description: Description,
        model: KeyMaker | None,
        search: SearchSettings,
        lock_timeout: float,
    ) -> None:
        """Use `Memory.create` or `Memory.open`."""
        super().__init__(directory, description, search, lock_timeout)
        self._model = model
        self._demand = Demand()  # which keys are made next

    def use_model(self, model: KeyMaker) -> None:
        """Use this model, unless the memory has one already, so that it need not be loaded again.

        Args:
            model: the model that made the memory.

        Raises:
            KsterError: if it is not the one that made the memory.
        """
        self.description.require(model, self.directory)
        self._model = self._model or model

    @property
    def model(self) -> Any:
        """The base model that made this memory, loaded on first use.

        Raises:
            KsterError: if it cannot be found or loaded, or is not the one that made the memory.
        """
        if self._model is None:
            description = self.description
            location = description.model_location(self.directory)
            model = load_model(location, description.source_lang, description.target_lang)
            description.require(model, self.directory)
            self._model = model
        return self._model

    # Adding --------------------------------------------------------------------------------------

    def add(
        self,
        source: str,
        target: str,
        *,
        origin: str | None = None,
        unit: str | None = None,
        context: str | None = None,
        status: str = "approved",
        author: str | None = None,
    ) -> Segment:
        """Add one example; the next search finds it.

        It takes the place of others with the same source and context, which stay in the history.

        Args:
            source, target: the two texts.
            origin: where the pair comes from: a file, a tool.
            unit: its id there.
            context: where the source stands, if the same source means something else elsewhere.
            status: "approved"; "draft" and "rejected" ones are kept, but teach nothing.
            author: who adds it.

        Returns:
            The new segment, or the one that has these texts already.

        Raises:
            KsterError: if a text is empty or too long for the model.
        """
        pair = Pair(source, target, unit, None, context, status)
        return self.add_many([pair], origin=origin, author=author)[0]

    def add_many(
        self, pairs: Iterable[Pair], *, origin: str | None = None, author: str | None = None
    ) -> list[Segment]:
        """Add several examples as one change.

        They take the place of older ones with the same source and context, but not of each other.

        Args:
            pairs: the examples.
            origin: where they come from.
            author: who adds them.

        Returns:
            Their segments, in order.

        Raises:
            KsterError: if one of them cannot be used; then none is added.
        """
        wanted = list(pairs)
        require_flawless(wanted)
        return add_all(self._store, self.model, wanted, Origin(origin, author))

    def replace(
        self, unit: str, source: str, target: str, *, origin: str | None = None, author: str | None = None
    ) -> Segment:
        """Make this pair the only segment with this unit id that teaches.

        Args:
            unit: the id; segments that had it stay in the history only.
            source, target: the two texts.
            origin: where the pair comes from.
            author: who replaces it.

        Returns:
            The segment.

        Raises:
            KsterError: if a text is empty or too long for the model; nothing is changed then.
        """
        pair = Pair(source, target, unit)
        require_flawless([pair])
        return replace_unit(self._store, self.model, pair, Origin(origin, author))

    def edit(
        self,
        id: int,
        source: str,
        target: str,
        *,
        origin: str | None = None,
        unit: str | None = None,
        author: str | None = None,
    ) -> Segment:
        """Give a segment other texts. Its id changes, since its entries are new; the old one is superseded.

        Args:
            id: the segment to change.
            source, target: the new texts.
            origin: where they come from.
            unit: its new unit id; by default the old one.
            author: who edits it.

        Returns:
            The new segment, or the one that has these texts already.

        Raises:
            KsterError: if there is no such segment, or a text is empty or too long; nothing is changed then.
        """
        old = self.segment(id)
        pair = Pair(source, target, unit or old.unit, None, old.context)
        require_flawless([pair])
        return edit_segment(self._store, self.model, id, pair, Origin(origin, author))

    # Approving and removing ------------------------------------------------------------------------

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
            author: who changes it.
            beside: ids of others that approved ones do not supersede, as when a rejection is undone.

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
            author: who removes them.

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
            author: Who removes them.

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
        segments, entries = compact(self._store)
        return CompactReport(segments, entries, max(0, before - bytes_under(self.directory)))


def load_model(name: str, source_lang: str | None = None, target_lang: str | None = None) -> Any:
    from kster.model import BaseModel

    return BaseModel.load(name, source_lang=source_lang, target_lang=target_lang)
