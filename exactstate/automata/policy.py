"""Policies: small temporal rules over symbols, each a machine that says which symbol it refuses.

    verify before refund                 no refund unless verify came earlier
    verify before refund, per login      ... since the last login
    no write after close                 and with `until open`: allowed again from then on
    at most 3 retry                      and with `between ok`: counted anew from each ok
    every lock then unlock               no end of the trace between a lock and the next unlock

One rule on a line; `#` begins a comment. A name means the symbol of that name and the same call with any arguments,
`pay` also `pay(amount=<100)`; `*` and `?` match as in file names, `a|b` is one of several.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np

from exactstate._types import Ints
from exactstate.automata.machine import Mealy
from exactstate.errors import BrokenFile, InvalidConfig, unreadable, utf8

END = "<end>"
"""The symbol for the end of a trace."""
OTHER = "<other>"
"""The symbol for a call that no training trace made."""
MOST = 1000
"""The largest number in `at most N`."""
_NAME = r"(\S+?)"
_FORMS = {
    "before": re.compile(rf"{_NAME} before {_NAME}(?:,? per {_NAME})?"),
    "after": re.compile(rf"no {_NAME} after {_NAME}(?:,? until {_NAME})?"),
    "most": re.compile(rf"at most (\d+) {_NAME}(?: between {_NAME})?"),
    "every": re.compile(rf"every {_NAME} then {_NAME}"),
}


@dataclass(frozen=True)
class Policy:
    """A rule, as it was written."""

    text: str
    kind: str
    names: tuple[str | None, ...]
    number: int = 0

    @classmethod
    def of(cls, text: str) -> Policy:
        """The rule that a line says."""
        line = " ".join(text.split())
        for kind, form in _FORMS.items():
            found = form.fullmatch(line)
            if found is None:
                continue
            groups = list(found.groups())
            number = int(groups.pop(0)) if kind == "most" else 0
            if number > MOST:
                raise InvalidConfig(f"a policy counts to {MOST:,} at most; got {number:,}.")
            return cls(line, kind, tuple(groups), number)
        raise InvalidConfig(
            f"{line!r:.80} is no policy; wanted 'A before B', 'no A after B', 'at most 3 A between B' or "
            "'every A then B'."
        )

    def machine(self, symbols: Sequence[str]) -> Mealy:
        """The rule over these symbols: ok or refused at each; a refused symbol leaves the state as it is.

        A name that matches no symbol is an error, because such a rule would refuse nothing, or everything, in silence.
        """
        matches = [None if name is None else _matching(name, symbols, self.text) for name in self.names]
        none = np.zeros(len(symbols), bool)
        a, b, c = ([none if m is None else m for m in matches] + [none, none])[:3]
        stay = np.zeros(len(symbols), np.int64)
        if self.kind == "before":  # state 1: a came
            tables, refused = _columns(np.where(a, 1, 0), np.where(c & ~a, 0, 1)), _columns(b & ~a, none)
        elif self.kind == "after":  # state 1: b came
            tables, refused = _columns(np.where(b, 1, 0), np.where(c & ~b, 0, 1)), _columns(none, a & ~c)
        elif self.kind == "every":  # state 1: an a waits for a b
            end = np.array([name == END for name in symbols])
            if not end.any():
                raise InvalidConfig(f"{self.text!r} is about the end of a trace, and no symbol is {END}.")
            tables, refused = _columns(np.where(a & ~b, 1, 0), np.where(b, 0, 1)), _columns(none, end)
        else:  # state k: so many a since the last b
            counted = [np.where(b, 0, np.where(a, min(k + 1, self.number), k)) for k in range(self.number + 1)]
            tables, refused = _columns(*counted), _columns(*[none] * self.number, a & ~b)
        tables = np.where(refused, stay[:, None] + np.arange(tables.shape[1]), tables)
        return Mealy(symbols=tuple(symbols), tables=tables, outputs=("ok", "refused"), readout=refused.astype(np.int64))


def read_policies(path: str | os.PathLike[str]) -> list[Policy]:
    """The policies of a file, one on a line."""
    try:
        lines = utf8(Path(path).read_bytes(), path).splitlines()
    except OSError as error:
        raise unreadable(path, error) from None
    policies = []
    for number, line in enumerate(lines, start=1):
        rule = re.sub(r"(^|\s)#.*", "", line).strip()
        if rule:
            try:
                policies.append(Policy.of(rule))
            except InvalidConfig as error:
                raise BrokenFile(path, str(error), number) from None
    if not policies:
        raise BrokenFile(path, "there is no policy in it; a line is a rule such as 'login before pay'.")
    return policies


def restricted(machine: Mealy, policies: Sequence[Policy], output: str) -> tuple[Mealy, list[int]]:
    """The machine with its policies, and the state of the given one in each of its states.

    A symbol that a policy refuses has this output and changes no state. Only the states that words reach are kept.
    """
    rules = [policy.machine(machine.symbols) for policy in policies]
    parts: list[Mealy] = [machine, *rules]
    outputs = machine.outputs if output in machine.outputs else (*machine.outputs, output)
    number = {tuple(part.start for part in parts): 0}
    order = list(number)
    tables, readout = [], []
    for states in order:
        after = np.stack([part.tables[:, q].astype(np.int64) for part, q in zip(parts, states, strict=True)], 1)
        refused = np.zeros(machine.n_symbols, bool)
        for rule, q in zip(rules, states[1:], strict=True):
            refused |= rule.readout[:, q] == 1
        after[refused] = states
        row = []
        for target in map(tuple, after.tolist()):
            if target not in number:
                number[target] = len(order)
                order.append(target)
            row.append(number[target])
        tables.append(row)
        readout.append(np.where(refused, outputs.index(output), machine.readout[:, states[0]]))
    several = len({states[0] for states in order}) < len(order)
    names = [machine.states[s[0]] + (f"/{'/'.join(map(str, s[1:]))}" if several else "") for s in order]
    both = Mealy(
        symbols=machine.symbols, tables=np.array(tables).T, states=tuple(names), outputs=outputs,
        readout=np.stack(readout, 1),
    )  # fmt: skip
    return both, [states[0] for states in order]


def _matching(pattern: str, symbols: Sequence[str], rule: str) -> Ints:
    """Which symbols a name means."""
    some = [one for one in pattern.split("|") if one]
    found = np.array([any(fnmatchcase(s, p) or fnmatchcase(s.partition("(")[0], p) for p in some) for s in symbols])
    if not found.any():
        from exactstate.errors import unknown

        bare = list(dict.fromkeys(s.partition("(")[0] for s in symbols))
        raise InvalidConfig(f"{rule!r} names no symbol of the machine: {unknown('symbol', pattern, bare)}")
    return found


def _columns(*columns: Any) -> Ints:
    return np.stack(columns, axis=1)
