import { describe, expect, test } from "vitest";
import { distinguishingWord } from "../../src/automata/compare";
import { Network, type Parameters } from "../../src/learn/network";
import { type Outcome, learn, sample, wideShape } from "../../src/learn/recipe";
import { entry } from "../../src/library";
import { Random } from "../../src/random";

function outcome(name: string, seed: number): Outcome {
  const training = learn(entry(name), seed);
  for (;;) {
    const { value, done } = training.next();
    if (done) return value;
  }
}

describe("the gradient", () => {
  const task = entry("S3");
  const shape = { ...wideShape(2, 6), heads: 3, indices: 6, width: 5, hidden: 7 };

  test("of everything after the tables is that of finite differences", () => {
    const network = new Network(shape, new Random(3));
    const words = sample(task, 5, 6, new Random(4));
    const { gradient } = network.gradient(words);
    const random = new Random(5);
    for (const name of ["values", "hidden", "hiddenBias", "read", "skip", "readBias", "probes"] satisfies (keyof Parameters)[]) {
      const values = network.parameters[name];
      for (let i = 0; i < 8; i++) {
        const at = random.below(values.length);
        const [old, step] = [values[at], 1e-6];
        values[at] = old + step;
        const more = network.gradient(words).loss;
        values[at] = old - step;
        const less = network.gradient(words).loss;
        values[at] = old;
        expect(gradient[name][at], `${name}[${at}]`).toBeCloseTo((more - less) / (2 * step), 5);
      }
    }
  });

  test("of the logits of one step is that of the softmax", () => {
    // one step from index 0, one head: the expected loss under the softmax, by its derivative at the index that was chosen
    const one = { ...shape, heads: 1, probes: false };
    const network = new Network(one, new Random(6));
    const words = sample(task, 1, 1, new Random(7));
    const { gradient } = network.gradient(words);
    const d = one.indices;
    const column = gradient.bias.subarray(0, d);
    expect(column.reduce((sum, value) => sum + value, 0)).toBeCloseTo(0, 10);
    expect(column.some((value) => value !== 0)).toBe(true);
    expect(gradient.bias.subarray(d).every((value) => value === 0)).toBe(true);
  });

  test("removed heads change nothing but their mean", () => {
    const network = new Network(shape, new Random(8));
    const words = sample(task, 20, 20, new Random(9));
    const smaller = network.without([1], network.headMeans(words));
    expect([...smaller.active]).toEqual([1, 0, 1]);
    expect(smaller.gradient(words).gradient.values.subarray(30, 60).every((value) => value === 0)).toBe(true);
    expect([...network.active]).toEqual([1, 1, 1]);
  });
});

describe("learning", () => {
  test.each([["S3", 1], ["FF", 1], ["Z2", 2]])("%s with seed %i is exact", (name, seed) => {
    const { learned, difference, machine, heads } = outcome(name, seed);
    expect(learned).toBe(true);
    expect(difference).toBeNull();
    expect(distinguishingWord(machine!, { ...entry(name).machine, stateOutputs: undefined })).toBeNull();
    expect(heads.length).toBeLessThan(4);
  });

  test("a machine that is almost right is told apart from the target", () => {
    const { difference, machine } = outcome("FF", 2);
    expect(difference).not.toBeNull();
    expect(difference!.outputs[0]).not.toBe(difference!.outputs[1]);
    expect(machine).not.toBeNull();
  });

  test("the same seed gives the same run", () => {
    expect(outcome("Z2", 5)).toEqual(outcome("Z2", 5));
  });
});
