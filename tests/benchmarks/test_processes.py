"""Memory and processor time of a tree of processes, against one whose use is known."""

from __future__ import annotations

import resource
import subprocess
import sys

from benchmarks._processes import ProcessTree

MIB = 1 << 20
CHILD = "x = b'1' * (96 << 20); print('ready', flush=True); input()"
PARENT = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {CHILD!r}, 'a child'])"


def children_seconds() -> float:
    """The processor time of all children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def test_process_tree_sees_the_memory_of_a_child() -> None:
    before = children_seconds()
    process = subprocess.Popen([sys.executable, "-c", PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    with ProcessTree(process.pid, interval=60) as tree:
        process.stdout.readline()
        tree.sample()
        process.communicate(b"\n")
    assert len(tree.peaks) == 2
    assert 96 * MIB < tree.largest() < 150 * MIB
    assert tree.peaks[process.pid] < 96 * MIB
    assert tree.largest("no such command") == 0
    assert 0 < tree.cpu_seconds <= children_seconds() - before + 0.1  # ticks are of 10 ms
