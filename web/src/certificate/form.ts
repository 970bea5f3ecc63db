/** The entries of a certificate, each of its type, length and range; what is not is refused with its place. */

import { Float, Int, isWellFormed, quoted, type Json, type JsonObject } from "../json";
import { type Regions, readRegions } from "./regions";

/** The reason why a certificate is not valid. */
export class Refused extends Error {}

export type Tables = number[][];

export interface Layer {
  heads: number[];
  start: number[];
  inputs: Tables;
  windows: Tables;
  /** [head][window][index] */
  tables: Tables[];
}

export interface Target {
  says: "states" | "outputs";
  states: string[];
  start: number;
  /** [symbol][state] */
  tables: Tables;
  labels: string[];
  /** [symbol][state]: the correct label */
  correct: Tables;
}

export interface Grammar {
  places: string[];
  start: number;
  tables: Tables;
  refused: number[];
}

export interface Question {
  answers: string[];
  start: number;
  tables: Tables;
  asked: Tables;
  right: Tables;
}

export interface Certificate {
  name: string;
  made: Record<"exactstate" | "python" | "numpy", string>;
  weights: string;
  evaluated: string;
  symbols: string[];
  target: Target;
  grammar: Grammar | null;
  question: Question | null;
  reach: number;
  layers: Layer[];
  configurations: Tables;
  readout: Tables;
  replies: Tables | null;
  matching: Tables;
  /** Where symbols are regions of inputs. */
  regions: Regions | null;
  /** Checked where they are recomputed. */
  raw: JsonObject;
}

const ENTRIES = [
  "format", "version", "name", "made", "weights", "evaluated", "symbols", "target", "grammar", "question", "reach", "layers",
  "configurations", "readout", "replies", "matching", "counts", "margins", "rounding", "proved", "sha256",
];
const MAX_REACH = 1023;
const MAX_INDICES = 2 ** 31 - 1;

/** [least, most], both included. */
export type Range = readonly [number, number];
const below = (n: number): Range => [0, n - 1];
const orNone = (n: number): Range => [-1, n - 1];

export function shown(value: Json): string {
  if (Array.isArray(value)) return `a list of ${value.length}`;
  if (value instanceof Map) return "an object";
  if (value instanceof Int) return value.value.toString().slice(0, 60);
  if (value instanceof Float) return String(value.value);
  return typeof value === "string" ? quoted(value) : String(value);
}

export function object(value: Json, where: string, keys: readonly string[]): JsonObject {
  if (!(value instanceof Map)) throw new Refused(`${where} is ${shown(value)}; wanted an object.`);
  for (const key of keys) if (!value.has(key)) throw new Refused(`${where} has no entry ${quoted(key)}.`);
  for (const key of value.keys()) {
    if (!keys.includes(key)) throw new Refused(`${where} has an entry ${quoted(key)} that does not belong there.`);
  }
  return value;
}

export function list(value: Json, where: string, count?: number): Json[] {
  if (!Array.isArray(value) || (count !== undefined && value.length !== count)) {
    throw new Refused(`${where} is ${shown(value)}; wanted a list${count === undefined ? "" : ` of ${count}`}.`);
  }
  return value;
}

function string(value: Json, where: string): string {
  if (typeof value !== "string") throw new Refused(`${where} is ${shown(value)}; wanted a string.`);
  if (!isWellFormed(value)) throw new Refused(`${where} has half of a surrogate pair; wanted Unicode text.`);
  return value;
}

export function names(value: Json, where: string, least = 1): string[] {
  const found = list(value, where).map((name, i) => string(name, `${where}[${i}]`));
  if (found.length < least) throw new Refused(`${where} is empty.`);
  const seen = new Set<string>();
  for (const name of found) {
    if (seen.has(name)) throw new Refused(`${where} holds ${quoted(name)} twice.`);
    seen.add(name);
  }
  return found;
}

export function integer(value: Json, where: string, [least, most]: Range): number {
  if (!(value instanceof Int) || value.value < BigInt(least) || value.value > BigInt(most)) {
    throw new Refused(`${where} is ${shown(value)}; wanted an integer from ${least} to ${most}.`);
  }
  return Number(value.value);
}

function integers(value: Json, where: string, ranges: readonly Range[]): number[] {
  return list(value, where, ranges.length).map((entry, i) => integer(entry, `${where}[${i}]`, ranges[i]));
}

