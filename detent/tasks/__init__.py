"""Tasks: a machine and a way of speaking it. NumPy, no torch."""

from detent.tasks.definiteness import definite_words as definite_words
from detent.tasks.description import Description as Description
from detent.tasks.description import describe as describe
from detent.tasks.grammar import permitted as permitted
from detent.tasks.letters import Law as Law
from detent.tasks.letters import Letters as Letters
from detent.tasks.letters import ShortRuns as ShortRuns
from detent.tasks.objects import tracking_objects as tracking_objects
from detent.tasks.outputs import OutputsOnly as OutputsOnly
from detent.tasks.registry import NAMES as NAMES
from detent.tasks.registry import task as task
from detent.tasks.sampling import Batch as Batch
from detent.tasks.sampling import Question as Question
from detent.tasks.sampling import Task as Task
from detent.tasks.sentences import Stories as Stories
