"""Record the first ten minutes: run the commands of a new user and write down what they print.

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

from exactstate.records import stamp, write_atomically

HERE = Path(__file__).parent
MOST_LINES = 40
SESSION = (
    ("A demo of a minute", "exactstate demo"),
    ("What works here, and how fast", "exactstate doctor"),
    ("The tasks", "exactstate tasks"),
    ("One task in detail", "exactstate tasks S3"),
    ("Train and certify", "exactstate train S3"),
    ("The run folder", "ls runs/S3-42-gradient"),
    ("Check the certificate without torch", "exactstate check runs/S3-42-gradient/certificate.json"),
    ("Sweep to a million steps", "exactstate sweep runs/S3-42-gradient"),
    (
        "Run the machine without the network",
        "echo '(0 1) (1 2) (0 1)' | exactstate run runs/S3-42-gradient/machine.json",
    ),
    (
        "Export the machine to C",
        "exactstate extract runs/S3-42-gradient -o s3.c && cc -O2 s3.c -o s3 && echo '(0 1) (1 2)' | ./s3",
    ),
    ("Compare it with another target", "exactstate certify runs/S3-42-gradient --against S4"),
    ("A typing error", "exactstate train S33"),
    ("Write the report again", "exactstate report runs/S3-42-gradient"),
)


def recorded() -> str:
    """The page."""
    about = stamp()
    machine = about["machine"]
    parts = [
        "# The first ten minutes, recorded", "",
        f"Made by `python docs/record.py` on {about['date'][:10]}, on {machine['cpu']}, {machine['cores']} cores. "
        "Lines below a dollar sign are the output of the command; `...` marks omitted lines.",
    ]  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        for title, command in SESSION:
            parts += ["", f"## {title}", "", "```console", f"$ {command}", *_printed(command, folder), "```"]
    return "\n".join(parts) + "\n"


def _printed(command: str, folder: str) -> list[str]:
    """The output of the command, and its exit code if that is not 0."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    exactstate = f'exactstate() {{ "{sys.executable}" -m exactstate "$@"; }}\n'
    done = subprocess.run(
        ["bash", "-c", exactstate + command], cwd=folder, env=os.environ | {"PATH": path, "COLUMNS": "110"}, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    lines = [re.sub(r"^(.{150}).+$", r"\1 ...", line) for line in done.stdout.rstrip("\n").splitlines()]
    if len(lines) > MOST_LINES:
        lines = [*lines[: MOST_LINES - 5], "...", *lines[-4:]]
    return [*lines, *([f"(exit code {done.returncode})"] if done.returncode else [])]


if __name__ == "__main__":
    if _printed("exactstate --version", tempfile.gettempdir())[-1].startswith("(exit code"):
        sys.exit("record: exactstate does not run outside this folder; install it first.")
    page = recorded()
    if "--stdout" in sys.argv:
        print(page, end="")
    else:
        write_atomically(HERE / "first-ten-minutes.md", page)
