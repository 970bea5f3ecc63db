"""Tasks: a machine and a way of speaking it. NumPy, no torch."""

from detent.tasks.grammar import permitted as permitted
from detent.tasks.letters import Law as Law
from detent.tasks.letters import Letters as Letters
from detent.tasks.letters import ShortRuns as ShortRuns
from detent.tasks.objects import tracking_objects as tracking_objects
from detent.tasks.sentences import Stories as Stories
from detent.tasks.task import Batch as Batch
from detent.tasks.task import Task as Task
