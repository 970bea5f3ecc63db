"""A machine as one C99 file without dependencies: tables, a step, a run, and a filter for standard input.

Compiled alone it is a program that reads symbols and writes outputs, as `exactstate run` does; compiled with
-DMACHINE_WITHOUT_MAIN it is a library. `machine.c.in` beside this file is the program, `letters.c.in` and `words.c.in`
its main function.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from exactstate._types import Ints
from exactstate.errors import InvalidConfig
from exactstate.runtime.export.template import filled, other_symbol
from exactstate.runtime.machine import Machine


def to_c(machine: Machine, *, name: str = "machine") -> str:
    """The machine in C; `name` begins every identifier."""
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise InvalidConfig(f"name={name!r} cannot begin identifiers; wanted a small letter, then letters, digits, _.")
    symbol, state, output = (
        f"uint{_bits(count)}_t" for count in (machine.n_symbols, machine.n_states, len(machine.output_names))
    )
    order = sorted(range(machine.n_symbols), key=lambda a: machine.symbols[a].encode())
    letters, other = machine.alphabet.by_letter, other_symbol(machine)
    longest = max(len(symbol.encode()) for symbol in machine.symbols) + (other >= 0)
    main = filled(
        "letters.c.in" if letters else "words.c.in", name=name, longest=longest, other=other,
        most_words=max(machine.alphabet.most_words, 1),
    ).rstrip()  # fmt: skip
    return filled(
        "machine.c.in", name=name, NAME=name.upper(), symbol_type=symbol, state_type=state, output_type=output,
        symbols=machine.n_symbols, states=machine.n_states, outputs=len(machine.output_names), start=machine.start,
        symbol_names=_names(machine.symbols), state_names=_names(machine.states),
        output_names=_names(machine.output_names), order=_wrapped(map(str, order)),
        next=_rows(machine.automaton.tables), output_table=_rows(machine.readout),
        short=int(all(len(output) <= 1 for output in machine.output_names)), main=main,
    )  # fmt: skip


def quoted(text: str) -> str:
    """A string that means these bytes and nothing else: all but the plainest as three octal digits."""
    return '"' + "".join(chr(b) if _SAFE.fullmatch(bytes([b])) else f"\\{b:03o}" for b in text.encode()) + '"'


_SAFE = re.compile(rb"[A-Za-z0-9 _.,:;=+-]")


def _bits(count: int) -> int:
    return 8 if count <= 1 << 8 else 16 if count <= 1 << 16 else 32


def _names(names: Sequence[str]) -> str:
    return ",\n".join(f"    {{{quoted(name)}, {len(name.encode())}}}" for name in names)


def _rows(table: Ints) -> str:
    return ",\n".join(f"    {{{_wrapped(map(str, row))}}}" for row in table.tolist())


def _wrapped(items: Iterable[str], width: int = 24) -> str:
    every = list(items)
    return ",\n     ".join(", ".join(every[i : i + width]) for i in range(0, len(every), width))
