"""Tiny networks are evaluated thousands of times here, on one thread."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _one_thread(one_thread: None) -> None: ...
