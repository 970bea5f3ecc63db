"""The documentation site, built once for all tests (and for all workers of pytest-xdist)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from filelock import FileLock

ROOT = Path(__file__).parents[2]


def mkdocs_build(config: Path, site: Path) -> subprocess.CompletedProcess[str]:
    """`mkdocs build --strict` in a process of its own; what it prints, and its exit code."""
    command = [
        sys.executable,
        "-m",
        "mkdocs",
        "build",
        "--strict",
        "--config-file",
        str(config),
        "--site-dir",
        str(site),
    ]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """The folder of the site."""
    shared = tmp_path_factory.getbasetemp() if worker_id == "master" else tmp_path_factory.getbasetemp().parent
    folder = shared / "site"
    with FileLock(str(folder) + ".lock"):
        if not (folder / "sitemap.xml.gz").exists():
            subprocess.run([sys.executable, str(ROOT / "docs" / "api_pages.py")], cwd=ROOT, check=True)
            built = mkdocs_build(ROOT / "mkdocs.yml", folder)
            assert built.returncode == 0, built.stderr
    return folder
