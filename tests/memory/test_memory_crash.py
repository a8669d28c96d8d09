"""Promise 1: acknowledged survives `kill -9`. Real processes, killed at random moments."""

from __future__ import annotations

import json
import multiprocessing
import random
import time
from multiprocessing.connection import Connection
from pathlib import Path

import pytest
from speller import Speller

from kster import KsterError
from kster.formats import Pair
from kster.memory import Memory
from kster.memory.store import store

KILLS = 46  # four more fall upon a server (tests/server/test_server_kills.py)
MANY_KILLS = 800
DIMENSION = 64

Text = tuple[str, str]


def work(directory: str, seed: int, said: Connection) -> None:
    """Change the memory for ever; say each change before it begins and when it is done."""
    rng = random.Random(seed)
    memory = Memory.open(directory, Speller(DIMENSION))
    for number in range(1_000_000):
        kind = rng.choices(["add", "import", "remove", "edit", "replace", "compact"], [4, 3, 3, 2, 2, 1])[0]
        live = memory.segments()
        with_unit = [segment for segment in live if segment.unit]
        if kind == "add":
            change: list[Text] = [(f"a{seed}-{number}", "hinzugefügt")]
        elif kind == "import":
            change = [(f"i{seed}-{number}-{i}", "eingelesen") for i in range(rng.randint(1, 60))]
        elif kind == "remove":
            change = [(s.source, s.target) for s in rng.sample(live, min(len(live), rng.randint(0, 40)))]
        elif kind in ("edit", "replace") and (found := live if kind == "edit" else with_unit):
            old = rng.choice(found)
            change = [(old.source, old.target), (f"{kind[0]}{seed}-{number}", "verbessert")]
        else:
            kind, change = "compact", []
        said.send(json.dumps(["begin", kind, change]))
        if kind == "add":
            memory.add(*change[0], unit=change[0][0])
        elif kind == "import":
            memory.import_pairs(Pair(*text) for text in change)
        elif kind == "remove":
            memory.remove([s.id for s in live if (s.source, s.target) in set(change)])
        elif kind == "edit":
            memory.edit(old.id, *change[1])
        elif kind == "replace":
            memory.replace(old.unit, *change[1])
        else:
            memory.compact()
        said.send(json.dumps(["done"]))


def after(texts: set[Text], kind: str, change: list[Text]) -> set[Text]:
    if kind in ("edit", "replace"):
        old, new = change
        return texts - {old} | {new}
    return texts - set(change) if kind == "remove" else texts | set(change)


def run_and_kill(
    directory: Path, seed: int, delay: float, texts: set[Text]
) -> tuple[set[Text], set[Text], str]:
    """What is acknowledged, what would be there had the last change been finished, and its kind."""
    context = multiprocessing.get_context("forkserver")
    heard, said = context.Pipe(duplex=False)
    child = context.Process(target=work, args=(str(directory), seed, said))
    child.start()
    said.close()
    messages = [heard.recv()]  # it has begun
    time.sleep(delay)
    child.kill()
    child.join()
    try:
        while True:
            messages.append(heard.recv())
    except EOFError:
        pass
    finished, kind = texts, "nothing"
    for message in messages:
        word, *rest = json.loads(message)
        if word == "begin":
            kind, change = rest[0], [(source, target) for source, target in rest[1]]
            finished = after(texts, kind, change)
        else:
            texts, kind = finished, "nothing"
    return texts, finished, kind


@pytest.mark.parametrize("kills", [KILLS, pytest.param(MANY_KILLS, marks=pytest.mark.slow)])
def test_acknowledged_changes_survive_kill_9_and_unfinished_ones_leave_no_trace(
    tmp_path: Path, kills: int
) -> None:
    multiprocessing.get_context("forkserver").set_forkserver_preload(["kster.memory", "kster.memory.memory"])
    speller = Speller(DIMENSION)
    directory = tmp_path / "m"
    Memory.create(directory, speller, entries_per_shard=1_000).close()
    rng = random.Random(0)
    texts: set[Text] = set()
    interrupted: dict[str, int] = {}
    staging = 0  # kills that left an import's staging area
    for seed in range(kills):
        texts, finished, kind = run_and_kill(directory, seed, rng.uniform(0, 0.1), texts)
        interrupted[kind] = interrupted.get(kind, 0) + 1
        staging += kind == "import" and any((directory / "staging").glob("*"))
        with Memory.open(directory, speller) as memory:
            exported = [(pair.source, pair.target) for pair in memory.export()]
            assert len(exported) == len(set(exported))
            assert set(exported) in (texts, finished), f"kill {seed}, during {kind}"
            assert memory.verify() == [], f"kill {seed}, during {kind}"
            texts = set(exported)
            for source, target in rng.sample(sorted(texts), min(3, len(texts))):
                found = memory.search(speller.query(source, target), 1)  # its end of sentence
                assert found.distances[0, 0] == 0
                assert memory.provenance(found.ids[0])[0].segment.source == source
            assert memory.entry_count == sum(len(target.encode()) + 1 for _, target in texts)
    print(f"interrupted: {interrupted}, staging areas left: {staging}")
    if set(interrupted) == {"nothing"} or staging == 0:
        pytest.fail("no kill fell into a change, or none left a staging area: the test did not test")
    with Memory.open(directory, speller) as memory:
        memory.add("the next", "writer")
    assert list((directory / "staging").iterdir()) == []


def create_and_stop(directory: str, said: Connection) -> None:
    store.sync_directory = lambda path: (said.send("making"), time.sleep(600))  # type: ignore[assignment]
    Memory.create(directory, Speller(DIMENSION))


def test_a_killed_creation_leaves_nothing_in_the_way_of_the_next(tmp_path: Path) -> None:
    context = multiprocessing.get_context("forkserver")
    heard, said = context.Pipe(duplex=False)
    children = [context.Process(target=create_and_stop, args=(str(tmp_path / "m"), said)) for _ in range(2)]
    for child in children:
        child.start()
        assert heard.recv() == "making"
    assert len(list(tmp_path.glob(".m.*.part"))) == 2  # two at the same time do not disturb each other
    children[0].kill()
    children[0].join()
    (tmp_path / ".m.business").touch()  # not ours
    with Memory.create(tmp_path / "m", Speller(DIMENSION)) as memory:
        memory.add("tree", "Baum")
    left = sorted(path.suffix for path in tmp_path.iterdir())
    assert left == ["", ".business", ".lock", ".part"]  # the living one's is left alone
    children[1].kill()
    children[1].join()
    with pytest.raises(KsterError, match="not empty"):
        Memory.create(tmp_path / "m", Speller(DIMENSION))


def test_a_memory_can_be_made_behind_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    for name, target in (("to-empty", "real"), ("to-nothing", "later")):
        (tmp_path / name).symlink_to(target)
        with Memory.create(tmp_path / name, Speller()) as memory:
            memory.add("tree", "Baum")
        assert (tmp_path / name).is_symlink()
        assert (tmp_path / target / "memory.json").is_file()
