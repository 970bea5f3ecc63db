"""The text experiment: a row for each length, and answers that are counted."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from exactstate import records
from paper.experiments import text
from paper.experiments.text_languages import LANGUAGES, Text
from paper.tables import answered


def test_text_row_has_the_answers_at_every_length(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "TEXTS", 40)
    monkeypatch.setattr(text, "EVALUATED", ((3, 64), (2, 100)))
    row = text.text_row("session", "gru", 1, 0.05)
    assert (row["kind"], row["split"], row["steps"] > 0) == ("protocols", "held out", True)
    for count, length in text.EVALUATED:
        asked = int(LANGUAGES["session"].sample(count, length, 1001).asked[:, 1:].sum())
        assert row[str(length)]["asked"] == asked
        assert 0 <= row[str(length)]["right"] <= asked


def test_evaluate_counts_the_answers_that_are_right() -> None:
    class Next(nn.Module):
        def forward(self, tokens: Tensor) -> Tensor:
            return nn.functional.one_hot((tokens + 1) % 5, 5).float() * 50

    tokens = torch.tensor([[0, 1, 2, 3], [0, 2, 3, 0]]).numpy()
    asked = torch.tensor([[False, True, True, False], [True, True, True, False]]).numpy()
    found = text.evaluate(Next(), Text(tokens, asked))  # type: ignore[arg-type]
    assert (found["right"], found["asked"]) == (3, 4)
    assert found["nats"] == pytest.approx(50 * 2 / 6, abs=1e-4)  # rows have four digits


def test_where_the_nfsm_is_behind_the_lstm_is_said_on_the_page() -> None:
    root = Path(__file__).parents[3]
    rows = list(records.read(root / "results" / "text.jsonl"))
    behind, level = set[str](), set[str]()
    for language in LANGUAGES:
        nfsm, lstm = ([row for row in rows if (row["language"], row["cell"]) == (language, cell)]
                      for cell in ("nfsm", "lstm"))  # fmt: skip
        if nfsm and lstm:
            shares = [(answered(nfsm, str(length)), answered(lstm, str(length))) for _, length in text.EVALUATED]
            (behind if any(ours < theirs for ours, theirs in shares) else level).add(language)
    page = (root / "docs" / "language-model.md").read_text(encoding="utf-8")
    said = [set(re.findall("`([a-z_]+)`", line)) for line in page.splitlines() if re.search("of three|all three", line)]
    assert said == [behind, level]
