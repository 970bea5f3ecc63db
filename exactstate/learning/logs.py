"""Read logs of traces, line by line: JSON lines, CSV, plain text, Abbadingo's and AALpy's formats.

A trace is a word of inputs with the outputs that were seen:

- JSON lines: `{"inputs": ["open", "close"], "outputs": ["ok", "ok"]}`; one output more than inputs begins with the
  output before the first input; `{"inputs": [...], "output": "ok"}` or `"accept": true` has one at the end.
- CSV: a header with the columns `input` and `output`. With a column `trace` (or `session`, `case_id`, ...) the rows of
  a trace may lie anywhere; without one, a blank line separates traces.
- text: one trace per line, tokens `input/output` between blanks or another separator; a first token without a slash is
  the output before the first input. AALpy's files are of this kind, with commas.
- abbadingo: a line with the numbers of strings and symbols; then `label length symbol ...`, label 1, 0 or -1 (unknown).

Lines are bounded, and nothing but the current one is kept; of a CSV log with a column for traces, all traces are.
"""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

from exactstate.errors import BrokenFile, InvalidInput, unknown, unreadable
from exactstate.records import InvalidJson, parse_strict_json

FORMATS = ("jsonl", "csv", "text", "abbadingo")
EXTENSIONS = {".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl", ".csv": "csv"}
MAX_LINE = 1 << 26
"""Bytes of the longest line that is read: 64 MiB."""
NO_TRACE = "there is no trace in it."
COLUMNS = {
    "trace": ("trace", "case", "case_id", "session", "word", "id"),
    "input": ("input", "symbol", "event", "action", "request"),
    "output": ("output", "response", "reply"),
}
LABELS = {"accept": "accept", "true": "accept", "1": "accept", "+": "accept",
          "reject": "reject", "false": "reject", "0": "reject", "-": "reject"}  # fmt: skip
"""Labels of a DFA as logs write them."""


@dataclass(frozen=True)
class Trace:
    """A word of inputs and what was seen."""

    inputs: list[str]
    outputs: list[str | None]
    """One for each input; None where nothing was seen."""
    initial: str | None = None
    """The output before the first input."""
    line: int = 0
    """Where it begins in the log, from 1."""
    key: str | None = None
    """What the log calls it, where it has a column for that."""


@dataclass(frozen=True)
class Layout:
    """How a log is to be read, by its first line."""

    format: str
    separator: str | None
    header: str | None
    """The first line where that is no trace: of CSV and Abbadingo files."""
    strings: int | None
    """Traces that an Abbadingo file announces."""


def read_log(
    path: str | os.PathLike[str], *, format: str | None = None, separator: str | None = None
) -> Iterator[Trace]:
    """The traces of a log, one after another.

    - `format`: jsonl, csv, text or abbadingo; by default by the ending of the file, or by its first line.
    - `separator`: between the tokens of a line of text, or the columns of a CSV file.
    """
    return _traces(_open(path, format), path, format, separator)


def log_layout(path: str | os.PathLike[str], *, format: str | None = None, separator: str | None = None) -> Layout:
    """How the parts of a log are read by `read_part`; arguments as for `read_log`."""
    with _open(path, format) as file:
        number, line = _first_line(_lines(file, path), path)
    layout = _layout(line, path, format, separator)
    if layout.format == "abbadingo":
        return replace(layout, strings=_abbadingo_size(number, line, path))
    return layout


def read_part(path: str | os.PathLike[str], layout: Layout, begin: int, end: int, count: list[int]) -> Iterator[Trace]:
    """The traces between two offsets at which one begins; lines are numbered from 1. Sets count[0] to the lines read.

    A quoted field of a CSV file may contain the end of a line, and a cut in it would not be noticed: parts have none.
    """
    with _open(path, None) as file:
        file.seek(begin)
        lines = _counted(_lines(file, path, end - begin, is_first=begin == 0), count)
        if layout.format == "csv":
            lines = _unquoted(lines, path, whole=begin == 0 and end == os.fstat(file.fileno()).st_size)
        if begin == 0:
            lines = _chain(_first_line(lines, path), lines)
        elif layout.format == "csv":
            lines = _chain((0, str(layout.header)), lines)
        if layout.format == "abbadingo":
            if begin == 0:
                next(lines)
            yield from _strings(lines, path)
        else:
            yield from _parsed(layout, lines, path)


