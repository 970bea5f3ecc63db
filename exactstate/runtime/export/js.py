"""A machine as one JavaScript module, for browsers and Node: tables, and functions over them."""

from __future__ import annotations

import json
from collections.abc import Sequence

from exactstate._types import Ints
from exactstate.runtime.machine import Machine


def to_javascript(machine: Machine) -> str:
    """The machine as an ES module."""
    return _MODULE.format(
        symbols=_names(machine.symbols), states=_names(machine.states), output_names=_names(machine.output_names),
        n_symbols=machine.n_symbols, n_states=machine.n_states, n_outputs=len(machine.output_names),
        start=machine.start, next=_table(machine.automaton.tables), table=_table(machine.readout),
        cut="Array.from(word)" if machine.alphabet.by_letter else "cut(word.split(/\\s+/).filter(Boolean))",
        most_words=machine.alphabet.most_words,
    )  # fmt: skip


def _names(names: Sequence[str]) -> str:
    # ASCII only, and no angle bracket: the module may stand inside an HTML page
    return json.dumps(list(names)).replace("<", "\\u003c").replace(">", "\\u003e")


def _table(table: Ints) -> str:
    kind = {1: "Uint8Array", 2: "Uint16Array", 4: "Uint32Array"}[table.itemsize]
    rows = ",\n  ".join(",".join(map(str, row)) for row in table.tolist())
    return f"{kind}.of(\n  {rows},\n)" if table.size < 1000 else f"new {kind}([\n  {rows},\n])"


_MODULE = """\
// A finite-state machine: {n_states} states, {n_symbols} symbols, {n_outputs} outputs. Written by exactstate.
//
//   import {{ run, outputs, Stream }} from "./machine.mjs";
//   outputs("a b a")         the name of the output at every symbol
//   outputIds("a b a")       its number in outputNames
//   run("a b a")             the number of the state at the end
//   const s = new Stream();  s.push("a b"); s.push("a"); s.position

export const symbols = {symbols};
export const states = {states};
export const outputNames = {output_names};
export const start = {start};

// symbol * states.length + state
const next = {next};
const outputTable = {table};
const numbers = new Map(symbols.map((name, number) => [name, number]));

// Words as symbols, the longest first: a symbol may have up to {most_words}.
export function cut(words) {{
  const found = [];
  for (let at = 0; at < words.length; ) {{
    let count = Math.min({most_words}, words.length - at);
    while (count > 1 && !numbers.has(words.slice(at, at + count).join(" "))) count--;
    found.push(words.slice(at, at + count).join(" "));
    at += count;
  }}
  return found;
}}

// A word as symbol numbers: from names, from numbers, or from text.
export function encode(word) {{
  const items = typeof word === "string" ? {cut} : word;
  return Array.from(items, (item, place) => {{
    const number = typeof item === "string" ? numbers.get(item) : item;
    if (!Number.isInteger(number) || number < 0 || number >= symbols.length) {{
      throw new RangeError(`unknown symbol ${{JSON.stringify(item)}} at position ${{place}}`);
    }}
    return number;
  }});
}}

export function step(state, symbol) {{
  return next[symbol * states.length + state];
}}

export function readout(state, symbol) {{
  return outputTable[symbol * states.length + state];
}}

export class Stream {{
  constructor(position = {{ state: start, symbols_read: 0 }}) {{
    this.state = position.state;
    this.symbols_read = position.symbols_read;
  }}

  // The number of the output at every symbol.
  push(word) {{
    const read = encode(word);
    const ids = read.map((symbol) => {{
      const id = readout(this.state, symbol);
      this.state = step(this.state, symbol);
      return id;
    }});
    this.symbols_read += read.length;
    return ids;
  }}

  get position() {{
    return {{ state: this.state, symbols_read: this.symbols_read }};
  }}
}}

export function outputIds(word) {{
  return new Stream().push(word);
}}

export function outputs(word) {{
  return outputIds(word).map((id) => outputNames[id]);
}}

export function run(word) {{
  const stream = new Stream();
  stream.push(word);
  return stream.state;
}}
"""