function table(value: Json, where: string, count: number | undefined, ranges: readonly Range[]): Tables {
  const found = list(value, where, count);
  if (!found.length && count === undefined) throw new Refused(`${where} is empty.`);
  return found.map((row, i) => integers(row, `${where}[${i}]`, ranges));
}

const repeated = (range: Range, times: number): Range[] => Array<Range>(times).fill(range);

export function readForm(raw: JsonObject): Certificate {
  checkFormat(raw);
  object(raw, "the certificate", raw.has("regions") ? [...ENTRIES, "regions"] : ENTRIES);
  const get = (key: string): Json => raw.get(key)!;
  const made = object(get("made"), "made", ["exactstate", "python", "numpy"]);
  const version = (key: string): string => string(made.get(key)!, `made.${key}`);
  const origin = {
    name: string(get("name"), "name"),
    made: { exactstate: version("exactstate"), python: version("python"), numpy: version("numpy") },
    weights: digest(get("weights"), "weights"),
    evaluated: oneOf(get("evaluated"), "evaluated", ["float64", "float32"]),
  };
  digest(get("sha256"), "sha256");
  const symbols = names(get("symbols"), "symbols");
  const A = symbols.length;
  const target = readTarget(get("target"), A);
  const n = target.states.length;
  const grammar = get("grammar") === null ? null : readGrammar(get("grammar"), A);
  const question = get("question") === null ? null : readQuestion(get("question"), A, n);
  const reach = integer(get("reach"), "reach", [1, MAX_REACH]);
  const layers = readLayers(get("layers"), A, reach);
  checkMarginSizes(get("margins"), A, layers);
  const top = layers[layers.length - 1];
  const configurations = table(get("configurations"), "configurations", undefined, [
    ...layers.flatMap((layer) => layer.heads.map(below)),
    ...repeated(orNone(top.inputs.length), reach - 1),
    ...(grammar ? [below(grammar.places.length)] : []),
  ]);
  const matching = table(get("matching"), "matching", undefined, [
    below(configurations.length),
    below(n),
    ...(question ? [below(question.tables[0].length)] : []),
  ]);
  const readout = list(get("readout"), "readout", configurations.length).map((row, i) => {
    const place = configurations[i][configurations[i].length - 1];
    const permitted = grammar ? grammar.tables.filter((next) => !grammar.refused[next[place]]).length : A;
    return integers(row, `readout[${i}]`, repeated(below(target.labels.length), permitted));
  });
  if (!question && get("replies") !== null) throw new Refused("replies are given, but there is no question.");
  const replies =
    question &&
    list(get("replies"), "replies", matching.length).map((row, i) =>
      list(row, `replies[${i}]`).map((answer, j) => integer(answer, `replies[${i}][${j}]`, below(question.answers.length))),
    );
  const regions = raw.has("regions") ? readRegions(get("regions"), symbols) : null;
  return { ...origin, symbols, target, grammar, question, reach, layers, configurations, readout, replies, matching, regions, raw };
}

/** Format and version, before anything else is read. */
export function checkFormat(content: Json): asserts content is JsonObject {
  const format = content instanceof Map ? content.get("format") : undefined;
  if (typeof format === "string" && format !== "exactstate-certificate" && format.endsWith("-certificate")) {
    throw new Refused(`the format is ${shown(format)}, of another program or an older version; wanted "exactstate-certificate".`);
  }
  if (!(content instanceof Map) || format !== "exactstate-certificate") {
    throw new Refused('wanted a JSON object with "format": "exactstate-certificate"; this is some other JSON.');
  }
  const version = content.get("version") ?? null;
  if (!(version instanceof Int) || version.value !== 1n) {
    throw new Refused(`this is version ${shown(version)}; this page reads version 1.`);
  }
}

/** There is a margin for every symbol and index, so that what is computed of them is no larger than the file. */
function checkMarginSizes(value: Json, A: number, layers: Layer[]): void {
  const logits = object(value, "margins", ["logits", "labels", "answers"]).get("logits")!;
  list(logits, "margins.logits", layers.length).forEach((heads, l) =>
    list(heads, `margins.logits[${l}]`, layers[l].heads.length).forEach((table, head) =>
      list(table, `margins.logits[${l}][${head}]`, A).forEach((row, a) => list(row, `margins.logits[${l}][${head}][${a}]`, layers[l].heads[head])),
    ),
  );
}

