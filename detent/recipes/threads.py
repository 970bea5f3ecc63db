"""One thread for training: a step is a few rows, and waking a second thread costs more than it brings.

It also makes weights independent of the number of cores, which reading them out and bounding their rounding may use.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
