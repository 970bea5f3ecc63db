"""One version everywhere, and what a release needs is there."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def version_of(name: str) -> str:
    text = (ROOT / name).read_text(encoding="utf-8")
    if name.endswith(".json"):
        return str(json.loads(text)["version"])
    found = re.search(r'^version(?: = |: )"?([\d.]+)"?$', text, re.MULTILINE)
    assert found is not None, name
    return found[1]


@pytest.mark.parametrize("name", ["CITATION.cff", "web/package.json", "web/package-lock.json"])
def test_version_is_that_of_the_package(name: str) -> None:
    assert version_of(name) == version_of("pyproject.toml")


def test_changelog_begins_with_the_version() -> None:
    sections = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert sections[0] == version_of("pyproject.toml")


def test_package_lock_names_no_registry() -> None:
    packages = json.loads((ROOT / "web" / "package-lock.json").read_text(encoding="utf-8"))["packages"]
    assert len(packages) > 40
    assert not [name for name, package in packages.items() if "resolved" in package]
    assert all("integrity" in package for name, package in packages.items() if name)
