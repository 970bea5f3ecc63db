"""Tasks: machines with samplers of the words that they read. NumPy, no torch.

`task("S3")` is the task of a name or a machine file; `describe(task)` says how hard it is and which heads it needs.
"""

from typing import TYPE_CHECKING

from exactstate._lazy import lazy

if TYPE_CHECKING:
    from exactstate.tasks.describe import Description as Description
    from exactstate.tasks.describe import definite_words as definite_words
    from exactstate.tasks.describe import describe as describe
    from exactstate.tasks.grammar import allowed_symbols as allowed_symbols
    from exactstate.tasks.registry import NAMES as NAMES
    from exactstate.tasks.registry import task as task
    from exactstate.tasks.samplers import BoundedRuns as BoundedRuns
    from exactstate.tasks.samplers import IidLetters as IidLetters
    from exactstate.tasks.samplers import Sampler as Sampler
    from exactstate.tasks.shuffled_objects import StorySampler as StorySampler
    from exactstate.tasks.shuffled_objects import tracking_shuffled_objects as tracking_shuffled_objects
    from exactstate.tasks.task import AnswerTask as AnswerTask
    from exactstate.tasks.task import Batch as Batch
    from exactstate.tasks.task import OutputTask as OutputTask
    from exactstate.tasks.task import Question as Question
    from exactstate.tasks.task import Register as Register
    from exactstate.tasks.task import Task as Task

__all__ = lazy(__name__)
