"""Whole runs: a plan in, a trained and judged network out."""

from detent.recipes.entry import train as train
from detent.recipes.learning import Run as Run
from detent.recipes.plan import ARMS as ARMS
from detent.recipes.plan import Plan as Plan
