"""`python -m tests.train.golden_trace`: 200 losses of the paper's recipe on S3, seed 42, one thread, written down.

The trace is a file of hexadecimal numbers, so that nothing is lost in writing, beside what it depends on: processor,
versions, kernels. Write it again when the recipe is changed on purpose, and say so in the CHANGELOG under Numbers.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch

from exactstate import ops as scan
from exactstate import records
from exactstate.train import EndToEndConfig, TrainConfig, train

FILE = Path(__file__).with_name("golden_trace.json")
PHASE = EndToEndConfig(steps=200, check_every=1, check_words=1, stop_checks=1000)
CONFIG = TrainConfig(task="S3", recipe="paper", heads=(3, 2), seed=42, restarts=0, stop="checks", end_to_end=PHASE)


def losses(config: TrainConfig = CONFIG) -> list[float]:
    """The loss of every step, on one thread."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return [row["loss"] for row in train(config).history]
    finally:
        torch.set_num_threads(threads)


def fingerprint() -> dict[str, Any]:
    """What decides about the last bits: matrix products differ between generations of one processor's name."""
    return {
        "cpu": records.stamp()["machine"]["cpu"], "generation": _generation(),
        "instructions": torch.backends.cpu.get_cpu_capability(), "torch": torch.__version__,
        "numpy": np.__version__, "kernels": scan.resolve("auto"), "threads": 1,
    }  # fmt: skip


def _generation() -> list[str]:
    """Family, model and features of the processor, where Linux tells them.

    A virtual machine may hide features of its processor, and libraries choose their kernels by those that they see.
    """
    path = Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.exists() else []
    return sorted({line for line in lines if line.split("\t")[0] in ("cpu family", "model", "flags", "cache size")})


def main() -> None:
    written = {
        "command": "python -m tests.train.golden_trace",
        "fingerprint": fingerprint(),
        "losses": [loss.hex() for loss in losses()],
    }
    records.write_atomically(FILE, json.dumps(written, indent=1) + "\n")
    print(f"{len(written['losses'])} losses in {FILE.name}")


if __name__ == "__main__":
    main()
