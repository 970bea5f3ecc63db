"""What the sections of a report say, one function each; None where the run has nothing to show. page.html shows it."""

from __future__ import annotations

import contextlib
import shlex
from typing import Any, NamedTuple

import numpy as np

from exactstate.automata import Mealy, Moore
from exactstate.automata.draw.save import rendered
from exactstate.errors import InvalidConfig
from exactstate.records import Row
from exactstate.report.data import RunData
from exactstate.report.figures import length_sweep
from exactstate.report.figures import search as search_figure
from exactstate.report.figures import training as training_figure
from exactstate.report.figures.machine import renumbered
from exactstate.report.head_tables import head_tables, machine_tables, step_table
from exactstate.report.html import Html, drawing
from exactstate.report.sentences import claim, enumeration, failure, head_sizes, sentences

MAX_NAMES, MAX_LETTERS = 12, 160
"""States or symbols listed by name, and letters in them, before the rest is counted."""
MAX_STATES, MAX_DRAWING_BYTES = 32, 400_000
"""Of a machine that is drawn."""
MIN_WORD, MIN_STORY, MAX_WORD = 6, 25, 64
"""Lengths of the word that is read step by step; a question needs some sentences before it."""
SAMPLED_WORDS = 16
"""Words that it is chosen from."""
SPELLED = 8
"""Symbols of a word that is written as a Python list; a longer one is written as text."""
EXTRACTED, TARGET = "Extracted from the network", "Target"


class Verdict(NamedTuple):
    title: str
    text: str
    good: bool = False


def verdict(run: RunData) -> Verdict:
    """The result in one sentence."""
    if run.valid_certificate is not None:
        missing = "" if run.folder.finished else " The weights that the certificate names are not in this folder."
        return Verdict("Certified:", claim(run.valid_certificate) + missing, good=True)
    if run.check is not None:
        return Verdict("The certificate is not valid.", " ".join(run.check.findings))
    if run.machine is None:
        return Verdict("Nothing is proved:", _without_tables(run))
    return Verdict("No certificate.", failure(run.verdict()))


def _without_tables(run: RunData) -> str:
    """What is known of a baseline."""
    text = f"{run.cell} has no transition tables to extract, so it can only be tested on samples."
    accuracy = next((row["accuracy"] for row in reversed(run.history) if "accuracy" in row), None)
    if accuracy is None:
        return text
    length = run.config.get("end_to_end", {}).get("length")
    where = "" if length is None else f" at the training length, {length}"
    return f"{text} It was correct on {accuracy:.0%} of fresh words{where}."


def configuration(run: RunData) -> dict[str, str | Names]:
    """What was trained, and how, as names and values."""
    rows: dict[str, str | Names] = {}
    if run.task is not None and run.task.about:
        rows["task"] = f"{run.name}: {run.task.about}"
    if (target := run.target) is not None:
        rows["states"] = _names(target.states)
        rows["symbols"] = _names(target.symbols)
    rows["network"] = _network(run)
    recipe = run.config.get("recipe")
    rows |= {name: str(value) for name, value in {"recipe": recipe, "seed": run.config.get("seed")}.items()
             if value is not None}  # fmt: skip
    if run.history:
        restarts = run.history[-1].get("attempt", 0)
        rows["training"] = f"{_total_steps(run.history):,} steps" + (
            f", {restarts} {'restart' if restarts == 1 else 'restarts'}" if restarts else ""
        )
    if run.valid_certificate is not None:
        rows["weights"] = f"SHA-256 {run.valid_certificate['weights']}"
        made = run.valid_certificate["made"]
        rows["certified with"] = enumeration([f"{name} {version}" for name, version in made.items()])
    return rows


class Names(NamedTuple):
    """How many names there are, and the first of them."""

    total: str
    shown: list[str]
    more: str


def _names(names: tuple[str, ...]) -> Names:
    shown = list(names[:MAX_NAMES])
    while len(shown) > 1 and sum(map(len, shown)) > MAX_LETTERS:
        shown.pop()
    return Names(f"{len(names):,}", shown, "..." if len(names) > len(shown) else "")


def _network(run: RunData) -> str:
    """The cell and its size."""
    config, parts = run.config, [run.cell]
    if run.valid_certificate is not None:
        parts.append(f"heads of {head_sizes(run.valid_certificate)} indices")
    sizes: tuple[str, ...] = ("width",)
    if config.get("cell", "nfsm") != "nfsm":
        parts.append(f"{config['layers']} {'layer' if config['layers'] == 1 else 'layers'}")
        sizes = ("width", "channels", "states")
    parts += [f"{name} {config[name]}" for name in sizes if config.get(name) is not None]
    return ", ".join(parts)


def _total_steps(history: list[dict[str, Any]]) -> int:
    """Steps of all phases of all attempts."""
    last: dict[tuple[Any, Any], int] = {}
    for row in history:
        last[row.get("attempt"), row.get("phase")] = int(row.get("step", 0))
    return sum(last.values())


