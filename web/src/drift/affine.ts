/**
 * Two affine recurrences that track exactly until something is rounded or pushed, and the paper's bounds on how long.
 *
 * - A rotation by 2 pi / 7 tracks Z7. Its weights are rounded to a format, as in paper/theory/drift.py; every step is pushed by
 *   eta along the circle, always the same way, which is the worst case.
 * - A contracting flip-flop holds +1 or -1 by multiplying with kappa < 1. Its state is kept in the format, and every step
 *   is pushed by eta towards 0.
 *
 * An NFSM looks up a table that an arg max selects. A push of eta on its logits changes nothing while 2 eta is below the margin.
 */

import { type Format, round } from "./formats";

export const ORDER = 7;
export const MARGIN = 2;
/** The most steps that are carried out one by one. */
export const LIMIT = 2_000_000;

export interface Track {
  /** The first step at which the read-out is wrong; null if there is none up to `limit`. */
  firstWrong: number | null;
  limit: number;
  /** The state at some steps, for drawing: of the rotation seen from the right corner. */
  points: { step: number; x: number; y: number }[];
}

const CORNER = (2 * Math.PI) / ORDER;

export interface Rotation {
  cosine: number;
  sine: number;
  /** Radians per step by which the rounded rotation turns too far. */
  angleError: number;
}

export function roundedRotation(to: Format): Rotation {
  const [c, si] = [Math.cos(CORNER), Math.sin(CORNER)];
  const [cosine, sine] = [round(c, to), round(si, to)];
  return { cosine, sine, angleError: Math.atan2(sine * c - cosine * si, cosine * c + sine * si) };
}

/** The constant word 1 1 1 ...; right is the corner t mod 7 after t steps. */
export function trackRotation(to: Format, eta: number, limit = LIMIT): Track {
  const { cosine, sine, angleError } = roundedRotation(to);
  const way = angleError < 0 ? -1 : 1;
  const corners = Array.from({ length: ORDER }, (_, k) => [Math.cos(CORNER * k), Math.sin(CORNER * k)]);
  const wide = Math.tan(Math.PI / ORDER);
  let [x, y] = [1, 0];
  const points = [{ step: 0, x, y: 0 }];
  for (let t = 1; t <= limit; t++) {
    [x, y] = [cosine * x - sine * y, sine * x + cosine * y];
    if (eta) {
      const norm = Math.hypot(x, y) || 1;
      [x, y] = [x - (way * eta * y) / norm, y + (way * eta * x) / norm];
    }
    const [c, si] = corners[t % ORDER];
    const [along, across] = [x * c + y * si, y * c - x * si];
    const wrong = !(Math.abs(across) <= wide * along);
    if (wrong || worthDrawing(t)) points.push({ step: t, x: along, y: across });
    if (wrong) return { firstWrong: t, limit, points };
    if (!(Math.abs(x) < 1e150)) break;
  }
  return { firstWrong: null, limit, points };
}

/** Where the rotation fails by its weights alone, beyond what is carried out; null if the format is too fine to say. */
export function predictedRotation(to: Format): number | null {
  const { angleError } = roundedRotation(to);
  return to.precision >= 53 || angleError === 0 ? null : Math.floor(Math.PI / ORDER / Math.abs(angleError)) + 1;
}

/** Set once, then hold; right is +1 forever. */
export function trackFlipFlop(to: Format, eta: number, kappa: number, limit = LIMIT): Track {
  const factor = round(kappa, to);
  let state = 1;
  const points = [{ step: 0, x: 1, y: 0 }];
  for (let t = 1; t <= limit; t++) {
    state = round(factor * state - eta, to);
    const wrong = !(state > 0);
    if (wrong || worthDrawing(t)) points.push({ step: t, x: state, y: 0 });
    if (wrong) return { firstWrong: t, limit, points };
    if (factor >= 1 && !eta) break; // rounded to 1: it no longer contracts, and no longer forgets
  }
  return { firstWrong: null, limit, points };
}

function worthDrawing(t: number): boolean {
  return t < 200 || (t < 4000 && t % 7 === 0) || t % 1009 === 0;
}

/** The largest L with C kappa^L > 2 eta: no guarantee goes beyond it. Infinite without a perturbation. */
export function contractingHorizon(kappa: number, C: number, eta: number): number {
  if (eta <= 0 || kappa >= 1) return Infinity;
  let L = Math.max(0, Math.ceil(Math.log(C / (2 * eta)) / Math.log(1 / kappa)) - 1);
  while (C * kappa ** (L + 1) > 2 * eta) L++;
  while (L && C * kappa ** L <= 2 * eta) L--;
  return L;
}

/** The largest L with 2 eta L < C: no guarantee goes beyond it. */
export function isometricHorizon(C: number, eta: number): number {
  if (eta <= 0) return Infinity;
  let L = Math.max(0, Math.ceil(C / (2 * eta)) - 1);
  while (2 * eta * (L + 1) < C) L++;
  while (L && 2 * eta * L >= C) L--;
  return L;
}

/** The distance of neighboring corners. */
export const ROTATION_GAP = 2 * Math.sin(Math.PI / ORDER);
export const FLIP_FLOP_GAP = 2;
