"""From a DOT file to a trained network, and from the network to a proof that it is the machine in the file.

A turnstile lets one person through for every coin, and remembers up to two coins.

    python examples/from_dot_to_certificate.py
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import exactstate

TURNSTILE = Path(__file__).parent / "turnstile.dot"


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        run = exactstate.train(TURNSTILE, width=32, out=Path(folder) / "run")
        assert run.certified, run.verdict.explain()
        print(run.certificate().summary())

        # anyone can check the certificate without torch and without the network
        from exactstate.certify.check import check

        assert check(Path(folder) / "run" / "certificate.json")

        # a machine that differs in one transition: the verdict has the shortest word that distinguishes them
        changed = Path(folder) / "changed.dot"
        changed.write_text(TURNSTILE.read_text().replace("two    -> two ", "two    -> one "))
        print("\nthe same network compared with a turnstile that forgets the second coin:")
        print(exactstate.certify(run.extracted, exactstate.task(changed).machine).explain())


if __name__ == "__main__":
    main()
