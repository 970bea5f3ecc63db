"""`python -m tests.soundness --minutes 10`: random models are read, and every claim is compared with runs of the model.

`--mutant NAME` puts a mistake into a rule first; `--mutants` tries each for the same time. Ends with 1 if a claim is
false, or if a mutant was not found.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from collections.abc import Iterator

from tests.soundness.campaign import MUTANTS, NEEDED, Found, campaign, mutated


def seeds(first: int, minutes: float, found: Found, *, stop: bool) -> Iterator[int]:
    end = time.monotonic() + 60 * minutes
    for seed in itertools.count(first):
        if time.monotonic() > end or (stop and found.false):
            return
        yield seed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0, help="of the first model")
    parser.add_argument("--mutants", action="store_true")
    parser.add_argument("--mutant", choices=list(MUTANTS))
    options = parser.parse_args()
    missed = 0
    for name in list(MUTANTS) if options.mutants else [options.mutant]:
        found = Found()
        chosen = seeds(options.seed, options.minutes, found, stop=name is not None)
        if name is None:
            campaign(chosen, found)
            print(found, *found.false, sep="\n")
            for block, ratio in sorted(found.by_block.items(), key=lambda pair: -pair[1]):
                print(f"  {ratio:.3f}  {block}")
            for sentence, count in found.refused.most_common(12):
                print(f"  {count:5}  {sentence}")
            return int(bool(found.false))
        with mutated(name):
            campaign(chosen, found, NEEDED.get(name, ()))
        missed += not found.false
        print(f"{name}: {'found' if found.false else 'not found'} in {found.models} models", *found.false[:1], sep="\n")
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
