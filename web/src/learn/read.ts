/** What a head holds, by its arg max tables on words; and how much of the label that leaves open. As in exactstate/nn/heads.py. */

import { type Groups, type Words } from "./head";

/** A head that follows a part of the state exactly, on all words by which it was read. */
export interface KeptHead {
  /** [symbol][index]: where the index goes; -1 where no word shows it. */
  tables: number[][];
  /** The index at every label; -1 where no word shows it. */
  ofLabel: number[];
  start: number;
  /** For every index, that of the head in training which it is. */
  indices: number[];
}

/**
 * Indices that occur with the same label are one, and so are those to which a symbol leads from one index: what remains
 * follows the label exactly, on these words. Heads start at index 0, with a label that is known.
 */
export function readHead(tables: number[][], batches: readonly Words[], labels: number, startLabel: number): KeptHead {
  const d = tables[0].length;
  const seen = tables.map(() => new Uint8Array(d));
  const occurs = Array.from({ length: labels }, () => new Uint8Array(d));
  occurs[startLabel][0] = 1;
  for (const { count, length, symbols, labels: named } of batches) {
    for (let b = 0; b < count; b++) {
      for (let t = b * length, k = 0; t < (b + 1) * length; t++) {
        seen[symbols[t]][k] = 1;
        k = tables[symbols[t]][k];
        occurs[named[t]][k] = 1;
      }
    }
  }
  const parent = Array.from({ length: d }, (_, k) => k);
  const root = (k: number): number => (parent[k] === k ? k : root(parent[k]));
  const merge = (one: number, other: number): boolean => {
    const [least, most] = [root(one), root(other)].sort((x, y) => x - y);
    parent[most] = least;
    return least !== most;
  };
  const first = occurs.map((row) => row.indexOf(1));
  occurs.forEach((row, label) => row.forEach((one, k) => one && merge(first[label], k)));
  const steps = seen.flatMap((row, a) => [...row.keys()].filter((k) => row[k]).map((k) => ({ a, k, to: tables[a][k] })));
  let leads: Map<number, number>[] = [];
  for (let changed = true; changed; ) {
    changed = false;
    leads = tables.map(() => new Map<number, number>());
    for (const { a, k, to } of steps) {
      const known = leads[a].get(root(k));
      if (known === undefined) leads[a].set(root(k), to);
      else if (merge(known, to)) changed = true;
    }
  }
  const used = [...new Set([0, ...steps.flatMap(({ k, to }) => [root(k), root(to)])])].sort((x, y) => x - y);
  const place = new Map(used.map((k, number) => [k, number]));
  const of = (k: number | undefined): number => (k === undefined || k < 0 ? -1 : place.get(root(k))!);
  return { tables: leads.map((row) => used.map((k) => of(row.get(k)))), ofLabel: first.map(of), start: 0, indices: used };
}

/** Labels of the same group at the same index have the same number. */
export function refined(groups: Groups, indices: readonly number[]): number[] {
  const number = new Map<string, number>();
  return indices.map((index, label) => {
    const key = `${groups[label]} ${index}`;
    if (!number.has(key)) number.set(key, number.size);
    return number.get(key)!;
  });
}

/** Nats of the label, given its group. */
export function entropy(groups: Groups, counts: ArrayLike<number>): number {
  const ofGroup: number[] = [];
  let [total, sum] = [0, 0];
  for (let y = 0; y < counts.length; y++) ofGroup[groups[y]] = (ofGroup[groups[y]] ?? 0) + counts[y];
  for (let y = 0; y < counts.length; y++) {
    total += counts[y];
    if (counts[y]) sum -= counts[y] * Math.log(counts[y] / ofGroup[groups[y]]);
  }
  return sum / Math.max(1, total);
}