PHASES = {
    "wide": "end to end by gradient, with many heads; the loss includes that of the probes, if there are any",
    "search": "every head alone, by gradient, from words and labels: the least loss of a head",
    "cascade": "heads of two layers by gradient, from answers alone",
    "realize": "transition tables (counted in labeled sequences, given or learned) are put into the network",
    "end_to_end": "end to end, from words and labels alone",
}


def training(run: RunData) -> dict[str, Any]:
    """Loss, margins and accuracy where they were measured, and what the phases are."""
    figure = training_figure.paint(run.history) if run.history else None
    named = dict.fromkeys(str(row.get("phase")) for row in run.history)
    return {
        "text": None if run.history else "The run has no history.",
        "picture": figure and drawing(rendered(figure, ".svg"), "Loss, margins and accuracy over the steps"),
        "phases": [(name, PHASES[name.split("-")[0]]) for name in named if name.split("-")[0] in PHASES],
    }


def search(run: RunData) -> dict[str, Any] | None:
    """Heads as they were kept, one after the other; None for a run that did not learn in this way."""
    read = search_figure.readings(run.history)
    if not read:
        return None
    rows = [(f"{one.step:,}", (str(one.layer), enumeration([*map(str, one.new)]), _nats(one)))
            for one in read if one.new]  # fmt: skip
    if read[-1].open and not read[-1].new:
        rows.append((f"{read[-1].step:,}", (str(read[-1].layer), "none", _nats(read[-1]))))
    picture = drawing(rendered(search_figure.paint(read), ".svg"), "Kept heads by layer, and open nats over the steps")
    return {"picture": picture, "rows": rows, "deep": read[-1].layer > 0}


def _nats(reading: search_figure.Reading) -> str:
    return "" if reading.open is None else f"{reading.open:.2f}"


STAGES = {
    "learned": "by gradient, with many more heads than needed",
    "kept": "the heads that follow the state exactly; this is the network of the certificate",
    "pruned": "heads and indices removed, margins widened; this is the network of the certificate",
    "compressed": "the extracted machine, minimized, factored and distilled into the heads it needs",
}


def stages(run: RunData) -> dict[str, Any] | None:
    """What each stage of the recipe `gradient` left: heads, parameters, configurations and margins."""
    rows = [row for row in run.history if row.get("phase") == "stage" and row.get("stage") in STAGES]
    if not rows:
        return None
    body = []
    for row in rows:
        margins = [row[name] for name in ("column_margin", "label_margin") if name in row]
        cells = (
            " ".join(map(str, row["heads"])), f"{row['parameters']:,}",
            f"{row['configurations']:,}" if "configurations" in row else "",
            f"{min(margins):.3g}" if margins else "", f"{row['seconds']:.1f} s",
        )  # fmt: skip
        body.append((row["stage"], cells))
    compressed = None
    if (proof := run.compressed_check) is not None:
        compressed = "has a valid certificate of its own" if proof else "has a certificate that is not valid"
    return {
        "name": ", ".join(name for name, _ in body).capitalize(),
        "titles": ("", "heads", "parameters", "configurations", "smallest margin", "after"), "rows": body,
        "meanings": [f"{name}: {STAGES[name]}" for name, _ in body], "compressed": compressed,
    }  # fmt: skip


class Picture(NamedTuple):
    caption: str
    svg: bytes | None
    """A state diagram; None where it would be too large to read."""

    @property
    def drawing(self) -> Html | None:
        return None if self.svg is None else drawing(self.svg, f"State diagram. {self.caption}")


def machines(run: RunData) -> dict[str, Any] | None:
    """The extracted machine beside its target."""
    if run.machine is None:
        return None
    target, extracted, text = run.target, run.machine.automaton, ""
    if target is not None and set(target.symbols) == set(extracted.symbols):
        extracted = renumbered(extracted, target)
    pictures = [_picture(extracted, EXTRACTED)]
    same = extracted == target
    if target is not None:
        svg = pictures[0].svg
        pictures.append(Picture(_caption(target, TARGET), svg) if same else _picture(target, TARGET))
    if same:
        text = "The machine was extracted from the weights without access to the target. It has the same transitions."
    elif reads := run.machine.about.get("reads"):
        text = f"The extracted machine reads {reads}, which is more than the grammar of the task."
    return {"text": text, "pictures": pictures}


def _caption(machine: Moore | Mealy, title: str) -> str:
    return f"{title}: {machine.n_states:,} states, {machine.n_symbols:,} symbols"


def _picture(machine: Moore | Mealy, title: str) -> Picture:
    from exactstate.automata.draw import svg
    from exactstate.automata.draw.scene import fits

    picture = svg(machine) if machine.n_states <= MAX_STATES and fits(machine) else b""
    return Picture(_caption(machine, title), picture if 0 < len(picture) <= MAX_DRAWING_BYTES else None)


