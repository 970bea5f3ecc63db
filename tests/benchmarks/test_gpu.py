"""The roofline of a GPU: its sums by hand, and that it is called a prediction."""

from __future__ import annotations

from benchmarks import gpu
from benchmarks._roofline import CARDS, Card, Work, predicted_seconds, training_step
from benchmarks.harness import Report


def test_predicted_seconds_is_the_larger_of_arithmetic_and_traffic() -> None:
    card = Card("a card", flops=2e12, bandwidth=1e11)
    assert predicted_seconds([Work("slow", 1e12, 1e10), Work("wide", 1e9, 1e11)], card) == 2.0


def test_training_step_counts_products_of_logits() -> None:
    ordered, fused = (training_step(2, 8, 4, 3, 5, ordered=way, noise=False)[0] for way in (True, False))
    assert ordered.kernel == "tables"
    assert ordered.instructions == 2 * fused.instructions == 16 * (3 * 5 * 8) * 4 * 2  # columns of 5 are padded to 8


def test_predict_says_that_it_is_a_prediction() -> None:
    report = Report(title="")
    gpu.predict(report)
    *notes, paper = report.notes
    assert len(notes) == 2 * (6 + 1 + 8 + 1)
    assert all(note.startswith("prediction, ") and card.name in note for note in notes for card in CARDS)
    assert "no numbers to compare with" in paper
    assert report.timings == []
