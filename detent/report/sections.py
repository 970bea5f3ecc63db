"""The sections of a report, one function each."""

from __future__ import annotations

import contextlib
import shlex
from typing import Any

import numpy as np

from detent.errors import InvalidConfig
from detent.report.curves import is_sweep, learning, lengths
from detent.report.drawing import drawing, in_words_of, same_steps
from detent.report.markup import Html, element, joined
from detent.report.reading import CERTIFICATE, MACHINE, Told
from detent.report.tables import head_tables, plain_tables
from detent.report.words import claim, refusal, sentences

SHOWN = 12
"""Names listed before the rest is counted."""
LONGEST_WORD = 64
"""Of the one that is shown being read."""


def verdict(told: Told) -> Html:
    """What came of it, in one sentence."""
    if told.checked:
        assert told.certificate is not None
        said = claim(told.certificate)
        return element("p", element("strong", "Certified: "), said, class_="verdict")
    if told.certificate is not None and told.checked is not None:
        found = " ".join(told.checked.findings)
        return element("p", element("strong", "The certificate is refused. "), found, class_="verdict bad")
    if told.machine is None:
        said = "no machine was read out of this network, so nothing is proved about it."
        return element("p", element("strong", "Not certified: "), said, class_="verdict bad")
    return element("p", element("strong", "No certificate. "), refusal(told.verdict()), class_="verdict bad")


def trained(told: Told) -> Html:
    """What was trained, and how."""
    config, rows = told.config, {}
    if told.task is not None and told.task.about:
        rows["task"] = f"{told.name}: {told.task.about}"
    if (target := told.target) is not None:
        rows["states"] = named(target.states)
        rows["symbols"] = named(target.symbols)
    rows["network"] = _network(told)
    rows |= {name: str(config[key]) for name, key in {"recipe": "arm", "seed": "seed"}.items() if key in config}
    steps = told.history[-1] if told.history else {}
    if steps:
        rows["training"] = f"{_count(told.history):,} steps" + _again(steps.get("attempt", 0))
    if told.certificate is not None:
        rows["weights"] = f"SHA-256 {told.certificate['weights']}"
    return element("dl", *(part for name, said in rows.items() for part in (element("dt", name), element("dd", said))))


def curve(told: Told) -> Html:
    return learning(told.history)


def machines(told: Told) -> Html | None:
    """The machine beside its target."""
    if told.machine is None:
        return None
    target, read = told.target, told.machine.automaton
    found = read if target is None else in_words_of(target, read)
    if target is not None and same_steps(found, target):
        shown = drawing(found, "Read out of the network")
        same = element("p", "Read out of the weights without looking at the target, it is the target, arrow for arrow.")
        beside = Html(shown.replace("Read out of the network", "The target"))
        return joined([same, element("div", shown, beside, class_="pair")])
    pictures = [drawing(found, f"Read out of the network, {found.n_states:,} states")]
    if target is not None:
        pictures.append(drawing(target, f"The target, {target.n_states:,} states"))
    return element("div", *pictures, class_="pair")


def heads(told: Told) -> Html:
    if told.certificate is not None and told.checked:
        return head_tables(told.certificate)
    if told.machine is not None and told.machine.heads is not None:
        return plain_tables(told.machine)
    return element("p", "Nothing is known of them: there is no certificate.", class_="soft")


def certificate(told: Told) -> Html:
    """The proof in words, with every line that `detent check` prints."""
    if told.certificate is None or not told.checked:
        return element("p", "There is none. `detent train` writes one when the machine is right on every word.")
    from detent.certification.summary import summary

    lines = summary(told.certificate).splitlines()
    assumed = {sentence for one in told.certificate["rounding"].values() for sentence in one["assumes"]}
    return joined([
        element("ul", *(element("li", sentence) for sentence in sentences(told.certificate))),
        element("p", "The certificate was checked again, without the network, while this page was written."),
        element("details", element("summary", "As detent check prints it"), element("pre", "\n".join(lines))),
        element("details", element("summary", "What the bounds on rounding assume of the machine"),
                element("ul", *(element("li", sentence) for sentence in sorted(assumed)))),
    ])  # fmt: skip


def sweep(told: Told) -> Html | None:
    rows = [row for row in told.sweep if is_sweep(row)]
    return lengths(rows) if rows else None


def usage(told: Told) -> Html | None:
    """How to load and run the machine, with a word and what it says."""
    if told.machine is None:
        return None
    machine = told.machine
    word = _word(told)
    said = machine.speak(word)
    path = told.folder / MACHINE
    python = (
        f"import detent.runtime\n\nmachine = detent.runtime.load({str(path)!r})\n"
        f"print(machine.speak({word!r}))\n# {said!r}\n\n"
        "stream = machine.stream()    # piece by piece, for as long as it takes\n"
        'machine.export("machine.c")  # or .js, .onnx: a program without dependencies'
    )
    line = shlex.join(["echo", " ".join(word)])
    shell = [f"{line} | detent run {shlex.quote(str(path))}"]
    if told.certificate is not None:
        shell.append(f"detent check {shlex.quote(str(told.folder / CERTIFICATE))}")
    return joined([element("pre", python), element("pre", "\n".join(shell))])


def _word(told: Told) -> list[str]:
    """A short word as the task draws them; the first symbols where nobody knows the task any more."""
    assert told.machine is not None
    if told.task is not None and set(told.task.machine.symbols) <= set(told.machine.symbols):
        for length in range(4, LONGEST_WORD):
            with contextlib.suppress(InvalidConfig):  # no word of this law has this length
                drawn = told.task.sample(1, length, np.random.default_rng(0)).inputs[0]
                return [told.task.machine.symbols[a] for a in drawn.tolist()]
    return list(told.machine.symbols[:4])


def named(names: tuple[str, ...]) -> str:
    """How many, and the first of them."""
    shown = ", ".join(names[:SHOWN])
    return f"{len(names):,}: {shown}{', ...' if len(names) > SHOWN else ''}"


def _network(told: Told) -> str:
    cell, width = str(told.config.get("cell", "nfsm")), told.config.get("width")
    parts = [cell.upper() if cell == "nfsm" else cell]
    if told.certificate is not None:
        sizes = " | ".join(" ".join(map(str, layer["heads"])) for layer in told.certificate["layers"])
        parts.append(f"heads of {sizes} indices")
    if width is not None:
        parts.append(f"width {width}")
    return ", ".join(parts)


def _count(history: list[dict[str, Any]]) -> int:
    """Steps of all phases of all attempts."""
    last: dict[tuple[Any, Any], int] = {}
    for row in history:
        last[row.get("attempt"), row.get("phase")] = int(row.get("step", 0))
    return sum(last.values())


def _again(attempt: int) -> str:
    return f", after beginning again {attempt} times" if attempt > 1 else ", after beginning again once" * attempt
