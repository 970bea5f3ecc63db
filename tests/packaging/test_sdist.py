"""Contents of the sdist and the wheel: all that an install needs; nothing of paper, benchmarks, docs and tests."""

from __future__ import annotations

import subprocess
import sys
import tarfile
from pathlib import Path, PurePath

import pytest

ROOT = Path(__file__).parents[2]
BESIDE = {
    "CHANGELOG.md", "CITATION.cff", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md", "LICENSE", "MANIFEST.in", "Makefile",
    "PKG-INFO", "README.md", "SECURITY.md", "constraints.txt", "pyproject.toml", "setup.cfg", "setup.py",
}  # fmt: skip
"""Beside the package and the examples, in the sdist."""

pytestmark = pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not a checkout: nothing to compare with")


def tracked(*folders: str) -> set[str]:
    """The files of these folders that belong to the project, as far as git knows."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", *folders]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    return {name for name in listed if (ROOT / name).exists()}


def setup_py(*arguments: str) -> None:
    subprocess.run([sys.executable, "setup.py", "-q", *arguments], cwd=ROOT, check=True, capture_output=True)


@pytest.mark.slow
def test_sdist_content(tmp_path: Path) -> None:
    setup_py("egg_info", "-e", str(tmp_path), "sdist", "-d", str(tmp_path))
    (archive,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as file:
        names = {"/".join(PurePath(member.name).parts[1:]) for member in file.getmembers() if member.isfile()}
    expected = tracked("exactstate", "examples") | BESIDE
    assert {name for name in expected if name.startswith("exactstate/csrc/")}
    assert expected - names == set()
    assert {name for name in names - expected if not name.startswith("exactstate.egg-info/")} == set()


def test_wheel_content(tmp_path: Path) -> None:
    """The files that `build_py` copies into a wheel; compiled kernels come on top (`make wheel-check`)."""
    library = tmp_path / "lib"
    setup_py("egg_info", "-e", str(tmp_path), "build_py", "--build-lib", str(library))
    names = {str(path.relative_to(library)) for path in library.rglob("*") if path.is_file()}
    assert {PurePath(name).parts[0] for name in names} == {"exactstate"}
    assert tracked("exactstate") - names == set()
