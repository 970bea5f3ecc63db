"""The paper's two tables, from rows: what was measured here, and beside it what was published."""

from detent.evaluation.tables.gathering import gather as gather
from detent.evaluation.tables.grid import Grid as Grid
from detent.evaluation.tables.results import results as results
from detent.evaluation.tables.seeds import seeds as seeds
