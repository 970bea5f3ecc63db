"""The sections of a report, one function each."""

from __future__ import annotations

from detent.automata import Mealy, Moore
from detent.report.about import cell_of
from detent.report.curves import is_sweep, learning, lengths
from detent.report.drawing import drawing, in_words_of, same_steps
from detent.report.markup import Html, element, joined
from detent.report.reading import Told
from detent.report.tables import head_tables, plain_tables
from detent.report.usage import word_of
from detent.report.walk import walk
from detent.report.words import claim, refusal, sentences

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
        read = walk(told.certificate, word, told.machine.speak(word))
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
