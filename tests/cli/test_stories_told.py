"""English in, answers out: `detent run` on the machine of a trained stack, against a dictionary."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest

MACHINE = Path(__file__).parents[2] / "results" / "machines" / "TSO3-42.json"
PEOPLE, ITEMS = ("alice", "bob", "charlie"), ("ring", "key", "coin")


def tell(sentences: int, seed: int, *, neat: bool) -> tuple[str, list[str]]:
    """(a text of so many sentences, the answers to its questions), kept in a dictionary as a child would."""
    chance, holder = random.Random(seed), dict[str, str]()
    lines, answers = [], []
    for _ in range(sentences):
        left = [item for item in ITEMS if item not in holder]
        empty = [one for one in PEOPLE if one not in holder.values()]
        kind = chance.random()
        if left and empty and (kind < 0.3 or not holder):
            item, one = chance.choice(left), chance.choice(empty)
            holder[item] = one
            lines.append(f"{one} has the {item} .")
        elif kind < 0.8:
            one, other = chance.sample(PEOPLE, 2)
            holder = {item: {one: other, other: one}.get(who, who) for item, who in holder.items()}
            lines.append(f"{one} swaps with {other} .")
        else:
            item = chance.choice(sorted(holder))
            lines.append(f"who has the {item} ?")
            answers.append(holder[item])
    if not neat:
        lines = [line.capitalize().replace(" .", ".").replace(" ?", "?") for line in lines]
    return "\n".join(lines) + "\n", answers


def answered(path: Path) -> tuple[int, list[str], str]:
    done = subprocess.run(
        [sys.executable, "-m", "detent", "run", str(MACHINE), str(path)], capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout.split(), done.stderr


@pytest.mark.parametrize("neat", [True, False])
def test_a_story_of_two_thousand_sentences(neat: bool, tmp_path: Path) -> None:
    text, answers = tell(2_000, 5, neat=neat)
    (tmp_path / "story.txt").write_text(text)
    assert len(answers) > 300
    assert answered(tmp_path / "story.txt") == (0, answers, "")


@pytest.mark.slow
def test_a_story_of_two_hundred_thousand_sentences(tmp_path: Path) -> None:
    text, answers = tell(200_000, 6, neat=True)
    (tmp_path / "story.txt").write_text(text)
    assert answered(tmp_path / "story.txt") == (0, answers, "")


def test_words_it_does_not_know_and_sentences_it_does_not_understand(tmp_path: Path) -> None:
    (tmp_path / "story.txt").write_text("alice has the key .\nwho has the key ?\nbob swops with alice .\n")
    code, said, error = answered(tmp_path / "story.txt")
    assert (code, said) == (2, ["alice"])
    assert "unknown symbol 'swops' on line 3, word 2. Did you mean 'swaps'?" in error
    (tmp_path / "story.txt").write_text("alice has the key .\nbob has the key .\n")
    code, said, _ = answered(tmp_path / "story.txt")
    assert (code, " ".join(said)) == (0, "(not understood)")
