"""Reproduction of the paper on top of exactstate: its claims, tables, figures and experiments."""
