"""Translation: beam search over the base model's distribution smoothed by a memory, scoring, explanations."""

from kster.translation.explanation import Example, TokenExplanation
from kster.translation.predictor import METHODS, Method
from kster.translation.result import Translation
from kster.translation.translator import Translator

__all__ = ["METHODS", "Example", "Method", "TokenExplanation", "Translation", "Translator"]
