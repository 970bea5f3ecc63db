/**
 * One head on soft states, with a read-out and a likelihood of its own, and its gradient by hand; as in exactstate/nn/heads.py.
 *
 *     B words   L length   V symbols   n labels   d indices
 *
 * The layer reads the symbol itself: for every symbol a head has d x d logits, whose column k scores where index k goes. In
 * training the columns are softmaxes and the head is a distribution over its indices; read, they are arg maxes: exact tables.
 */

import { type Random } from "../random";
import SETTINGS from "./settings.json";

export interface Words {
  count: number;
  length: number;
  /** [word][step] */
  symbols: Uint16Array;
  labels: Uint16Array;
}

/** Labels that have the same number are not told apart by what is known otherwise. */
export type Groups = ArrayLike<number>;

const TINY = 1e-9;

export class Head {
  /** V d d: [symbol][from][to]. */
  readonly logits: Parameter;
  /** n d */
  readonly readout: Parameter;

  constructor(
    readonly symbols: number,
    readonly labels: number,
    readonly size: number,
    random: Random,
  ) {
    this.logits = new Parameter(symbols * size * size, 1, random);
    this.readout = new Parameter(labels * size, 0.5, random);
    const stay = SETTINGS.stay[size <= SETTINGS.small ? 0 : 1];
    for (let at = 0; at < symbols * size; at++) this.logits.values[at * size + (at % size)] += stay;
  }

  /** V d d: how likely every move is. */
  moves(): Float64Array {
    const moves = this.logits.values.slice();
    for (let at = 0; at < moves.length; at += this.size) softmax(moves.subarray(at, at + this.size));
    return moves;
  }

  /** [symbol][index]: where the index goes. */
  tables(): number[][] {
    const d = this.size;
    return Array.from({ length: this.symbols }, (_, a) =>
      Array.from({ length: d }, (_, k) => argmax(this.logits.values.subarray((a * d + k) * d, (a * d + k + 1) * d))));
  }

  /** n d: at every index, how likely each label is among those of its group. */
  private predictions(groups: Groups): Float64Array {
    const { size: d, labels: n } = this;
    const scores = this.readout.values.map(Math.exp);
    const totals = new Float64Array(n * d);
    for (let i = 0; i < scores.length; i++) totals[groups[Math.floor(i / d)] * d + (i % d)] += scores[i];
    return scores.map((score, i) => score / totals[groups[Math.floor(i / d)] * d + (i % d)]);
  }

  /** Minus the log-likelihood of the labels, given their groups; its gradient is added to those of the parameters. */
  loss(words: Words, groups: Groups, learning = true): number {
    const { size: d, labels: n } = this;
    const { count: B, length: L } = words;
    const [moves, predictions] = [this.moves(), this.predictions(groups)];
    const [dmoves, dpredictions] = [new Float64Array(moves.length), new Float64Array(n * d)];
    const states = new Float64Array((L + 1) * d);
    const likelihoods = new Float64Array(L);
    const [later, now] = [new Float64Array(d), new Float64Array(d)];
    states[0] = 1;
    let loss = 0;
    for (let b = 0; b < B; b++) {
      for (let t = 0; t < L; t++) {
        const [before, after, label] = [t * d, (t + 1) * d, words.labels[b * L + t] * d];
        states.fill(0, after, after + d);
        for (let k = 0, at = words.symbols[b * L + t] * d * d; k < d; k++, at += d) {
          const share = states[before + k];
          for (let j = 0; j < d; j++) states[after + j] += share * moves[at + j];
        }
        let likelihood = TINY;
        for (let j = 0; j < d; j++) likelihood += predictions[label + j] * states[after + j];
        likelihoods[t] = likelihood;
        loss -= Math.log(likelihood) / (B * L);
      }
      if (!learning) continue;
      later.fill(0);
      for (let t = L - 1; t >= 0; t--) {
        const [before, after, label] = [t * d, (t + 1) * d, words.labels[b * L + t] * d];
        const gain = -1 / (likelihoods[t] * B * L);
        for (let j = 0; j < d; j++) {
          dpredictions[label + j] += gain * states[after + j];
          now[j] = later[j] + gain * predictions[label + j];
        }
        for (let k = 0, at = words.symbols[b * L + t] * d * d; k < d; k++, at += d) {
          const share = states[before + k];
          let sum = 0;
          for (let j = 0; j < d; j++) {
            dmoves[at + j] += share * now[j];
            sum += moves[at + j] * now[j];
          }
          later[k] = sum;
        }
      }
    }
    if (!learning) return loss;
    for (let at = 0; at < moves.length; at += d) {
      let mean = 0;
      for (let j = at; j < at + d; j++) mean += moves[j] * dmoves[j];
      for (let j = at; j < at + d; j++) this.logits.gradient[j] = moves[j] * (dmoves[j] - mean);
    }
    const means = new Float64Array(n * d);
    for (let i = 0; i < n * d; i++) means[groups[Math.floor(i / d)] * d + (i % d)] += predictions[i] * dpredictions[i];
    for (let i = 0; i < n * d; i++) this.readout.gradient[i] = predictions[i] * (dpredictions[i] - means[groups[Math.floor(i / d)] * d + (i % d)]);
    return loss;
  }

  /** One step of gradient descent; the loss before it. */
  step(words: Words, groups: Groups): number {
    const loss = this.loss(words, groups);
    this.logits.step();
    this.readout.step();
    return loss;
  }
}

/** Numbers that are learned, by Adam. */
class Parameter {
  readonly values: Float64Array;
  readonly gradient: Float64Array;
  private readonly first: Float64Array;
  private readonly second: Float64Array;
  private steps = 0;

  constructor(count: number, deviation: number, random: Random) {
    this.values = Float64Array.from({ length: count }, () => deviation * random.normal());
    [this.gradient, this.first, this.second] = [0, 0, 0].map(() => new Float64Array(count));
  }

  step(): void {
    this.steps++;
    const [c1, c2] = [1 - 0.9 ** this.steps, 1 - 0.999 ** this.steps];
    for (let i = 0; i < this.values.length; i++) {
      this.first[i] += 0.1 * (this.gradient[i] - this.first[i]);
      this.second[i] += 0.001 * (this.gradient[i] ** 2 - this.second[i]);
      this.values[i] -= (SETTINGS.lr * (this.first[i] / c1)) / (Math.sqrt(this.second[i] / c2) + 1e-8);
    }
  }
}

function argmax(values: Float64Array): number {
  let best = 0;
  for (let i = 1; i < values.length; i++) if (values[i] > values[best]) best = i;
  return best;
}

function softmax(values: Float64Array): void {
  const most = values.reduce((a, b) => Math.max(a, b));
  let sum = 0;
  for (let j = 0; j < values.length; j++) sum += values[j] = Math.exp(values[j] - most);
  for (let j = 0; j < values.length; j++) values[j] /= sum;
}
