import { describe, expect, test } from "vitest";
import { contractingHorizon, isometricHorizon, predictedRotation, roundedRotation, trackFlipFlop, trackRotation, ROTATION_GAP } from "../../src/drift/affine";
import { FORMATS, format, round } from "../../src/drift/formats";
import { golden } from "../golden";

interface Row {
  format?: string;
  cosine: number;
  sine: number;
  predicted: number;
  iterated: number | null;
  kappa: number;
  C: number;
  eta: number;
  isometric: number;
  contracting: number;
}

const ROWS = golden<Row>("drift");

describe("the same numbers as paper/theory", () => {
  test.each(ROWS.filter((row) => row.format))("the rotation in $format", (row) => {
    const rotation = roundedRotation(format(row.format!));
    expect([rotation.cosine, rotation.sine]).toEqual([row.cosine, row.sine]);
    expect(predictedRotation(format(row.format!))! / row.predicted).toBeCloseTo(1, 6);
    if (row.iterated !== null) expect(trackRotation(format(row.format!), 0, 100_000).firstWrong).toBe(row.iterated);
  });
  test("horizons", () => {
    const bounds = ROWS.filter((row) => !row.format);
    expect(bounds.length).toBe(60);
    for (const row of bounds) {
      expect(isometricHorizon(row.C, row.eta)).toBe(row.isometric);
      expect(contractingHorizon(row.kappa, row.C, row.eta)).toBe(row.contracting);
    }
  });
});

describe("rounding", () => {
  test("to fp32 is Math.fround", () => {
    for (let i = 0; i < 3000; i++) {
      const value = (i % 2 ? -1 : 1) * 10 ** (-44 + (i % 80)) * (1 + i / 3001);
      if (Math.abs(value) < 3e38) expect(round(value, format("fp32"))).toBe(Math.fround(value));
    }
  });
  test("is idempotent, monotone, and to even on ties", () => {
    for (const to of FORMATS) {
      let last = -Infinity;
      for (let i = -400; i <= 400; i++) {
        const value = round(i / 97, to);
        expect(round(value, to)).toBe(value);
        expect(value).toBeGreaterThanOrEqual(last);
        last = value;
      }
    }
    expect(round(17, format("fp8 e4m3"))).toBe(16);
    expect(round(19, format("fp8 e4m3"))).toBe(20);
    expect(round(1e9, format("fp8 e4m3"))).toBe(448);
    expect(round(2 ** -10, format("fp8 e4m3"))).toBe(0);
    expect(round(2 ** -9, format("fp8 e4m3"))).toBe(2 ** -9);
  });
});

describe("the bounds hold", () => {
  test.each([0.2, 0.05, 0.01, 0.001])("a rotation pushed by %f is wrong soon after its guarantee ends", (eta) => {
    const bound = isometricHorizon(ROTATION_GAP, eta);
    const first = trackRotation(format("fp64"), eta).firstWrong!;
    expect(first).toBeGreaterThan(bound);
    expect(first).toBeLessThan(1.2 * bound + 3);
  });
  test.each([[0.01, 0.9], [0.001, 0.99], [0.1, 0.5]])("a flip-flop pushed by %f with kappa %f is wrong before it ends", (eta, kappa) => {
    expect(trackFlipFlop(format("fp64"), eta, kappa).firstWrong!).toBeLessThanOrEqual(contractingHorizon(kappa, 2, eta) + 1);
  });
  test("without a perturbation a fine format lasts longer", () => {
    const firsts = ["fp8 e5m2", "bf16", "fp16"].map((name) => trackRotation(format(name), 0).firstWrong!);
    expect(firsts).toEqual([...firsts].sort((a, b) => a - b));
  });
});
