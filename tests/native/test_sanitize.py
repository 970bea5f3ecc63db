"""The kernels under sanitizers: an access outside a buffer is reported, and the tests of the kernels report none."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest

from tests.native import sanitize

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("g++") is None or sys.platform != "linux", reason="needs g++ on Linux"),
]


def test_sanitize_barks_at_an_overflow() -> None:
    """A call that passes a short buffer is caught: without the checks in Python this is what users would have had."""
    program = """
import torch
from exactstate import native
tables, states = torch.zeros(1, 64, 4, dtype=torch.uint8), torch.tensor([4])
composites = torch.empty(1, 8, 4, dtype=torch.uint8)
native.library().exactstate_prefix(tables.data_ptr(), 1, 1, 64, states.data_ptr(), 1, composites.data_ptr(), 1)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], env=sanitize.environment(sanitize.build()), capture_output=True, text=True
    )
    assert done.returncode != 0
    assert "AddressSanitizer" in done.stderr


def test_sanitize_finds_nothing_in_the_kernels() -> None:
    assert sanitize.main([]) == 0
