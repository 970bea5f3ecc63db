/** Where symbols are regions of inputs: a prototype and a radius for every symbol, and what is proved over them. */

import { Float, type Json, quoted } from "../json";
import { Refused, list, object, oneOf, shown } from "./form";

export interface Regions {
  norm: string;
  centers: number[][];
  radii: number[];
}

const NORMS: Record<string, string> = { linf: "in every coordinate", l2: "in Euclidean distance" };
const MAX_REGIONS = 1024;
const MAX_COORDINATES = 2 ** 20;

export function readRegions(value: Json, symbols: string[]): Regions {
  const entries = object(value, "regions", ["norm", "centers", "radii"]);
  const A = symbols.length;
  const norm = oneOf(entries.get("norm")!, "regions.norm", Object.keys(NORMS));
  const rows = list(entries.get("centers")!, "regions.centers", A);
  const n = list(rows[0], "regions.centers[0]").length;
  if (A > MAX_REGIONS || n < 1 || A * n > MAX_COORDINATES) {
    throw new Refused(`regions.centers has ${A} prototypes of ${n} coordinates; wanted at most ${MAX_REGIONS} prototypes and ${MAX_COORDINATES} coordinates in all, and at least one.`);
  }
  const centers = rows.map((row, a) => list(row, `regions.centers[${a}]`, n).map((one, i) => finite(one, `regions.centers[${a}][${i}]`)));
  const radii = list(entries.get("radii")!, "regions.radii", A).map((one, a) => {
    const radius = finite(one, `regions.radii[${a}]`);
    if (radius < 0) throw new Refused(`regions.radii[${a}] is ${radius}; it may not be negative.`);
    return radius;
  });
  for (let a = 0; a < A; a++) {
    for (let b = a + 1; b < A; b++) {
      if (distance(centers[a], centers[b], norm) <= radii[a] + radii[b]) {
        throw new Refused(`the regions of ${quoted(symbols[a])} and ${quoted(symbols[b])} overlap: an input could be read as either.`);
      }
    }
  }
  return { norm, centers, radii };
}

function finite(value: Json, where: string): number {
  if (!(value instanceof Float) || !Number.isFinite(value.value)) throw new Refused(`${where} is ${shown(value)}; wanted a finite decimal number.`);
  return value.value;
}

function distance(one: number[], other: number[], norm: string): number {
  const apart = one.map((x, i) => Math.abs(x - other[i]));
  const largest = apart.reduce((most, x) => Math.max(most, x), 0);
  if (norm === "linf" || largest === 0 || largest === Infinity) return largest;
  return largest * Math.sqrt(apart.reduce((sum, x) => sum + (x / largest) ** 2, 0));
}

/** What is proved over the regions, in the formats given. */
export function regionSentence({ norm, radii }: Regions, words: string, proved: string[]): string {
  const least = radii.reduce((one, other) => Math.min(one, other));
  const most = radii.reduce((one, other) => Math.max(one, other));
  const range = roundedDown(least) === roundedDown(most) ? `${roundedDown(least)}` : `${roundedDown(least)} to ${roundedDown(most)}, by symbol,`;
  const within = most === 0 ? "are the prototypes" : `differ from the prototypes by at most ${range} ${NORMS[norm]}`;
  if (!proved.length) return `Inputs that ${within}: proved in no format.`;
  return `Correct on ${words} of any length whose inputs ${within}; proved in ${proved.join(", ")}.`;
}

/** With three digits. */
export function roundedDown(radius: number): number {
  const [digits, exponent] = radius.toExponential(2).split("e");
  const nearest = Number(`${digits}e${exponent}`);
  if (nearest <= radius) return nearest;
  return digits === "1.00" ? Number(`9.99e${Number(exponent) - 1}`) : Number(`${(Number(digits) - 0.01).toFixed(2)}e${exponent}`);
}
