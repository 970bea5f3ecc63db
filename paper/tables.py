"""Tables of the rows of one experiment each, the census, and the drift of a rotation."""

from __future__ import annotations

from collections.abc import Sequence

from exactstate.baselines.cells import CELLS
from exactstate.records import Row
from paper.lengths import Table

CENSUS_TITLE = "Scan-compatible affine recurrences, by the branch they lie on"
CENSUS_NOTES = (
    "rho = 1: the largest spectral radius that the parameters permit is one or more. No bounded region is invariant "
    "under perturbations (R2), so no automaton is tracked at every length.",
    "rho < 1: every spectral radius is below one. Old inputs are forgotten (R3), so only definite automata, whose "
    "state is a function of the last k symbols, are tracked at every length.",
    "rho measured: minimum and maximum spectral radius of 40 random matrices, half with gates as open as permitted.",
)


def census_table(rows: Sequence[Row]) -> Table:
    """A line for every architecture, without what is too wide: sources, recurrences and notes."""
    named = ("name", "transition", "spectrum", "branch")
    lines = []
    for row in rows:
        low, high = (format_radius(radius) for radius in row["rho"])
        lines.append((*(row[key] for key in named), low if low == high else f"{low} .. {high}"))
    header = ("architecture", "transition", "spectrum", "branch", "rho measured")
    return Table(title=CENSUS_TITLE, header=header, rows=lines, notes=CENSUS_NOTES)


def format_radius(radius: float) -> str:
    """Six digits; a radius below one is never printed as one."""
    return f"{radius:.6f}" if not 0.9999995 <= radius < 1 - 1e-9 else f"1 - {1 - radius:.1e}"


def drift_table(rows: Sequence[Row]) -> Table:
    """A line for every summary among the rows of the figure `drift`."""
    summaries = [row for row in rows if row.get("kind") == "summary"]
    lines = [
        (
            row["format"], f"{row['cosine']!r}", f"{row['sine']!r}", f"{row['angle_error']:+.3e}",
            f"{row['log_radius']:+.3e}", f"{row['first_wrong_step']:,}", row["by"],
        )
        for row in summaries
    ]  # fmt: skip
    order = summaries[0]["order"] if summaries else "n"
    return Table(
        title=f"The rotation by 2 pi / {order}, rounded once to each format and then iterated in fp64",
        header=("format", "cosine", "sine", "angle error per step", "log radius per step", "first wrong step", "by"),
        rows=lines,
        notes=(
            "iteration: found by iterating the rotation step by step.",
            "closed form: computed from the angle of the rounded weights, because iterating would take too long.",
        ),
    )


COUNTED = ("bf16", "fp16")


def counting_table(rows: Sequence[Row]) -> Table:
    """The first wrong step of a counter by modulus: rotations in floats, an integer that wraps, a table."""
    first: dict[tuple[str, ...], dict[int, str]] = {}
    for row in rows:
        if row["kind"] != "cycle" and row.get("word", "1 1 1") == "1 1 1":
            place = (row["format"], row["rounded"]) if row["kind"] == "rotation" else (row["format"],)
            first.setdefault(place, {})[row["modulus"]] = _first_wrong(row)
    columns = [*((format, place) for format in COUNTED for place in ("weights", "steps", "scan")),
               ("fp32", "weights"), ("fp64", "weights"), ("uint8",), ("table",)]  # fmt: skip
    moduli = sorted({row["modulus"] for row in rows if "modulus" in row})
    return Table(
        title="First wrong step of a counter under the word 1 1 1 ...",
        header=("modulus", *(", ".join(column) for column in columns)),
        rows=[(str(n), *(first[column][n] for column in columns)) for n in moduli],
        notes=(
            "weights: only the two weights are rounded; steps: every operation is, step by step; scan: the same in the "
            "tree of a parallel scan. never: weights or integers are exact, or the states repeat in a cycle that is "
            "read rightly.",
        ),
    )  # fmt: skip


def _first_wrong(row: Row) -> str:
    if (step := row["first_wrong"]) is not None:
        return f"{step:,}" if step < 10**9 else f"{step:.1e}".replace("e+", "e")
    computed = str(row.get("by", "")).removeprefix("right for ").removesuffix(" steps")
    return f"> {int(computed):,}" if computed.isdecimal() else "never"


