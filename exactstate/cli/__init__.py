"""The command line: one file per verb; whatever is heavy is imported inside the verb."""

from typing import TYPE_CHECKING

from exactstate._lazy import lazy

if TYPE_CHECKING:
    from exactstate.cli._app import main as main

__all__ = lazy(__name__)
