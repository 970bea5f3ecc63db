"""Tasks by name, and any machine file by its path.

A family is a letter and a number: Z5 is the cyclic group of order 5. Every member of a family is available (Z7), not
only those in NAMES. Machines are built on first use and cached.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from exactstate.automata import (
    Mealy,
    Moore,
    alternating,
    cyclic,
    dihedral,
    flip_flop,
    mathieu11,
    mathieu12,
    read_machine,
    symmetric,
    tomita,
)
from exactstate.errors import InvalidConfig, unknown
from exactstate.tasks.samplers import BoundedRuns, IidLetters
from exactstate.tasks.shuffled_objects import tracking_shuffled_objects
from exactstate.tasks.task import Task

NAMES = (
    "Z2", "Z5", "Z16", "S3", "S4", "S5", "A5", "M11", "DFF5", "FF", "TSO3", "TSO4", "TSO5",
    "Tomita1", "Tomita2", "Tomita3", "Tomita4", "Tomita5", "Tomita6", "Tomita7",
)  # fmt: skip
"""The tasks that `exactstate tasks` lists; other members of their families have names too."""


@dataclass(frozen=True)
class Family:
    """Tasks that differ in one number, from `least` to `most`."""

    build: Callable[[int], Task]
    least: int
    most: int


def _word_problem(letter: str, machine: Callable[[int], Moore], about: str) -> Callable[[int], Task]:
    def build(n: int) -> Task:
        return Task.of(machine(n), name=f"{letter}{n}", about=about.format(n=n))

    return build


def _definite_flip_flop(n: int) -> Task:
    """The flip-flop on words whose last n letters determine the state."""
    return Task(
        name=f"DFF{n}", machine=flip_flop(), sampler=BoundedRuns(3, letter=0, longest=n - 1),
        about=f"remember the last reset or set, which is never more than {n - 1} identities away",
    )  # fmt: skip


def _flip_flop() -> Task:
    # identity, reset, set: 0.9, 0.05, 0.05; in length sweeps 0.99, 0.005, 0.005
    return Task(
        name="FF", machine=flip_flop(), sampler=IidLetters((18, 1, 1)), sweep_sampler=IidLetters((198, 1, 1)),
        about="remember the last reset or set, however long ago it was",
    )  # fmt: skip


FAMILIES = {
    "Z": Family(_word_problem("Z", cyclic, "add residues modulo {n}"), 2, 256),
    "S": Family(_word_problem("S", symmetric, "permute {n} things by swapping neighbours"), 2, 7),
    "A": Family(_word_problem("A", alternating, "permute {n} things by turning three neighbours"), 3, 7),
    "D": Family(_word_problem("D", dihedral, "turn and flip a polygon of {n} corners"), 3, 256),
    "DFF": Family(_definite_flip_flop, 2, 256),
    "TSO": Family(tracking_shuffled_objects, 2, 5),
    "Tomita": Family(_word_problem("Tomita", tomita, "follow the machine of Tomita's language {n}"), 1, 7),
}
SINGLE: dict[str, Callable[[], Task]] = {
    "M11": lambda: Task.of(mathieu11(), name="M11", about="multiply in the Mathieu group of order 7920"),
    "M12": lambda: Task.of(mathieu12(), name="M12", about="multiply in the Mathieu group of order 95040"),
    "FF": _flip_flop,
}


def task(name: str | Path | Moore | Mealy) -> Task:
    """The task of this name, of the machine in this file, or of this machine.

    >>> task("s3").machine.n_states
    6
    """
    if isinstance(name, Moore | Mealy):
        return Task.reaching(name, name="machine")
    if isinstance(name, str) and (found := by_name(name)) is not None:
        return found
    if isinstance(name, Path) or (name and _looks_like_a_path(name)):
        return _from_file(Path(name))
    raise unknown("task", name, NAMES)


@lru_cache(maxsize=64)
def by_name(name: str) -> Task | None:
    """The task of this name, in any case of letters; None if there is none."""
    for known, single in SINGLE.items():
        if name.casefold() == known.casefold():
            return single()
    member = re.fullmatch(r"([a-z]+)_?([0-9]{1,9})", name.casefold())
    for letters, family in FAMILIES.items():
        if member is None or member[1] != letters.casefold():
            continue
        number = int(member[2])
        if not family.least <= number <= family.most:
            raise InvalidConfig(
                f"there is no task {letters}{number}: this family goes from {letters}{family.least} "
                f"to {letters}{family.most}."
            )
        return family.build(number)
    return None


def _looks_like_a_path(name: str) -> bool:
    return Path(name).exists() or Path(name).suffix != "" or Path(name).name != name


def _from_file(path: Path) -> Task:
    machine = read_machine(path)
    if not isinstance(machine, Moore | Mealy):
        machine = Moore.of(machine)
    return Task.reaching(machine, name=path.stem, about=f"the machine in {path.name}")
