/**
 * Every head alone, as in exactstate/train/search.py: heads learn on soft states, each from a likelihood of its own; those that
 * follow a part of the state exactly are kept, the others are drawn anew and predict the state given what is kept. When the
 * kept heads tell all states apart, they are a machine, and only then is it compared with the target.
 */

import { type Difference, distinguishingWord } from "../automata/compare";
import { type Machine, mooreReadout } from "../automata/machine";
import { Random } from "../random";
import { type Groups, Head, type Words } from "./head";
import { type KeptHead, entropy, readHead, refined } from "./read";
import SETTINGS from "./settings.json";

export interface Task {
  machine: Machine;
  /** How often each symbol occurs. */
  weights: number[];
}

export interface Progress {
  step: number;
  length: number;
  /** Nats that the kept heads leave open. */
  open: number;
  /** Nats that the best head leaves open in training. */
  loss: number;
  kept: Found[];
  training: { size: number; moves: Float32Array }[];
}

/** A head that is kept: since which step, and the nats that are open with it. */
export interface Found extends KeptHead {
  step: number;
  open: number;
}

export interface Outcome {
  steps: number;
  open: number;
  heads: number[];
  /** Null while states are not told apart. */
  machine: Machine | null;
  /** Null: equal on every word. */
  difference: Difference | null;
}

/** Heads of the layer in a page: the first, smaller ones, since a step costs the squares of their sizes. */
const HEADS = 12;

/** The heads of the layer in training, for so many labels. */
export function headSizes(labels: number): number[] {
  return SETTINGS.searched.map((size) => Math.min(size, Math.max(4, Math.ceil(1.5 * labels))));
}

export function sample({ machine, weights }: Task, count: number, length: number, random: Random): Words {
  const words: Words = { count, length, symbols: new Uint16Array(count * length), labels: new Uint16Array(count * length) };
  for (let b = 0; b < count; b++) {
    for (let t = b * length, state = machine.start; t < (b + 1) * length; t++) {
      words.symbols[t] = random.choose(weights);
      words.labels[t] = state = machine.tables[words.symbols[t]][state];
    }
  }
  return words;
}

export function* learn(task: Task, seed: number): Generator<Progress, Outcome> {
  const random = new Random(seed);
  const [V, n] = [task.machine.symbols.length, task.machine.states.length];
  const draw = (size: number): Head => new Head(V, n, size, random);
  const kept: Found[] = [];
  const all = new Uint8Array(n);
  let heads = headSizes(n).slice(0, HEADS).map(draw);
  let groups: Groups = all;
  let [steps, begun, draws, loss, open] = [0, 0, 0, 0, Infinity];
  const length = (): number => Math.min(SETTINGS.firstLength + Math.floor((steps - begun) / SETTINGS.growEvery), SETTINGS.length);
  const show = (): Progress => ({
    step: steps, length: length(), open, loss, kept: kept.slice(), training: heads.map((head) => ({ size: head.size, moves: Float32Array.from(head.moves()) })),
  });
  while (steps < SETTINGS.steps) {
    const words = sample(task, SETTINGS.batch, length(), random);
    loss = Math.min(...heads.map((head) => head.step(words, head.size <= SETTINGS.small ? groups : all)));
    steps++;
    if (steps % SETTINGS.checkEvery) {
      yield show();
      continue;
    }
    const batches = [length(), SETTINGS.firstLength, ...SETTINGS.readLengths].map((long) => sample(task, SETTINGS.readWords, long, random));
    const found = keep(heads, batches, task, groups);
    open = found.open;
    if (found.kept.length) {
      kept.push(...found.kept.map(({ held, open }) => ({ ...held, step: steps, open })));
      groups = found.groups;
      heads = heads.filter((head) => !found.kept.some((one) => one.head === head));
      const least = entropy(groups, counted(batches.slice(0, 1), n)) - SETTINGS.useless;
      heads = heads.map((head) => (head.size <= SETTINGS.small || head.loss(batches[0], groups, false) > least ? draw(head.size) : head));
      [begun, draws] = [steps, 0];
    } else if (steps - begun >= SETTINGS.patience + SETTINGS.morePatience * draws) {
      heads = heads.map((head) => draw(head.size));
      [begun, draws] = [steps, draws + 1];
    }
    yield show();
    if (open < SETTINGS.certain) break;
  }
  const machine = open < SETTINGS.certain ? product(kept, task.machine) : null;
  return {
    steps, open, heads: kept.map(({ indices }) => indices.length), machine, difference: machine && distinguishingWord(machine, moore(task.machine)),
  };
}

