"""Reproduction of the paper on top of detent: its claims, tables, figures and experiments."""
