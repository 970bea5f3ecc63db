"""`python -m detent.cli.demo`: the library at work, in a few seconds.

Takes the group S3, says what is true of it, finds the heads that keep track of it, draws it, runs it along a million
letters, and checks every state on the way against permutations composed one by one.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

from detent.automata import Facts
from detent.automata.diagram import draw
from detent.automata.running import Ints
from detent.cli.guard import guarded
from detent.cli.output import show
from detent.tasks import describe, task

FOLDER = Path("runs/demo")
WORDS, LENGTH, SEED = 16, 1 << 16, 42


def demo() -> int:
    s3 = task("S3")
    _step(f"S3: {s3.about}")
    for sentence in Facts.of(s3.machine).sentences():
        _line(sentence)

    _step("How many heads does a network need to keep track of it?")
    _line(describe(s3).factoring)

    _step("What does it look like?")
    FOLDER.mkdir(parents=True, exist_ok=True)
    for picture in (FOLDER / "s3.svg", FOLDER / "s3.png"):
        draw(s3.machine, picture, title="S3")
        _line(str(picture))

    _step(f"Is the machine right along {WORDS * LENGTH:,} letters?")
    begun = time.perf_counter()
    batch = s3.sample(WORDS, LENGTH, np.random.default_rng(SEED))
    _line(f"{WORDS} words drawn and run in {1000 * (time.perf_counter() - begun):.0f} ms")
    right = same_up_to_names(batch.states, composed(batch.inputs, [(1, 0, 2), (0, 2, 1)]))
    _line(f"every state {'is' if right else 'SHOULD BE, and is not,'} the composite of the letters read so far")

    _step("Where next?")
    _line("detent tasks                        all tasks, and the heads they need")
    _line("detent tasks YOUR_MACHINE.dot       the same for a machine of yours")
    _line("detent figure machine A5 -o a5.svg  draw another one")
    return 0 if right else 1


def composed(letters: Ints, images: list[tuple[int, ...]]) -> Ints:
    """What the permutations read so far make of 0, 1, 2, written as one number: B L. No machine is involved."""
    permutation = np.tile(np.arange(len(images[0])), (len(letters), 1))
    digits = len(images[0]) ** np.arange(len(images[0]))
    found = np.empty(letters.shape, np.int64)
    for t, column in enumerate(letters.T):
        permutation = np.array(images)[column[:, None], permutation]
        found[:, t] = permutation @ digits
    return found


def same_up_to_names(one: Ints, other: Ints) -> bool:
    """Whether two arrays tell the same entries apart."""
    pairs = {*zip(one.ravel().tolist(), other.ravel().tolist(), strict=True)}
    return len(pairs) == len(np.unique(one)) == len(np.unique(other))


def _step(title: str) -> None:
    from rich.text import Text

    show(Text(f"\n{title}", style="bold"))


def _line(sentence: str) -> None:
    print(f"  {sentence}")


if __name__ == "__main__":
    sys.exit(guarded(demo))
