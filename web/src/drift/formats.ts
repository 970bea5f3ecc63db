/** Number formats, and the number of a format that is nearest to a given one. */

export interface Format {
  name: string;
  /** Bits of the significand, the leading one included. */
  precision: number;
  /** Exponents of the smallest normal number and of the largest. */
  least: number;
  most: number;
  largest: number;
}

export const FORMATS: Format[] = [
  { name: "fp64", precision: 53, least: -1022, most: 1023, largest: Number.MAX_VALUE },
  { name: "fp32", precision: 24, least: -126, most: 127, largest: (2 - 2 ** -23) * 2 ** 127 },
  { name: "fp16", precision: 11, least: -14, most: 15, largest: 65504 },
  { name: "bf16", precision: 8, least: -126, most: 127, largest: (2 - 2 ** -7) * 2 ** 127 },
  { name: "fp8 e4m3", precision: 4, least: -6, most: 8, largest: 448 },
  { name: "fp8 e5m2", precision: 3, least: -14, most: 15, largest: 57344 },
];

export function format(name: string): Format {
  const found = FORMATS.find((one) => one.name === name);
  if (!found) throw new Error(`there is no format ${name}`);
  return found;
}

/** To nearest, ties to even, with subnormal numbers; numbers beyond the largest saturate. */
export function round(value: number, to: Format): number {
  if (to.precision === 53 || value === 0 || !Number.isFinite(value)) return value;
  const exponent = Math.max(Math.floor(Math.log2(Math.abs(value))), to.least);
  // the logarithm may be off by one next to a power of two
  const exact = Math.abs(value) >= 2 ** (exponent + 1) ? exponent + 1 : Math.abs(value) < 2 ** exponent && exponent > to.least ? exponent - 1 : exponent;
  const unit = 2 ** (exact - to.precision + 1);
  const scaled = value / unit;
  const floor = Math.floor(scaled);
  const rest = scaled - floor;
  const up = rest > 0.5 || (rest === 0.5 && floor % 2 !== 0);
  const rounded = (up ? floor + 1 : floor) * unit;
  return Math.abs(rounded) > to.largest ? Math.sign(rounded) * to.largest : rounded;
}
