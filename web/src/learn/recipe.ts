/**
 * The recipe `gradient` of exactstate/train/gradient.py in small: train wide on words and labels, prune while fresh words stay
 * right, extract the machine, and only then look at the target. Margins are not widened here and nothing is compressed.
 */

import { type Difference, distinguishingWord } from "../automata/compare";
import { type Machine } from "../automata/machine";
import { Random } from "../random";
import { Adam, Network, type Words, softmax } from "./network";

export interface Task {
  machine: Machine;
  /** How often each symbol occurs. */
  weights: number[];
}

export interface Progress {
  phase: "train" | "prune" | "done";
  step: number;
  loss: number;
  /** Steps that are right on average before the first error, of `length`. */
  firstError: number;
  length: number;
  /** V r d d: by symbol, head, from, to; how likely each move is to the softmax. */
  probabilities: Float32Array;
  tables: Uint8Array;
  active: Uint8Array;
  /** r: the indices of each head that words reach; filled at the end. */
  reached: number[][];
  note: string;
}

export interface Outcome {
  learned: boolean;
  steps: number;
  /** The machine that was extracted, by its heads. */
  machine: Machine | null;
  /** Null: equal on every word. */
  difference: Difference | null;
  heads: number[];
  margin: number;
}

export const SETTINGS = {
  batch: 64, firstLength: 12, lr: 3e-3, pruneLr: 1e-3, checkEvery: 25, checkWords: 256, checkLength: 64, longLength: 512,
  steps: 3000, moreSteps: 150, rounds: 3, pruneSteps: 100, pruneFailures: 2, width: 32, hidden: 64, maxConfigurations: 20_000,
};

/** Wide heads for so many labels, as in exactstate/train/config.py. */
export function wideShape(symbols: number, labels: number): ConstructorParameters<typeof Network>[0] {
  const few = labels <= 16;
  const indices = few ? Math.max(12, Math.ceil(1.5 * labels)) : 12;
  return { symbols, labels, heads: few ? 8 : 16, indices, width: SETTINGS.width, hidden: SETTINGS.hidden, probes: labels <= indices };
}

export function sample(task: Task, count: number, length: number, random: Random): Words {
  const { tables, readout, start } = task.machine;
  const words: Words = { count, length, symbols: new Uint16Array(count * length), labels: new Uint16Array(count * length) };
  for (let b = 0; b < count; b++) {
    let state = start;
    for (let t = 0; t < length; t++) {
      const symbol = random.choose(task.weights);
      words.symbols[b * length + t] = symbol;
      words.labels[b * length + t] = readout[symbol][state];
      state = tables[symbol][state];
    }
  }
  return words;
}

export function* learn(task: Task, seed: number): Generator<Progress, Outcome> {
  const random = new Random(seed);
  const { machine } = task;
  const shape = wideShape(machine.symbols.length, machine.outputs.length);
  const network = new Network(shape, random);
  const adam = new Adam(network, SETTINGS.lr);
  const longest = shape.probes ? 16 : 32;
  let length = Math.min(SETTINGS.firstLength, longest);
  let last = { loss: 0, firstError: 0, length };
  let [steps, best] = [0, 0];
  const show = (of: Network, phase: Progress["phase"], note: string, reached: number[][] = []): Progress => ({
    phase, step: steps, ...last, probabilities: probabilities(of), tables: of.tables(), active: of.active.slice(), reached, note,
  });
  for (let round = 0; round < SETTINGS.rounds; round++) {
    const least = round ? steps + SETTINGS.moreSteps : 0;
    for (let learned = false; !learned || steps < least; ) {
      if (steps >= SETTINGS.steps) {
        return { learned: false, steps, machine: null, difference: null, heads: [], margin: 0 };
      }
      const { loss, firstError, gradient } = network.gradient(sample(task, SETTINGS.batch, length, random));
      adam.update(gradient);
      steps++;
      last = { loss, firstError, length };
      length = Math.floor(Math.min(longest, Math.max(length, 1.2 * firstError + 5)));
      if (steps % SETTINGS.checkEvery === 0) {
        best = accuracy(network, task, SETTINGS.checkWords, SETTINGS.checkLength, random);
        learned = best === 1;
      }
      if (steps % 2 === 0) yield show(network, "train", learned ? "All fresh words are right." : "");
    }
    const pruned = yield* prune(network, task, random, show);
    const extracted = extract(pruned, task);
    if (!extracted || accuracy(pruned, task, 64, SETTINGS.longLength, random) < 1) {
      yield show(pruned, "prune", "The pruned network errs on long words; the wide one trains on.");
      if (round + 1 < SETTINGS.rounds || !extracted) continue;
    }
    yield show(pruned, "done", "Extracted.", extracted.reached);
    return {
      learned: true, steps, machine: extracted.machine, difference: distinguishingWord(extracted.machine, { ...machine, stateOutputs: undefined }),
      heads: extracted.reached.filter((indices) => indices.length > 1).map((indices) => indices.length), margin: extracted.margin,
    };
  }
  return { learned: false, steps, machine: null, difference: null, heads: [], margin: 0 };
}

