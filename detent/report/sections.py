"""The sections of a report, one function each."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from detent.automata import Mealy, Moore
from detent.errors import InvalidConfig
from detent.report.charts import is_sweep, learning, lengths
from detent.report.data import Told
from detent.report.drawing import drawing, in_words_of, same_steps
from detent.report.html import Html, element, joined
from detent.report.sentences import claim, heads_of, listed, refusal, sentences
from detent.report.tables import head_tables, plain_tables
from detent.train.run_dir import CERTIFICATE, MACHINE

# -- What was trained, and how, as a list of names and values.

SHOWN, MOST_LETTERS = 12, 160
"""Names listed, and letters in them, before the rest is counted."""


def trained(told: Told) -> Html:
    """What was trained, and how."""
    config = told.config
    rows: dict[str, str | Html] = {}
    if told.task is not None and told.task.about:
        rows["task"] = f"{told.name}: {told.task.about}"
    if (target := told.target) is not None:
        rows["states"] = named(target.states)
        rows["symbols"] = named(target.symbols)
    rows["network"] = _network(told)
    rows |= {
        name: str(config[key]) for key, name in {"arm": "recipe", "recipe": "recipe", "seed": "seed"}.items()
        if key in config
    }  # fmt: skip
    steps = told.history[-1] if told.history else {}
    if steps:
        rows["training"] = f"{_count(told.history):,} steps" + _again(steps.get("attempt", 0))
    if told.certificate is not None:
        rows["weights"] = f"SHA-256 {told.certificate['weights']}"
        made = told.certificate["made"]
        rows["certified by"] = listed([f"{name} {version}" for name, version in made.items()])
    return element("dl", *(part for name, said in rows.items() for part in (element("dt", name), element("dd", said))))


def named(names: tuple[str, ...]) -> Html:
    """How many, and the first of them."""
    shown = list(names[:SHOWN])
    while len(shown) > 1 and sum(map(len, shown)) > MOST_LETTERS:
        shown.pop()
    rest = ["..."] if len(names) > len(shown) else []
    return joined([f"{len(names):,}: ", *(element("code", name) for name in shown), *rest])


def cell_of(told: Told) -> str:
    """What the recurrence is called."""
    cell = str(told.config.get("cell", "nfsm"))
    return cell.upper() if cell == "nfsm" else cell


def _network(told: Told) -> str:
    """The cell and its size, as far as the files tell."""
    size = told.config.get("size", told.config)
    parts = [cell_of(told)]
    if told.certificate is not None:
        parts.append(f"heads of {heads_of(told.certificate)} indices")
    if "layers" in size:
        parts.append(f"{size['layers']} {'layer' if size['layers'] == 1 else 'layers'}")
    parts += [f"{name} {size[name]}" for name in ("width", "channels", "states") if name in size]
    return ", ".join(parts)


def _count(history: list[dict[str, Any]]) -> int:
    """Steps of all phases of all attempts."""
    last: dict[tuple[Any, Any], int] = {}
    for row in history:
        last[row.get("attempt"), row.get("phase")] = int(row.get("step", 0))
    return sum(last.values())


def _again(attempt: int) -> str:
    return f", after beginning again {attempt} times" if attempt > 1 else ", after beginning again once" * attempt


# -- A short word read step by step: where every head stands after every symbol, and what is said there.


class Step(NamedTuple):
    """What happens at one symbol."""

    symbol: str
    indices: tuple[tuple[int, ...], ...]
    """Of every head of every layer, after the step."""
    state: str
    """Of the target."""


def steps(content: dict[str, Any], word: Sequence[str]) -> list[Step]:
    """The word read by the tables of a certificate, from below to the top at every symbol."""
    layers, target = content["layers"], content["target"]
    number = [{tuple(row): k for k, row in enumerate(layer["inputs"])} for layer in layers]
    window = [{tuple(row): k for k, row in enumerate(layer["windows"])} for layer in layers]
    stand = [tuple(layer["start"]) for layer in layers]
    before: list[tuple[int, ...]] = [(-1,) * (content["reach"] - 1) for _ in layers]
    state, found = target["start"], []
    symbols = {name: a for a, name in enumerate(content["symbols"])}
    for symbol in word:
        a = symbols[symbol]
        seen: tuple[int, ...] = (a,)
        for depth, layer in enumerate(layers):
            here = number[depth][seen]
            read = (*before[depth], here)
            tables = [table[window[depth][read]] for table in layer["tables"]]
            stand[depth] = tuple(table[k] for table, k in zip(tables, stand[depth], strict=True))
            before[depth], seen = read[1:], (here, *stand[depth])
        state = target["tables"][a][state]
        found.append(Step(symbol, tuple(stand), target["states"][state]))
    return found


def walk(content: dict[str, Any], word: Sequence[str], said: Sequence[str]) -> Html:
    """The steps as a table; `said` is what the machine without the network says at each of them."""
    found = steps(content, word)
    with_states = any(step.state != one for step, one in zip(found, said, strict=True))
    body = []
    for step, one in zip(found, said, strict=True):
        cells = [one, *(str(k) for layer in step.indices for k in layer), *([step.state] if with_states else [])]
        body.append(element("tr", element("th", step.symbol, scope="row"), *(element("td", cell) for cell in cells)))
    top = _titles(content, ["state of the target"] if with_states else [])
    table = element("table", element("thead", *top), element("tbody", *body))
    return element("div", table, class_="scroll")


def _titles(content: dict[str, Any], ends: Sequence[str]) -> list[Html]:
    """Columns of heads; of a stack, under the names of its layers."""
    sizes = [len(layer["heads"]) for layer in content["layers"]]
    heads = [element("th", f"head {head}", scope="col") for size in sizes for head in range(size)]
    first, rest = ([element("th", title, scope="col") for title in titles] for titles in (("reads", "says"), ends))
    names = element("tr", *first, *heads, *rest)
    if len(sizes) == 1:
        return [names]
    layers = [
        element("th", f"layer {depth}", scope="colgroup", colspan=size, class_="group")
        for depth, size in enumerate(sizes)
    ]
    return [element("tr", element("td", "", colspan=2), *layers, *(element("td", "") for _ in ends)), names]


# -- How to load and run the machine of a run, with a word and what it says.

SHORTEST_WORD, SHORTEST_STORY, LONGEST_WORD = 6, 25, 64
"""Of the one that is shown being read; a question comes after something has happened."""
DRAWN = 16
"""Words to choose it from."""
SPELLED = 8
"""Symbols of a word that is written as a list; a longer one is a text."""


def usage(told: Told) -> Html | None:
    """How to load and run the machine, with a word and what it says."""
    if told.machine is None:
        return None
    machine, path = told.machine, told.folder / MACHINE
    word = word_of(told) or list(machine.symbols[:4])
    said = machine.outputs(word)
    if len(word) <= SPELLED or any(len(symbol.split()) != 1 for symbol in word):
        spoken = f"print(machine.outputs({word!r}))\n# {said!r}"
    else:
        spoken = f"word = {' '.join(word)!r}\nprint(machine.outputs(word.split())[-1])\n# {said[-1]}"
    python = (
        f"import detent.runtime\n\nmachine = detent.runtime.load({str(path)!r})\n{spoken}\n\n"
        "stream = machine.stream()    # piece by piece, for as long as it takes\n"
        'machine.export("machine.c")  # or .js, .onnx: a program without dependencies'
    )
    line = shlex.join(["echo", " ".join(word)])
    shell = [f"{line} | detent run {shlex.quote(str(path))}"]
    if told.certificate is not None:
        shell.append(f"detent check {shlex.quote(str(told.folder / CERTIFICATE))}")
    return joined([element("pre", python), element("pre", "\n".join(shell))])


def word_of(told: Told) -> list[str] | None:
    """A short word as the task draws them, through many states; None where nobody knows the task any more."""
    if told.machine is None or told.task is None:
        return None
    if set(told.task.machine.symbols) <= set(told.machine.symbols):
        for length in range(SHORTEST_STORY if told.task.question else SHORTEST_WORD, LONGEST_WORD):
            with contextlib.suppress(InvalidConfig):  # no word of this law has this length
                drawn = told.task.sample(DRAWN, length, np.random.default_rng(0))
                most = max(range(DRAWN), key=lambda k: len(np.unique(drawn.states[k])))
                return [told.task.machine.symbols[a] for a in drawn.inputs[most].tolist()]
    return None


READ, TARGET = "Read out of the network", "The target"


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
        return element("p", element("strong", "Nothing is proved: "), _unread(told), class_="verdict bad")
    return element("p", element("strong", "No certificate. "), refusal(told.verdict()), class_="verdict bad")


def _unread(told: Told) -> str:
    """What is said of a network that has no tables."""
    said = f"{cell_of(told)} has no tables that could be read out of it, so samples are all there is."
    right = next((row["accuracy"] for row in reversed(told.history) if "accuracy" in row), None)
    if right is None:
        return said
    length = told.config.get("settings", {}).get("length")
    where = "" if length is None else f" at the length it was trained at, {length}"
    return f"{said} {right:.0%} of fresh words were right{where}."


def curve(told: Told) -> Html:
    return learning(told.history)


def machines(told: Told) -> Html | None:
    """The machine beside its target."""
    if told.machine is None:
        return None
    target, read = told.target, told.machine.automaton
    found = read if target is None else in_words_of(target, read)
    same = target is not None and same_steps(found, target)
    pictures = [_picture(found, READ)]
    if target is not None:
        pictures.append(Html(pictures[0].replace(READ, TARGET)) if same else _picture(target, TARGET))
    said = []
    if same:
        said = ["Read out of the weights without looking at the target, it is the target, arrow for arrow."]
    elif reads := told.machine.about.get("reads"):
        said = [f"What was read out takes {reads}, which is more than the task says."]
    return joined([*(element("p", sentence) for sentence in said), element("div", *pictures, class_="pair")])


def _picture(machine: Moore | Mealy, title: str) -> Html:
    sizes = f"{title}: {machine.n_states:,} states, {machine.n_symbols:,} symbols"
    return drawing(machine, sizes) or element("p", f"{sizes}, too many for a drawing.", class_="soft")


def heads(told: Told) -> Html | None:
    if told.certificate is not None and told.checked:
        return head_tables(told.certificate)
    if told.machine is not None and told.machine.heads is not None:
        return plain_tables(told.machine)
    return None


def step_by_step(told: Told) -> Html | None:
    """A word, where the heads stand along it, and what is said."""
    if told.certificate is None or not told.checked or told.machine is None:
        return None
    word = word_of(told)
    if word is None:
        return None
    said = "Where every head stands after every symbol: all that the network carries from one step to the next."
    try:
        read = walk(told.certificate, word, told.machine.outputs(word))
    except LookupError:  # the certificate is of another task than the rest of the folder
        return None
    return joined([element("p", said, class_="soft"), read])


def certificate(told: Told) -> Html | None:
    """The proof in words, with every line that `detent check` prints."""
    if told.certificate is None and told.machine is None:
        return None
    if told.certificate is None or not told.checked:
        said = " writes one when the machine is right on every word."
        return element("p", "There is none. ", element("code", "detent train"), said)
    from detent.certify.certificate import summary

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
