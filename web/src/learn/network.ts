/**
 * A small NFSM network and its gradient, by hand.
 *
 *     B words   L length   V symbols   n labels   r heads of d indices   S = r d   m width   H hidden units
 *
 * A symbol is embedded (m) and determines, for every head, a d x d matrix of logits: column k scores where index k goes.
 * Forward, each column is its arg max: an exact table. Backward, it is the softmax of that column. The indices of all heads
 * add up their values (m), the symbol adds a little, and a small MLP reads the label.
 */

import { Random } from "../random";

export interface Shape {
  symbols: number;
  labels: number;
  heads: number;
  indices: number;
  width: number;
  hidden: number;
  probes: boolean;
}

const NAMES = ["embed", "weight", "bias", "values", "hidden", "hiddenBias", "read", "skip", "readBias", "probes"] as const;
type Name = (typeof NAMES)[number];
export type Parameters = Record<Name, Float64Array>;

/** The tendency of tables to stay where they are at the start, as the forget-gate bias of an LSTM. */
const REMEMBER = 1;
/** The symbol reaches the read-out beside the heads, quietly, so that heads carry the label. */
const TOKEN_SCALE = 0.1;
const MASK_RATE = 3;
/** Heads that are numbered together; with more, keys would not be exact. */
const CHUNK = 6;

export interface Words {
  count: number;
  length: number;
  /** [word][step] */
  symbols: Uint16Array;
  labels: Uint16Array;
}

export class Network {
  readonly parameters: Parameters;
  readonly active: Uint8Array;
  /** m: what removed heads used to add, on average. */
  readonly offset: Float64Array;
  readonly temperature: number;

  constructor(
    readonly shape: Shape,
    random: Random,
  ) {
    const { symbols: V, labels: n, heads: r, indices: d, width: m, hidden: H } = shape;
    const E = r * d * d;
    const normal = (count: number, deviation: number): Float64Array => Float64Array.from({ length: count }, () => deviation * random.normal());
    this.parameters = {
      embed: normal(V * m, 1),
      weight: normal(E * m, 1 / Math.sqrt(m)),
      bias: new Float64Array(E),
      values: normal(r * d * m, 1 / Math.sqrt(r)),
      hidden: normal(H * m, 1 / Math.sqrt(m)),
      hiddenBias: new Float64Array(H),
      read: normal(n * H, 1 / Math.sqrt(H)),
      skip: normal(n * m, 1 / Math.sqrt(m)),
      readBias: new Float64Array(n),
      probes: normal(shape.probes ? r * d * n : 0, 0.5),
    };
    for (let h = 0; h < r; h++) for (let k = 0; k < d; k++) this.parameters.bias[h * d * d + k * d + k] = REMEMBER;
    this.active = new Uint8Array(r).fill(1);
    this.offset = new Float64Array(m);
    this.temperature = shape.probes ? 2 : 1;
  }

  copy(): Network {
    const other = Object.create(Network.prototype) as Network;
    const parameters = Object.fromEntries(NAMES.map((name) => [name, this.parameters[name].slice()])) as Parameters;
    return Object.assign(other, { shape: this.shape, temperature: this.temperature, parameters, active: this.active.slice(), offset: this.offset.slice() });
  }

  /** V E: the logits of every symbol; entry [h][k][j] scores the move of head h from index k to index j. */
  logits(): Float64Array {
    const { symbols: V, heads: r, indices: d, width: m } = this.shape;
    const { embed, weight, bias } = this.parameters;
    const E = r * d * d;
    const theta = new Float64Array(V * E);
    for (let a = 0; a < V; a++) {
      for (let e = 0; e < E; e++) {
        let sum = bias[e];
        for (let i = 0; i < m; i++) sum += embed[a * m + i] * weight[e * m + i];
        theta[a * E + e] = sum;
      }
    }
    return theta;
  }

