"""Terminology: what a source must be called in the translation, kept in a term base and found in texts."""

from kster.terms.base import TermBase, TermImport
from kster.terms.matching import Match, TermFinder, count_kept, is_kept
from kster.terms.term import Term, term

__all__ = ["Match", "Term", "TermBase", "TermFinder", "TermImport", "count_kept", "is_kept", "term"]