def part_ends(path: str | os.PathLike[str], layout: Layout, size: int) -> Iterator[int]:
    """Offsets where a trace begins, about every `size` bytes, and the end of the file."""
    with _open(path, None) as file:
        total = os.fstat(file.fileno()).st_size
        place, least = 0, 0
        while (line := file.readline(MAX_LINE)) and not least:
            is_blank = not line.decode("utf-8-sig", "replace").strip()
            least = 0 if is_blank else file.tell()  # the first part has the header
        while place < total:
            file.seek(min(max(place + size, least), total) - 1)
            _skip_line(file)
            place = file.tell() if layout.format != "csv" else _next_trace(file, layout)
            yield place


def _skip_line(file: IO[bytes]) -> None:
    while (piece := file.readline(1 << 16)) and not piece.endswith(b"\n"):
        pass


def _next_trace(file: IO[bytes], layout: Layout) -> int:
    """The offset of the next line of a CSV file that begins a trace."""
    header = [name.strip().lower() for name in str(layout.header).split(layout.separator)]
    column = next((header.index(name) for name in COLUMNS["trace"] if name in header), None)
    previous = None
    while line := file.readline(MAX_LINE + 1):
        row = line.decode("utf-8", "replace").rstrip("\r\n")
        if not row:
            break
        cells = row.split(layout.separator)
        key = cells[column] if column is not None and column < len(cells) else None
        if previous is not None and key != previous:
            return file.tell() - len(line)
        previous = key
    return file.tell()


def _open(path: str | os.PathLike[str], format: str | None) -> IO[bytes]:
    if format is not None and format not in FORMATS:
        raise unknown("format of a log", format, FORMATS)
    try:
        return open(path, "rb")
    except OSError as error:
        raise unreadable(path, error) from None


def _traces(
    file: IO[bytes], path: str | os.PathLike[str], format: str | None, separator: str | None
) -> Iterator[Trace]:
    found = False
    with file:
        lines = _lines(file, path)
        first = _first_line(lines, path)
        for trace in _parsed(_layout(first[1], path, format, separator), _chain(first, lines), path):
            found = True
            yield trace
    if not found:
        raise BrokenFile(path, NO_TRACE)


def _first_line(lines: Iterator[tuple[int, str]], path: str | os.PathLike[str]) -> tuple[int, str]:
    first = next(((number, line) for number, line in lines if line.strip()), None)
    if first is None:
        raise BrokenFile(path, "it is empty; a log has a trace on every line.")
    return first


def _layout(line: str, path: str | os.PathLike[str], format: str | None, separator: str | None) -> Layout:
    name = format or EXTENSIONS.get(Path(path).suffix.lower()) or _format_of(line)
    if name == "csv":
        return Layout(name, separator or ",", line, None)
    if name == "text":
        return Layout(name, separator or ("," if _has_commas(line) else None), None, None)
    return Layout(name, separator, line if name == "abbadingo" else None, None)


def _parsed(layout: Layout, lines: Iterator[tuple[int, str]], path: str | os.PathLike[str]) -> Iterator[Trace]:
    match layout.format:
        case "jsonl":
            return _json_lines(lines, path)
        case "csv":
            return _csv(lines, path, layout.separator or ",")
        case "abbadingo":
            return _abbadingo(lines, path)
    return _text(lines, path, layout.separator)


def _lines(
    file: IO[bytes], path: str | os.PathLike[str], size: int | None = None, *, is_first: bool = True
) -> Iterator[tuple[int, str]]:
    """The lines of a file, or those of its next `size` bytes, which end with a line."""
    number = 0
    while size is None or size > 0:
        try:
            line = file.readline(MAX_LINE + 1)
        except OSError as error:
            raise unreadable(path, error) from None
        if not line:
            if size is None:
                return
            raise BrokenFile(path, "the file became shorter while it was read.")
        size = None if size is None else size - len(line)
        number += 1
        if len(line) > MAX_LINE:
            raise BrokenFile(path, f"it is longer than {MAX_LINE >> 20} MiB; a line holds one trace.", number)
        try:
            yield number, line.decode("utf-8-sig" if is_first and number == 1 else "utf-8").rstrip("\r\n")
        except UnicodeDecodeError as error:
            raise BrokenFile(path, f"byte {line[error.start]:#04x} is not UTF-8 text.", number) from None


def _counted(lines: Iterator[tuple[int, str]], count: list[int]) -> Iterator[tuple[int, str]]:
    for number, line in lines:
        count[0] = number
        yield number, line


def _unquoted(
    lines: Iterator[tuple[int, str]], path: str | os.PathLike[str], *, whole: bool
) -> Iterator[tuple[int, str]]:  # fmt: skip
    for number, line in lines:
        if '"' in line and not whole:
            raise BrokenFile(path, "a CSV log that is read in parts has no quotes; read it without --cluster.", number)
        yield number, line


