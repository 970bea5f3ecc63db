"""What an sdist holds: everything that an install needs, and nothing of the workshop."""

from __future__ import annotations

import subprocess
import sys
import tarfile
from pathlib import Path, PurePath

import pytest

ROOT = Path(__file__).parents[2]
ROOM = {
    "CHANGELOG.md", "CITATION.cff", "CONTRIBUTING.md", "LICENSE", "MANIFEST.in", "Makefile", "PKG-INFO", "README.md",
    "constraints.txt", "pyproject.toml", "setup.cfg", "setup.py",
}  # fmt: skip
"""Beside the package and the examples."""


def tracked() -> set[str]:
    """What belongs to the project, as far as the checkout knows."""
    asked = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=True)
    return set(listed.stdout.splitlines())


@pytest.mark.slow
@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not a checkout: nothing to compare with")
def test_its_content(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "setup.py", "-q", "egg_info", "-e", str(tmp_path), "sdist", "-d", str(tmp_path)],
        cwd=ROOT, check=True, capture_output=True,
    )  # fmt: skip
    (archive,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as file:
        held = {"/".join(PurePath(member.name).parts[1:]) for member in file.getmembers() if member.isfile()}
    package = {name for name in tracked() if name.startswith(("detent/", "examples/"))}
    assert package - held == set()
    assert ROOM - held == set()
    assert {name for name in held - package - ROOM if not name.startswith("detent.egg-info/")} == set()
