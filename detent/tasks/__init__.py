"""Tasks: machines with samplers of the words that they read. NumPy, no torch.

`task("S3")` is the task of a name or a machine file; `describe(task)` says how hard it is and which heads it needs.
"""

from typing import TYPE_CHECKING

from detent._lazy import lazy

if TYPE_CHECKING:
    from detent.tasks.describe import Description as Description
    from detent.tasks.describe import definite_words as definite_words
    from detent.tasks.describe import describe as describe
    from detent.tasks.grammar import allowed_symbols as allowed_symbols
    from detent.tasks.registry import NAMES as NAMES
    from detent.tasks.registry import task as task
    from detent.tasks.samplers import BoundedRuns as BoundedRuns
    from detent.tasks.samplers import IidLetters as IidLetters
    from detent.tasks.samplers import Sampler as Sampler
    from detent.tasks.shuffled_objects import StorySampler as StorySampler
    from detent.tasks.shuffled_objects import tracking_shuffled_objects as tracking_shuffled_objects
    from detent.tasks.task import AnswerTask as AnswerTask
    from detent.tasks.task import Batch as Batch
    from detent.tasks.task import OutputTask as OutputTask
    from detent.tasks.task import Question as Question
    from detent.tasks.task import Register as Register
    from detent.tasks.task import Task as Task

__all__ = lazy(__name__)
