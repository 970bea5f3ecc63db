"""Every example runs and prints what it is meant to show."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
SHOWS = {
    "from_dot_to_certificate": r"after every word of any length equals the target's.*not certified: after 'coin",
    "in_your_own_model": r"alone.*step 200: .* 512 tokens [5-8].*NFSM.*step 200: .* 512 tokens 100\.0%",
    "machine_elsewhere": r"cc: .*as in Python|cc is not installed",
    "stream_a_log": r"event \d,?\d*: '\w+' after '\w+': alarm.*20,000 events read, [1-9][0-9]* of them in state alarm",
    "t_maze": r"after 100,000 steps: .* all correct",
}


def test_every_example_is_listed() -> None:
    listed = re.findall(r"\]\((\w+)\.py\)", (EXAMPLES / "README.md").read_text())
    assert sorted(listed) == sorted(SHOWS) == sorted(path.stem for path in EXAMPLES.glob("*.py"))


@pytest.mark.parametrize("name", sorted(SHOWS))
def test_example_runs(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    out, err = capsys.readouterr()
    assert err == ""
    assert re.search(SHOWS[name], out, re.DOTALL), out
