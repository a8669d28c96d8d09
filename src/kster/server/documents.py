"""Files translated whole: what kinds there are."""

from __future__ import annotations

SUFFIXES = (".txt", ".html", ".htm", ".po", ".xlf", ".xliff", ".tmx", ".docx")
