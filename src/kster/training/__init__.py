"""Making a base model: from parallel text to a Hugging Face Marian directory.

from kster.training import train
report = train("recipes/en-de.yaml")
"""

from kster.training.recipe import load_settings
from kster.training.run import TrainReport, train
from kster.training.settings import TrainSettings

__all__ = ["TrainReport", "TrainSettings", "load_settings", "train"]
