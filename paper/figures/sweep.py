"""Figure `sweep`: the length sweep that the library draws, of the rows in `results`."""

from detent.report.figures.length_sweep import paint as paint
