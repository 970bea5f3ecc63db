"""detent: recurrent networks that keep track of state exactly, for as long as it takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from detent._lazy import lazy
from detent._operators import register_with_torch

if TYPE_CHECKING:
    from detent.automata import Mealy as Mealy
    from detent.automata import Moore as Moore
    from detent.automata import Semiautomaton as Semiautomaton
    from detent.automata import read_machine as read_machine
    from detent.certify import certify as certify
    from detent.extract import extract as extract
    from detent.learning import learn as learn
    from detent.nn import NFSM as NFSM
    from detent.tasks import task as task
    from detent.train import train as train

    __version__: str

__all__ = lazy(__name__)
register_with_torch()


def __getattr__(name: str) -> str:
    """`__version__`: that of the install, or 'unknown' where the package is used from a folder."""
    if name != "__version__":
        raise AttributeError(f"module 'detent' has no attribute {name!r}")
    from importlib import metadata  # 20 ms that nobody who does not ask should wait for

    try:
        return metadata.version("detent")
    except metadata.PackageNotFoundError:
        return "unknown"
