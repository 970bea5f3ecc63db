/**
 * The exact scan: transition tables compose up a tree, states come down.
 *
 * A node stands for a stretch of the word. On the way up it gets the table of its stretch: `compose(left, right)`. On
 * the way down it gets the state before its stretch: its left child starts there too, its right child where the left
 * table leads. All nodes of one level are computed at once, so a word of L symbols takes about 2 log2 L rounds.
 */

export type Table = readonly number[];

/** Time runs left to right: compose(first, then)[k] = then[first[k]]. */
export function compose(first: Table, then: Table): number[] {
  return first.map((k) => then[k]);
}

export interface Node {
  /** The first symbol of the stretch, and the one after its last. */
  from: number;
  to: number;
  /** 0 for a single symbol; above, one more than the highest child. */
  level: number;
  table: Table;
  /** The round of the clock in which its table is known, and the one in which the state before it is. */
  up: number;
  down: number;
  before: number;
  left: Node | null;
  right: Node | null;
}

export interface Scan {
  levels: Node[][];
  root: Node | null;
  /** The start, then the state after every symbol. */
  states: number[];
  /** Rounds until all states are known. */
  rounds: number;
  /** The round in which the state after each symbol is known. */
  known: number[];
}

export function scan(tables: readonly Table[], word: readonly number[], start: number): Scan {
  let row: Node[] = word.map((symbol, t) => ({
    from: t, to: t + 1, level: 0, table: tables[symbol], up: 0, down: 0, before: 0, left: null, right: null,
  }));
  const levels = row.length ? [row] : [];
  for (let level = 1; row.length > 1; level++) {
    const next: Node[] = [];
    for (let i = 0; i < row.length; i += 2) {
      const [left, right] = [row[i], row[i + 1]];
      if (!right) {
        next.push(left); // an odd one out goes up as it is
        continue;
      }
      next.push({
        from: left.from, to: right.to, level, table: compose(left.table, right.table), up: level, down: 0, before: 0, left, right,
      });
    }
    row = next;
    levels.push(row.filter((node) => node.level === level));
  }
  const root = row[0] ?? null;
  const states = [start];
  const known = [0];
  const descend = (node: Node, before: number, round: number): void => {
    node.before = before;
    node.down = round;
    if (node.left && node.right) {
      descend(node.left, before, round + 1);
      descend(node.right, node.left.table[before], round + 1);
    } else {
      states[node.to] = node.table[before];
      known[node.to] = round + 1;
    }
  };
  if (root) descend(root, start, root.level);
  return { levels, root, states, rounds: Math.max(...known), known };
}
