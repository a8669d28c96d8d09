"""One place of results, one text: a stage is named by the lines it reads, not by what stands in them.

So `--out` and `--cache` each keep, in `text.json`, checksums of the corpora that were read, and a run with
other text is refused before it would find stages of the text of before. They are checksums of lines, not of
files: packed text, and the beginning of a text where no more is read, is the same text.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path

from experiments.data import LANGUAGES, Corpora, Slice
from experiments.example import EXAMPLE, example_pairs
from experiments.stages import locked, read_json, write_json
from kster.errors import KsterError
from kster.training.corpus import read_lines

FILE = "text.json"
ALL = "all"
LENGTH = 16  # hexadecimal digits

Checksums = dict[str, str]  # how many lines from the first on, or ALL → their checksum
Files = dict[str, Checksums]  # <corpus>/<split>.<language> → its checksums


def remember_text(corpora: Corpora, slices: Iterable[Slice], out: Path, cache: Path) -> None:
    """Refuse text other than what was read for these places before, and note what is new to them.

    Places of before, without checksums, are taken to be of this text.
    """
    places = {"--out": out / FILE, "--cache": cache / FILE}
    with locked(cache / "locks" / "text"):
        known = {option: _read(path) for option, path in places.items()}
        found = _compare(corpora, slices, places, known)
        for option, path in places.items():
            files = known[option]
            merged = files | {name: files.get(name, {}) | sums for name, sums in found.items()}
            if merged != files:
                write_json(path, merged)


def require_same_text(corpora: Corpora, slices: Iterable[Slice], out: Path) -> None:
    """Refuse text other than what the results in `out` were made with, as far as that is known."""
    known = _read(out / FILE)
    if known:
        _compare(corpora, slices, {"--out": out / FILE}, {"--out": known})


def checksums_of(lines: Iterable[str], wanted: set[int | None], known: set[int]) -> Checksums:
    """Of the first so many lines, for each count that is wanted or known; of ALL, if they end before one.

    wanted: None is to the end. No more is read than is wanted or known. A known count that the text does not
    reach is left out: there is less of a text that was packed for fewer experiments.
    """
    counts = {count for count in wanted if count is not None} | known
    last = None if None in wanted else max(counts)
    found, checksum, number = {}, sha256(), 0
    for number, line in enumerate(lines, 1):
        checksum.update(line.encode() + b"\n")
        if number in counts:
            found[str(number)] = checksum.hexdigest()[:LENGTH]
        if number == last:
            break
    if any(end is None or end > number for end in wanted):
        found[str(number)] = found[ALL] = checksum.hexdigest()[:LENGTH]
    return found


def differ(known: Checksums, found: Checksums) -> bool:
    """Whether two texts cannot be the same; found: with the counts that are known, as far as it reaches."""
    if any(found[count] != checksum for count, checksum in known.items() if count in found):
        return True
    return ALL in found and any(count not in found for count in known)  # it has become shorter


def _read(path: Path) -> Files:
    files: Files = read_json(path) if path.is_file() else {}
    return files


def _compare(
    corpora: Corpora, slices: Iterable[Slice], places: dict[str, Path], known: dict[str, Files]
) -> Files:
    """The checksums of all that the slices are taken from. places, known: by the option that names each."""
    ends: dict[tuple[str, str], set[int | None]] = {}
    for slice in slices:
        ends.setdefault((slice.corpus, slice.split), set()).add(slice.end)
    found: Files = {}
    for (corpus, split), wanted in sorted(ends.items()):
        for side, language in enumerate(LANGUAGES):
            name = f"{corpus}/{split}.{language}"
            before = {option: files[name] for option, files in known.items() if name in files}
            counts = {int(count) for sums in before.values() for count in sums if count != ALL}
            lines: Iterable[str]
            if corpus == EXAMPLE:
                path, lines = Path(name), (pair[side] for pair in example_pairs(split, LANGUAGES))
            else:
                path = corpora.file(corpus, split, language)
                lines = read_lines(path)
            found[name] = checksums_of(lines, wanted, counts)
            for option, sums in before.items():
                if differ(sums, found[name]):
                    raise KsterError(
                        f"{path}: not the text that {places[option].parent} was made with "
                        f"({places[option].name} there has its checksums). Give the text of before, or "
                        f"another {option}, so that one report has one text"
                    )
    return found