  /** V r d: the exact tables. */
  tables(theta = this.logits()): Uint8Array {
    const { symbols: V, heads: r, indices: d } = this.shape;
    const tables = new Uint8Array(V * r * d);
    for (let column = 0; column < tables.length; column++) {
      let best = 0;
      for (let j = 1; j < d; j++) if (theta[column * d + j] > theta[column * d + best]) best = j;
      tables[column] = best;
    }
    return tables;
  }

  /** B L r: the index of every head after every step; all heads start at 0. */
  states(words: Words, tables: Uint8Array): Uint8Array {
    const { heads: r, indices: d } = this.shape;
    const states = new Uint8Array(words.count * words.length * r);
    for (let b = 0; b < words.count; b++) {
      for (let h = 0; h < r; h++) {
        if (!this.active[h]) continue;
        let k = 0;
        for (let t = 0; t < words.length; t++) {
          k = tables[(words.symbols[b * words.length + t] * r + h) * d + k];
          states[(b * words.length + t) * r + h] = k;
        }
      }
    }
    return states;
  }

  /**
   * Steps that look the same to the read-out: equal symbol and indices, and equal label if `byLabel`. Computing once for each
   * group is what makes training in a page quick: once tables settle, a batch has few of them.
   */
  private groups(words: Words, states: Uint8Array, byLabel: boolean): { of: Int32Array; first: number[] } {
    const { heads: r, indices: d, symbols: V } = this.shape;
    const active = [...this.active.keys()].filter((h) => this.active[h]);
    const chunks: number[][] = [];
    for (let h = 0; h < active.length; h += CHUNK) chunks.push(active.slice(h, h + CHUNK));
    const known = chunks.map(() => new Map<number, number>());
    const of = new Int32Array(words.symbols.length);
    const first: number[] = [];
    for (let i = 0; i < of.length; i++) {
      let group = words.symbols[i] + V * (byLabel ? words.labels[i] : 0);
      for (let c = 0; c < chunks.length; c++) {
        let key = group;
        for (const h of chunks[c]) key = key * d + states[i * r + h];
        let number = known[c].get(key);
        if (number === undefined) {
          known[c].set(key, (number = known[c].size));
          if (c === chunks.length - 1) first.push(i);
        }
        group = number;
      }
      of[i] = group;
    }
    return { of, first };
  }

  /** What the read-out reads (m) and its logits (n), given the symbol and the indices after it. */
  private read(symbol: number, states: ArrayLike<number>, at: number, z: Float64Array, units: Float64Array, logits: Float64Array): void {
    const { heads: r, indices: d, width: m, hidden: H, labels: n } = this.shape;
    const p = this.parameters;
    for (let i = 0; i < m; i++) z[i] = this.offset[i] + TOKEN_SCALE * p.embed[symbol * m + i];
    for (let h = 0; h < r; h++) {
      if (!this.active[h]) continue;
      const row = (h * d + states[at + h]) * m;
      for (let i = 0; i < m; i++) z[i] += p.values[row + i];
    }
    for (let u = 0; u < H; u++) {
      let sum = p.hiddenBias[u];
      for (let i = 0; i < m; i++) sum += p.hidden[u * m + i] * z[i];
      units[u] = sum > 0 ? sum : 0;
    }
    for (let c = 0; c < n; c++) {
      let sum = p.readBias[c];
      for (let u = 0; u < H; u++) sum += p.read[c * H + u] * units[u];
      for (let i = 0; i < m; i++) sum += p.skip[c * m + i] * z[i];
      logits[c] = sum;
    }
  }

  /** The label at a symbol and the indices after it, and its lead over the next. */
  label(symbol: number, states: ArrayLike<number>, at = 0): { label: number; margin: number } {
    const { width: m, hidden: H, labels: n } = this.shape;
    const logits = new Float64Array(n);
    this.read(symbol, states, at, new Float64Array(m), new Float64Array(H), logits);
    const label = argmax(logits);
    let second = -Infinity;
    for (let c = 0; c < n; c++) if (c !== label) second = Math.max(second, logits[c]);
    return { label, margin: logits[label] - second };
  }