def error_control_table(rows: Sequence[Row]) -> Table:
    """Runs that learned their task: where the spread of states predicts their failure, and where they fail."""
    longest = max(row["max_length"] for row in rows)

    def shown(length: int | None) -> str:
        return f"> {longest:,}" if length is None else f"{length:,}"

    ordered = sorted(rows, key=lambda row: (row["cell"] != "nfsm", row["task"], row["cell"], row["seed"]))
    lines = [
        (
            row["task"], CELLS[row["cell"]].title, str(row["seed"]), f"{row['threshold']:.2f}",
            *(f"{row['ratios'][length]:.3f}" if row["ratios"][length] else "0" for length in ("64", "256", "2048")),
            shown(row["predicted"]), shown(row["measured"]), shown(row["failing_length"]),
        )
        for row in ordered if row["threshold"] is not None
    ]  # fmt: skip
    return Table(
        title="Predicted and measured failure", rows=lines,
        header=("task", "cell", "seed", "readable", "ratio at 64", "at 256", "at 2,048", "predicted", "labels fail",
                "words fail"),
        notes=(
            "ratio: spread of states over their separation; readable: the ratio at which the read-out has 90% of the "
            "labels right. predicted: the length at which the ratio exceeds it; labels fail: fewer than 90% are right; "
            "words fail: fewer than 90% of the words are right throughout.",
        ),
    )  # fmt: skip


def comparison_table(rows: Sequence[Row]) -> Table:
    """The comparison of cells in the same plain model: mean share of right labels over seeds, at every length."""
    lengths = sorted({int(length) for row in rows for length in row["accuracy"]})
    lines = []
    for task in dict.fromkeys(row["task"] for row in rows):
        for cell in dict.fromkeys(row["cell"] for row in rows):
            mine = [row for row in rows if (row["task"], row["cell"]) == (task, cell)]
            if not mine:
                continue
            means = [sum(row["accuracy"][str(length)] for row in mine) / len(mine) for length in lengths]
            exact = sum(all(share == 1.0 for share in row["accuracy"].values()) for row in mine)
            seconds = [row["cpu_seconds"] for row in mine]
            lines.append(
                (task, cell, *(f"{mean:.3f}" for mean in means), f"{exact} of {len(mine)}",
                 f"{sorted(seconds)[len(seconds) // 2]:.0f}")
            )  # fmt: skip
    header = ("task", "cell", *(f"{length:,}" for length in lengths), "exact at all", "CPU seconds")
    return Table(title="Share of right labels among the last 64 of a word", header=header, rows=lines)


def supervision_table(rows: Sequence[Row]) -> Table:
    """Machines learned from weaker supervision: how many runs are certified, and the median of their steps."""
    kinds = list(dict.fromkeys(row["kind"] for row in rows))
    lines = []
    for task in dict.fromkeys(row["task"] for row in rows):
        cells = []
        for kind in kinds:
            mine = [row for row in rows if (row["task"], row["kind"]) == (task, kind)]
            steps = sorted(row["steps"] for row in mine if row["certified"])
            middle = f", {steps[len(steps) // 2]:,} steps" if steps else ""
            cells.append(f"{len(steps)} of {len(mine)}{middle}")
        lines.append((task, *cells))
    return Table(title="Certified runs by supervision", header=("machine", *kinds), rows=lines)


def protocols_table(rows: Sequence[Row]) -> Table:
    """Public protocol machines: whether a run from states and one from outputs is certified, and its CPU seconds."""
    lines = []
    for machine in sorted(dict.fromkeys(row["name"] for row in rows), key=str.lower):
        mine = [row for row in rows if row["name"] == machine]
        cells = []
        for kind in ("states", "outputs"):
            right = [row for row in mine if row["supervision"] == kind and row["certified"]]
            runs = [row for row in mine if row["supervision"] == kind]
            spent = ", ".join(f"{row['cpu_seconds']:.0f} s" for row in runs)
            cells.append(f"{'yes' if right else 'no'}, {spent}" if runs else "not run")
        sizes = (str(mine[0][name]) for name in ("states", "inputs", "outputs"))
        lines.append((machine, mine[0]["source"], *sizes, *cells))
    header = ("machine", "repository", "states", "inputs", "outputs", "from states", "from outputs")
    return Table(title="Public protocol machines, certified", header=header, rows=lines)


