"""What only a process of its own can show: imports, pipes, signals, and the whole way once."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

from cli.conftest import PAIRS, Call, write_lines

TMX = """<?xml version="1.0" encoding="UTF-8"?>
<tmx version="1.4"><header srclang="en"/><body>
{units}</body></tmx>
"""
UNIT = '<tu><tuv xml:lang="en-GB"><seg>{}</seg></tuv><tuv xml:lang="de"><seg>{}</seg></tuv></tu>\n'


def heed_interrupts() -> None:
    """Jobs that a shell runs in the background ignore them, and so would their children."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def test_help_does_not_import_heavy_libraries(environment: dict[str, str]) -> None:
    heavy = ["torch", "transformers", "sacrebleu", "numpy", "lxml", "rich"]
    code = (
        "import sys, kster, kster.cli\n"
        "for command in (['--help'], ['fit', '--help'], ['memory', 'import', '-h']):\n"
        "    kster.cli.main(command)\n"
        f"print('loaded:', [name for name in {heavy} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert done.stdout.splitlines()[-1] == "loaded: []"
    assert "translate" in done.stdout


def test_adding_and_translating_with_a_marian_model_import_only_what_they_use(
    environment: dict[str, str], taught_marian: Path, tmp_path: Path
) -> None:
    unused = ["transformers", "tokenizers", "sacrebleu", "fastapi", "lxml", "tensorboard"]
    memory = str(tmp_path / "memory")
    code = (
        "import sys, kster.cli\n"
        f"kster.cli.main(['memory', 'create', {memory!r}, '--model', {str(taught_marian)!r}])\n"
        f"kster.cli.main(['memory', 'add', {memory!r}, 'the sea', 'das Meer'])\n"
        f"kster.cli.main(['translate', '--memory', {memory!r}])\n"
        f"print('loaded:', [name for name in {unused} if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], input="the sea\n", capture_output=True, text=True, env=environment
    )
    assert done.stdout.splitlines()[-2:] == ["das Meer", "loaded: []"], done.stderr


def test_the_whole_way_from_files_of_examples_to_translations(
    process: Call, environment: dict[str, str], taught_marian: Path, tmp_path: Path
) -> None:
    memory = tmp_path / "a memory with a space"
    table = write_lines(tmp_path / "half.tsv", ["\t".join(pair) for pair in PAIRS[:15]])
    exchange = tmp_path / "half.tmx"
    exchange.write_text(
        TMX.format(units="".join(UNIT.format(*pair) for pair in PAIRS[15:])), encoding="utf-8"
    )

    created = process("memory", "create", memory, "--model", taught_marian)
    assert (created.status, created.err) == (0, "")
    imported = process("memory", "import", memory, table, exchange)
    assert imported.lines == [f"{file}: 15 added, 0 there already, 0 rejected" for file in (table, exchange)]
    assert imported.err == ""

    # A program that asks line by line gets each answer before it asks again; Ctrl-C ends it quietly.
    with subprocess.Popen(
        [sys.executable, "-m", "kster", "translate", "--memory", str(memory)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
        text=True,
        encoding="utf-8",
        preexec_fn=heed_interrupts,
    ) as running:
        assert running.stdin is not None
        assert running.stdout is not None
        assert running.stderr is not None
        for source, target in (PAIRS[3], ("", ""), PAIRS[20]):
            running.stdin.write(source + "\n")
            running.stdin.flush()
            assert running.stdout.readline() == target + "\n"
        running.send_signal(signal.SIGINT)
        assert running.wait(timeout=60) == 130
        assert running.stderr.read() == ""


def test_a_reader_that_stops_reading_ends_it_quietly(
    environment: dict[str, str], taught_marian: Path
) -> None:
    command = f'yes "" | head -1000000 | "{sys.executable}" -m kster translate --model "$0"'
    done = subprocess.run(
        ["bash", "-c", f"{command} | head -2; echo ${{PIPESTATUS[2]}}", str(taught_marian)],
        capture_output=True,
        text=True,
        env=environment,
        timeout=300,
    )
    assert (done.stdout, done.stderr) == ("\n\n141\n", "")


def test_a_mistake_is_one_line_without_a_traceback(process: Call, tmp_path: Path) -> None:
    assert process("memory", "list", tmp_path / "nowhere").is_mistake("no such memory")


def test_closed_streams_are_neither_bugs_nor_mixed_up(environment: dict[str, str], tmp_path: Path) -> None:
    def run(arguments: str, closed: str) -> tuple[int, str, str]:
        command = ["sh", "-c", f'exec "$0" -m kster {arguments} {closed}', sys.executable]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path)
        return done.returncode, done.stdout, done.stderr

    closed = "kster: standard output is closed; there is nowhere to write to\n"
    assert run("--version", ">&-") == (2, "", closed)
    assert run("memory list nowhere", "2>&-") == (2, "", "")
