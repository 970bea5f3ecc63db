"""The files that web/ is compared with are those that this version of exactstate writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.web import golden


@pytest.fixture(scope="module")
def files() -> dict[Path, str]:
    return golden.files()


@pytest.mark.parametrize(
    "name",
    [
        "src/machines.json", "src/learn/settings.json", "golden/runs.json", "golden/pairs.json", "golden/drift.json",
        "golden/certificates.json", "golden/heads.json", "golden/sizes.json",
    ],
)  # fmt: skip
def test_golden_files_are_current(files: dict[Path, str], name: str) -> None:
    path = golden.WEB / name
    assert path.read_text(encoding="utf-8") == files[path], f"{name} is not current: run python -m tests.web.golden"
