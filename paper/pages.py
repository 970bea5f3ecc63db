"""The tables and figures of the documentation, written from the rows: `python -m paper pages`.

A page has a table below a comment that names it, `<!-- python -m paper table summary -->`. The lines of the table are
replaced by those that the command prints, with a line break for a dot between two values of a cell; everything else on
the page stays.
"""

from __future__ import annotations

import re
from pathlib import Path

from exactstate import records
from exactstate.errors import BrokenFile, unknown
from paper.lengths import Table

ROOT = Path(__file__).parents[1]
TABLES = {
    "summary": ("One line for every task: what was measured here beside what is published.", "results"),
    "seeds": ("One line for every task: the failing length of every seed.", "results"),
    "behind": ("Where fewer seeds are run or learned here than in the paper.", "results"),
    "profile": ("The settings of a baseline here and in the paper.", "results"),
    "results": ("Failing length of every seed by every recipe, and the published one.", "results"),
    "comparison": ("NFSM, GRU, LSTM and Mamba⁻ in the same plain model at equal CPU time.", "results/comparison.jsonl"),
    "supervision": (
        "Machines learned from the last label, from outputs, from wrong labels and from clouds of vectors.",
        "results/supervision.jsonl",
    ),
    "paper_full": (
        "The paper's recipe without a limit of steps: certified at which step, or where it stands.",
        "results/paper_full.jsonl",
    ),
    "story_learning": ("Tracking Shuffled Objects, learned by gradient.", "results/story_learning.jsonl"),
    "text": ("Right answers in texts that need a state, at equal CPU time.", "results/text.jsonl"),
    "error_control": (
        "Where the spread of its states predicts that a run fails, and where it fails.", "results/error_control.jsonl",
    ),
    "counting": (
        "First wrong step of counters modulo 2 to 16, in floats, integers and by a table.", "results/counting.jsonl",
    ),
    "drift": ("First wrong step of a rotation that was rounded once, by number format.", "results/drift.jsonl"),
    "protocols": (
        "Public protocol machines, learned from their states and from their outputs.", "results/protocols.jsonl",
    ),
    "protocol_libraries": (
        "Machines of h11, wsproto and aiosmtpd, two versions each.", "results/protocol_libraries.jsonl",
    ),
    "monitors": ("Monitors of agents on tau2-bench and AgentDojo.", "results/monitors.jsonl"),
    "policies": ("Policies proved and refuted on monitors of agents.", "results/monitors.jsonl"),
}  # fmt: skip
"""By name: what the table shows, and where its rows are. A folder goes to the function of that name in
`paper.summary` or `paper.failing_lengths`, the rows of a file to NAME_table in `paper.tables`."""
PAGES = (
    "docs/results.md", "docs/agents.md", "docs/language-model.md", "docs/failing-lengths.md",
    "docs/theory/error-control.md", "docs/theory/counting.md", "paper/trials.md",
)  # fmt: skip
MARKED = re.compile(r"(?<=<!-- python -m paper table )(\w+) -->\n+(?:\|.*\n)*\n*")


def make_table(name: str, rows: Path) -> tuple[Table, list[records.Row]]:
    """(a table of `TABLES`, what it was made of) from a folder or a file of rows."""
    from paper import failing_lengths, summary, tables

    if TABLES[name][1] == "results":
        module = summary if hasattr(summary, name) else failing_lengths
        whole: tuple[Table, list[records.Row]] = getattr(module, name)(rows)
        return whole
    found = list(records.read(rows))
    return getattr(tables, f"{name}_table")(found), found


def with_tables(text: str, root: Path = ROOT) -> str:
    """The text of a page, its marked tables made of the rows below `root`."""

    def lines(mark: re.Match[str]) -> str:
        name = mark[1]
        if name not in TABLES:
            raise unknown("table", name, TABLES)
        made = make_table(name, root / TABLES[name][1])[0].markdown()
        table = "\n".join(line for line in made.splitlines() if line.startswith("|")).replace(" · ", "<br>")
        return f"{name} -->\n\n{table}\n\n"

    return MARKED.sub(lines, text).rstrip() + "\n"


def write_pages(root: Path = ROOT) -> list[str]:
    """Write the tables of all pages and draw the figures; the names of the files that changed."""
    from paper.overview import draw_figures

    pictures = root / "docs" / "figures"
    before = {path.name: path.read_bytes() for path in pictures.glob("*.svg")}
    draw_figures(pictures, root / "results")
    changed = [
        f"docs/figures/{path.name}" for path in sorted(pictures.glob("*.svg"))
        if path.read_bytes() != before.get(path.name)
    ]  # fmt: skip
    for name in PAGES:
        path = root / name
        if not path.is_file():
            raise BrokenFile(path, "this page is missing; run this command from a checkout.")
        text = path.read_text(encoding="utf-8")
        if (new := with_tables(text, root)) != text:
            records.write_atomically(path, new)
            changed.append(name)
    return changed
