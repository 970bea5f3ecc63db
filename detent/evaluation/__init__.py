"""Evaluation: answers into scores. Takes any callable that reads words; NumPy, no torch."""

from detent.evaluation.accuracy import first_errors as first_errors
from detent.evaluation.accuracy import question_accuracy as question_accuracy
from detent.evaluation.accuracy import sequence_accuracy as sequence_accuracy
from detent.evaluation.bar import Bar as Bar
from detent.evaluation.questions import sweep_questions as sweep_questions
from detent.evaluation.reader import Reader as Reader
from detent.evaluation.score import Sweep as Sweep
from detent.evaluation.words import sweep_words as sweep_words
