"""What an sdist holds: everything that an install needs, and nothing of the workshop."""

from __future__ import annotations

import subprocess
import sys
import tarfile
from pathlib import Path, PurePath

import pytest

ROOT = Path(__file__).parents[2]


def tracked() -> set[str]:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
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
    assert {"LICENSE", "README.md", "CHANGELOG.md", "pyproject.toml", "setup.py", "constraints.txt"} <= held
    assert not {name for name in held if name.startswith(("tests/", "results/", ".ci/", "build/"))}
    assert not {name for name in held if name.endswith((".so", ".pyc"))}