/** The share of fresh words that are right throughout; of a first few only, where not all of those are. */
export function accuracy(network: Network, task: Task, words: number, length: number, random: Random): number {
  let [right, seen] = [0, 0];
  for (const count of [Math.min(64, words), words - Math.min(64, words)]) {
    if (count) right += network.firstErrors(sample(task, count, length, random)).reduce((sum, first) => sum + Number(first === length), 0);
    seen += count;
    if (right < seen) break;
  }
  return right / seen;
}

type Show = (of: Network, phase: Progress["phase"], note: string) => Progress;

/** As few heads as fresh words permit: half of them at once, then fewer, then one by one, the least useful first. */
function* prune(network: Network, task: Task, random: Random, show: Show): Generator<Progress, Network> {
  const data = sample(task, SETTINGS.batch, 32, random);
  const accept = (smaller: Network): boolean => accuracy(smaller, task, SETTINGS.checkWords, SETTINGS.checkLength, random) === 1;
  let [current, share, failures] = [network.copy(), 0.5, 0];
  while (failures < SETTINGS.pruneFailures) {
    const heads = [...current.active.keys()].filter((h) => current.active[h]);
    if (heads.length < 2) break;
    const means = current.headMeans(data);
    const cost = new Map(heads.map((h) => [h, current.without([h], means).meanLoss(data)]));
    const ranked = heads.sort((a, b) => cost.get(a)! - cost.get(b)!);
    const count = Math.max(1, Math.floor(share * ranked.length));
    const chosen = count > 1 ? ranked.slice(0, count) : ranked.slice(failures, failures + 1);
    const smaller = current.without(chosen, means);
    let accepted = accept(smaller);
    if (!accepted) {
      const adam = new Adam(smaller, SETTINGS.pruneLr);
      for (let step = 1; step <= SETTINGS.pruneSteps; step++) {
        adam.update(smaller.gradient(sample(task, SETTINGS.batch, task.machine.outputs.length <= 16 ? 16 : 32, random)).gradient);
        if (step % 4 === 0) yield show(smaller, "prune", `Fine-tuning without ${chosen.length} more head${chosen.length > 1 ? "s" : ""}.`);
        if (step % 20 === 0) {
          const right = accuracy(smaller, task, SETTINGS.checkWords, SETTINGS.checkLength, random);
          if (right === 1 || right < 0.25) break;
        }
      }
      accepted = accept(smaller);
    }
    if (accepted) [current, failures] = [smaller, 0];
    else if (count > 1) share /= 2;
    else failures++;
    const left = current.active.reduce((sum, one) => sum + one, 0);
    yield show(current, "prune", accepted ? `${left} head${left > 1 ? "s" : ""} left.` : "Put back: fresh words went wrong.");
  }
  return current;
}

interface Extracted {
  machine: Machine;
  reached: number[][];
  margin: number;
}

/** The machine of a network, read out of its weights without the target; null if it has too many configurations. */
export function extract(network: Network, task: Task): Extracted | null {
  const { symbols: V, heads: r, indices: d } = network.shape;
  const theta = network.logits();
  const tables = network.tables(theta);
  const heads = [...network.active.keys()].filter((h) => network.active[h]);
  const first = Array<number>(r).fill(0);
  const configurations = [first];
  const number = new Map([[first.join(), 0]]);
  const next: number[][] = Array.from({ length: V }, () => []);
  const readout: number[][] = Array.from({ length: V }, () => []);
  const reached = Array.from({ length: r }, (_, h) => new Set(network.active[h] ? [0] : []));
  let margin = Infinity;
  for (let c = 0; c < configurations.length; c++) {
    if (configurations.length > SETTINGS.maxConfigurations) return null;
    for (let a = 0; a < V; a++) {
      const after = configurations[c].slice();
      for (const h of heads) {
        const column = (a * r + h) * d + configurations[c][h];
        after[h] = tables[column];
        reached[h].add(after[h]);
        const scores = theta.subarray(column * d, (column + 1) * d);
        for (let j = 0; j < d; j++) if (j !== after[h]) margin = Math.min(margin, scores[after[h]] - scores[j]);
      }
      const key = after.join();
      if (!number.has(key)) {
        number.set(key, configurations.length);
        configurations.push(after);
      }
      next[a][c] = number.get(key)!;
      const read = network.label(a, after);
      readout[a][c] = read.label;
      margin = Math.min(margin, read.margin);
    }
  }
  const machine: Machine = {
    kind: "mealy", symbols: task.machine.symbols, states: configurations.map((row) => `(${heads.map((h) => row[h]).join(", ")})`),
    tables: next, start: 0, outputs: task.machine.outputs, readout,
  };
  return { machine, reached: reached.map((set) => [...set].sort((x, y) => x - y)), margin };
}

function probabilities(network: Network): Float32Array {
  const theta = network.logits();
  const soft = new Float64Array(theta.length);
  for (let column = 0; column < theta.length; column += network.shape.indices) softmax(theta, column, network.shape.indices, 1, soft);
  return Float32Array.from(soft);
}
