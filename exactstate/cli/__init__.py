"""The command line: one file per verb; whatever is heavy is imported inside the verb."""

from exactstate.cli._app import main

__all__ = ["main"]