def paper_full_table(rows: Sequence[Row]) -> Table:
    """The paper's recipe without a limit of steps, run by run: certified at which step, or where it stands.

    Of runs that were paused, the row with the most steps counts. Another processor or newer kernels round otherwise,
    and a run of the same seed is then another one: a certified run does not hide one that was paused.
    """
    furthest: dict[tuple[str, int, int, str, bool], Row] = {}
    for row in sorted(rows, key=lambda row: row["steps"]):
        furthest[row["task"], row["seed"], -len(row["heads_given"]), _maker(row), row["certified"]] = row
    lines = []
    for _, row in sorted(furthest.items()):
        sizes = row["heads_given"]
        heads = f"{len(sizes)} of {sizes[0]}" if len(sizes) > 4 else ", ".join(map(str, sizes))
        stands = "certified" if row["certified"] else "stopped" if row["finished"] else "paused"
        lines.append(
            (row["task"], str(row["seed"]), heads, stands, f"{row['steps']:,}", f"{100 * row['best_accuracy']:.0f}%",
             f"{row['first_error']:.1f}", _maker(row))
        )  # fmt: skip
    header = ("task", "seed", "heads", "run", "steps", "words right at best", "first error", "processor")
    return Table(title="The paper's recipe, as far as it got", header=header, rows=lines)


def _maker(row: Row) -> str:
    """Who made the processor of a row."""
    return str(row["machine"]["cpu"]).replace("(R)", "").split()[0]


def story_learning_table(rows: Sequence[Row]) -> Table:
    """Tracking Shuffled Objects by gradient, run by run: what was learned, and the heads of the network; the form
    `cascade` first."""
    lines = []
    ordered = sorted(rows, key=lambda row: (
        row.get("form") != "cascade", row["supervision"] != "states", row["task"], row["seed"]
    ))  # fmt: skip
    for row in ordered:
        heads = " + ".join(str(len(layer)) for layer in row["heads"]) if row.get("heads") else "–"
        before = "–" if row.get("first_error") is None else f"{row['first_error']:,.0f}"
        right = f"{100 * row['stories_right']:.0f}%" if "stories_right" in row else "–"
        verdict = "certified" if row["certified"] else "learned" if row["learned"] else "not learned"
        lines.append(
            (row["task"], row.get("form", "wide"), row["supervision"], str(row["seed"]), verdict,
             f"{row.get('steps', 0):,}", right, before, heads, ", ".join(row.get("proved", ())) or "–",
             f"{row['cpu_seconds']:.0f}")
        )  # fmt: skip
    header = (
        "task", "form", "labels", "seed", "verdict", "steps", "stories right", "first error", "heads", "rounding",
        "CPU seconds",
    )  # fmt: skip
    return Table(title="Stories learned by gradient", header=header, rows=lines)


def text_table(rows: Sequence[Row]) -> Table:
    """Right answers of every language and cell at 1, 16 and 256 times the trained length; means over seeds."""
    cells = [cell for cell in ("nfsm", "lstm", "gru", "none") if any(row["cell"] == cell for row in rows)]
    lengths = [name for name in rows[0] if name.isdigit()] if rows else []
    lines = []
    for language, seconds in dict.fromkeys((row["language"], row["budget_seconds"]) for row in rows):
        mine = [row for row in rows if (row["language"], row["budget_seconds"]) == (language, seconds)]
        shares = []
        for cell in cells:
            found = [row for row in mine if row["cell"] == cell]
            parts = [answered(found, length) for length in lengths]
            shares.append(" ".join(f"{part:.3f}" for part in parts) if found else "–")
        seeds = len({row["seed"] for row in mine})
        lines.append((language, mine[0]["kind"], mine[0]["split"], f"{seconds:g}", *shares, str(seeds)))
    header = ("language", "kind", "split", "CPU seconds", *cells, "seeds")
    return Table(title="Right answers in texts, at equal CPU time", header=header, rows=lines)


