"""The base model: tokenise, encode, force-decode, and one decoding step with the tap that yields keys."""

from kster.model.checkpoint import BaseModel
from kster.model.forcing import ForcedSentence

__all__ = ["BaseModel", "ForcedSentence"]
