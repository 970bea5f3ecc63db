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

RATE, BATCH = 8e-3, 32


def fit(model: TextModel, tokens: Tensor, cpu_seconds: float, seed: int = 0) -> int:
    """Train on texts (T L) by the likelihood of the next token, in place; how many steps were taken.

    The time is that of this process, and includes everything.
    """
    if tokens.ndim != 2 or tokens.shape[1] < 2 or not len(tokens):
        raise InvalidInput(f"tokens are T L: texts of one length, of two tokens or more; got {tuple(tokens.shape)}.")
    if not 0 < cpu_seconds < float("inf"):
        raise InvalidConfig(f"cpu_seconds is positive and finite; got {cpu_seconds}.")
    return _next_tokens(model, tokens, cpu_seconds, np.random.default_rng(seed))


def _next_tokens(model: TextModel, tokens: Tensor, seconds: float, generator: np.random.Generator) -> int:
    """Adam on random batches; the rate falls in the second half of the time."""
    optimizer = torch.optim.AdamW(model.parameters(), RATE, weight_decay=0.0, fused=True)
    started, steps = time.process_time(), 0
    while (progress := (time.process_time() - started) / seconds) < 1.0:
        for group in optimizer.param_groups:
            group["lr"] = RATE * min(1.0, 2.0 * (1.0 - progress) + 0.02)
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
