"""The charts of a report: the training curves of a run, and its length sweep as `exactstate figure sweep` draws it."""

from __future__ import annotations

from exactstate.automata.draw.save import rendered
from exactstate.records import Row
from exactstate.report.figures import length_sweep, training
from exactstate.report.html import Html, drawing, element, joined

PHASES = {
    "wide": "end to end by gradient, with many heads; the loss includes that of the probes, if there are any",
    "search": "every head alone, by gradient, from words and labels: the least loss of a head",
    "cascade": "heads of two layers by gradient, from words and labels, or answers alone",
    "realize": "transition tables (counted in labeled sequences, given or learned) are put into the network",
    "end_to_end": "end to end, from words and labels alone",
}


def training_charts(history: list[Row]) -> Html:
    """Loss, margins and accuracy where they were measured, and what the phases are."""
    if not history:
        return element("p", "The run has no history.", class_="soft")
    figure = training.paint(history)
    phases = [name for name in dict.fromkeys(str(row.get("phase")) for row in history) if name in PHASES]
    legend = [element("li", element("strong", name), f": {PHASES[name]}.") for name in phases]
    picture = [] if figure is None else [drawing(rendered(figure, ".svg"), "Loss, margins and accuracy over the steps")]
    return joined([*picture, *([element("ul", *legend)] if legend else [])])


def length_sweep_chart(rows: list[Row]) -> Html:
    """Accuracy by length, one line for every cell, with a sentence for each and the numbers."""
    latest = {str(row.get("cell", "nfsm")): row for row in rows}
    of_words = all(row.get("measure", "words") == "words" for row in latest.values())
    title = "Accuracy: words with all labels correct" if of_words else "Accuracy: words with the correct answer"
    defaults = {"task": "", "seed": 0, "failing_length": None}
    shown = [
        {**defaults, "cell": cell, "max_length": max(map(int, row["accuracies"])), **row}
        for cell, row in latest.items()
    ]
    picture = drawing(rendered(length_sweep.paint(shown), ".svg"), title)
    figure = element("figure", element("h3", title), picture)
    sentences = [element("li", _sweep_sentence(cell, row)) for cell, row in latest.items()]
    return joined([element("ul", *sentences), figure, _numbers(latest)])


def _sweep_sentence(cell: str, row: Row) -> str:
    if row.get("failing_length") is None:
        longest = row.get("max_length", max(map(int, row["accuracies"])))
        return f"{cell}: no failure up to length {longest:,} ({row.get('batch', '?')} words each)."
    correct = "all labels correct" if row.get("measure", "words") == "words" else "the correct answer"
    few = f"fewer than {row['threshold']:.0%} of the words"
    return f"{cell}: fails at length {row['failing_length']:,}; {few} have {correct}."


def _numbers(latest: dict[str, Row]) -> Html:
    head = element("tr", *(element("th", name, scope="col") for name in ("length", *latest)))
    shares = [{int(length): float(share) for length, share in row["accuracies"].items()} for row in latest.values()]
    body = []
    for length in sorted({length for of_cell in shares for length in of_cell}):
        cells = [element("td", f"{of_cell[length]:.3f}" if length in of_cell else "–") for of_cell in shares]
        body.append(element("tr", element("th", f"{length:,}", scope="row"), *cells))
    table = element("table", element("thead", head), element("tbody", *body))
    return element("details", element("summary", "Numbers"), element("div", table, class_="scroll"))
