"""A memory on disk: SQLite for segments, append-only key files, an order of writing that survives crashes."""
