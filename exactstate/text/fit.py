"""Train a `TextModel` on texts for so many CPU seconds, the same way for every language.

B  batch     T  texts     L  their length
"""

from __future__ import annotations

import time

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from exactstate.errors import InvalidConfig, InvalidInput
from exactstate.text.model import TextModel
from exactstate.text.teacher import Reader, Teacher

RATE, BATCH = 8e-3, 32
TEACHER, READING = 0.7, 0.15
"""Shares of the time of an NFSM in which a teacher is trained, and its machines are read."""


def fit(model: TextModel, tokens: Tensor, cpu_seconds: float, seed: int = 0) -> int:
    """Train on texts (T L) by the likelihood of the next token, in place; how many steps were taken.

    The time is that of this process, and includes everything.
    """
    if tokens.ndim != 2 or tokens.shape[1] < 2 or not len(tokens):
        raise InvalidInput(f"tokens are T L: texts of one length, of two tokens or more; got {tuple(tokens.shape)}.")
    if not 0 < cpu_seconds < float("inf"):
        raise InvalidConfig(f"cpu_seconds is positive and finite; got {cpu_seconds}.")
    started, generator = time.process_time(), np.random.default_rng(seed)
    if model.cell != "nfsm":
        return _next_tokens(model, tokens, started, cpu_seconds, generator)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        teacher = TextModel(model.vocabulary, model.width, "lstm")
        steps = _next_tokens(teacher, tokens, started, TEACHER * cpu_seconds, generator)
        reader = Reader(Teacher(teacher), tokens)
        machines = reader.machines(READING * cpu_seconds)
        model.hold(reader.commands or [(token,) for token in range(model.vocabulary)], machines)
    _read_out(model, tokens, cpu_seconds + started - time.process_time(), generator)
    return steps


def _next_tokens(
    model: TextModel, tokens: Tensor, started: float, seconds: float, generator: np.random.Generator
) -> int:  # fmt: skip
    """Adam on random batches, at least one; the rate falls in the second half of the time."""
    optimizer = torch.optim.AdamW(model.parameters(), RATE, weight_decay=0.0, fused=True)
    steps = 0
    while (progress := (time.process_time() - started) / seconds) < 1.0 or not steps:
        for group in optimizer.param_groups:
            group["lr"] = RATE * min(1.0, 2.0 * max(1.0 - progress, 0.0) + 0.02)
        batch = tokens[torch.from_numpy(generator.integers(0, len(tokens), BATCH))]
        logits = model.train()(batch[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        steps += 1
    model.eval()
    return steps


def _read_out(model: TextModel, tokens: Tensor, seconds: float, generator: np.random.Generator) -> None:
    """The same for what reads the states of machines, which are known at every token."""
    started = time.process_time()
    texts = tokens[:2000]
    indices, after = model.memory.indices(texts)[:, :-1].flatten(0, 1), texts[:, 1:].flatten()
    trained = [one for one in model.parameters() if one.requires_grad]
    optimizer = torch.optim.AdamW(trained, RATE / 2, weight_decay=0.0, fused=True)
    while (progress := (time.process_time() - started) / max(seconds, 1e-9)) < 1.0:
        for group in optimizer.param_groups:
            group["lr"] = RATE / 2 * min(1.0, 2.0 * (1.0 - progress) + 0.02)
        chosen = torch.from_numpy(generator.integers(0, len(after), 1024))
        loss = F.cross_entropy(model.train().predict(model.memory.read(indices[chosen])), after[chosen])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
    model.eval()
