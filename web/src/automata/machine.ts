/** Moore and Mealy machines with integer tables, and the file format of exactstate/runtime/FORMAT.md. */

import { Float, Int, isWellFormed, type Json, NotJson, parseJson, quoted } from "../json";

export type Kind = "moore" | "mealy" | "semiautomaton";

export interface Machine {
  kind: Kind;
  symbols: string[];
  states: string[];
  /** [symbol][state]: where the symbol sends the state */
  tables: number[][];
  start: number;
  outputs: string[];
  /** [symbol][state]: the output when the symbol is read in the state. A Moore machine outputs the state it has reached. */
  readout: number[][];
  /** Of a Moore machine: the output of every state. */
  stateOutputs?: number[];
  /** By its heads: small machines in parallel that determine the state. */
  heads?: Head[];
}

export interface Head {
  start: number;
  tables: number[][];
}

export interface Run {
  /** The start, then the state after every symbol. */
  states: number[];
  outputs: number[];
}

/** A file that is not a machine: why. */
export class NotMachine extends Error {}

/** Symbol by symbol: the obvious way, and the reference of the tests. */
export function run(machine: Machine, word: readonly number[], start = machine.start): Run {
  const states = [start];
  const outputs: number[] = [];
  for (const symbol of word) {
    const state = states[states.length - 1];
    outputs.push(machine.readout[symbol][state]);
    states.push(machine.tables[symbol][state]);
  }
  return { states, outputs };
}

/** The read-out of a Moore machine, also by symbol and state: the output of the state that is reached. */
export function mooreReadout(tables: readonly number[][], stateOutputs: number[]): Pick<Machine, "readout" | "stateOutputs"> {
  return { readout: tables.map((row) => row.map((next) => stateOutputs[next])), stateOutputs };
}

/** The machine in the text of a JSON file. */
export function machineFromJson(text: string): Machine {
  let content: Json;
  try {
    content = parseJson(text);
  } catch (error) {
    if (error instanceof NotJson) throw new NotMachine(`this is not JSON: ${error.message}, line ${error.line}.`);
    throw error;
  }
  return machineFromContent(content);
}

const ALWAYS = ["format", "version", "kind", "symbols", "states", "tables"];
const WITH_OUTPUTS = [...ALWAYS, "start", "outputs", "readout"];

export function machineFromContent(content: Json): Machine {
  const format = content instanceof Map ? content.get("format") : undefined;
  if (typeof format === "string" && format !== "exactstate-machine" && format.endsWith("-machine")) {
    throw new NotMachine(`the format is ${quoted(format)}, of another program or an older version; wanted "exactstate-machine", with the same entries.`);
  }
  if (!(content instanceof Map) || format !== "exactstate-machine") {
    throw new NotMachine('wanted a JSON object with "format": "exactstate-machine"; this is some other JSON.');
  }
  const version = content.get("version");
  if (!(version instanceof Int) || version.value !== 1n) throw wrong("version", version ?? null, "1");
  const kind = content.get("kind") ?? null;
  if (kind !== "moore" && kind !== "mealy" && kind !== "semiautomaton") {
    throw wrong("kind", kind, "moore, mealy or semiautomaton");
  }
  const wanted = kind === "semiautomaton" ? ALWAYS : WITH_OUTPUTS;
  for (const key of wanted) if (!content.has(key)) throw new NotMachine(`a ${kind} needs the entry ${quoted(key)}; it is missing.`);
  for (const key of content.keys()) {
    if (![...wanted, "heads", "about"].includes(key)) throw new NotMachine(`the entry ${quoted(key)} does not belong in a ${kind}.`);
  }
  const symbols = names(content.get("symbols")!, "symbols");
  const states = names(content.get("states")!, "states");
  const [A, n] = [symbols.length, states.length];
  const tables = grid(content.get("tables")!, "tables", A, n, n);
  const base = { kind, symbols, states, tables } as const;
  const heads = content.has("heads") ? readHeads(content.get("heads")!, A) : undefined;
  if (kind === "semiautomaton") return { ...base, start: 0, outputs: states, readout: tables, ...(heads && { heads }) };
  const outputs = names(content.get("outputs")!, "outputs");
  const start = number(content.get("start")!, "start", n);
  const given = content.get("readout")!;
  const readout =
    kind === "mealy"
      ? { readout: grid(given, "readout", A, n, outputs.length) }
      : mooreReadout(tables, row(given, "readout", n, outputs.length));
  const machine: Machine = { ...base, start, outputs, ...readout, ...(heads && { heads }) };
  if (heads) checkHeads(machine, heads);
  return machine;
}

function wrong(place: string, value: Json, wanted: string): NotMachine {
  return new NotMachine(`the entry ${place} is ${brief(value)}; wanted ${wanted}.`);
}

function brief(value: Json): string {
  if (Array.isArray(value)) return `a list of ${value.length}`;
  if (value instanceof Map) return "an object";
  if (value instanceof Int || value instanceof Float) return String(value.value).slice(0, 30);
  return typeof value === "string" ? quoted(value, 30) : String(value);
}

