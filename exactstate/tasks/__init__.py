"""Tasks: machines with samplers of the words that they read. NumPy, no torch.

`task("S3")` is the task of a name or a machine file; `describe(task)` says how hard it is and which heads it needs.
"""

from exactstate.tasks.describe import Description, definite_words, describe
from exactstate.tasks.grammar import allowed_symbols
from exactstate.tasks.registry import NAMES, task
from exactstate.tasks.samplers import BoundedRuns, IidLetters, Sampler
from exactstate.tasks.shuffled_objects import StorySampler, tracking_shuffled_objects
from exactstate.tasks.task import AnswerTask, Batch, OutputTask, Question, Register, Task

__all__ = [
    "NAMES", "AnswerTask", "Batch", "BoundedRuns", "Description", "IidLetters", "OutputTask", "Question",
    "Register", "Sampler", "StorySampler", "Task", "allowed_symbols", "definite_words", "describe", "task",
    "tracking_shuffled_objects",
]  # fmt: skip
