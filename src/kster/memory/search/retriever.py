"""Search for sentences: each query belongs to one, and is answered for that one.

A retriever is made when a batch of sentences begins and knows their source texts. `WholeRetriever` searches
all entries of a memory at every step; `ShortlistRetriever` (`shortlist_retriever.py`) only those of the
segments whose sources resemble a sentence best. Both say how much the source a neighbour comes from resembles
the sentence.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import torch
from torch import Tensor

from kster.memory.search.neighbours import ALL_WORDS, Neighbours

Sentence = tuple[str, Sequence[str]]  # its text, and its words as the model has read them


@dataclass(frozen=True, slots=True)
class Batch:
    """Sentences that are translated together: what a retriever is made for."""

    texts: Sequence[str]  # their sources
    device: torch.device
    similarity: bool = True
    """Whether neighbours must say how much their sources resemble these. If not, the memory itself may do the
    searching where all entries are searched."""
    words: Sequence[Sequence[str]] | None = None
    """The words of each text, 63 at most; neighbours then say which of these are in their sources, too."""

    @property
    def sentences(self) -> list[Sentence]:
        return list(zip(self.texts, self.words or [()] * len(self.texts), strict=True))


class Searcher(Protocol):
    """What searches all entries there are: a memory, or several as one."""

    def search(self, queries: Tensor, k: int) -> Neighbours: ...


class Retriever(ABC):
    """Searches for s sentences; each has equally many rows of queries, in the sentences' order."""

    @property
    @abstractmethod
    def sentences(self) -> int: ...

    @abstractmethod
    def keep(self, sentences: Tensor) -> Retriever:
        """The retriever of these sentences alone; sentences: (kept,) ascending, perhaps one several times."""

    @abstractmethod
    def search_for(self, queries: Tensor, sentences: Tensor, k: int) -> Neighbours:
        """queries: (n, d); sentences: (n,) which one each belongs to."""

    def search(self, queries: Tensor, k: int) -> Neighbours:
        """queries: (s · b, d), b rows of each sentence together."""
        sentences = torch.arange(self.sentences, device=queries.device)
        return self.search_for(queries, sentences.repeat_interleave(len(queries) // self.sentences), k)


@dataclass(frozen=True, slots=True, eq=False)
class RowsOf:
    """A retriever for queries in any order, whose sentences are given one by one."""

    retriever: Retriever
    rows: Tensor  # (n,) sentences

    def search(self, queries: Tensor, k: int) -> Neighbours:
        return self.retriever.search_for(queries, self.rows.to(queries.device), k)


@dataclass(frozen=True, slots=True, eq=False)
class Similarities:
    """How much the sources of a memory's segments resemble each sentence."""

    first_entries: Tensor  # (m,) the id of each segment's first entry, ascending
    table: Tensor  # (s, m) float16
    words: Tensor  # (s, m) int64: which words of a sentence each source has, see `Neighbours`
    rare: Tensor  # (s,) int64: and which of them are in few sources

    def note(self, found: Neighbours, sentences: Tensor) -> Neighbours:
        """Add this to every neighbour; sentences: (n,). Segments that are newer get 0, and all words."""
        if not len(self.first_entries):
            found.similarity = torch.zeros_like(found.distances)
            return found
        lines = torch.searchsorted(self.first_entries, found.ids, right=True) - 1  # (n, k)
        at = sentences[:, None], lines.clamp(min=0)
        found.similarity = self.table[at].float().masked_fill(lines < 0, 0.0)
        found.words = self.words[at].masked_fill(lines < 0, ALL_WORDS)
        found.rare = self.rare[sentences]
        return found

    def keep(self, sentences: Tensor) -> Similarities:
        of_sentences = (self.table, self.words, self.rare)
        return Similarities(self.first_entries, *(each.index_select(0, sentences) for each in of_sentences))


@dataclass(frozen=True, slots=True, eq=False)
class WholeRetriever(Retriever):
    """All entries of a memory, or of several as one, as they are at every step."""

    memory: Searcher
    similarities: Similarities

    @property
    def sentences(self) -> int:
        return len(self.similarities.table)

    def keep(self, sentences: Tensor) -> WholeRetriever:
        return replace(self, similarities=self.similarities.keep(sentences))

    def search_for(self, queries: Tensor, sentences: Tensor, k: int) -> Neighbours:
        return self.similarities.note(self.memory.search(queries, k), sentences)
