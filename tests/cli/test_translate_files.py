"""`kster translate` from and to files: nothing that was there or was done is lost, and only text is taken."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import pytest

from cli.conftest import PAIRS, Call
from kster.errors import KsterError
from kster.formats import detect_format
from kster.translation import Translator

GOOD = "".join(f"{source}\n" for source, _ in PAIRS[:3]).encode()
TRANSLATED = "".join(f"{target}\n" for _, target in PAIRS[:3])


def files(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir() if path.is_file()}


def test_an_input_that_breaks_off_leaves_the_earlier_output_and_what_was_done(
    kster: Call, filled_memory: Path, tmp_path: Path
) -> None:
    (tmp_path / "in.txt").write_bytes(GOOD + b"\xff\nmore\n")
    output = tmp_path / "out.txt"
    output.write_text("precious\n")
    done = kster("translate", "--memory", filled_memory, "-i", tmp_path / "in.txt", "-o", output)
    assert done.is_mistake("in.txt, line 4: not valid UTF-8")
    assert output.read_text() == "precious\n"
    (kept,) = tmp_path.glob("out.txt.*.partial")
    assert kept.read_text(encoding="utf-8") == TRANSLATED
    assert f"what was translated before (3 lines) is in {kept}, {output} is as it was" in done.err


def test_the_same_lines_come_out_of_a_file_as_out_of_a_pipe(
    kster: Call, filled_memory: Path, tmp_path: Path
) -> None:
    (tmp_path / "in.txt").write_bytes(GOOD + b"\xff\n")
    from_file = kster("translate", "--memory", filled_memory, "-i", tmp_path / "in.txt")
    from_pipe = kster("translate", "--memory", filled_memory, stdin=GOOD + b"\xff\n")
    assert from_file.out == from_pipe.out == TRANSLATED
    assert from_file.status == from_pipe.status == 2


def test_an_input_without_a_good_line_changes_nothing(
    kster: Call, filled_memory: Path, tmp_path: Path
) -> None:
    (tmp_path / "in.txt").write_bytes(b"\xff\n")
    for name, state in (("old.txt", "is as it was"), ("new.txt", "was not made")):
        (tmp_path / "old.txt").write_text("precious\n")
        done = kster("translate", "--memory", filled_memory, "-i", tmp_path / "in.txt", "-o", tmp_path / name)
        assert done.is_mistake(f"{name} {state}")
    assert files(tmp_path) == {"in.txt", "old.txt"}
    assert (tmp_path / "old.txt").read_text() == "precious\n"


def test_an_interrupted_translation_says_where_its_lines_are(
    kster: Call, filled_memory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kster.cli.translate_command.BLOCK", 2)
    (tmp_path / "in.txt").write_bytes(GOOD)
    translate = Translator.translate

    def interrupted(self: Translator, texts: list[str], **options: object) -> object:
        if len(texts) == 1:
            raise KeyboardInterrupt
        return translate(self, texts, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(Translator, "translate", interrupted)
    output = tmp_path / "out.txt"
    done = kster("translate", "--memory", filled_memory, "-i", tmp_path / "in.txt", "-o", output)
    (kept,) = tmp_path.glob("out.txt.*.partial")
    assert done.status == 130
    assert done.err == f"kster: what was translated before (2 lines) is in {kept}, {output} was not made\n"
    assert kept.read_text(encoding="utf-8").splitlines() == TRANSLATED.splitlines()[:2]


def test_a_result_replaces_the_earlier_output_and_leaves_nothing_beside_it(
    kster: Call, filled_memory: Path, tmp_path: Path
) -> None:
    (tmp_path / "in.txt").write_bytes(GOOD)
    (tmp_path / "out.txt").write_text("old\n" * 100)
    (tmp_path / "link.txt").symlink_to("out.txt")
    to_link = ("-i", tmp_path / "in.txt", "-o", tmp_path / "link.txt")
    assert kster("translate", "--memory", filled_memory, *to_link).status == 0
    assert (tmp_path / "link.txt").is_symlink()
    assert (tmp_path / "out.txt").read_text(encoding="utf-8") == TRANSLATED
    assert files(tmp_path) == {"in.txt", "out.txt", "link.txt"}


def test_the_input_is_no_output_also_by_another_name(
    kster: Call, filled_memory: Path, tmp_path: Path
) -> None:
    source = tmp_path / "in.txt"
    source.write_bytes(GOOD)
    (tmp_path / "link.txt").symlink_to(source)
    os.link(source, tmp_path / "hard.txt")
    for name in ("link.txt", "hard.txt"):
        same = kster("translate", "--memory", filled_memory, "-i", source, "-o", tmp_path / name)
        assert same.is_mistake("is also the input")
    assert source.read_bytes() == GOOD


def test_a_pipe_may_be_the_output(kster: Call, filled_memory: Path, tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_bytes(GOOD)
    os.mkfifo(tmp_path / "pipe")
    reading = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    try:
        to_pipe = ("-i", tmp_path / "in.txt", "-o", tmp_path / "pipe")
        assert kster("translate", "--memory", filled_memory, *to_pipe).status == 0
        assert os.read(reading, 10_000).decode() == TRANSLATED
    finally:
        os.close(reading)
    assert files(tmp_path) == {"in.txt"}


def test_a_document_is_translated_whole_and_keeps_its_markup(
    kster: Call, filled_memory: Path, tmp_path: Path
) -> None:
    page, done = tmp_path / "page.html", tmp_path / "seite.html"
    page.write_text("<h1>open the lid</h1>\n<!-- open the lid -->\n<p>clean the filter</p>\n")
    for given in ([page], ["-i", page]):
        outcome = kster("translate", *given, "-o", done, "--memory", filled_memory)
        assert (outcome.status, outcome.out, outcome.err) == (0, "", "")
        expected = "<h1>den Deckel öffnen</h1>\n<!-- open the lid -->\n<p>den Filter reinigen</p>\n"
        assert done.read_text() == expected


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["no.docx", "-o", "b.docx"], "no.docx: no such file"),
        (["a.exe", "-o", "b.exe"], "a.exe: not a known kind of document (.txt .html"),
        (["a.html"], "a.html: name the file to write, such as --output a.translated.html"),
        (["a.html", "-o", "a.html"], "a.html: is also the input; nothing was written"),
        (["a.html", "-o", "b.docx"], "b.docx: must end in .html, as the input does; nothing was translated"),
        (["a.html", "-o", "b.html", "--json"], "a.html is a document; --input"),
        (["a.po", "-o", "b.po"], "a.po: line 1 is neither a comment nor a quoted PO string"),
        (["-i", "a.tmx.gz"], "a.tmx.gz is a document; unpack it first"),
    ],
)
def test_a_document_that_cannot_be_translated_is_told_and_nothing_written(
    kster: Call,
    filled_memory: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    given: list[str],
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a.html", "a.exe", "a.po", "a.tmx.gz"):
        (tmp_path / name).write_text("<p>open the lid</p>")
    before = files(tmp_path)
    assert kster("translate", *given, "--memory", filled_memory).is_mistake(said)
    assert files(tmp_path) == before


def test_python_translates_a_document_as_the_command_line_does(filled_memory: Path, tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("# Open the *lid*\n\n- open the lid\n- open the lid\n")
    with Translator(memory=filled_memory) as translator:
        done = translator.translate_file(tmp_path / "a.md", tmp_path / "b.md")
    assert done.texts == 2
    assert (tmp_path / "b.md").read_text().endswith("\n\n- den Deckel öffnen\n- den Deckel öffnen\n")


def word_document(path: Path) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("word/document.xml", "<w:document/>" * 100)
    return path


def test_what_is_no_text_is_called_by_its_name(kster: Call, memory: Path, tmp_path: Path) -> None:
    unnamed = word_document(tmp_path / "letter")
    pdf = tmp_path / "manual.pdf"
    pdf.write_bytes(b"%PDF-1.7\n\x80\xff")
    noise = tmp_path / "noise.bin"
    noise.write_bytes(bytes(range(256)) * 4)
    for file, kind in ((unnamed, "Word documents"), (pdf, "a PDF"), (noise, "a binary file")):
        done = kster("translate", "--memory", memory, "-i", file)
        assert done.is_mistake(kind)
        assert "not accepted here; accepted: plain text" in done.err
        assert kster("memory", "import", memory, "--source", file, "--target", file).is_mistake(kind)


@pytest.mark.parametrize("name", ["letter.docx", "letter.csv"])
def test_a_word_document_is_no_file_of_examples(kster: Call, memory: Path, tmp_path: Path, name: str) -> None:
    done = kster("memory", "import", memory, word_document(tmp_path / name))
    assert done.is_mistake(f"{name}: a zip archive, as Word documents and spreadsheets are, which is not")
    assert "Accepted: .tmx" in done.err
    assert "UTF-8" not in done.err


def test_from_python_a_word_document_is_no_file_of_examples(tmp_path: Path) -> None:
    document = word_document(tmp_path / "letter.docx")
    with pytest.raises(KsterError, match=r"binary files are not accepted here\. Accepted: \.tmx"):
        detect_format(document)
