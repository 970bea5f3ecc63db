/** What a valid certificate states, in words; and its weakest column. */

import { type Machine } from "../automata/machine";
import { count } from "../dom";
import { Float, type Json, quoted } from "../json";
import { Exploration } from "./check";
import { type Certificate } from "./form";
import { regionSentence } from "./regions";

export interface Margin {
  value: number;
  layer: number;
  head: number;
  symbol: number;
  index: number;
}

export function sentences(c: Certificate): string[] {
  const words = c.grammar ? "every word that the grammar permits" : "every word";
  const heads = c.layers.map((layer) => layer.heads.join(", ")).join(" | ");
  const proved = (c.raw.get("proved") as Json[]).map(String);
  const others = [...(c.raw.get("rounding") as Map<string, Json>).keys()].filter((name) => !proved.includes(name));
  const tuples = new Set(c.configurations.map((row) => row.slice(0, c.layers.flatMap((layer) => layer.heads).length).join())).size;
  const joint = c.layers.flatMap((layer) => layer.heads).reduce((product, d) => product * BigInt(d), 1n);
  return [
    `The output after ${words}, of any length, equals that of the target${c.question ? ", and so does every answer" : ""}. The target has ${count(c.target.states.length, "state")}; the labels are its ${c.target.says}.`,
    `The network has heads of ${heads} indices${c.reach > 1 ? `, and convolutions over ${c.reach} symbols` : ""}. Words reach ${tuples.toLocaleString("en")} of ${joint.toLocaleString("en")} joint indices${c.configurations.length > tuples ? `, in ${count(c.configurations.length, "configuration")}` : ""}.`,
    proved.length ? `Given margins and error bounds as in the file, rounding changes nothing in ${proved.join(", ")}${others.length ? `; not proved in ${others.join(", ")}` : ""}.` : others.length ? `In ${others.join(", ")} it is not proved that rounding changes nothing.` : `No number format was tried; logits were evaluated in ${c.evaluated}.`,
    ...(c.regions ? [regionSentence(c.regions, c.grammar ? "every sequence of the grammar" : "every sequence", proved)] : []),
    `It is about the weights with the SHA-256 ${c.weights.slice(0, 16)}…, written by exactstate ${c.made.exactstate}.`,
  ];
}

/** What the check does not establish. */
export const NOT_ESTABLISHED =
  "Established is that the file is consistent: its machine computes its target. Not established is which weights it is about, which task its target is, and where margins and error bounds come from: exactstate check --weights and --against find that out. The seal is a checksum, not a signature.";

export function columnMargins(c: Certificate): Margin[] {
  const logits = (c.raw.get("margins") as Map<string, Json>).get("logits") as Json[][][][];
  const found: Margin[] = [];
  logits.forEach((layers, layer) => layers.forEach((table, head) => table.forEach((row, symbol) => row.forEach((value, index) => {
    if (value instanceof Float) found.push({ value: value.value, layer, head, symbol, index });
  }))));
  return found.sort((a, b) => a.value - b.value);
}

export function columnName(c: Certificate, { layer, head, symbol, index }: Margin): string {
  return `${c.layers.length > 1 ? `layer ${layer}, ` : ""}head ${head}, symbol ${quoted(c.symbols[symbol], 20)}, index ${index}`;
}

/** The machine of the configurations; where the grammar forbids a symbol, it stays and nothing is permitted. */
export function machineOf(c: Certificate): { machine: Machine; permitted?: (state: number, symbol: number) => boolean } {
  const walk = new Exploration(c);
  const n = c.configurations.length;
  const tables = c.symbols.map(() => Array.from({ length: n }, (_, q) => q));
  const readout = c.symbols.map(() => Array<number>(n).fill(0));
  const allowed = c.symbols.map(() => new Uint8Array(n));
  walk.steps.forEach((steps, q) => steps.forEach(({ symbol, after, label }) => {
    tables[symbol][q] = after;
    readout[symbol][q] = label;
    allowed[symbol][q] = 1;
  }));
  const states = c.configurations.map((row) => `(${row.join(", ")})`);
  const machine: Machine = { kind: "mealy", symbols: c.symbols, states, tables, start: 0, outputs: c.target.labels, readout };
  return c.grammar ? { machine, permitted: (state, symbol) => allowed[symbol][state] === 1 } : { machine };
}
