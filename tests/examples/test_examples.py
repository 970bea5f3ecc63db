"""Every example runs and prints what it is meant to show."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from exactstate.extract.regions import largest_radii, random_changes

EXAMPLES = Path(__file__).parents[2] / "examples"
SHOWS = {
    "estimator": r"words of up to 1,000 bits: 100% right",
    "from_dot_to_certificate": r"after every word of any length equals the target's.*not certified: after 'coin",
    "h11_and_its_tables": r"h11 0\.16\.0: AttributeError, not as documented|h11 (?!0\.16\.0)[\d.]+: ",
    "in_your_own_model": r"alone.*step 200: .* 512 tokens [5-8].*NFSM.*step 200: .* 512 tokens 100\.0%",
    "machine_elsewhere": r"cc: .*as in Python|cc is not installed",
    "ppo": r"corridors of 10,000 steps: 100% turned right",
    "recurrent_ppo": r"corridors of 1,000 steps: 100% turned right",
    "stream_a_log": r"event \d,?\d*: '\w+' after '\w+': alarm.*20,000 events read, [1-9][0-9]* of them in state alarm",
    "t_maze": r"after 100,000 steps: .* all correct",
    "certified_language_model": r"certified: .* every word of the grammar.*float64, float32.*certificate checks: True",
    "noisy_sensor": r"certified: .*proved: .*checks: True; correct on every sequence .* at most 0\.\d+ .*20,000 steps.*"
    r"no certified region.*machine: 100\.00%",
    "digits_sum": r"certified: .*compressed: certified: .*read right: 9[4-9].*proved: .*: 0 in 1,000,000 .*, 0 in 8 .*"
    r"NFSM (9[89]|100)",
}
ARGUMENTS = {"noisy_sensor": ["--steps", "20000"], "digits_sum": ["--length", "2000"]}
NEEDS = {"h11_and_its_tables": "h11"}
SLOW = {"digits_sum", "certified_language_model"}


def test_every_example_is_listed() -> None:
    listed = re.findall(r"\]\((\w+)\.py\)", (EXAMPLES / "README.md").read_text())
    assert sorted(listed) == sorted(SHOWS) == sorted(path.stem for path in EXAMPLES.glob("*.py"))


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name for name in sorted(SHOWS)]
)
def test_example_runs(name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip(NEEDS.get(name, "exactstate"), reason="the example is about this library")
    monkeypatch.setattr("sys.argv", [f"{name}.py", *ARGUMENTS.get(name, [])])
    runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    out, err = capsys.readouterr()
    assert err == ""
    assert re.search(SHOWS[name], out, re.DOTALL), out


def test_digits_sum_learns_from_the_last_label() -> None:
    """A short training: sequences of one image, whose label is the digit."""
    pytest.importorskip("sklearn")
    example = runpy.run_path(str(EXAMPLES / "digits_sum.py"))
    x, y, test_x, test_y = example["images"]()
    torch.manual_seed(0)
    model = example["Adder"]()
    example["train"](model, x, y, 150)
    assert example["accuracy_at"](model, test_x, test_y, 1, 200) > 0.8
    target = example["sum_machine"]()
    assert target.tables[7, 5] == 2
    # the parts that follow, with addition itself in place of the learned machine
    small = example["compressed"](model, SimpleNamespace(named=target), x, 150)
    machine, verdict = example["extracted"](small, x, y)
    assert verdict, verdict.explain()
    radii = largest_radii(machine)
    assert min(radii.values()) > 0
    assert random_changes(machine, radii, tries=10_000) == 0
    own = example["radius_of_images"](machine, test_x[:20], test_y[:20], "linear")
    tables = example["tables_of"](small, test_x[:20])
    wanted = machine.layers[0].tables[np.argsort(machine.layers[0].symbols)][test_y[:20].numpy()]
    assert ((own > 0) <= (tables == wanted).all(1)).all()
    assert (own > 0).mean() > 0.5
