"""Heavy things arrive when they are used: what a fresh interpreter holds after an import."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("torch", "matplotlib", "networkx")


def heavy_after(program: str) -> set[str]:
    """Which heavy packages a fresh interpreter has loaded once the program is done."""
    report = f"import sys; print('loaded:', *({set(HEAVY)!r} & set(sys.modules)), file=sys.stderr)"
    wrapped = f"import atexit; atexit.register(lambda: exec({report!r}))\n{program}"
    done = subprocess.run([sys.executable, "-c", wrapped], capture_output=True, text=True)
    loaded = [line for line in done.stderr.splitlines() if line.startswith("loaded:")]
    assert len(loaded) == 1, done.stderr
    assert done.returncode == 0, done.stderr
    return set(loaded[0].split()[1:])


@pytest.mark.parametrize(
    "room", ["automata", "tasks", "records", "errors", "native", "runtime", "learning", "certify", "report", "cli"]
)
def test_a_light_room_brings_nothing_heavy(room: str) -> None:
    assert heavy_after(f"import detent.{room}") == set()


@pytest.mark.parametrize(
    "module", ["report.page", "report.data", "train", "train.run_dir", "learning.passive_learning", "certify.certify"]
)
def test_a_light_module_brings_nothing_heavy(module: str) -> None:
    """The packages are lazy: the module that does the work is what must not need torch."""
    assert heavy_after(f"import detent.{module}") == set()


def test_the_front_door_brings_nothing_heavy() -> None:
    assert heavy_after("import detent; dir(detent); detent.__version__; detent.Moore; detent.task('S3')") == set()


@pytest.mark.parametrize(
    "arguments", [["--help"], ["--version"], ["tasks", "--help"], ["figure", "--help"], ["check", "--help"]]
)
def test_help_brings_nothing_heavy(arguments: list[str]) -> None:
    assert (
        heavy_after(f"import sys; sys.argv = ['detent', *{arguments!r}]\nfrom detent.cli import main; main()") == set()
    )


def test_the_check_barks() -> None:
    assert heavy_after("def late():\n    import networkx\nlate()") == {"networkx"}
