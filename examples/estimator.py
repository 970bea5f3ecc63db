"""A classifier of sequences with scikit-learn's interface, from one label at the end of each.

Trained on words of up to 8 bits that are labeled with their number of ones modulo three; right on words of 1,000.
"""

from __future__ import annotations

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassifierMixin
from torch import nn
from torch.nn.utils.rnn import pad_sequence

import exactstate


class SequenceClassifier(ClassifierMixin, BaseEstimator):
    def __init__(self, symbols: int, width: int = 32, steps: int = 400, seed: int = 0) -> None:
        self.symbols, self.width, self.steps, self.seed = symbols, width, steps, seed

    def fit(self, words: list[list[int]], labels: list[int]) -> SequenceClassifier:
        torch.manual_seed(self.seed)
        self.classes_, targets = np.unique(labels, return_inverse=True)
        self.embedding_, self.memory_ = nn.Embedding(self.symbols, self.width), exactstate.NFSM(self.width)
        self.readout_ = nn.Linear(self.width, len(self.classes_))
        model = nn.ModuleList([self.embedding_, self.memory_, self.readout_])
        optimizer = torch.optim.AdamW(model.parameters(), 3e-3)
        for _ in range(self.steps):
            batch = torch.randint(len(words), (64,))
            loss = nn.functional.cross_entropy(self._logits([words[i] for i in batch]), torch.tensor(targets[batch]))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return self

    def predict_proba(self, words: list[list[int]]) -> np.ndarray:
        with torch.no_grad():
            return self._logits(words).softmax(-1).numpy()

    def predict(self, words: list[list[int]]) -> np.ndarray:
        return self.classes_[self.predict_proba(words).argmax(-1)]

    def _logits(self, words: list[list[int]]) -> torch.Tensor:
        padded = pad_sequence([torch.tensor(word) for word in words], batch_first=True)
        y, _ = self.memory_(self.embedding_(padded), lengths=[len(word) for word in words])
        return self.readout_(y[:, -1])  # the steps behind a word hold its state


def sample(count: int, longest: int, seed: int) -> tuple[list[list[int]], list[int]]:
    draw = np.random.default_rng(seed)
    words = [draw.integers(0, 2, draw.integers(1, longest + 1)).tolist() for _ in range(count)]
    return words, [sum(word) % 3 for word in words]


def main() -> float:
    """The share of long words that are classified right."""
    classifier = SequenceClassifier(symbols=2).fit(*sample(2000, longest=8, seed=0))
    share = float(classifier.score(*sample(100, longest=1000, seed=1)))
    print(f"words of up to 1,000 bits: {share:.0%} right")
    return share


if __name__ == "__main__":
    main()
