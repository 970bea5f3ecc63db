"""From a drawing of a machine to a trained network, and from the network to a proof that it is that machine.

A turnstile lets one person through for every coin, and remembers up to two coins.

    python examples/from_dot_to_certificate.py
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import detent

TURNSTILE = Path(__file__).parent / "turnstile.dot"


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        run = detent.train(TURNSTILE, width=32, out=Path(folder) / "run")
        assert run.certified, run.verdict.explain()
        print(run.certificate().summary())

        # anybody can check it again: no torch, no network, no trust
        from detent.certify.check import check

        assert check(Path(folder) / "run" / "certificate.json")

        # a machine that differs in one arrow is told apart, with the shortest word that shows it
        bent = Path(folder) / "bent.dot"
        bent.write_text(TURNSTILE.read_text().replace("two    -> two ", "two    -> one "))
        print("\nthe same network beside a turnstile that forgets the second coin:")
        print(detent.certify(run.extracted, detent.task(bent).machine).explain())


if __name__ == "__main__":
    main()
