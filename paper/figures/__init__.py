"""Figures: rows in, drawing out. matplotlib, no torch; each figure is a file of its own with a function `paint`."""

from paper.figures.registry import FIGURES as FIGURES
from paper.figures.registry import Drawing as Drawing
