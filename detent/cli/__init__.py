"""The command line: one file per verb; whatever is heavy is imported inside the verb."""

from detent.cli.app import main as main
