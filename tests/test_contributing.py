"""Paths and commands in CONTRIBUTING.md, README.md and the pages of docs/ exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TOP = {path.name for path in ROOT.iterdir()} - {"build", "dist"}  # what commands make may be there or not
PAGES = [
    ROOT / "CONTRIBUTING.md",
    ROOT / "README.md",
    ROOT / "examples" / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def missing_paths(text: str) -> list[str]:
    """Paths of the repository in backticks that do not exist; words in capitals and `*` stand for any name."""
    paths = re.findall(r"`([\w.*-]+(?:/[\w.*-]+)+/?|[\w-]+\.(?:py|md|yml|toml|txt))`", text)
    inside = [path for path in paths if path.split("/")[0] in TOP]
    return [path for path in inside if not any(ROOT.glob(re.sub(r"\b[A-Z]+\b(?!\.md)", "*", path.rstrip("/"))))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_paths_in_backticks_exist(page: Path) -> None:
    assert missing_paths(page.read_text(encoding="utf-8")) == []


def test_a_missing_path_is_found() -> None:
    text = (
        "`exactstate/nn/nfsm.py`, `exactstate/attic/old.py`, `results/*.jsonl`, `paper/figures/X.py`, `setup.py`, `n/a`"
    )
    assert missing_paths(text) == ["exactstate/attic/old.py"]


def test_make_targets_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for target in set(re.findall(r"`make ([a-z-]+)`", CONTRIBUTING)):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_the_import_law_lists_the_packages_in_order() -> None:
    """As `ORDER` of the test that walks the imports has them."""
    from tests.architecture.test_imports import ORDER

    text = re.search(r"from the top: (.*?)\. Four doors", CONTRIBUTING, re.DOTALL)
    assert text
    packages = [name for name in ORDER if (ROOT / "exactstate" / name).is_dir()]
    assert re.findall(r"`(\w+)`", text[1]) == packages[::-1]
