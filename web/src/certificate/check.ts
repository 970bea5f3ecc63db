/**
 * A second, independent check of a certificate, written from exactstate/certify/FORMAT.md. The first one is
 * exactstate/certify/check.py; the tests compare their verdicts on thousands of changed certificates.
 *
 * Where check.py replays every listed configuration, this one explores: it starts at the initial configuration and the
 * initial pair, follows every permitted symbol, and compares what it has found with what the file lists.
 */

import { Float, type Json, type JsonObject, NotJson, decodeUtf8, parseJson, quoted } from "../json";
import { type Certificate, type Layer, Refused, type Tables, checkFormat, list, names, object, readForm, shown } from "./form";
import { seal } from "./seal";

export interface Verdict {
  /** The reasons against the certificate; empty if it is valid. */
  findings: string[];
  /** Its content, if it is in form. */
  certificate: Certificate | null;
}

/** Why a file is not a certificate at all. */
export class Unreadable extends Error {}

/** Check the bytes of a file. A file that is not a certificate throws `Unreadable`. */
export function checkFile(bytes: Uint8Array): Verdict {
  const text = decodeUtf8(bytes);
  if (text === null) throw new Unreadable("this is not UTF-8 text.");
  let content: Json;
  try {
    content = parseJson(text);
  } catch (error) {
    if (error instanceof NotJson) throw new Unreadable(`this is not a certificate: ${error.message}, line ${error.line}.`);
    throw error;
  }
  try {
    checkFormat(content);
  } catch (error) {
    if (error instanceof Refused) throw new Unreadable(error.message);
    throw error;
  }
  return check(content);
}

export function check(content: JsonObject): Verdict {
  const findings: string[] = [];
  let certificate: Certificate | null = null;
  const attempt = (part: () => void): void => {
    try {
      part();
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      findings.push(error.message);
    }
  };
  attempt(() => {
    if (seal(content) !== content.get("sha256")) {
      throw new Refused("the content was changed after it was sealed: its SHA-256 is not the one given.");
    }
  });
  attempt(() => {
    certificate = readForm(content);
    const walk = new Exploration(certificate);
    const asked = matchTarget(certificate, walk);
    checkCounts(certificate);
    checkRounding(certificate, walk, asked);
  });
  return { findings, certificate };
}

interface Step {
  symbol: number;
  after: number;
  /** What the read-out depends on: the input of the top layer and the indices that its heads moved to. */
  final: string;
  label: number;
}

/** The position of every row, none of which may occur twice. */
function positions(rows: Tables, where: string): Map<string, number> {
  const found = new Map<string, number>();
  rows.forEach((row, i) => {
    const key = row.join();
    if (found.has(key)) throw new Refused(`${where}[${i}] occurs twice.`);
    found.set(key, i);
  });
  return found;
}

/** Everything that words reach from the initial configuration, by the tables of the certificate. */
export class Exploration {
  readonly steps: Step[][] = [];
  /** [layer][head] A × d: whether a symbol is read at an index. */
  readonly moved: Uint8Array[][];
  readonly read: boolean[];
  private readonly used: Uint8Array[][];
  private readonly usedInputs: Set<number>[];
  private readonly numbers: Map<string, number>;
  private readonly inputNumbers: Map<string, number>[];
  private readonly windowNumbers: Map<string, number>[];

  constructor(private readonly c: Certificate) {
    const A = c.symbols.length;
    this.numbers = positions(c.configurations, "configurations");
    this.inputNumbers = c.layers.map((layer, l) => positions(layer.inputs, `layers[${l}].inputs`));
    this.windowNumbers = c.layers.map((layer, l) => positions(layer.windows, `layers[${l}].windows`));
    this.moved = c.layers.map((layer) => layer.heads.map((d) => new Uint8Array(A * d)));
    this.used = c.layers.map((layer) => layer.heads.map((d) => new Uint8Array(layer.windows.length * d)));
    this.usedInputs = c.layers.map(() => new Set());
    this.read = Array<boolean>(A).fill(false);
    this.explore();
    this.refuseUnused();
  }

