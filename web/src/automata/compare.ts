/** Two machines on all words at once: the shortest word on which their outputs differ. */

import { type Machine } from "./machine";

export interface Difference {
  /** Numbers of symbols of the first machine. */
  word: number[];
  outputs: [string, string];
}

/** Why two machines cannot be compared. */
export class NotComparable extends Error {}

/** For every symbol of the first machine its number in the second. */
export function sharedSymbols(one: Machine, other: Machine): number[] {
  const number = new Map(other.symbols.map((symbol, i) => [symbol, i]));
  const shared = one.symbols.map((symbol) => number.get(symbol));
  if (one.symbols.length !== other.symbols.length || shared.some((a) => a === undefined)) {
    throw new NotComparable("the machines read different symbols, so no word can be played on both.");
  }
  return shared as number[];
}

/** A shortest word after which the outputs differ, or null if they agree on every word. By breadth-first search of pairs. */
export function distinguishingWord(one: Machine, other: Machine): Difference | null {
  const shared = sharedSymbols(one, other);
  if (one.stateOutputs && other.stateOutputs) {
    const outputs: [string, string] = [one.outputs[one.stateOutputs[one.start]], other.outputs[other.stateOutputs[other.start]]];
    if (outputs[0] !== outputs[1]) return { word: [], outputs }; // Moore machines output before they read
  }
  const n = other.states.length;
  const first = one.start * n + other.start;
  const came = new Map<number, [number, number]>([[first, [-1, -1]]]);
  const queue = [first];
  for (const pair of queue) {
    const [p, q] = [Math.floor(pair / n), pair % n];
    for (let a = 0; a < shared.length; a++) {
      const outputs: [string, string] = [one.outputs[one.readout[a][p]], other.outputs[other.readout[shared[a]][q]]];
      if (outputs[0] !== outputs[1]) return { word: [...wayTo(came, pair), a], outputs };
      const next = one.tables[a][p] * n + other.tables[shared[a]][q];
      if (!came.has(next)) {
        came.set(next, [pair, a]);
        queue.push(next);
      }
    }
  }
  return null;
}

function wayTo(came: Map<number, [number, number]>, pair: number): number[] {
  const word: number[] = [];
  for (let [before, symbol] = came.get(pair)!; before >= 0; [before, symbol] = came.get(before)!) word.unshift(symbol);
  return word;
}
