"""Compare methods for the same task: first that their results are equal, then their time, then the targets.

    def run(quick: bool) -> Report:
        report = Report(title="Speed of a table loop")
        word = ...
        report.measure("64 MB, 16 states", [
            Method("plain loop", lambda: plain(word), items=len(word)),          # the first one is the baseline
            Method("interpreter", lambda: machine.run(word), items=len(word)),
        ], unit="symbols", rounds=3 if quick else 9)
        report.target("16 states", "interpreter", at_least=3)
        return report

A module in this folder with such a function is a benchmark. The methods alternate, round by round, so that other load
on the machine affects them alike; a ratio is the median over the rounds of the ratios of rates within a round.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np


class Unequal(AssertionError):
    """Two methods have different results; nothing is timed."""


@dataclass(frozen=True, kw_only=True)
class Timing:
    """One method in one case."""

    case: str
    method: str
    items: int
    """Symbols, tokens or other units that one call processes."""
    unit: str
    seconds: float
    """Median of the calls."""
    calls: int
    ratio: float
    """Rate relative to the first method of the case; median over the rounds."""

    @property
    def rate(self) -> float:
        """Items per second."""
        return self.items / self.seconds


@dataclass(frozen=True, kw_only=True)
class Target:
    """A target and its measurement."""

    what: str
    wanted: float
    measured: float
    at_most: bool = False

    @property
    def met(self) -> bool:
        return self.measured <= self.wanted if self.at_most else self.measured >= self.wanted

    def sentence(self) -> str:
        bound = "at most" if self.at_most else "at least"
        return f"{self.what}: {bound} {self.wanted:g} wanted, {three_digits(self.measured)} measured"


def three_digits(number: float) -> str:
    """Three significant digits, without exponent."""
    return f"{number:.0f}" if abs(number) >= 99.95 else f"{number:.3g}"


@dataclass(frozen=True)
class Method:
    """One method. The result of `call` is compared with `expected`, or with that of the first method."""

    name: str
    call: Callable[[], Any]
    items: int
    expected: Callable[[], Any] | None = None


@dataclass
class Report:
    """The results of one benchmark."""

    title: str
    timings: list[Timing] = field(default_factory=list)
    targets: list[Target] = field(default_factory=list)
    checks: list[str] = field(default_factory=list)
    """Which results were equal, before anything was timed."""
    notes: list[str] = field(default_factory=list)

    def measure(self, case: str, methods: Sequence[Method], *, unit: str, rounds: int) -> list[Timing]:
        """Compare the results, then time every method once per round."""
        self.agree(case, methods)
        spent = zip(*([seconds(method.call) for method in methods] for _ in range(rounds)), strict=True)
        items = {method.name: method.items for method in methods}
        return self.record(case, dict(zip(items, spent, strict=True)), items, unit=unit)

    def record(
        self, case: str, spent: Mapping[str, Sequence[float]], items: Mapping[str, int], *, unit: str
    ) -> list[Timing]:  # fmt: skip
        """Record the seconds of every method's calls; a ratio is over the rounds that both methods have."""
        first, *_ = spent
        timings = [
            Timing(
                case=case, method=name, items=items[name], unit=unit, calls=len(calls),
                seconds=statistics.median(calls),
                ratio=items[name] / items[first] * statistics.median(
                    theirs / ours for theirs, ours in zip(spent[first], calls, strict=False)
                ),
            )
            for name, calls in spent.items()
        ]  # fmt: skip
        self.timings += timings
        return timings

    def agree(self, case: str, methods: Sequence[Method]) -> None:
        """Call every method; raise Unequal if a result differs from the expected one.

        Methods that return None were compared by their caller; that is not recorded as an agreement.
        """
        first = methods[0].call()
        for method in methods[1:]:
            expected = first if method.expected is None else method.expected()
            if not np.array_equal(method.call(), expected):
                raise Unequal(f"{case}: {method.name} has a different result; nothing was timed.")
        if first is not None:
            self.checks.append(f"{case}: {', '.join(method.name for method in methods)}")

    def target(self, case: str, method: str, *, at_least: float, over: str | None = None) -> None:
        """Set a target for the speed of a method relative to another one, or to the first one of the case."""
        rates = {timing.method: timing for timing in self.timings if timing.case == case}
        base = next(iter(rates.values())) if over is None else rates[over]
        self.targets.append(
            Target(
                what=f"{case}, {method} over {base.method}", wanted=at_least,
                measured=rates[method].ratio / base.ratio,
            )
        )  # fmt: skip

    def missed(self) -> list[str]:
        return [target.sentence() for target in self.targets if not target.met]

    def rows(self) -> list[dict[str, Any]]:
        """The timings as plain data."""
        return [{**asdict(timing), "rate": timing.rate} for timing in self.timings]


def seconds(call: Callable[[], Any]) -> float:
    """Duration of one call."""
    begun = time.perf_counter()
    call()
    return time.perf_counter() - begun
