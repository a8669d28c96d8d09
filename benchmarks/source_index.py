"""How long does it take to find the sources that resemble a sentence, by size of the memory?

    python benchmarks/source_index.py [--sizes 1000,10000,100000,1000000] [--found 256] [--file TEXT]

Sources are made up, with words as frequent as Zipf's law has them, or the lines of a file. Each line compares
the index of sources (`kster/memory/sources`) with SQLite's FTS5 and, where it is installed, tantivy; all rank
by BM25 of all words of the sentence. Times are medians and 95th percentiles of whole-sentence queries.
"""

from __future__ import annotations

import argparse
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from kster.memory.sources.postings import Postings
from kster.memory.sources.scoring import Collection, Part
from kster.memory.sources.words import terms_of
from machine import describe

QUERIES = 100
Search = Callable[[str], object]


def made_up(count: int) -> list[str]:
    """Sentences of 3 to 25 words."""
    random = np.random.default_rng(0)
    frequency = 1 / (np.arange(1, 100_001) + 2.7)
    words = random.choice(100_000, size=14 * count + 30, p=frequency / frequency.sum())
    ends = np.cumsum(random.integers(3, 25, count))
    return [" ".join(f"w{word}" for word in part) for part in np.split(words, ends[:-1])]


def own(sources: list[str], found: int) -> Search:
    postings = Postings.of((i, i, source) for i, source in enumerate(sources))
    everything = Collection([Part(postings, np.arange(len(postings)))], np.ones(len(postings), np.bool_))
    return lambda text: everything.similar(text, found)


def with_fts5(sources: list[str], found: int) -> Search:
    database = sqlite3.connect(":memory:")
    database.execute("CREATE VIRTUAL TABLE sources USING fts5(source, content='')")
    rows = enumerate(sources)
    database.executemany("INSERT INTO sources (rowid, source) VALUES (?, ?)", rows)
    statement = "SELECT rowid FROM sources WHERE sources MATCH ? ORDER BY rank LIMIT ?"

    def search(text: str) -> object:
        words = " OR ".join(f'"{term}"' for term in set(terms_of(text)))
        return database.execute(statement, (words, found)).fetchall()

    return search


def with_tantivy(sources: list[str], found: int) -> Search:
    import tantivy

    builder = tantivy.SchemaBuilder()
    builder.add_text_field("source", tokenizer_name="whitespace", index_option="freq")
    schema = builder.build()
    index = tantivy.Index(schema)
    writer = index.writer(200_000_000, 1)
    for source in sources:
        writer.add_document(tantivy.Document(source=" ".join(terms_of(source))))
    writer.commit()
    writer.wait_merging_threads()
    index.reload()
    searcher = index.searcher()

    def search(text: str) -> object:
        terms = [tantivy.Query.term_query(schema, "source", term, "freq") for term in set(terms_of(text))]
        query = tantivy.Query.boolean_query([(tantivy.Occur.Should, term) for term in terms])
        return searcher.search(query, found, count=False).hits

    return search


def milliseconds(search: Search, queries: list[str]) -> Iterator[float]:
    for query in queries:
        began = time.perf_counter()
        search(query)
        yield 1e3 * (time.perf_counter() - began)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--sizes", default="1000,10000,100000,1000000")
    parser.add_argument("--found", type=int, default=256)
    parser.add_argument("--file", type=Path, help="sources, one a line")
    options = parser.parse_args()
    sizes = [int(size) for size in options.sizes.split(",")]
    print(describe(found=options.found, queries=QUERIES))
    needed = max(sizes) + QUERIES
    if options.file is None:
        texts = made_up(needed)
    else:
        texts = options.file.read_text(encoding="utf-8").splitlines()[:needed]
    queries = texts[-QUERIES:]
    for size in sizes:
        for name, make in (("own", own), ("tantivy", with_tantivy), ("SQLite FTS5", with_fts5)):
            began = time.perf_counter()
            try:
                search = make(texts[:size], options.found)
            except ImportError:
                print(f"{size:>9,} sources  {name:<12} not installed")
                continue
            built = time.perf_counter() - began
            asked = queries if name != "SQLite FTS5" or size < 1_000_000 else queries[:10]
            times = list(milliseconds(search, asked))
            print(
                f"{size:>9,} sources  {name:<12} built in {built:6.1f} s; a query "
                f"{np.median(times):7.2f} ms, 95 % within {np.percentile(times, 95):7.2f} ms",
                flush=True,
            )


if __name__ == "__main__":
    main()
