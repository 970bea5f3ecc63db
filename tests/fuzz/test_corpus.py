"""Every input of the corpus, the findings of earlier fuzzing among them, is read or refused with a sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz.targets import TARGETS

CORPUS = Path(__file__).parent / "corpus"
INPUTS = [(path.parent.name, path) for path in sorted(CORPUS.glob("*/*"))]


@pytest.mark.parametrize(("target", "path"), INPUTS, ids=lambda one: one.name if isinstance(one, Path) else one)
def test_target_of_the_corpus(target: str, path: Path) -> None:
    TARGETS[target](path.read_bytes())


def test_corpus_has_inputs_for_every_target() -> None:
    assert {target for target, _ in INPUTS} == set(TARGETS)


def test_targets_bark(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader that raises anything else than its own errors, or a round trip that changes a machine, is a finding."""
    import tests.fuzz.targets as targets

    good = next(path for target, path in INPUTS if target == "dot").read_bytes()
    monkeypatch.setattr(targets, "parse_dot", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        targets.dot(good)