def heads(run: RunData) -> dict[str, Any] | None:
    if run.valid_certificate is not None:
        return head_tables(run.valid_certificate)
    if run.machine is not None and run.machine.heads is not None:
        return machine_tables(run.machine)
    return None


def step_by_step(run: RunData) -> dict[str, Any] | None:
    """The indices of all heads along a word, and the outputs."""
    if run.valid_certificate is None or run.machine is None or (word := example_word(run)) is None:
        return None
    try:
        return step_table(run.valid_certificate, word, run.machine.outputs(word))
    except LookupError:  # the certificate is of another task than the rest of the folder
        return None


def example_word(run: RunData) -> list[str] | None:
    """A short word of the task that visits many states; None where the task is unknown."""
    if run.machine is None or run.task is None:
        return None
    if set(run.task.machine.symbols) <= set(run.machine.symbols):
        for length in range(MIN_STORY if run.task.question else MIN_WORD, MAX_WORD):
            with contextlib.suppress(InvalidConfig):  # the sampler has no word of this length
                batch = run.task.sample(SAMPLED_WORDS, length, np.random.default_rng(0))
                best = max(range(SAMPLED_WORDS), key=lambda k: len(np.unique(batch.states[k])))
                return [run.task.machine.symbols[a] for a in batch.inputs[best].tolist()]
    return None


def certificate(run: RunData) -> dict[str, Any] | None:
    """The proof in sentences, and the output of `exactstate check`."""
    if (content := run.valid_certificate) is None:
        return None
    from exactstate.certify.check import summary

    assumptions = sorted({sentence for one in content["rounding"].values() for sentence in one["assumes"]})
    return {"sentences": sentences(content), "summary": "\n".join(summary(content)), "assumptions": assumptions}


def sweep(run: RunData) -> dict[str, Any] | None:
    """Accuracy by length as `exactstate figure sweep` draws it, with a sentence for every cell and the numbers."""
    if not run.sweeps:
        return None
    latest = {str(row.get("cell", "nfsm")): row for row in run.sweeps}
    of_words = all(row.get("measure", "words") == "words" for row in latest.values())
    title = "Accuracy: words with all labels correct" if of_words else "Accuracy: words with the correct answer"
    defaults = {"task": "", "seed": 0, "failing_length": None}
    shown = [
        {**defaults, "cell": cell, "max_length": max(map(int, row["accuracies"])), **row}
        for cell, row in latest.items()
    ]
    shares = [{int(length): f"{share:.3f}" for length, share in row["accuracies"].items()} for row in latest.values()]
    lengths = sorted({length for of_cell in shares for length in of_cell})
    return {
        "sentences": [_sweep_sentence(cell, row) for cell, row in latest.items()], "title": title,
        "picture": drawing(rendered(length_sweep.paint(shown), ".svg"), title), "titles": ("length", *latest),
        "rows": [(f"{length:,}", [of_cell.get(length, "–") for of_cell in shares]) for length in lengths],
    }  # fmt: skip


def _sweep_sentence(cell: str, row: Row) -> str:
    if row.get("failing_length") is None:
        longest = row.get("max_length", max(map(int, row["accuracies"])))
        return f"{cell}: no failure up to length {longest:,} ({row.get('batch', '?')} words each)."
    correct = "all labels correct" if row.get("measure", "words") == "words" else "the correct answer"
    few = f"fewer than {row['threshold']:.0%} of the words"
    return f"{cell}: fails at length {row['failing_length']:,}; {few} have {correct}."


def usage(run: RunData) -> list[str] | None:
    """Code that loads and runs the machine, with a word and its outputs."""
    if run.machine is None:
        return None
    machine, path = run.machine, run.folder.machine_path
    word = example_word(run) or list(machine.symbols[:4])
    outputs = machine.outputs(word)
    if len(word) <= SPELLED or any(len(symbol.split()) != 1 for symbol in word):
        call = f"print(machine.outputs({word!r}))\n# {outputs!r}"
    else:
        call = f"word = {' '.join(word)!r}\nprint(machine.outputs(word.split())[-1])\n# {outputs[-1]}"
    python = (
        f"import exactstate.runtime\n\nmachine = exactstate.runtime.load({str(path)!r})\n{call}\n\n"
        "stream = machine.stream()    # symbol by symbol, without a limit\n"
        'machine.export("machine.c")  # or .js, .onnx: a program without dependencies'
    )
    shell = [f"{shlex.join(['echo', ' '.join(word)])} | exactstate run {shlex.quote(str(path))}"]
    if run.certificate is not None:
        certificate, folder = (shlex.quote(str(path)) for path in (run.folder.certificate_path, run.folder.path))
        shell.append(f"exactstate check {certificate} --weights {folder}")
    return [python, "\n".join(shell)]


ALL = (verdict, configuration, training, search, stages, machines, heads, step_by_step, certificate, sweep, usage)
"""Under their names in page.html."""
