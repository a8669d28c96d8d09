"""The tables of a memory, and the way to them from those of every older format.

A memory's format is one number: in memory.json, so that an older program refuses what it cannot read, and in
the database (`PRAGMA user_version`), where it changes together with the tables.

To change the tables, write a fixture of the present format (`tests/memory/format_fixture.py`), then append a
migration. New memories are made by walking the same way, and `tests/memory/test_memory_formats.py` walks it
with memories of all older formats.
"""

from __future__ import annotations

from kster.errors import MemoryStoreError

BEGINNING = 32  # characters of a source that an index finds it by

FORMAT_1 = (
    """CREATE TABLE segments (
        id INTEGER PRIMARY KEY AUTOINCREMENT,  -- never used twice; grows with first_entry
        source TEXT NOT NULL,
        target TEXT NOT NULL,
        origin TEXT,
        unit TEXT,
        created TEXT NOT NULL,
        first_entry INTEGER NOT NULL,          -- id of its first entry; never used twice
        first_row INTEGER NOT NULL,            -- where that entry lies in the entry files
        entry_count INTEGER NOT NULL,
        checksum INTEGER NOT NULL,             -- crc32 of its keys' bytes followed by its values' bytes
        pair_hash INTEGER NOT NULL,
        target_group INTEGER NOT NULL,
        generation INTEGER NOT NULL,           -- of the commit that last changed this row
        removed INTEGER NOT NULL DEFAULT 0
    )""",
    "CREATE INDEX live_by_pair ON segments (pair_hash) WHERE removed = 0",
    "CREATE INDEX live_by_unit ON segments (unit) WHERE removed = 0 AND unit IS NOT NULL",
    "CREATE INDEX by_generation ON segments (generation)",
    """CREATE TABLE state (
        generation INTEGER NOT NULL,           -- grows with every commit
        epoch INTEGER NOT NULL,                -- which set of entry files counts; grows with every compaction
        row_count INTEGER NOT NULL,            -- entries in those files, removed ones included
        next_entry INTEGER NOT NULL            -- the next entry's id
    )""",
    "INSERT INTO state VALUES (0, 0, 0, 0)",
)

FORMAT_2 = (  # some memories of format 1 have this index, too
    f"CREATE INDEX IF NOT EXISTS live_by_source ON segments (substr(source, 1, {BEGINNING})) "
    "WHERE removed = 0",
)

FORMAT_3 = (  # first_row -1: no keys have been made yet; -2: none can be made, and key_problem says why
    "ALTER TABLE segments ADD COLUMN key_problem TEXT",
    "CREATE INDEX without_keys ON segments (first_row, id) WHERE first_row < 0 AND removed = 0",
)

# `removed` says whether a segment counts: 0 it does, 1 it is gone at the next compaction, 2 it is kept, with
# its keys, but teaches nothing: a draft, rejected, or superseded by a newer translation.
FORMAT_4 = (
    "ALTER TABLE segments ADD COLUMN status TEXT NOT NULL DEFAULT 'approved'",
    "ALTER TABLE segments ADD COLUMN author TEXT",
    "ALTER TABLE segments ADD COLUMN changed TEXT",  # when its status last changed; NULL: never
    "ALTER TABLE segments ADD COLUMN context TEXT",
    "ALTER TABLE segments ADD COLUMN superseded_by INTEGER",
    "CREATE INDEX kept_by_pair ON segments (pair_hash) WHERE removed = 2",
    f"CREATE INDEX kept_by_source ON segments (substr(source, 1, {BEGINNING})) WHERE removed = 2",
    """CREATE TABLE history (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        segment INTEGER NOT NULL,
        time TEXT NOT NULL,
        author TEXT,
        action TEXT NOT NULL,                  -- a status, 'superseded', 'edited' or 'removed'
        other INTEGER                          -- the segment that superseded it
    )""",
    "CREATE INDEX history_by_segment ON history (segment)",
    "CREATE INDEX history_by_other ON history (other) WHERE other IS NOT NULL",
)

FORMAT_5 = (
    "ALTER TABLE state ADD COLUMN directory INTEGER NOT NULL DEFAULT 0",  # where the entry files are
    "UPDATE state SET directory = epoch",
    "CREATE TABLE dropped_files (file INTEGER PRIMARY KEY)",  # numbers of entry files without live entries
)

# What turns each format into the next; statements of one transaction. A new column has a default, for the
# segments there are.
MIGRATIONS = (FORMAT_1, FORMAT_2, FORMAT_3, FORMAT_4, FORMAT_5)
FORMAT = len(MIGRATIONS)
VALUES_DIVIDED = 5  # the format from which on there is a file of values beside each file of keys


def require_known(format: int, place: object) -> None:
    """Raises MemoryStoreError for the format of a program that is newer than this one."""
    if format > FORMAT:
        raise MemoryStoreError(
            f"{place}: written by a newer version of KSTER (format {format}; this one reads up to {FORMAT}); "
            "install that version to open it, or export the memory with it and import that here. "
            "Nothing was changed"
        )
