"""Next-token prediction on languages that need a state: which answers are right, at equal CPU time.

The languages are those of `text_languages.py`. A model is trained on texts of 64 tokens by `exactstate.text.fit`, with
the same settings for every language, and asked in texts that are 1, 16 and 256 times as long.
"""

from __future__ import annotations

import time

import torch
from torch.nn import functional as F

from exactstate import native
from exactstate.records import Row
from exactstate.text import TextModel, fit
from paper.experiments.text_languages import DEVELOPMENT, HELD_OUT, LANGUAGES, Text

TEXTS, LENGTH = 8000, 64
CELLS = ("nfsm", "lstm", "gru", "none")
EVALUATED = ((256, LENGTH), (32, 16 * LENGTH), (4, 256 * LENGTH))
"""(texts, length), drawn with another seed than those of training."""


def text_row(language: str, cell: str, seed: int, seconds: float) -> Row:
    """Train a cell on a language, on one thread; what it answers in short and long texts."""
    threads = native.set_threads(1)
    try:
        known = LANGUAGES[language]
        texts = known.sample(TEXTS, LENGTH, seed)
        torch.manual_seed(seed)
        model = TextModel(len(known.words), cell=cell)
        started = time.process_time()
        steps = fit(model, torch.from_numpy(texts.tokens), seconds, seed)
        split = "development" if language in DEVELOPMENT else "held out" if language in HELD_OUT else "open"
        row: Row = {
            "language": language, "kind": known.kind, "split": split, "cell": cell, "seed": seed,
            "budget_seconds": seconds, "cpu_seconds": round(time.process_time() - started, 2), "steps": steps,
            "parameters": sum(one.numel() for one in model.parameters()),
        }  # fmt: skip
        for count, length in EVALUATED:
            row[str(length)] = evaluate(model, known.sample(count, length, 1000 + seed))
        return row
    finally:
        native.set_threads(threads)


@torch.no_grad()
def evaluate(model: TextModel, text: Text) -> Row:
    """How many answers are right, of how many; nats per token, of all tokens but the first."""
    right = asked = 0
    nats = 0.0
    for tokens, answers in zip(torch.from_numpy(text.tokens), torch.from_numpy(text.asked), strict=True):
        logits, wanted = model.eval()(tokens[None, :-1])[0], tokens[1:]
        nats += float(F.cross_entropy(logits, wanted, reduction="sum"))
        right += int((logits.argmax(-1) == wanted)[answers[1:]].sum())
        asked += int(answers[1:].sum())
    return {"right": right, "asked": asked, "nats": round(nats / (len(text.tokens) * (text.tokens.shape[1] - 1)), 4)}