  /** For every word the first wrong step, or its length. Equal symbols and indices are read out once. */
  firstErrors(words: Words): Int32Array {
    const { heads: r } = this.shape;
    const states = this.states(words, this.tables());
    const { of, first } = this.groups(words, states, false);
    const labels = first.map((i) => this.label(words.symbols[i], states, i * r).label);
    return Int32Array.from({ length: words.count }, (_, b) => {
      let t = 0;
      while (t < words.length && labels[of[b * words.length + t]] === words.labels[b * words.length + t]) t++;
      return t;
    });
  }

  /** Mean cross-entropy, for ranking heads. */
  meanLoss(words: Words): number {
    const { heads: r, width: m, hidden: H, labels: n } = this.shape;
    const states = this.states(words, this.tables());
    const [z, units, logits] = [new Float64Array(m), new Float64Array(H), new Float64Array(n)];
    const { of, first } = this.groups(words, states, true);
    const losses = first.map((i) => {
      this.read(words.symbols[i], states, i * r, z, units, logits);
      return logSumExp(logits, 0, n) - logits[words.labels[i]];
    });
    return of.reduce((sum, group) => sum + losses[group], 0) / of.length;
  }

  /** The loss up to the first error, the mean first error, and the gradient of every parameter. */
  gradient(words: Words): { loss: number; firstError: number; gradient: Parameters } {
    const { labels: n, heads: r, indices: d, width: m, hidden: H, symbols: V } = this.shape;
    const p = this.parameters;
    const theta = this.logits();
    const tables = this.tables(theta);
    const states = this.states(words, tables);
    const { of, first } = this.groups(words, states, true);
    const N = first.length;
    const [z, units, logits] = [new Float64Array(N * m), new Float64Array(N * H), new Float64Array(N * n)];
    first.forEach((i, group) => {
      this.read(words.symbols[i], states, i * r, z.subarray(group * m, (group + 1) * m), units.subarray(group * H, (group + 1) * H), logits.subarray(group * n, (group + 1) * n));
    });
    const { shares, firstError } = this.shares(words, of, logits);
    const weights = new Float64Array(N);
    of.forEach((group, i) => (weights[group] += shares[i]));
    const g = Object.fromEntries(NAMES.map((name) => [name, new Float64Array(p[name].length)])) as Parameters;
    // of every group, d loss / d one-hot state at a share of 1, for every index of every head: N S
    const gains = new Float64Array(N * r * d);
    let loss = 0;
    const [dz, dl, du] = [new Float64Array(m), new Float64Array(n), new Float64Array(H)];
    for (let i = 0; i < N; i++) {
      const share = weights[i];
      if (share === 0) continue;
      const at = first[i];
      const label = words.labels[at];
      loss += share * softmaxGradient(logits, i * n, n, label, dl);
      dz.fill(0);
      du.fill(0);
      for (let c = 0; c < n; c++) {
        const step = dl[c];
        g.readBias[c] += share * step;
        for (let u = 0; u < H; u++) {
          if (units[i * H + u] <= 0) continue;
          g.read[c * H + u] += share * step * units[i * H + u];
          du[u] += step * p.read[c * H + u];
        }
        for (let k = 0; k < m; k++) {
          g.skip[c * m + k] += share * step * z[i * m + k];
          dz[k] += step * p.skip[c * m + k];
        }
      }
      for (let u = 0; u < H; u++) {
        if (units[i * H + u] <= 0) continue;
        const step = du[u];
        g.hiddenBias[u] += share * step;
        for (let k = 0; k < m; k++) {
          g.hidden[u * m + k] += share * step * z[i * m + k];
          dz[k] += step * p.hidden[u * m + k];
        }
      }
      const symbol = words.symbols[at];
      for (let k = 0; k < m; k++) g.embed[symbol * m + k] += share * TOKEN_SCALE * dz[k];
      for (let h = 0; h < r; h++) {
        if (!this.active[h]) continue;
        const chosen = (h * d + states[at * r + h]) * m;
        for (let k = 0; k < m; k++) g.values[chosen + k] += share * dz[k];
        for (let j = 0; j < d; j++) {
          const row = (h * d + j) * m;
          let sum = 0;
          for (let k = 0; k < m; k++) sum += p.values[row + k] * dz[k];
          gains[(i * r + h) * d + j] = sum;
        }
        if (!p.probes.length) continue;
        const own = (h * d + states[at * r + h]) * n;
        loss += share * softmaxGradient(p.probes, own, n, label, dl);
        for (let j = 0; j < d; j++) {
          let sum = 0;
          for (let c = 0; c < n; c++) sum += p.probes[(h * d + j) * n + c] * dl[c];
          gains[(i * r + h) * d + j] += sum;
        }
        for (let c = 0; c < n; c++) g.probes[own + c] += share * dl[c];
      }
    }
    const dtheta = this.throughTables(words, theta, tables, states, of, shares, gains);
    const E = r * d * d;
    for (let a = 0; a < V; a++) {
      for (let e = 0; e < E; e++) {
        const step = dtheta[a * E + e];
        if (step === 0) continue;
        g.bias[e] += step;
        for (let k = 0; k < m; k++) {
          g.weight[e * m + k] += step * p.embed[a * m + k];
          g.embed[a * m + k] += step * p.weight[e * m + k];
        }
      }
    }
    return { loss, firstError, gradient: g };
  }