def answered(rows: Sequence[Row], length: str) -> float:
    """The share of answers that are right in texts of this length."""
    return sum(row[length]["right"] for row in rows) / max(sum(row[length]["asked"] for row in rows), 1)


def protocol_libraries_table(rows: Sequence[Row]) -> Table:
    """Two versions of a library: sizes of their machines, what a noisy log gives, the shortest word between them."""
    lines = []
    for between in (row for row in rows if "compared" in row):
        mine = [row for row in rows if row["library"] == between["library"] and "states" in row]
        word, (first, second) = between["difference"], between.get("answers", ("", ""))
        cells = [", ".join(str(row[name]) for row in mine) for name in ("version", "states", "queries")]
        told = ", ".join("yes" if row["log_equal"] else "no" for row in mine)
        shown = "none" if word is None else f"`{' '.join(word)}`: `{first}` and `{second}`"
        lines.append((between["library"], cells[0], cells[1], str(mine[0]["inputs"]), cells[2], told, shown))
    header = ("library", "versions", "states", "inputs", "questions", "same from a noisy log", "shortest difference")
    return Table(title="Machines of protocol libraries", header=header, rows=lines)


MONITOR_METHODS = {
    "machine": "exactstate: extracted machine", "network": "the same network, before extraction", "gru": "GRU",
    "gru_dfa": "GRU compiled to a DFA", "merging": "exactstate monitor (state merging)",
    "last_three": "last three calls",
}  # fmt: skip


def monitors_table(rows: Sequence[Row]) -> Table:
    """Monitors of agents: means over seeds of average precision and recall, on clean and on far sessions; the best
    method of each data first."""
    lines = []
    for data in dict.fromkeys(row["data"] for row in rows):
        found = []
        for method, title in MONITOR_METHODS.items():
            mine = [row for row in rows if row["data"] == data and row.get("method") == method]
            right = [row for row in mine if row["auprc_clean"] is not None]
            if not mine:
                continue
            names = ("auprc_clean", "auprc_far", "recall_clean", "recall_far")
            means = [sum(row[name] for row in right) / len(right) if right else 0.0 for name in names]
            line = [data, title, *(f"{mean:.3f}" if right else "–" for mean in means), f"{len(right)} of {len(mine)}"]
            for name in ("train_seconds", "calls_per_second", "states"):
                values = sorted(row[name] for row in right if row.get(name) is not None)
                line.append(f"{values[len(values) // 2]:,.0f}" if values else "–")
            found.append((-means[0], tuple(line)))
        lines += [line for _, line in sorted(found, key=lambda one: one[0])]
    header = (
        "data", "monitor", "AUPRC", "AUPRC, far", "recall", "recall, far", "seeds", "CPU seconds", "calls a second",
        "states",
    )  # fmt: skip
    return Table(
        title="Monitors of agents", header=header, rows=lines,
        notes=("recall: at 1% false alarms. far: 10,000 idle calls at one place within each session.",),
    )  # fmt: skip


def policies_table(rows: Sequence[Row]) -> Table:
    """Policies asked of monitors, by the share of attacks among the sessions that they learned from; the first seed."""
    asked = [row for row in rows if "policy" in row]
    asked = [row for row in asked if row["seed"] == min(row["seed"] for row in asked)]
    shares = sorted({row["poisoned"] for row in asked})
    lines = []
    for data, text in dict.fromkeys((row["data"], row["policy"]) for row in asked):
        cells = []
        for share in shares:
            (row,) = (r for r in asked if (r["data"], r["policy"], r["poisoned"]) == (data, text, share))
            trace = row.get("trace")
            cells.append(row["verdict"] if trace is None else f"refuted: `{' '.join(trace)}`")
        lines.append((data, f"`{text}`", *cells))
    for data in dict.fromkeys(row["data"] for row in asked):
        for name, title in (("attacks_reported", "attacks reported"), ("good_reported", "good sessions reported")):
            found = {row["poisoned"]: row[name] for row in asked if row["data"] == data}
            lines.append((data, title, *(f"{found[share]:.1%}" for share in shares)))
    header = ("data", "policy", *(f"{share:.0%} poisoned" for share in shares))
    return Table(title="Policies on monitors", header=header, rows=lines)