  private explore(): void {
    const { c } = this;
    const start = [
      ...c.layers.flatMap((layer) => layer.start),
      ...Array<number>(c.reach - 1).fill(-1),
      ...(c.grammar ? [c.grammar.start] : []),
    ];
    if (this.numbers.get(start.join()) !== 0) {
      throw new Refused(`configurations[0] is [${c.configurations[0]}]; the initial configuration is [${start}].`);
    }
    const queue = [0];
    const seen = new Set(queue);
    const labelOf = new Map<string, number>();
    for (const number of queue) {
      this.steps[number] = this.stepsFrom(number, labelOf);
      for (const { after } of this.steps[number]) {
        if (!seen.has(after)) {
          seen.add(after);
          queue.push(after);
        }
      }
    }
    const missed = c.configurations.findIndex((_, i) => !seen.has(i));
    if (missed >= 0) throw new Refused(`configurations[${missed}] is never reached.`);
  }

  private stepsFrom(number: number, labelOf: Map<string, number>): Step[] {
    const { c } = this;
    const before = c.configurations[number];
    const steps: Step[] = [];
    for (let symbol = 0; symbol < c.symbols.length; symbol++) {
      let place: number[] = [];
      if (c.grammar) {
        const next = c.grammar.tables[symbol][before[before.length - 1]];
        if (c.grammar.refused[next]) continue;
        place = [next];
      }
      const { row, final } = this.move(number, symbol);
      const whole = [...row, ...place];
      const after = this.numbers.get(whole.join());
      if (after === undefined) throw new Refused(`${this.way(number, symbol)} [${whole}], which is not among configurations.`);
      const label = c.readout[number][steps.length];
      const known = labelOf.get(final);
      if (known !== undefined && known !== label) {
        throw new Refused(
          `readout[${number}]: ${quoted(c.target.labels[label])} at the symbol ${quoted(c.symbols[symbol])}, but ` +
            `${quoted(c.target.labels[known])} elsewhere at the same input and indices.`,
        );
      }
      labelOf.set(final, label);
      this.read[symbol] = true;
      steps.push({ symbol, after, final, label });
    }
    return steps;
  }

  /** One step of all layers, from the first up. */
  private move(number: number, symbol: number): { row: number[]; final: string } {
    const { c } = this;
    const before = c.configurations[number];
    const heads = c.layers.reduce((sum, layer) => sum + layer.heads.length, 0);
    const memory = before.slice(heads, heads + c.reach - 1);
    const after: number[] = [];
    let at = 0;
    let input = [symbol];
    let newest = 0;
    for (const [depth, layer] of c.layers.entries()) {
      const found = this.inputNumbers[depth].get(input.join());
      if (found === undefined) throw new Refused(`${this.way(number, symbol)} the input [${input}], not among layers[${depth}].inputs.`);
      newest = found;
      this.usedInputs[depth].add(newest);
      const key = [...memory.map((top) => this.inputBelow(top, depth)), newest];
      const window = this.windowNumbers[depth].get(key.join());
      if (window === undefined) throw new Refused(`${this.way(number, symbol)} the window [${key}], not among layers[${depth}].windows.`);
      const moved = layer.heads.map((d, head) => {
        const k = before[at++];
        const next = layer.tables[head][window][k];
        if (next < 0) throw new Refused(`layers[${depth}].tables[${head}][${window}][${k}] is -1, but it is used.`);
        this.used[depth][head][window * d + k] = 1;
        this.moved[depth][head][symbol * d + k] = 1;
        return next;
      });
      after.push(...moved);
      input = [newest, ...moved];
    }
    return { row: [...after, ...[...memory, newest].slice(1)], final: input.join() };
  }

  /** The input of the layer at this depth that belongs to an input of the top layer. */
  private inputBelow(top: number, depth: number): number {
    for (let l = this.c.layers.length - 1; l > depth && top >= 0; l--) top = this.c.layers[l].inputs[top][0];
    return top;
  }

