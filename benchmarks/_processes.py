"""Memory and processor time of a command and of all processes that it starts, sampled from /proc; and of the others."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")


@dataclass
class ProcessTree:
    """Samples of a process and its descendants while the block runs. A process between two samples is not seen."""

    pid: int
    interval: float = 0.2
    peaks: dict[int, int] = field(default_factory=dict)
    """Peak resident bytes of every process, shared memory that it touched included."""
    names: dict[int, str] = field(default_factory=dict)
    cpu: dict[int, float] = field(default_factory=dict)
    """Seconds of processor time of every process."""
    others: float = 0.0
    """Seconds of processor time that the rest of the machine used meanwhile."""

    def __enter__(self) -> ProcessTree:
        self._busy = _busy_seconds()
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._sample_until_end, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()
        self.others = max(0.0, _busy_seconds() - self._busy - self.cpu_seconds)

    @property
    def cpu_seconds(self) -> float:
        return sum(self.cpu.values())

    def largest(self, prefix: str = "") -> int:
        """Peak bytes of the largest process whose command line begins so; 0 where there is none."""
        return max((peak for pid, peak in self.peaks.items() if self.names[pid].startswith(prefix)), default=0)

    def sample(self) -> None:
        stats = dict(_stats())
        family = {self.pid}
        added = True
        while added:
            below = {pid for pid, (parent, _) in stats.items() if parent in family and pid not in family}
            family |= below
            added = bool(below)
        for pid in family & stats.keys():
            try:
                status = Path(f"/proc/{pid}/status").read_text()
                name = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            peak = next((int(line.split()[1]) << 10 for line in status.splitlines() if line.startswith("VmHWM")), 0)
            self.peaks[pid] = max(peak, self.peaks.get(pid, 0))
            self.names[pid] = name.strip() or self.names.get(pid, "")
            self.cpu[pid] = stats[pid][1]

    def _sample_until_end(self) -> None:
        while not self._end.wait(self.interval):
            self.sample()


def _stats() -> Iterator[tuple[int, tuple[int, float]]]:
    """(process, (its parent, its seconds of processor time)) of all processes."""
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                fields = Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            yield int(entry), (int(fields[1]), (int(fields[11]) + int(fields[12])) / TICKS)


def _busy_seconds() -> float:
    """Seconds in which the processors of this machine did something."""
    user, nice, system = map(int, Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:4])
    return (user + nice + system) / TICKS