function digest(value: Json, where: string): string {
  const found = string(value, where);
  if (!/^[0-9a-f]{64}$/.test(found)) throw new Refused(`${where} is not a SHA-256 in 64 hexadecimal digits.`);
  return found;
}

export function oneOf<T extends string>(value: Json, where: string, choices: readonly T[]): T {
  if (!(choices as readonly Json[]).includes(value)) {
    throw new Refused(`${where} is ${shown(value)}; wanted ${choices.map((one) => quoted(one)).join(" or ")}.`);
  }
  return value as T;
}

function readTarget(value: Json, A: number): Target {
  const byOutput = value instanceof Map && value.get("says") === "outputs";
  const entries = object(value, "target", ["says", "states", "start", "tables", ...(byOutput ? ["outputs", "readout"] : [])]);
  const says = oneOf(entries.get("says")!, "target.says", ["states", "outputs"]);
  const states = names(entries.get("states")!, "target.states");
  const n = states.length;
  const start = integer(entries.get("start")!, "target.start", below(n));
  const tables = table(entries.get("tables")!, "target.tables", A, repeated(below(n), n));
  if (!byOutput) return { says, states, start, tables, labels: states, correct: tables };
  const labels = names(entries.get("outputs")!, "target.outputs");
  const correct = table(entries.get("readout")!, "target.readout", A, repeated(below(labels.length), n));
  return { says, states, start, tables, labels, correct };
}

function readGrammar(value: Json, A: number): Grammar {
  const entries = object(value, "grammar", ["places", "start", "tables", "refused"]);
  const places = names(entries.get("places")!, "grammar.places");
  const g = places.length;
  return {
    places,
    start: integer(entries.get("start")!, "grammar.start", below(g)),
    tables: table(entries.get("tables")!, "grammar.tables", A, repeated(below(g), g)),
    refused: integers(entries.get("refused")!, "grammar.refused", repeated([0, 1], g)),
  };
}

function readQuestion(value: Json, A: number, n: number): Question {
  const entries = object(value, "question", ["answers", "start", "tables", "asked", "right"]);
  const answers = names(entries.get("answers")!, "question.answers");
  const width = (key: string, rows: number): number =>
    list(list(entries.get(key)!, `question.${key}`, rows)[0], `question.${key}[0]`).length;
  const z = width("tables", A);
  const asked = width("right", n);
  return {
    answers,
    start: integer(entries.get("start")!, "question.start", below(z)),
    tables: table(entries.get("tables")!, "question.tables", A, repeated(below(z), z)),
    asked: table(entries.get("asked")!, "question.asked", A, repeated(orNone(asked), z)),
    // one more than there are answers: none is correct
    right: table(entries.get("right")!, "question.right", n, repeated(below(answers.length + 1), asked)),
  };
}

function readLayers(value: Json, A: number, reach: number): Layer[] {
  let sizes = [A];
  const layers = list(value, "layers").map((entry, depth) => {
    const where = `layers[${depth}]`;
    const entries = object(entry, where, ["heads", "start", "inputs", "windows", "tables"]);
    const heads = list(entries.get("heads")!, `${where}.heads`).map((d, h) =>
      integer(d, `${where}.heads[${h}]`, [1, MAX_INDICES]),
    );
    if (!heads.length) throw new Refused(`${where}.heads is empty.`);
    const start = integers(entries.get("start")!, `${where}.start`, heads.map(below));
    const inputs = table(entries.get("inputs")!, `${where}.inputs`, undefined, sizes.map(below));
    if (depth === 0 && (inputs.length !== A || inputs.some((row, a) => row[0] !== a))) {
      throw new Refused(`${where}.inputs are not the ${A} symbols in order.`);
    }
    const windows = table(entries.get("windows")!, `${where}.windows`, undefined, repeated(orNone(inputs.length), reach));
    const perHead = list(entries.get("tables")!, `${where}.tables`, heads.length);
    const tables = perHead.map((rows, h) =>
      // a head's size is checked against the file before anything of that size is made
      list(rows, `${where}.tables[${h}]`, windows.length).map((row, w) =>
        list(row, `${where}.tables[${h}][${w}]`, heads[h]).map((entry, k) =>
          integer(entry, `${where}.tables[${h}][${w}][${k}]`, orNone(heads[h])),
        ),
      ),
    );
    sizes = [inputs.length, ...heads];
    return { heads, start, inputs, windows, tables };
  });
  if (!layers.length) throw new Refused("layers is empty.");
  return layers;
}
