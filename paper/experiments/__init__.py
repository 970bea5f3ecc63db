"""The experiments that make the rows in `results/`."""
