"""detent: recurrent networks that keep track of state exactly, for as long as it takes."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from detent.automata import Mealy as Mealy
    from detent.automata import Moore as Moore
    from detent.automata import Semiautomaton as Semiautomaton
    from detent.automata import read_machine as read_machine
    from detent.certification import certify as certify
    from detent.extraction import extract as extract
    from detent.layers import NFSM as NFSM
    from detent.recipes import train as train
    from detent.tasks import task as task

    __version__: str

_ROOM = {
    "Mealy": "automata",
    "Moore": "automata",
    "NFSM": "layers",
    "Semiautomaton": "automata",
    "certify": "certification",
    "extract": "extraction",
    "read_machine": "automata",
    "task": "tasks",
    "train": "recipes",
}
__all__ = list(_ROOM)


def __getattr__(name: str) -> Any:
    """Open the room that holds the name; so `import detent.automata` does not load torch."""
    if name == "__version__":
        return _version()
    if name not in _ROOM:
        raise AttributeError(f"module 'detent' has no attribute {name!r}")
    return getattr(import_module(f"detent.{_ROOM[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "__version__"})


def _version() -> str:
    """The version that was installed, or 'unknown' when the package is used from a folder that was not."""
    from importlib import metadata

    try:
        return metadata.version("detent")
    except metadata.PackageNotFoundError:
        return "unknown"
