import { describe, expect, test } from "vitest";
import { distinguishingWord } from "../../src/automata/compare";
import { type Machine } from "../../src/automata/machine";
import { Head, type Words } from "../../src/learn/head";
import { type KeptHead, readHead } from "../../src/learn/read";
import { type Outcome, type Progress, headSizes, learn, product, sample } from "../../src/learn/search";
import { entry } from "../../src/library";
import { Random } from "../../src/random";
import { golden } from "../golden";

function train(task: { machine: Machine; weights: number[] }, seed: number): { shown: Progress[]; outcome: Outcome } {
  const training = learn(task, seed);
  const shown: Progress[] = [];
  for (;;) {
    const { value, done } = training.next();
    if (done) return { shown, outcome: value };
    shown.push(value);
  }
}

interface Row {
  logits: number[][][];
  readout: number[][];
  groups: number[];
  words: number[][];
  labels: number[][];
  loss: number;
  gradient: number[][][];
  readGradient: number[][];
  held: KeptHead;
}

function batch({ words, labels }: Row): Words {
  return { count: words.length, length: words[0].length, symbols: Uint16Array.from(words.flat()), labels: Uint16Array.from(labels.flat()) };
}

describe("a head, as in Python", () => {
  const rows = golden<Row>("heads");

  test("likelihood and gradient", () => {
    for (const row of rows) {
      const head = new Head(row.logits.length, row.readout.length, row.logits[0].length, new Random(1));
      head.logits.values.set(row.logits.flat(2));
      head.readout.values.set(row.readout.flat());
      expect(head.loss(batch(row), row.groups)).toBeCloseTo(row.loss, 5);
      row.gradient.flat(2).forEach((value, i) => expect(head.logits.gradient[i]).toBeCloseTo(value, 4));
      row.readGradient.flat().forEach((value, i) => expect(head.readout.gradient[i]).toBeCloseTo(value, 4));
    }
  });

  test("what is read out of it", () => {
    for (const row of rows) {
      const tables = row.logits.map((columns) => columns.map((column) => column.indexOf(Math.max(...column))));
      expect(readHead(tables, [batch(row)], row.readout.length, 0)).toEqual(row.held);
    }
    expect(rows.some(({ held, readout }) => held.indices.length > 1 && held.indices.length < readout[0].length)).toBe(true);
  });

  test("its size, by the number of labels", () => {
    golden<number[]>("sizes").forEach((sizes, i) => expect(headSizes(i + 1)).toEqual(sizes));
  });

  test("a step lowers the loss", () => {
    const words = sample(entry("S3"), 64, 8, new Random(2));
    const head = new Head(2, 6, 9, new Random(3));
    const groups = new Uint8Array(6);
    const before = head.step(words, groups);
    expect(head.loss(words, groups, false)).toBeLessThan(before);
  });
});

describe("learning", () => {
  test.each([["S3", 1], ["FF", 1], ["Z2", 2], ["Z5", 1], ["S4", 3]])("%s with seed %i is exact", (name, seed) => {
    const { shown, outcome } = train(entry(name), seed);
    const { machine } = entry(name);
    expect(outcome.difference).toBeNull();
    expect(distinguishingWord(outcome.machine!, { ...machine, stateOutputs: undefined })).toBeNull();
    expect(outcome.heads.reduce((joint, size) => joint * size)).toBeLessThan(4 * machine.states.length);
    const open = shown.at(-1)!.kept.map((head) => head.open);
    expect(open).toEqual([...open].sort((x, y) => y - x));
    expect(open.at(-1)).toBeLessThan(1e-9);
  });

  test("a machine without outputs, of which the start is not the first state", () => {
    const { machine } = entry("Z5");
    const { outcome } = train({ machine: { ...machine, kind: "semiautomaton", start: 3, stateOutputs: undefined }, weights: [1, 1, 1, 1, 1] }, 1);
    expect(outcome.heads).toEqual([5]);
    expect(outcome.difference).toBeNull();
  });

  test("what fresh words do not show is found by the comparison", () => {
    // the third symbol is never drawn, so no word shows what it does
    const { machine } = entry("FF");
    const { outcome } = train({ machine, weights: [1, 1, 0] }, 1);
    expect(outcome.machine).not.toBeNull();
    expect(outcome.difference!.outputs[0]).not.toBe(outcome.difference!.outputs[1]);
    expect(outcome.difference!.word.at(-1)).toBe(2);
  });

  test("heads side by side are one machine; a joint index that is no state says so", () => {
    const { machine } = entry("Z2");
    const flip: KeptHead = { tables: [[0, 1], [1, 0]], ofLabel: [0, 1], start: 0, indices: [0, 1] };
    const right = machine.tables[1][0] === 1 ? flip : { ...flip, tables: [[1, 0], [0, 1]] };
    expect(distinguishingWord(product([right], machine), { ...machine, stateOutputs: undefined })).toBeNull();
    const stuck: KeptHead = { ...flip, tables: [[0, 0], [0, 0]] };
    expect(distinguishingWord(product([right, stuck], machine), machine)!.outputs[0]).toBe("no state");
  });

  test("the same seed gives the same run", () => {
    expect(train(entry("Z2"), 5).outcome).toEqual(train(entry("Z2"), 5).outcome);
  });
});
