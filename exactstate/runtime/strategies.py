"""The ways of running a machine, which of them this machine and this processor allow, and which is cheapest.

    plain     one lookup for every symbol, each waiting for the one before it
    packed    several symbols to a lookup, by tables of their composites
    lookback  the word in pieces in parallel; the start of a piece is known once all states have merged before it
    shuffle   tables of up to 32 states kept in a register; pieces are composed side by side, exactly
    heads     the same for machines that are several small ones in parallel
    numpy     no compiled code; chunks are composed

All give the same integers. "auto" is the cheapest by the estimates below; `Machine.strategy` names it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from exactstate import native
from exactstate._types import Ints
from exactstate.automata.run import smallest_dtype
from exactstate.errors import BackendUnavailable, unknown
from exactstate.runtime.heads import Heads

NAMES = ("plain", "packed", "lookback", "shuffle", "heads", "numpy")

IN_A_REGISTER, IN_A_WIDE_REGISTER = 16, 32
HAS_16, HAS_32 = 1, 2
MAX_HEADS = 64
MAX_JOINT_INDICES = 1 << 22
MAX_SYMBOLS = 1 << 16
FIRST_CACHE_BYTES, SECOND_CACHE_BYTES = 1 << 15, 1 << 18
"""Bytes of a table that is looked up quickly, and of one that still is not slow: caches of the first two levels."""


def features() -> int:
    """The register sizes of this processor that shuffles can use; 0 without compiled kernels."""
    return int(native.library().exactstate_register_features()) if native.available() else 0


@dataclass(frozen=True, eq=False)
class Shape:
    """What the choice of a strategy depends on."""

    tables: Ints
    heads: Heads | None
    output_bytes: int
    """Bytes of an output."""

    @property
    def symbols(self) -> int:
        return len(self.tables)

    @property
    def states(self) -> int:
        return self.tables.shape[1]

    @property
    def pack(self) -> int:
        """How many symbols one lookup in memory takes: as many as a table near the processor allows."""
        entry = max(smallest_dtype(self.states).itemsize, self.output_bytes)
        row = (1 << (self.states - 1).bit_length()) * smallest_dtype(self.states).itemsize
        limit = FIRST_CACHE_BYTES if self.symbols * row <= FIRST_CACHE_BYTES else SECOND_CACHE_BYTES
        fits = [k for k in (2, 4) if self.symbols**k <= 256 and self.symbols**k * row <= limit and k * entry <= 8]
        return max(fits, default=1)

    @property
    def register_pack(self) -> int:
        """How many symbols one shuffle takes."""
        return max(k for k in (1, 2, 4) if k == 1 or self.symbols**k <= 256)

    @property
    def merges(self) -> bool:
        """Whether some symbol sends two states to the same one; otherwise lookback cannot help."""
        rows = np.sort(self.tables, axis=1)
        return bool((rows[:, 1:] == rows[:, :-1]).any())

    def why_not(self, strategy: str) -> str | None:
        """None if the strategy is possible, else the reason."""
        if strategy not in NAMES:
            raise unknown("strategy", strategy, ("auto", *NAMES))
        if strategy == "numpy":
            return None
        if not native.available():
            return str(native.why_not())
        if self.symbols > MAX_SYMBOLS:
            return f"compiled strategies take up to {MAX_SYMBOLS} symbols, and this machine has {self.symbols}"
        if strategy == "shuffle":
            return _why_not_registers("the machine", self.states, f"{self.states} states")
        if strategy == "heads":
            return self._why_not_heads()
        return None

    def _why_not_heads(self) -> str | None:
        if self.heads is None:
            return "this machine was made without heads"
        sizes = self.heads.sizes
        if len(sizes) > MAX_HEADS or np.prod(sizes, dtype=float) > MAX_JOINT_INDICES:
            return f"there are too many tuples of indices for {len(sizes)} heads of {' '.join(map(str, sizes))}"
        return _why_not_registers("a head", max(sizes), f"{max(sizes)} indices")

    def require(self, strategy: str) -> None:
        """Refuse a strategy that is not possible here, with the reason."""
        reason = self.why_not(strategy)
        if reason is not None:
            possible = ", ".join(name for name in NAMES if self.why_not(name) is None)
            raise BackendUnavailable(f"strategy {strategy!r} is not possible here: {reason}. Possible: {possible}.")

    def cheapest(self) -> str:
        """The strategy that "auto" means here."""
        possible = [name for name in NAMES if self.why_not(name) is None]
        if not self.merges and "lookback" in possible:
            possible.remove("lookback")
        return min(possible, key=self.cost)

    def cost(self, strategy: str) -> float:
        """About how many cycles a symbol takes. Only the order matters."""
        size = self.symbols**self.pack * self.states * smallest_dtype(self.states).itemsize
        wait = 5 if size <= FIRST_CACHE_BYTES else 15 if size <= SECOND_CACHE_BYTES else 50
        match strategy:
            case "plain":
                return wait
            case "packed":
                return wait / self.pack if self.pack > 1 else wait + 0.1
            case "lookback":
                return (1 if size <= FIRST_CACHE_BYTES else wait / 6) / self.pack + 0.4
            case "shuffle":
                return (0.7 if self.states <= IN_A_REGISTER else 1.5) / self.register_pack + 0.1
            case "heads":
                assert self.heads is not None
                distinct = len({table.tobytes() for table in self.heads.tables})
                wide = max(self.heads.sizes) > IN_A_REGISTER
                bundles = distinct if wide or not features() & HAS_32 else -(-distinct // 2)
                return bundles * (1.5 if wide else 0.7) / self.register_pack + 0.2
        return 300.0


def _why_not_registers(what: str, size: int, count: str) -> str | None:
    if size > IN_A_WIDE_REGISTER:
        return f"{what} has {count}, and a register holds tables of at most {IN_A_WIDE_REGISTER}"
    if not features() & (HAS_16 if size <= IN_A_REGISTER else HAS_32):
        return f"this processor has no instruction that shuffles tables of {size} entries"
    return None
