"""What is fuzzed: readers of files and text from outside. A target takes bytes and lets only its own errors end it.

An input is read, or refused with a sentence. Anything else is a finding: another exception, a machine that does not
survive being written and read again, text that cannot be printed.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

from exactstate._text import printable
from exactstate.automata import Mealy, Moore
from exactstate.automata.io import parse_dot, parse_json
from exactstate.certify.check import Unreadable, check, read_bytes, summary
from exactstate.errors import ExactstateError
from exactstate.learning import learn
from exactstate.learning.logs import FORMATS, Trace, log_layout, part_ends, read_log, read_part
from exactstate.runtime import Machine
from exactstate.runtime.filter import Filter

Target = Callable[[bytes], None]
MOST_STATES = 200
"""Of a machine that is written and read again."""
MOST_TRACES, MOST_INPUTS = 30, 300
"""Of a log that a machine is learned from."""


def dot(data: bytes) -> None:
    """DOT of any origin."""
    _machine(data, parse_dot)


def machine_json(data: bytes) -> None:
    """Machine files."""
    _machine(data, parse_json)


def _machine(data: bytes, parse: Callable[..., object]) -> None:
    text = data.decode(errors="replace")
    for missing in ("error", "sink"):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                machine = parse(text, missing=missing)
        except ExactstateError as error:
            _printed(error)
            continue
        if isinstance(machine, Moore | Mealy) and machine.n_states <= MOST_STATES:
            from exactstate.automata.io import to_dot, to_json

            assert parse_json(to_json(machine)) == machine
            assert parse_dot(to_dot(machine)) == machine


def certificate(data: bytes) -> None:
    """Certificates."""
    try:
        content = read_bytes(data, "fuzz.json")
    except Unreadable as error:
        _printed(error)
        return
    report = check(content)
    for line in summary(content) if report else report.findings:
        _printed(line)


def _clock() -> Machine:
    tables = np.array([[1, 2, 0], [0, 1, 2], [2, 0, 1], [1, 1, 1]])
    machine = Moore(
        symbols=("tick", "stay", "two words", "("), tables=tables, states=("a", "b", "c"), outputs=("x", "yy", ""),
        readout=[0, 1, 2],
    )  # fmt: skip
    return Machine.of(machine)


_MACHINES = {"words": _clock(), "letters": Machine.of(Moore(
    symbols=("a", "b", "\u00e9", " "), tables=[[1, 0], [0, 1], [1, 1], [0, 0]], states=("0", "1"), outputs=("0", "1"),
    readout=[0, 1],
))}  # fmt: skip


def text(data: bytes) -> None:
    """Text for `exactstate run`: pieces of any size give what the whole gives."""
    options, sizes, body = data[:1] or b"\0", data[1:3], data[3:]
    for machine in _MACHINES.values():
        arguments = {
            "each_line": bool(options[0] & 1), "last": bool(options[0] & 2), "states": bool(options[0] & 4),
            "unknown": "skip" if options[0] & 8 else "error", "form": "json" if options[0] & 16 else "text",
        }  # fmt: skip
        whole = _filtered(Filter(machine=machine, **arguments), [body])  # type: ignore[arg-type]
        step = 1 + (sizes[0] if sizes else 0) % 7
        pieces = [body[at : at + step] for at in range(0, len(body), step)]
        assert _filtered(Filter(machine=machine, **arguments), pieces) == whole  # type: ignore[arg-type]


def _filtered(filter: Filter, pieces: list[bytes]) -> tuple[bytes, str]:
    """(what is written, the sentence of the error or an empty one)."""
    out = b""
    try:
        for piece in pieces:
            out += filter.feed(piece)
            filter.tokenizer.refuse_unknown()
        out += filter.finish()
        filter.tokenizer.refuse_unknown()
    except ExactstateError as error:
        _printed(error)
        return out + filter.abort(), str(error)
    return out, ""


_FOLDER = tempfile.TemporaryDirectory(prefix="exactstate-fuzz-")


def traces(data: bytes) -> None:
    """Logs: parts of any size have the traces of the whole, and a machine that is learned does what the log says."""
    options, body = data[:2].ljust(2, b"\0"), data[2:]
    path, format = Path(_FOLDER.name) / "log", (None, *FORMATS)[options[0] % (1 + len(FORMATS))]
    path.write_bytes(body)
    try:
        whole = list(read_log(path, format=format))
    except ExactstateError as error:
        _printed(error)
        return
    for trace in whole:
        assert len(trace.inputs) == len(trace.outputs)
    _same_in_parts(path, format, 1 + options[1], whole)
    if len(whole) > MOST_TRACES or sum(len(trace.inputs) for trace in whole) > MOST_INPUTS:
        return
    try:
        learned = learn(path, format=format, kind="mealy")
    except ExactstateError as error:
        _printed(error)
        return
    for trace in whole:
        answers = learned.outputs(trace.inputs) if trace.inputs else []
        pairs = zip(answers, trace.outputs, strict=True)
        assert all(wanted is None or got == wanted for got, wanted in pairs)


def _same_in_parts(path: Path, format: str | None, size: int, whole: list[Trace]) -> None:
    begin, found = 0, []
    try:
        layout = log_layout(path, format=format)
        for end in part_ends(path, layout, size):
            found += [(one.inputs, one.outputs, one.initial) for one in read_part(path, layout, begin, end, [0])]
            begin = end
    except ExactstateError as error:  # quoted fields and counts are refused in parts
        _printed(error)
        return
    assert found == [(one.inputs, one.outputs, one.initial) for one in whole]


def _printed(sentence: object) -> None:
    """A sentence fits a terminal."""
    line = printable(str(sentence))
    line.encode()
    assert all(letter.isprintable() or letter == "\n" for letter in line)


TARGETS: dict[str, Target] = {
    "dot": dot, "machine_json": machine_json, "certificate": certificate, "text": text,
    "traces": traces,
}  # fmt: skip