  /** The weight of every step: 1 up to the first error, then falling as exp(-3 t); each word counts the same. */
  private shares(words: Words, of: Int32Array, logits: Float64Array): { shares: Float64Array; firstError: number } {
    const { count: B, length: L } = words;
    const n = this.shape.labels;
    const guesses = Array.from({ length: logits.length / n }, (_, group) => argmax(logits.subarray(group * n, (group + 1) * n)));
    const shares = new Float64Array(B * L);
    let total = 0;
    for (let b = 0; b < B; b++) {
      let first = L;
      for (let t = 0; t < L && first === L; t++) if (guesses[of[b * L + t]] !== words.labels[b * L + t]) first = t;
      total += first;
      let sum = 0;
      for (let t = 0; t < L; t++) {
        const late = Math.max(0, t - first);
        shares[b * L + t] = late > 5 ? 0 : Math.exp(-MASK_RATE * late);
        sum += shares[b * L + t];
      }
      for (let t = 0; t < L; t++) shares[b * L + t] /= sum * B;
    }
    return { shares, firstError: total / B };
  }

  /** From the gradient of the states to that of the logits: an adjoint scan backwards through the tables. */
  private throughTables(
    words: Words, theta: Float64Array, tables: Uint8Array, states: Uint8Array, of: Int32Array, shares: Float64Array, gains: Float64Array,
  ): Float64Array {
    const { heads: r, indices: d } = this.shape;
    const { count: B, length: L } = words;
    const E = r * d * d;
    const soft = new Float64Array(theta.length);
    for (let column = 0; column < theta.length; column += d) softmax(theta, column, d, this.temperature, soft);
    const dtheta = new Float64Array(theta.length);
    const [later, now] = [new Float64Array(d), new Float64Array(d)];
    for (let b = 0; b < B; b++) {
      for (let h = 0; h < r; h++) {
        if (!this.active[h]) continue;
        later.fill(0);
        for (let t = L - 1; t >= 0; t--) {
          const i = b * L + t;
          const symbol = words.symbols[i];
          for (let j = 0; j < d; j++) now[j] = later[j] + shares[i] * gains[(of[i] * r + h) * d + j];
          const k = t > 0 ? states[(i - 1) * r + h] : 0;
          const column = symbol * E + (h * d + k) * d;
          let mean = 0;
          for (let j = 0; j < d; j++) mean += soft[column + j] * now[j];
          for (let j = 0; j < d; j++) dtheta[column + j] += (soft[column + j] * (now[j] - mean)) / this.temperature;
          const table = (symbol * r + h) * d;
          for (let j = 0; j < d; j++) later[j] = now[tables[table + j]];
        }
      }
    }
    return dtheta;
  }

