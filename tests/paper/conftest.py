"""Tests of the paper's code have a marker: `make test` leaves them out, `.ci/run` runs them."""

from __future__ import annotations

from pathlib import Path

import pytest

HERE = Path(__file__).parent
QUICK = ("test_cli.py", "test_readme.py")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(HERE) and item.path.name not in QUICK:
            item.add_marker("paper")