def _chain(first: tuple[int, str], lines: Iterator[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    yield first
    yield from lines


def _format_of(line: str) -> str:
    if line.lstrip().startswith("{"):
        return "jsonl"
    if re.fullmatch(r"\s*\d+\s+\d+\s*", line):
        return "abbadingo"
    names = {name.strip().lower() for name in line.split(",")}
    return "csv" if names & set(COLUMNS["input"]) and names & set(COLUMNS["output"]) else "text"


def _has_commas(line: str) -> bool:
    """Tokens between commas, as AALpy writes them."""
    return "," in line and not re.search(r"\s", line.strip())


def _json_lines(lines: Iterator[tuple[int, str]], path: str | os.PathLike[str]) -> Iterator[Trace]:
    for number, line in lines:
        if not line.strip():
            continue
        try:
            entries = parse_strict_json(line)
        except InvalidJson as error:
            raise BrokenFile(path, f"this is not JSON: {error.reason}.", number) from None
        if not isinstance(entries, dict) or not isinstance(entries.get("inputs"), list):
            raise BrokenFile(path, 'wanted an object such as {"inputs": ["a"], "outputs": ["x"]}.', number)
        inputs = [_name(entry, path, number) for entry in entries["inputs"]]
        seen = [key for key in ("outputs", "output", "accept", "label") if key in entries]
        if len(seen) != 1:
            raise BrokenFile(path, 'wanted one of the entries "outputs", "output" and "accept".', number)
        value = entries[seen[0]]
        if seen[0] == "outputs":
            if not isinstance(value, list) or len(value) not in (len(inputs), len(inputs) + 1):
                count = len(value) if isinstance(value, list) else 0
                raise BrokenFile(
                    path,
                    f"{len(inputs)} inputs go with as many outputs, or one more at the start; got {count}.",
                    number,
                )
            outputs = [None if entry is None else _name(entry, path, number) for entry in value]
            initial = outputs.pop(0) if len(outputs) > len(inputs) else None
            yield Trace(inputs, outputs, initial, number)
        else:
            yield at_end(inputs, None if value is None else _name(value, path, number), number)


def at_end(inputs: list[str], label: str | None, line: int) -> Trace:
    """A trace with one output, at its end."""
    if not inputs:
        return Trace([], [], label, line)
    return Trace(inputs, [*[None] * (len(inputs) - 1), label], None, line)


def _name(value: object, path: str | os.PathLike[str], line: int) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return str(value)
    raise BrokenFile(path, "inputs and outputs are strings or numbers; got a list, an object or null.", line)


def _csv(lines: Iterator[tuple[int, str]], path: str | os.PathLike[str], separator: str) -> Iterator[Trace]:
    if len(separator) != 1:
        raise InvalidInput(f"columns are separated by one character; got {separator!r}.")
    place = [0]

    def texts() -> Iterator[str]:
        for number, line in lines:
            place[0] = number
            yield line + "\n"  # a line may end inside quotes

    rows = csv.reader(texts(), delimiter=separator, strict=True)
    try:
        header = [name.strip().lower() for name in next(rows)]
        column = {role: next((header.index(n) for n in names if n in header), None) for role, names in COLUMNS.items()}
        if column["input"] is None or column["output"] is None:
            raise BrokenFile(path, f"the header wants the columns input and output; got {', '.join(header)}.", 1)
        traces: dict[str, Trace] = {}
        for row in rows:
            if not row:
                if column["trace"] is None:
                    yield from traces.values()
                    traces.clear()
                continue
            if len(row) != len(header):
                raise BrokenFile(path, f"{len(header)} columns were wanted; got {len(row)}.", place[0])
            key = "" if column["trace"] is None else row[column["trace"]]
            if key not in traces:
                traces[key] = Trace([], [], None, place[0], key if column["trace"] is not None else None)
            traces[key].inputs.append(row[column["input"]])
            traces[key].outputs.append(row[column["output"]])
        yield from traces.values()
    except csv.Error as error:
        raise BrokenFile(path, f"this is not CSV: {error}.", place[0]) from None


def _text(lines: Iterator[tuple[int, str]], path: str | os.PathLike[str], separator: str | None) -> Iterator[Trace]:
    split: dict[str, tuple[str, str] | None] = {}
    for number, line in lines:
        if not line.strip() or line.startswith("#"):
            continue
        tokens = line.split() if separator is None else [token.strip() for token in line.split(separator)]
        initial = tokens.pop(0) if "/" not in tokens[0] else None
        inputs: list[str] = []
        outputs: list[str | None] = []
        for token in tokens:
            pair = split.get(token)
            if pair is None:
                pair = _split(token, path, number)
                if len(split) < 1 << 16:
                    split[token] = pair
            inputs.append(pair[0])
            outputs.append(pair[1])
        yield Trace(inputs, outputs, initial, number)


def _split(token: str, path: str | os.PathLike[str], line: int) -> tuple[str, str]:
    before, slash, after = token.partition(" / ") if " / " in token else token.partition("/")
    if not slash or not before:
        shown = token if len(token) <= 40 else token[:37] + "..."
        raise BrokenFile(path, f"a token is input/output, such as open/ok; got {shown!r}. See --format.", line)
    return before.strip(), after.strip()


def _abbadingo(lines: Iterator[tuple[int, str]], path: str | os.PathLike[str]) -> Iterator[Trace]:
    wanted, got = _abbadingo_size(*next(lines), path), 0
    for trace in _strings(lines, path):
        got += 1
        yield trace
    refuse_count(wanted, got, path)


def _abbadingo_size(number: int, header: str, path: str | os.PathLike[str]) -> int:
    if not re.fullmatch(r"\s*\d{1,15}\s+\d{1,15}\s*", header):
        raise BrokenFile(path, "the first line of an Abbadingo file has the numbers of strings and of symbols.", number)
    return int(header.split()[0])


def refuse_count(wanted: int, got: int, path: str | os.PathLike[str]) -> None:
    """Raise if an Abbadingo file has another number of strings than its first line says."""
    if got != wanted:
        raise BrokenFile(path, f"the first line says {wanted} strings; there are {got}.", 1)


def _strings(lines: Iterator[tuple[int, str]], path: str | os.PathLike[str]) -> Iterator[Trace]:
    for number, line in lines:
        tokens = line.split()
        if not tokens:
            continue
        if len(tokens) < 2 or tokens[1].lstrip("0") != str(len(tokens) - 2).lstrip("0"):
            raise BrokenFile(path, "wanted a label, the length and as many symbols.", number)
        if any("/" in token for token in tokens[2:]):
            pairs = [_split(token, path, number) for token in tokens[2:]]
            yield Trace([a for a, _ in pairs], [b for _, b in pairs], None, number)
        else:
            yield at_end(tokens[2:], None if tokens[0] == "-1" else tokens[0], number)


def as_traces(traces: Iterable[Any]) -> Iterator[Trace]:
    """Traces from Python: (inputs, outputs), (inputs, label), or AALpy's list of (input, output) pairs."""
    for number, trace in enumerate(traces, start=1):
        if isinstance(trace, Trace):
            yield trace
        elif isinstance(trace, tuple) and len(trace) == 2:
            inputs, seen = names_of(trace[0]), trace[1]
            if not isinstance(seen, list | tuple):
                yield at_end(inputs, None if seen is None else str(seen), number)
                continue
            outputs = outputs_of(seen)
            if len(outputs) not in (len(inputs), len(inputs) + 1):
                raise InvalidInput(f"trace {number}: {len(inputs)} inputs go with {len(outputs)} outputs.")
            initial = outputs.pop(0) if len(outputs) > len(inputs) else None
            yield Trace(inputs, outputs, initial, number)
        elif isinstance(trace, Sequence) and not isinstance(trace, str | tuple):
            pairs = list(trace)
            initial = str(pairs.pop(0)) if pairs and not isinstance(pairs[0], list | tuple) else None
            if not all(isinstance(pair, list | tuple) and len(pair) == 2 for pair in pairs):
                raise InvalidInput(f"trace {number}: a list of (input, output) pairs was wanted; got {trace!r:.60}.")
            yield Trace([str(a) for a, _ in pairs], [str(b) for _, b in pairs], initial, number)
        else:
            raise InvalidInput(
                f"trace {number}: wanted (inputs, outputs) or a list of (input, output) pairs; got {trace!r:.60}."
            )


def names_of(word: Iterable[Any]) -> list[str]:
    """The symbols of a word as strings."""
    names = list(word)
    return names if set(map(type, names)) <= {str} else list(map(str, names))


def outputs_of(seen: Iterable[Any]) -> list[str | None]:
    """Outputs as strings, None where nothing was seen."""
    names = list(seen)
    if set(map(type, names)) <= {str, type(None)}:
        return names
    return [None if name is None else str(name) for name in names]
