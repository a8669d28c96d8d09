"""Writes format-N.backup, N being the present format. Run it before a migration is added:

python tests/memory/format_fixture.py
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from speller import Speller

from kster.formats import Pair
from kster.memory import Memory
from kster.memory.store.migrations import FORMAT

with (
    tempfile.TemporaryDirectory() as scratch,
    Memory.create(Path(scratch) / "m", Speller(dimension=4), entries_per_shard=20) as memory,
):
    memory.add("tree", "Baum", origin="by hand", unit="t-1")
    memory.add_many(
        [Pair("house", "Haus"), Pair("house", "Gebäude", "h-2"), Pair("wrong", "falsch")], origin="list.tsv"
    )
    memory.remove_pair("wrong", "falsch")
    memory.replace("t-1", "tree", "der Baum")
    memory.back_up(Path(__file__).with_name(f"format-{FORMAT}.backup"))
