"""A language model on texts that need a state, and how it is trained."""

from exactstate.text.fit import fit
from exactstate.text.model import TextModel

__all__ = ["TextModel", "fit"]