  private way(number: number, symbol: number): string {
    return `configurations[${number}] and the symbol ${quoted(this.c.symbols[symbol])} lead to`;
  }

  /** A listed input, window or table entry that no word uses is refused: nothing in the file is decoration. */
  private refuseUnused(): void {
    for (const [depth, layer] of this.c.layers.entries()) {
      const where = `layers[${depth}]`;
      const input = depth === 0 ? -1 : layer.inputs.findIndex((_, i) => !this.usedInputs[depth].has(i));
      if (input >= 0) throw new Refused(`${where}.inputs[${input}] is never used.`);
      const d = layer.heads[0];
      const window = layer.windows.findIndex((_, w) => !this.used[depth][0].subarray(w * d, (w + 1) * d).includes(1));
      if (window >= 0) throw new Refused(`${where}.windows[${window}] is never used.`);
      this.refuseUnusedEntries(layer, depth);
    }
  }

  private refuseUnusedEntries(layer: Layer, depth: number): void {
    layer.tables.forEach((table, head) =>
      table.forEach((row, w) =>
        row.forEach((next, k) => {
          if (next >= 0 && !this.used[depth][head][w * row.length + k]) {
            throw new Refused(`layers[${depth}].tables[${head}][${w}][${k}] is never used; wanted -1.`);
          }
        }),
      ),
    );
  }
}

/** The matching holds exactly the pairs that words reach, and outputs agree at each; returns where answers are asked for. */
function matchTarget(c: Certificate, walk: Exploration): boolean[] {
  const { target, question } = c;
  const numbers = positions(c.matching, "matching");
  const start = [0, target.start, ...(question ? [question.start] : [])];
  if (numbers.get(start.join()) !== 0) throw new Refused(`matching[0] is [${c.matching[0]}]; the initial states are [${start}].`);
  const asked = Array<boolean>(c.symbols.length).fill(false);
  const answerOf = new Map<string, number>();
  const queue = [0];
  const seen = new Set(queue);
  for (const i of queue) {
    const [configuration, state, z] = c.matching[i];
    const answers: number[] = [];
    for (const { symbol, after, final, label } of walk.steps[configuration]) {
      const pair = [after, target.tables[symbol][state], ...(question ? [question.tables[symbol][z]] : [])];
      const next = numbers.get(pair.join());
      const at = `matching[${i}] and the symbol ${quoted(c.symbols[symbol])}`;
      if (next === undefined) throw new Refused(`${at} lead to [${pair}], which is not among matching.`);
      if (!seen.has(next)) {
        seen.add(next);
        queue.push(next);
      }
      const wanted = target.correct[symbol][state];
      if (label !== wanted) {
        throw new Refused(`${at}: the model outputs ${quoted(target.labels[label])}, the target ${quoted(target.labels[wanted])}.`);
      }
      if (question && question.asked[symbol][z] >= 0) {
        asked[symbol] = true;
        const answer = question.right[pair[1]][question.asked[symbol][z]];
        const known = answerOf.get(final);
        if (known !== undefined && known !== answer) throw new Refused(`${at}: equal inputs and indices need two different answers.`);
        answerOf.set(final, answer);
        answers.push(answer);
      }
    }
    if (c.replies && c.replies[i].join() !== answers.join()) {
      throw new Refused(`replies[${i}] is [${c.replies[i]}]; the correct answers are [${answers}].`);
    }
  }
  const missed = c.matching.findIndex((_, i) => !seen.has(i));
  if (missed >= 0) throw new Refused(`matching[${missed}] is never reached.`);
  return asked;
}

function checkCounts(c: Certificate): void {
  const sizes = c.layers.flatMap((layer) => layer.heads);
  const counts: Record<string, bigint> = {
    joint_indices: sizes.reduce((product, d) => product * BigInt(d), 1n),
    reached: BigInt(new Set(c.configurations.map((row) => row.slice(0, sizes.length).join())).size),
    configurations: BigInt(c.configurations.length),
    task_states: BigInt(new Set(c.matching.map((row) => row[1])).size),
  };
  const given = object(c.raw.get("counts")!, "counts", Object.keys(counts));
  for (const [key, count] of Object.entries(counts)) {
    const value = given.get(key)!;
    if (typeof value !== "object" || value === null || !("value" in value) || value.value !== count) {
      throw new Refused(`counts.${key} is ${shown(value)}; there are ${count}.`);
    }
  }
}