  /** r m: what each head adds to the read-out, averaged over all steps. */
  headMeans(words: Words): Float64Array {
    const { heads: r, indices: d, width: m } = this.shape;
    const states = this.states(words, this.tables());
    const counts = new Float64Array(r * d);
    for (let i = 0; i < words.symbols.length; i++) for (let h = 0; h < r; h++) counts[h * d + states[i * r + h]]++;
    const means = new Float64Array(r * m);
    for (let h = 0; h < r; h++) {
      for (let j = 0; j < d; j++) {
        const share = counts[h * d + j] / words.symbols.length;
        for (let k = 0; k < m; k++) means[h * m + k] += share * this.parameters.values[(h * d + j) * m + k];
      }
    }
    return means;
  }

  /** A copy without these heads; their mean contribution stays. */
  without(heads: readonly number[], means: Float64Array): Network {
    const other = this.copy();
    const m = this.shape.width;
    for (const h of heads) {
      other.active[h] = 0;
      for (let k = 0; k < m; k++) other.offset[k] += means[h * m + k];
    }
    return other;
  }
}

/** Adam, with the norm of the gradient limited to 1. */
export class Adam {
  private readonly first: Parameters;
  private readonly second: Parameters;
  private step = 0;

  constructor(
    private readonly network: Network,
    private readonly rate: number,
  ) {
    const zeros = (): Parameters => Object.fromEntries(NAMES.map((name) => [name, new Float64Array(network.parameters[name].length)])) as Parameters;
    this.first = zeros();
    this.second = zeros();
  }

  update(gradient: Parameters): void {
    let norm = 0;
    for (const name of NAMES) for (const value of gradient[name]) norm += value * value;
    const scale = Math.min(1, 1 / (Math.sqrt(norm) + 1e-6));
    this.step++;
    const [c1, c2] = [1 - 0.9 ** this.step, 1 - 0.999 ** this.step];
    for (const name of NAMES) {
      const [p, g, m1, m2] = [this.network.parameters[name], gradient[name], this.first[name], this.second[name]];
      for (let i = 0; i < p.length; i++) {
        const value = g[i] * scale;
        m1[i] += 0.1 * (value - m1[i]);
        m2[i] += 0.001 * (value * value - m2[i]);
        p[i] -= (this.rate * (m1[i] / c1)) / (Math.sqrt(m2[i] / c2) + 1e-8);
      }
    }
  }
}

export function argmax(values: ArrayLike<number>): number {
  let best = 0;
  for (let i = 1; i < values.length; i++) if (values[i] > values[best]) best = i;
  return best;
}

function logSumExp(values: Float64Array, at: number, count: number): number {
  let most = -Infinity;
  for (let c = 0; c < count; c++) most = Math.max(most, values[at + c]);
  let sum = 0;
  for (let c = 0; c < count; c++) sum += Math.exp(values[at + c] - most);
  return most + Math.log(sum);
}

/** The cross-entropy; its gradient goes into `out`. */
function softmaxGradient(values: Float64Array, at: number, count: number, label: number, out: Float64Array): number {
  const total = logSumExp(values, at, count);
  for (let c = 0; c < count; c++) out[c] = Math.exp(values[at + c] - total) - (c === label ? 1 : 0);
  return total - values[at + label];
}

export function softmax(values: Float64Array, at: number, count: number, temperature: number, out: Float64Array): void {
  let most = -Infinity;
  for (let j = 0; j < count; j++) most = Math.max(most, values[at + j]);
  let sum = 0;
  for (let j = 0; j < count; j++) sum += out[at + j] = Math.exp((values[at + j] - most) / temperature);
  for (let j = 0; j < count; j++) out[at + j] /= sum;
}
