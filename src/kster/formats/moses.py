"""Moses line pairs: two files, line n of one translates line n of the other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import zip_longest
from pathlib import Path
from typing import TextIO

from kster.errors import FormatError
from kster.formats.encoding import MAX_LINE, text_lines
from kster.formats.pair import Pair, Rejection, UnusableUnit
from kster.formats.text import check_pair, one_line


def read_line_pairs(source: Path, target: Path) -> Iterator[Pair | Rejection]:
    """The pairs of two files; an error at the end, with both counts, if one has more lines."""
    ended = object()
    source_lines = target_lines = 0
    for one, other in zip_longest(text_lines(source), text_lines(target), fillvalue=ended):
        source_lines += one is not ended
        target_lines += other is not ended
        if source_lines != target_lines:
            continue  # only to count the lines that are left
        try:
            if not (isinstance(one, str) and isinstance(other, str)):
                raise UnusableUnit(f"the line has more than {MAX_LINE:,} characters")
            yield check_pair(one, other, None, source_lines)
        except UnusableUnit as reason:
            yield Rejection(str(source), source_lines, None, str(reason))
    if source_lines != target_lines:
        raise FormatError(
            f"{source} has {source_lines:,} lines but {target} has {target_lines:,}: line pairs need as many "
            "in one as in the other"
        )


def write_line_pairs(source_out: TextIO, target_out: TextIO, pairs: Iterable[Pair]) -> int:
    """Write one line to each file per pair, line breaks and tabs as spaces; return the number of pairs."""
    count = 0
    for pair in pairs:
        source_out.write(one_line(pair.source) + "\n")
        target_out.write(one_line(pair.target) + "\n")
        count += 1
    return count