/** Of the formats that bounds may be about; the unit roundoff is 2 to the power of minus that. */
const SIGNIFICAND_BITS = new Map([["float64", 53], ["float32", 24], ["float16", 11], ["bfloat16", 8]]);

/** Where a margin exists: a number there, null elsewhere. */
type Exists = boolean | Exists[] | { [key: string]: Exists };

export function marginShape(c: Certificate, walk: Exploration, asked: boolean[]): { [key: string]: Exists } {
  const A = c.symbols.length;
  const chosen = (count: number, symbols: boolean[]): boolean[] => symbols.map((one) => one && count > 1);
  return {
    logits: c.layers.map((layer, l) =>
      layer.heads.map((d, h) =>
        Array.from({ length: A }, (_, a) =>
          Array.from({ length: d }, (_, k) => d > 1 && walk.moved[l][h][a * d + k] === 1),
        ),
      ),
    ),
    labels: chosen(c.target.labels.length, walk.read),
    answers: c.question ? chosen(c.question.answers.length, asked) : false,
  };
}

function checkRounding(c: Certificate, walk: Exploration, asked: boolean[]): void {
  const shape = marginShape(c, walk, asked);
  const margins = amounts(c.raw.get("margins")!, "margins", shape);
  const rounding = c.raw.get("rounding")!;
  if (!(rounding instanceof Map)) throw new Refused(`rounding is ${shown(rounding)}; wanted an object.`);
  const proved: string[] = [];
  for (const [format, bounds] of rounding) {
    const bits = SIGNIFICAND_BITS.get(format);
    if (bits === undefined) throw new Refused(`rounding is about ${quoted(format)}; known formats are ${[...SIGNIFICAND_BITS.keys()].join(", ")}.`);
    const where = `rounding.${format}`;
    const entries = object(bounds, where, ["assumes", ...Object.keys(shape)]);
    names(entries.get("assumes")!, `${where}.assumes`, 0);
    const without: JsonObject = new Map([...entries].filter(([key]) => key !== "assumes"));
    const errors = amounts(without, where, shape);
    // of two logits that differ by a margin, one is at least half of it: rounding it once may cost this much
    const low = errors.findIndex((error, i) => error < 2 ** -bits * 0.5 * margins[i]);
    if (low >= 0) throw new Refused(`${where} has a bound of ${errors[low].toPrecision(3)}; rounding once may cost ${(2 ** -bits * 0.5 * margins[low]).toPrecision(3)}.`);
    if (margins.every((margin, i) => 0.5 * margin > errors[i])) proved.push(format);
  }
  const given = c.raw.get("proved")!;
  if (!Array.isArray(given) || given.length !== proved.length || given.some((name, i) => name !== proved[i])) {
    throw new Refused(`proved is ${shown(given)}; by margins and errors it is [${proved.join(", ")}].`);
  }
}

function amounts(value: Json, where: string, exists: Exists): number[] {
  if (Array.isArray(exists)) {
    const entries = list(value, where, exists.length);
    return exists.flatMap((each, i) => amounts(entries[i], `${where}[${i}]`, each));
  }
  if (typeof exists === "object") {
    const entries = object(value, where, Object.keys(exists));
    return Object.entries(exists).flatMap(([key, each]) => amounts(entries.get(key)!, `${where}.${key}`, each));
  }
  if (!exists) {
    if (value !== null) throw new Refused(`${where} is ${shown(value)}; wanted null, because nothing is chosen there.`);
    return [];
  }
  if (!(value instanceof Float) || !(value.value >= 0 && value.value < Infinity)) {
    throw new Refused(`${where} is ${shown(value)}; wanted a decimal number that is not negative.`);
  }
  return [value.value];
}