function counted(batches: readonly Words[], labels: number): number[] {
  const counts = Array<number>(labels).fill(0);
  for (const batch of batches) for (const label of batch.labels) counts[label]++;
  return counts;
}

interface Reading {
  /** Heads, what they hold, and the nats that are then open. */
  kept: { head: Head; held: KeptHead; open: number }[];
  groups: Groups;
  open: number;
}

/** The heads that tell most about the label, one after the other. */
function keep(heads: readonly Head[], batches: Words[], { machine }: Task, groups: Groups): Reading {
  const counts = counted(batches, machine.states.length);
  const losses = heads.map((head) => head.loss(batches[0], groups, false));
  const near = heads.filter((_, h) => losses[h] <= Math.min(...losses) + SETTINGS.near);
  let candidates = near.map((head) => ({ head, held: readHead(head.tables(), batches, machine.states.length, machine.start) }));
  const kept: Reading["kept"] = [];
  let open = entropy(groups, counts);
  while (candidates.length && open >= SETTINGS.certain) {
    const finer = candidates.map((one) => ({ one, groups: refined(groups, one.held.ofLabel) })).map((row) => ({ ...row, rest: entropy(row.groups, counts) }));
    const best = finer.reduce((x, y) => (y.rest < x.rest ? y : x));
    if (open - best.rest < Math.min(SETTINGS.gain, open / 2)) break;
    kept.push({ ...best.one, open: best.rest });
    candidates = candidates.filter((one) => one !== best.one);
    [groups, open] = [best.groups, best.rest];
  }
  return { kept, groups, open };
}

/** A head as a machine. What no word has shown stays where it is. */
export function machineOf({ tables, indices, start }: KeptHead, symbols: string[]): Machine {
  const states = indices.map((_, k) => String(k));
  const moves = tables.map((row) => row.map((to, k) => (to < 0 ? k : to)));
  return { kind: "semiautomaton", symbols, states, tables: moves, start, outputs: states, readout: moves };
}

/** The machine of the kept heads side by side: what they reach from the start, and the state of the target that they hold there. */
export function product(kept: readonly KeptHead[], { symbols, states: labels }: Machine): Machine {
  const heads = kept.map((one) => machineOf(one, symbols));
  const labelOf = new Map(labels.map((_, y) => [kept.map(({ ofLabel }) => ofLabel[y]).join(), y]));
  const label = (joint: number[]): number => labelOf.get(joint.join()) ?? labels.length;
  const next = (joint: number[], a: number): number[] => heads.map(({ tables }, h) => tables[a][joint[h]]);
  const start = heads.map((head) => head.start);
  const reached = [start];
  const seen = new Set([start.join()]);
  for (const joint of reached) {
    for (const to of symbols.map((_, a) => next(joint, a))) {
      if (!seen.has(to.join())) reached.push(to);
      seen.add(to.join());
    }
  }
  reached.sort((one, other) => label(one) - label(other));
  const number = new Map(reached.map((joint, q) => [joint.join(), q]));
  const tables = symbols.map((_, a) => reached.map((joint) => number.get(next(joint, a).join())!));
  return {
    kind: "moore", symbols, states: reached.map((joint) => `(${joint.join(", ")})`), tables, start: number.get(start.join())!,
    outputs: [...labels, "no state"], ...mooreReadout(tables, reached.map(label)),
  };
}

/** The target, whose outputs are its states. */
function moore(machine: Machine): Machine {
  return { ...machine, kind: "moore", outputs: machine.states, ...mooreReadout(machine.tables, machine.states.map((_, q) => q)) };
}
