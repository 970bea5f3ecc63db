"""Figures for print: a machine, the tables of heads, accuracy against length. matplotlib, no torch."""
