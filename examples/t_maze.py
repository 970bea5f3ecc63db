"""A T-maze: a cue at the entrance, then a corridor, then a turn to the side of the cue. How long may the corridor be?

The network is trained on corridors of at most 64 steps and tested on one of 100,000. Its state is an index, so nothing
fades.

    python examples/t_maze.py
"""

from __future__ import annotations

import numpy as np
import torch

import exactstate

WALK, LEFT, RIGHT = 0, 1, 2
LENGTH = 100_000


def maze() -> exactstate.Moore:
    """Remember the last cue."""
    tables = [[0, 1, 2], [1, 1, 1], [2, 2, 2]]
    places = ("no cue yet", "turn left", "turn right")
    return exactstate.Moore(
        symbols=("walk", "left", "right"), tables=tables, states=places, outputs=places, readout=range(3)
    )


def corridors(count: int, generator: np.random.Generator) -> torch.Tensor:
    """A cue, then only `walk`."""
    steps = np.full((count, LENGTH), WALK)
    steps[:, 0] = generator.integers(LEFT, RIGHT + 1, count)
    return torch.from_numpy(steps)


def main() -> None:
    run = exactstate.train(maze(), width=32)
    print(f"trained in {run.steps} steps; {run.verdict.explain()}")

    steps = corridors(4, np.random.default_rng(0))
    state = None
    with torch.no_grad():
        for piece in steps.split(10_000, dim=1):  # the state continues from piece to piece, bit for bit
            logits, state = run.model(piece, state)
    turns = logits[:, -1].argmax(-1)
    assert torch.equal(turns, steps[:, 0]), "the cue was forgotten"
    print(f"after {LENGTH:,} steps: {[run.task.machine.states[k] for k in turns.tolist()]}, all correct")


if __name__ == "__main__":
    main()
