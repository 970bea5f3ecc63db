"""What 64 GPUs and a terabyte of log would cost, from the figures of the newest reports. Predictions.

`python -m benchmarks._costs` prints the lines of docs/costs.md, and the tests compare them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

REPORTS = Path(__file__).parent / "reports"
GPUS, ROWS = 64, 10**12
CORES = (1, 2, 4, 8, 16)
"""More would wait for the driver."""
BATCH, LENGTH, WIDTH, HEADS = 8, 4096, 128, (12,) * 16
"""What one GPU holds: a case of the report gpu."""
NUMBER = r"([\d.e+]+)"


def latest(name: str, folder: Path = REPORTS) -> str:
    """The newest section of the reports of a benchmark."""
    return max(folder.glob(f"{name}_*.md"), key=lambda path: path.stem[-10:]).read_text("utf-8").split("\n## ")[-1]


def figures(report: str, pattern: str) -> list[float]:
    """The numbers of the one line that matches."""
    found = re.findall(pattern, report)
    if len(found) != 1:
        raise ValueError(f"one line like {pattern!r} was wanted in the report; got {len(found)}.")
    return [float(number) for number in (found[0] if isinstance(found[0], tuple) else found)]


@dataclass(frozen=True)
class Terabyte:
    """A machine over 10^12 bytes of text on a cluster."""

    core_seconds: float
    """Processor time of all processes."""
    driver_seconds: float
    """Of it, that of the driver, which joins and writes all outputs."""
    driver_mib: float
    worker_mib: float
    overhead: float
    """Processor time on a cluster over that of one process."""

    @classmethod
    def measured(cls, report: str) -> Terabyte:
        (size,) = figures(report, r"equal before timing: (\d+) bytes")
        (alone,) = figures(report, rf"exactstate run: {NUMBER} CPU s")
        cpu, driver, driver_mib, worker_mib = figures(
            report, rf"cluster, 2 workers: {NUMBER} CPU s, of them {NUMBER} of its first process, whose peak is "
            rf"{NUMBER} MiB, largest worker {NUMBER} MiB",
        )  # fmt: skip
        return cls(cpu * 1e12 / size, driver * 1e12 / size, driver_mib, worker_mib, cpu / alone)

    def hours(self, cores: int) -> float:
        """Shared by the cores, and at least what the one driver takes."""
        return max(self.core_seconds / cores, self.driver_seconds) / 3600

    def lines(self) -> list[str]:
        rows = [
            f"| {cores} | {self.hours(cores):.2f} | {1e12 / self.hours(cores) / 3600 / 1e6:.0f} MB/s |"
            for cores in CORES
        ]
        return [
            *rows,
            f"It takes {self.hours(1):.2f} core hours, {self.overhead:.2f} times those of one process.",
            f"The driver alone takes {self.driver_seconds / 3600:.2f} hours of them: with more than "
            f"{self.core_seconds / self.driver_seconds:.0f} cores the others wait for it.",
            f"The driver's peak was {self.driver_mib:.0f} MiB, that of the largest worker {self.worker_mib:.0f} MiB.",
        ]


@dataclass(frozen=True)
class Gpus:
    """One layer of sixteen heads of twelve on 64 GPUs, each with 8 x 4,096 rows."""

    overhead: float
    """Processor time of two ranks over that of one."""
    kept: float
    """Peak memory of two ranks over that of one."""
    seconds: dict[str, float]
    """The roofline of a training step of one GPU, by card."""

    @classmethod
    def measured(cls, ranks: str, roofline: str) -> Gpus:
        one, two = figures(ranks, rf"largest rank: {NUMBER} s on one rank, {NUMBER} s on two")
        mib, half = figures(ranks, rf"during the step: {NUMBER} MiB on one rank, {NUMBER} MiB on two")
        times = figures(
            roofline, rf"16 heads of 12, B={BATCH}, L={LENGTH}, m={WIDTH}, triton: .* at least A100 80 GB {NUMBER} ms, "
            rf"H100 SXM {NUMBER} ms",
        )  # fmt: skip
        cards = dict(zip(("A100 80 GB", "H100 SXM"), times, strict=True))
        return cls(2 * two / one, 2 * half / mib, {card: ms / 1e3 for card, ms in cards.items()})

    def lines(self) -> list[str]:
        from exactstate.ops.sequence_parallel import exchanged_bytes

        rows = []
        for card, seconds in self.seconds.items():
            step = seconds * self.overhead
            rate = BATCH * LENGTH / step
            hours = ROWS / rate / 3600
            rows.append(
                f"| {card} | {seconds * 1e3:.2f} ms | {step * 1e3:.2f} ms | {GPUS * rate / 1e6:.0f} M | "
                f"{hours / GPUS:.2f} | {hours:.0f} |"
            )  # fmt: skip
        sent = exchanged_bytes(BATCH, HEADS, GPUS, WIDTH)
        total = sent["forward"] + sent["backward"]
        return [
            *rows,
            f"Two ranks together took {self.overhead:.2f} times the processor time of one, and {self.kept:.2f} times "
            "its memory.",
            f"A GPU sends {total / 1e6:.2f} MB in a step, of them {sent['forward'] / 1e3:.0f} kB forward; a scan of "
            f"full matrices would send {sent['affine full forward'] / 1e6:.0f} MB forward alone.",
        ]


def lines(folder: Path = REPORTS) -> list[str]:
    """All lines with figures of docs/costs.md."""
    terabyte = Terabyte.measured(latest("cluster", folder))
    return terabyte.lines() + Gpus.measured(latest("sequence_parallel", folder), latest("gpu", folder)).lines()


if __name__ == "__main__":
    print("\n".join(lines()))
