"""exactstate: recurrent networks that keep track of state exactly, for as long as it takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from exactstate._lazy import lazy

if TYPE_CHECKING:
    from exactstate.automata import Mealy as Mealy
    from exactstate.automata import Moore as Moore
    from exactstate.automata import Semiautomaton as Semiautomaton
    from exactstate.automata import read_machine as read_machine
    from exactstate.certify import certify as certify
    from exactstate.extract import extract as extract
    from exactstate.learning.learn import learn as learn
    from exactstate.nn import NFSM as NFSM
    from exactstate.tasks.registry import task as task
    from exactstate.train import train as train

    __version__: str

__all__ = ["certify", "extract", "train", *lazy(__name__, {
    "automata": ["Mealy", "Moore", "Semiautomaton", "read_machine"],
    "learning.learn": ["learn"],
    "nn": ["NFSM"],
    "tasks.registry": ["task"],
}, packages=[
    "automata", "baselines", "certify", "cli", "evaluate", "extract", "integrations", "learning", "nn", "ops",
    "report", "runtime", "tasks", "text", "train",
])]  # fmt: skip


def __getattr__(name: str) -> str:
    """`__version__`: that of the install, or 'unknown' where the package is used from a folder."""
    if name != "__version__":
        raise AttributeError(f"module 'exactstate' has no attribute {name!r}")
    from importlib import metadata  # 20 ms that nobody who does not ask should wait for

    try:
        return metadata.version("exactstate")
    except metadata.PackageNotFoundError:
        return "unknown"
