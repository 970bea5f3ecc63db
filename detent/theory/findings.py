"""What a check of the three conditions says: proved, refuted with a witness, or only sampled."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from detent.theory.norms import Floats

Status = Literal["proved", "refuted", "sampled"]


@dataclass(frozen=True)
class Witness:
    """A step that goes wrong: from `u`, a point of `state`, by `symbol` and the push `e`, to `lands`."""

    state: str
    symbol: str | None
    """None when no step is needed: the point itself is misread."""
    u: Floats
    e: Floats
    lands: Floats
    read: str | None
    """What the read-out tells where it lands; None if nothing."""

    def explain(self) -> str:
        read = "nothing" if self.read is None else repr(self.read)
        if self.symbol is None:
            return f"the point {_short(self.u)} of {self.state!r} is read as {read}"
        moved = f"{self.symbol!r} and the push {_short(self.e)} send {_short(self.u)}, a point of {self.state!r},"
        return f"{moved} to {_short(self.lands)}, read as {read}"


@dataclass(frozen=True)
class Finding:
    """What was found of one condition."""

    condition: str
    status: Status
    witness: Witness | None = None

    def explain(self) -> str:
        return f"{self.condition} {self.status}" + (f": {self.witness.explain()}" if self.witness else "")


@dataclass(frozen=True)
class Realization:
    """The three conditions at one level of perturbation. True unless one of them is refuted."""

    eta: Fraction
    findings: tuple[Finding, ...]

    def __bool__(self) -> bool:
        return all(finding.status != "refuted" for finding in self.findings)

    @property
    def proved(self) -> bool:
        """Whether every condition was decided, and holds: then the triple tracks the automaton at every length."""
        return all(finding.status == "proved" for finding in self.findings)

    def __getitem__(self, condition: str) -> Finding:
        return next(finding for finding in self.findings if finding.condition == condition)

    def explain(self) -> str:
        return "\n".join(finding.explain() for finding in self.findings)


def _short(numbers: Floats) -> str:
    shown = ", ".join(f"{x:.3g}" for x in numbers[:6])
    return f"({shown}{', ...' if len(numbers) > 6 else ''})"
