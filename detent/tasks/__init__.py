"""Tasks: a machine and a way of speaking it. NumPy, no torch."""

from typing import TYPE_CHECKING

from detent._lazy import lazy

if TYPE_CHECKING:
    from detent.tasks.describe import Description as Description
    from detent.tasks.describe import definite_words as definite_words
    from detent.tasks.describe import describe as describe
    from detent.tasks.grammar import permitted as permitted
    from detent.tasks.registry import NAMES as NAMES
    from detent.tasks.registry import task as task
    from detent.tasks.samplers import Law as Law
    from detent.tasks.samplers import Letters as Letters
    from detent.tasks.samplers import ShortRuns as ShortRuns
    from detent.tasks.shuffled_objects import Stories as Stories
    from detent.tasks.shuffled_objects import tracking_objects as tracking_objects
    from detent.tasks.task import Batch as Batch
    from detent.tasks.task import OutputsOnly as OutputsOnly
    from detent.tasks.task import Question as Question
    from detent.tasks.task import Task as Task

__all__ = lazy(__name__)
