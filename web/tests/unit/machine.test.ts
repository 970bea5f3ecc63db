import { describe, expect, test } from "vitest";
import { distinguishingWord, NotComparable } from "../../src/automata/compare";
import { machineFromDot } from "../../src/automata/dot";
import { type Machine, NotMachine, machineFromJson, machineToJson, run, wordFromText, wordToText } from "../../src/automata/machine";
import { scan } from "../../src/scan/scan";
import { golden } from "../golden";

interface GoldenRun {
  json: string;
  dot: string;
  word: string[];
  states: string[];
  outputs: string[];
}

const RUNS = golden<GoldenRun>("runs");

function namesOf(machine: Machine, word: string[]): { states: string[]; outputs: string[] } {
  const done = run(machine, word.map((symbol) => machine.symbols.indexOf(symbol)));
  return { states: done.states.slice(1).map((q) => machine.states[q]), outputs: done.outputs.map((z) => machine.outputs[z]) };
}

describe("a hundred random machines", () => {
  test("there are a hundred", () => expect(RUNS.length).toBe(100));

  test.each(RUNS.map((row, i) => [i, row] as const))("machine %i runs as in Python", (_, row) => {
    const machine = machineFromJson(row.json);
    expect(namesOf(machine, row.word)).toEqual({ states: row.states, outputs: row.outputs });
  });

  test.each(RUNS.map((row, i) => [i, row] as const))("machine %i is the same from DOT", (_, row) => {
    const [one, other] = [machineFromDot(row.dot), machineFromJson(row.json)];
    for (const key of ["kind", "symbols", "states", "tables", "start", "outputs", "readout"] as const) {
      expect(one[key], key).toEqual(other[key]);
    }
  });

  test.each(RUNS.map((row, i) => [i, row] as const))("the tree gives machine %i the states of the loop", (_, row) => {
    const machine = machineFromJson(row.json);
    const word = row.word.map((symbol) => machine.symbols.indexOf(symbol));
    expect(scan(machine.tables, word, machine.start).states).toEqual(run(machine, word).states);
  });

  test("every machine is read back from what is written", () => {
    for (const row of RUNS) expect(machineFromJson(machineToJson(machineFromJson(row.json)))).toEqual(machineFromJson(row.json));
  });
});

describe("the tree", () => {
  const counter = [[1, 2, 3, 4, 0]];
  test.each([0, 1, 2, 3, 4, 5, 7, 8, 9, 31, 32, 33, 63, 64])("length %i", (length) => {
    const found = scan(counter, Array<number>(length).fill(0), 0);
    expect(found.states).toEqual(Array.from({ length: length + 1 }, (_, t) => t % 5));
    if (length) {
      expect(found.rounds).toBeLessThanOrEqual(2 * Math.ceil(Math.log2(length)) + 1);
      expect(found.root!.table).toEqual(counter[0].map((_, k) => (k + length) % 5));
    }
  });
});

describe("pairs of machines", () => {
  test.each(golden<{ one: string; other: string; length: number | null }>("pairs").map((row, i) => [i, row] as const))(
    "pair %i",
    (_, row) => {
      const [one, other] = [machineFromJson(row.one), machineFromJson(row.other)];
      const found = distinguishingWord(one, other);
      expect(found === null ? null : found.word.length).toBe(row.length);
      if (found?.word.length) {
        const last = (machine: Machine): string => namesOf(machine, found.word.map((a) => one.symbols[a])).outputs.at(-1)!;
        expect([last(one), last(other)]).toEqual(found.outputs);
        expect(found.outputs[0]).not.toBe(found.outputs[1]);
      }
    },
  );

  test("other symbols are refused", () => {
    const one = machineFromJson(RUNS[0].json);
    expect(() => distinguishingWord(one, { ...one, symbols: one.symbols.map((s) => `${s}!`) })).toThrow(NotComparable);
  });
});

describe("bad files", () => {
  const good = JSON.parse(RUNS[0].json) as Record<string, unknown>;
  const bad: [string, unknown, string][] = [
    ["version", 2, "the entry version is 2; wanted 1."],
    ["kind", "turing", "wanted moore, mealy or semiautomaton"],
    ["tables", [[0]], "wanted"],
    ["start", -1, "the entry start is -1; wanted an integer from 0"],
    ["start", true, "the entry start is true"],
    ["states", [], "a list of names"],
    ["symbols", ["a", "a"], "twice"],
    ["more", 1, "does not belong"],
    ["readout", "x", "numbers, one per state"],
  ];
  test.each(bad)("%s = %j", (key, value, reason) => {
    expect(() => machineFromJson(JSON.stringify({ ...good, [key]: value }))).toThrow(reason);
  });
  test.each([
    ["", "this is not JSON"],
    ["[]", "some other JSON"],
    ['{"format": "exactstate-machine", "format": 1}', "occurs twice"],
    [`${"[".repeat(100_000)}`, "nested too deep"],
    ['{"format": "exactstate-machine", "version": 1.0}', "the entry version is 1"],
    ["NaN", "not a JSON number"],
  ])("%.40s", (text, reason) => expect(() => machineFromJson(text)).toThrow(reason));

  test.each([
    ["graph { a -- b }", "wanted a digraph"],
    ['digraph { a -> b [label="x"] }', "has no transition"],
    ['digraph { a -> a [label="x"]; a -> b [label="x"]; b -> b [label="x"] }', "has two transitions"],
    ["digraph { a -> b", "the text ends"],
    ["digraph { }", "no states"],
    ["digraph { a -> a }", "no label"],
  ])("DOT %s", (text, reason) => expect(() => machineFromDot(text)).toThrow(reason));

  test("a Mealy machine as AALpy and LearnLib write it", () => {
    const machine = machineFromDot('digraph g {\n s0 [label="s0"]; s1;\n __start0 [label="" shape="none"];\n s0 -> s1 [label="a/x"]; s1 -> s0 [label="a / y"];\n __start0 -> s0; }');
    expect(machine.kind).toBe("mealy");
    expect(machine.outputs).toEqual(["x", "y"]);
    expect(run(machine, [0, 0, 0]).outputs).toEqual([0, 1, 0]);
  });
});

describe("words", () => {
  test("symbols are read with and without blanks, the longest first", () => {
    expect(wordFromText("(0 1) (1 2)(0 1)", ["(0 1)", "(1 2)"])).toEqual([0, 1, 0]);
    expect(wordFromText("0 1,10", ["0", "1", "10"])).toEqual([0, 1, 2]);
    expect(wordFromText("", ["a"])).toEqual([]);
    expect(() => wordFromText("ab", ["a"])).toThrow(NotMachine);
    expect(() => wordFromText("a z", ["a"])).toThrow("“z” is not a symbol");
  });
  test("and written so that they are read back", () => {
    for (const symbols of [["a", "b"], ["(0 1)", "(1 2)"]]) {
      expect(wordFromText(wordToText([0, 1, 1], symbols), symbols)).toEqual([0, 1, 1]);
    }
  });
});