function names(value: Json, key: string): string[] {
  if (!Array.isArray(value) || !value.length) throw wrong(key, value, "a list of names");
  const seen = new Set<string>();
  return value.map((name, i) => {
    if (typeof name !== "string") throw wrong(`${key}[${i}]`, name, "a string");
    if (!isWellFormed(name)) throw new NotMachine(`the entry ${key}[${i}] holds half a surrogate pair.`);
    if (seen.has(name)) throw new NotMachine(`the entry ${key} holds ${quoted(name)} twice.`);
    seen.add(name);
    return name;
  });
}

function number(value: Json, place: string, below: number): number {
  if (!(value instanceof Int) || value.value < 0n || value.value >= BigInt(below)) {
    throw wrong(place, value, `an integer from 0 to ${below - 1}`);
  }
  return Number(value.value);
}

function row(value: Json, place: string, length: number, below: number): number[] {
  if (!Array.isArray(value) || value.length !== length) throw wrong(place, value, `${length} numbers, one per state`);
  return value.map((entry, i) => number(entry, `${place}[${i}]`, below));
}

function grid(value: Json, place: string, rows: number, columns: number, below: number): number[][] {
  if (!Array.isArray(value) || value.length !== rows) throw wrong(place, value, `${rows} rows, one per symbol`);
  return value.map((entry, i) => row(entry, `${place}[${i}]`, columns, below));
}

function readHeads(value: Json, A: number): Head[] {
  if (!Array.isArray(value)) throw wrong("heads", value, "a list");
  return value.map((head, h) => {
    const place = `heads[${h}]`;
    const tables = head instanceof Map ? (head.get("tables") ?? null) : null;
    if (!(head instanceof Map) || head.size !== 2 || !Array.isArray(tables) || !Array.isArray(tables[0] ?? null)) {
      throw wrong(place, head, "an object with start and tables");
    }
    const d = (tables[0] as Json[]).length;
    return { start: number(head.get("start") ?? null, `${place}.start`, d), tables: grid(tables, `${place}.tables`, A, d, d) };
  });
}

/** No tuple of indices may occur with two different states, and every state must occur. */
function checkHeads(machine: Machine, heads: Head[]): void {
  const first = heads.map((head) => head.start);
  const stateOf = new Map([[first.join(), machine.start]]);
  const queue = [first];
  for (const indices of queue) {
    const state = stateOf.get(indices.join())!;
    machine.tables.forEach((table, a) => {
      const after = heads.map((head, h) => head.tables[a][indices[h]]);
      const known = stateOf.get(after.join());
      if (known === undefined) {
        stateOf.set(after.join(), table[state]);
        queue.push(after);
      } else if (known !== table[state]) {
        throw new NotMachine(`the heads do not determine the state: the indices [${after}] occur with two states.`);
      }
    });
  }
  if (new Set(stateOf.values()).size < machine.states.length) throw new NotMachine("some state is never reached by the heads.");
}

/** The machine as a file that exactstate reads. */
export function machineToJson(machine: Machine): string {
  const entries: [string, unknown][] = [
    ["format", "exactstate-machine"],
    ["version", 1],
    ["kind", machine.kind],
    ["symbols", machine.symbols],
    ["states", machine.states],
    ["tables", machine.tables],
  ];
  if (machine.kind !== "semiautomaton") {
    entries.push(["start", machine.start], ["outputs", machine.outputs]);
    entries.push(["readout", machine.stateOutputs ?? machine.readout]);
  }
  return `{\n${entries.map(([key, value]) => `  ${JSON.stringify(key)}: ${JSON.stringify(value)}`).join(",\n")}\n}\n`;
}

/** The symbols in a text: names separated by blanks or commas, or single letters where all symbols are letters. */
export function wordFromText(text: string, symbols: readonly string[]): number[] {
  const number = new Map(symbols.map((symbol, i) => [symbol, i]));
  const byLength = [...symbols].map((s, i) => [s, i] as const).sort((a, b) => b[0].length - a[0].length);
  const word: number[] = [];
  let at = 0;
  while (at < text.length) {
    if (/[\s,]/.test(text[at]) && !number.has(text[at])) {
      at++;
      continue;
    }
    const found = byLength.find(([symbol]) => symbol && text.startsWith(symbol, at));
    if (!found) {
      const rest = text.slice(at).split(/[\s,]/)[0] || text[at];
      throw new NotMachine(`${quoted(rest, 20)} is not a symbol; there are ${symbols.slice(0, 8).map((s) => quoted(s, 20)).join(", ")}${symbols.length > 8 ? ", …" : ""}.`);
    }
    word.push(found[1]);
    at += found[0].length;
  }
  return word;
}

export function wordToText(word: readonly number[], symbols: readonly string[]): string {
  return word.map((a) => symbols[a]).join(symbols.every((symbol) => [...symbol].length === 1) ? "" : " ");
}
