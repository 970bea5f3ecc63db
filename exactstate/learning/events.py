"""Events from calls: what of a call a machine reads, declared in a small file or proposed from the data.

    wait = [1, 60]              # seconds: a wait before a call is a symbol, by range; shorter ones are none
    ignore = ["get_time"]       # calls that are left out

    [call.pay]
    amount = [100, 1000]        # numbers are cut into ranges
    currency = "value"          # the value itself
    account = "id"              # new, or known from an earlier call of the same trace

A call that the file does not name is its name alone. `pay` above becomes `pay(amount=100..1000,account=new)`.
"""

from __future__ import annotations

import math
import os
import re
import tomllib
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from exactstate.errors import BrokenFile, InvalidConfig, unreadable
from exactstate.learning.calls import Call, CallTrace, Value

Rule = str | tuple[float, ...]
"""How an argument is read: "value", "id", or the cuts of its ranges."""
WORDS = ("value", "id")
FEW, OFTEN = 6, 5
"""An argument with at most so many values, each seen so often on average, is proposed as a value."""


@dataclass(frozen=True, kw_only=True)
class Events:
    """What of a call is read; by default its name."""

    arguments: Mapping[str, Mapping[str, Rule]] = field(default_factory=dict)
    """By call: how its arguments are read."""
    wait: tuple[float, ...] = ()
    """Cuts of waiting times, in seconds."""
    ignore: tuple[str, ...] = ()

    def symbols(self, calls: Iterable[Call]) -> list[str]:
        """The symbols of the calls of one trace."""
        session = Session(self)
        return [symbol for call in calls for symbol in session.symbols(call)]

    def to_toml(self) -> str:
        """The file that declares these events."""
        lines = [f"wait = {_cuts(self.wait)}"] if self.wait else []
        lines += [f"ignore = [{', '.join(map(_quoted, self.ignore))}]"] if self.ignore else []
        for name, rules in self.arguments.items():
            lines += ["", f"[call.{_quoted(name)}]"]
            lines += [f"{_quoted(k)} = {_quoted(v) if isinstance(v, str) else _cuts(v)}" for k, v in rules.items()]
        return "\n".join(lines).strip() + "\n"

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Events:
        """The events that a file declares."""
        try:
            with open(path, "rb") as file:
                return cls.of(tomllib.load(file))
        except OSError as error:
            raise unreadable(path, error) from None
        except (InvalidConfig, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise BrokenFile(path, f"{str(error).rstrip('.').lower()}.") from None

    @classmethod
    def of(cls, entries: Mapping[str, Any]) -> Events:
        """The events of the entries of a file."""
        strange = set(entries) - {"wait", "ignore", "call"}
        if strange:
            raise InvalidConfig(f"events have the entries wait, ignore and call; got {sorted(strange)[0]!r}.")
        calls = entries.get("call", {})
        if not isinstance(calls, Mapping) or not all(isinstance(rules, Mapping) for rules in calls.values()):
            raise InvalidConfig("a call is a table of its arguments, such as [call.pay].")
        arguments = {name: {k: _rule(v, f"{name}.{k}") for k, v in rules.items()} for name, rules in calls.items()}
        wait = _rule(entries["wait"], "wait") if "wait" in entries else ()
        ignore = entries.get("ignore", [])
        if isinstance(wait, str) or not isinstance(ignore, list) or not all(isinstance(name, str) for name in ignore):
            raise InvalidConfig("wait is a list of seconds, and ignore a list of names.")
        return cls(arguments=arguments, wait=wait, ignore=tuple(ignore))


class Session:
    """One trace as it comes: the symbols of each call."""

    def __init__(self, events: Events) -> None:
        self.events = events
        self.seen: set[Value] = set()
        self.time: float | None = None
        self.backwards = 0
        """How often the clock went back; that counts as no wait."""
        self._ignored = frozenset(events.ignore)
        self._unifies = any(rule == "id" for rules in events.arguments.values() for rule in rules.values())

    def symbols(self, call: Call) -> list[str]:
        """A wait, if it is long enough to be one, and the call; nothing for calls that are ignored."""
        name, arguments, time = call
        if name in self._ignored:
            return []
        symbols = []
        if self.events.wait and time is not None:
            passed = 0.0 if self.time is None else time - self.time
            self.backwards += passed < 0
            self.time = time if self.time is None else max(time, self.time)
            if passed >= self.events.wait[0]:
                symbols.append(f"wait({_range(passed, self.events.wait)})")
        rules = self.events.arguments.get(name)
        if not rules:
            if self._unifies:
                self.seen.update(arguments.values())
            symbols.append(_escaped(name))
            return symbols
        parts = []
        for argument, rule in rules.items():
            value = arguments.get(argument)
            if rule == "id":
                shown = "none" if value is None else "known" if value in self.seen else "new"
            elif rule == "value":
                shown = "none" if value is None else _escaped(str(value))
            else:
                number = _number(value)
                shown = "none" if number is None else _range(number, rule)  # type: ignore[arg-type]
            parts.append(f"{_escaped(argument)}={shown}")
        if self._unifies:
            self.seen.update(arguments.values())
        symbols.append(f"{_escaped(name)}({','.join(parts)})")
        return symbols


def propose(traces: Sequence[CallTrace]) -> Events:
    """Events for these traces: few values as they are, repeated ids unified, numbers cut at their quartiles."""
    values: dict[tuple[str, str], list[Value]] = defaultdict(list)
    known: Counter[tuple[str, str]] = Counter()
    waits: list[float] = []
    for trace in traces:
        seen: set[Value] = set()
        before: float | None = None
        for call in trace.calls:
            for argument, value in call.arguments.items():
                place = (call.name, argument)
                values[place].append(value)
                known[place] += value is not None and value in seen
            seen.update(call.arguments.values())
            if call.time is not None:
                waits += [] if before is None else [call.time - before]
                before = call.time
    arguments: dict[str, dict[str, Rule]] = defaultdict(dict)
    for (name, argument), found in values.items():
        rule = _proposed(found, known[name, argument])
        if rule is not None:
            arguments[name][argument] = rule
    cuts = [cut for cut in (1.0, 60.0, 3600.0) if 0.02 < sum(w >= cut for w in waits) / max(len(waits), 1) < 0.98]
    return Events(arguments=dict(arguments), wait=tuple(cuts))


def _proposed(values: list[Value], known: int) -> Rule | None:
    distinct = Counter(values)
    if 2 <= len(distinct) <= FEW and len(values) >= OFTEN * len(distinct):
        return "value"
    if len(distinct) <= FEW:
        return None
    if known / len(values) >= 0.1 and not any(isinstance(value, float) for value in values):
        return "id"
    numbers = sorted(number for number in map(_number, values) if number is not None)
    if len(numbers) == len(values):
        quartiles = [float(f"{numbers[len(numbers) * k // 4]:.2g}") for k in (1, 2, 3)]
        return tuple(sorted(set(quartiles)))
    return None


def _rule(value: Any, place: str) -> Rule:
    if value in WORDS:
        return str(value)
    numbers = value if isinstance(value, list) else []
    good = numbers and all(isinstance(n, int | float) and not isinstance(n, bool) for n in numbers)
    if not good or sorted(set(numbers)) != numbers:
        raise InvalidConfig(
            f'{place} is "value", "id", or cuts in ascending order such as [10, 100]; got {value!r:.60}.'
        )
    return tuple(map(float, numbers))


def _number(value: Value) -> float | None:
    try:
        number = math.nan if value is None or isinstance(value, bool) else float(value)
    except (ValueError, OverflowError):
        return None
    return None if math.isnan(number) else number


def _range(number: float, cuts: Sequence[float]) -> str:
    place = bisect_right(cuts, number)
    if place == 0:
        return f"<{cuts[0]:g}"
    return f">={cuts[-1]:g}" if place == len(cuts) else f"{cuts[place - 1]:g}..{cuts[place]:g}"


_UNSAFE = re.compile(r"[^\w.:@/#*+<>-]")


def _escaped(text: str) -> str:
    """The text without blanks and signs that separate: these as %XX, as in addresses."""
    return (
        text
        if not _UNSAFE.search(text)
        else _UNSAFE.sub(lambda c: "".join(f"%{b:02X}" for b in c[0].encode("utf-8", "surrogatepass")), text)
    )


def _quoted(text: str) -> str:
    return '"' + "".join(c if c.isprintable() and c not in '"\\' else f"\\U{ord(c):08X}" for c in text) + '"'


def _cuts(cuts: Sequence[float]) -> str:
    return f"[{', '.join(f'{cut:g}' for cut in cuts)}]"
