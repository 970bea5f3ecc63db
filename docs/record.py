"""Record the first ten minutes: run the commands a new user would, and keep what they really print.

python docs/record.py            writes docs/first-ten-minutes.md
python docs/record.py --stdout   prints it instead
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from detent.records import stamp, write_atomically

HERE = Path(__file__).parent
MOST_LINES = 40
SESSION = (
    ("A minute that shows what this is about.", "detent demo"),
    ("What is here, and does it work?", "detent doctor"),
    ("What can be learned?", "detent tasks"),
    ("One of them at length.", "detent tasks S3"),
    ("Learn it. The proof comes with it.", "detent train S3"),
    ("What it left.", "ls runs/S3-42-default"),
    ("The proof once more, without torch.", "detent check runs/S3-42-default/certificate.json"),
    ("A million steps, 64 times.", "detent sweep runs/S3-42-default"),
    ("The machine, without the network.", "echo '(0 1) (1 2) (0 1)' | detent run runs/S3-42-default/machine.json"),
    (
        "The machine as a C program.",
        "detent extract runs/S3-42-default -o s3.c && cc -O2 s3.c -o s3 && echo '(0 1) (1 2)' | ./s3",
    ),
    ("Is it something else? No, and here is why.", "detent certify runs/S3-42-default --against S4"),
    ("A typing error.", "detent train S33"),
    ("All of it on one page.", "detent report runs/S3-42-default"),
)


def recorded() -> str:
    """The page."""
    about = stamp()
    machine = about["machine"]
    parts = [
        "# The first ten minutes, recorded", "",
        f"Made by `python docs/record.py` on {about['date'][:10]}, on {machine['cpu']}, {machine['cores']} cores. "
        "What stands below the dollar signs was printed by the commands; `...` stands for lines left out.",
    ]  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        for sentence, command in SESSION:
            parts += ["", f"## {sentence}", "", "```console", f"$ {command}", *_printed(command, folder), "```"]
    return "\n".join(parts) + "\n"


def _printed(command: str, folder: str) -> list[str]:
    """What the command prints, and its exit code where that is not 0."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    detent = f'detent() {{ "{sys.executable}" -m detent "$@"; }}\n'
    done = subprocess.run(
        ["bash", "-c", detent + command], cwd=folder, env=os.environ | {"PATH": path, "COLUMNS": "110"}, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    lines = [re.sub(r"^(.{150}).+$", r"\1 ...", line) for line in done.stdout.rstrip("\n").splitlines()]
    if len(lines) > MOST_LINES:
        lines = [*lines[: MOST_LINES - 5], "...", *lines[-4:]]
    return [*lines, *([f"(exit code {done.returncode})"] if done.returncode else [])]


if __name__ == "__main__":
    if _printed("detent --version", tempfile.gettempdir())[-1].startswith("(exit code"):
        sys.exit("record: detent does not run outside this folder; install it first.")
    page = recorded()
    if "--stdout" in sys.argv:
        print(page, end="")
    else:
        write_atomically(HERE / "first-ten-minutes.md", page)
