"""Ways to search a memory, behind one interface: exact on any device, and FAISS for large memories."""

from kster.memory.index.base import Index
from kster.memory.index.blocks import BlockIndex

__all__ = ["BlockIndex", "Index"]
