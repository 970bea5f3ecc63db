/** A state diagram: states on a circle, an arrow for every step, colored by symbol. */

import { type Machine } from "./automata/machine";
import { hue, s, short, tint } from "./dom";

export const MAX_DRAWN = 24;

export interface Diagram {
  element: SVGSVGElement;
  /** Mark the state the machine is in, and the step that led there. */
  mark(state: number, from?: number, symbol?: number): void;
}

export function diagram(machine: Machine, caption: string, around = 138): Diagram {
  const n = machine.states.length;
  const radius = n === 1 ? 0 : around;
  const ball = n > 12 ? 13 : n > 8 ? 18 : 24;
  const loops = machine.tables.some((row) => row.some((next, q) => next === q));
  const size = 2 * (radius + ball + (loops ? 34 : 8));
  const at = (q: number): [number, number] => {
    const angle = (2 * Math.PI * q) / n - Math.PI / 2;
    return [size / 2 + radius * Math.cos(angle), size / 2 + radius * Math.sin(angle)];
  };
  const arrows = new Map<string, SVGPathElement>();
  const lines = s("g", { class: "arrows" });
  const A = machine.symbols.length;
  for (let q = 0; q < n; q++) {
    for (let a = 0; a < A; a++) {
      const path = s("path", { d: arrow(at(q), at(machine.tables[a][q]), ball, a, A, size), stroke: tint(a, A), class: "arrow" });
      arrows.set(`${q} ${a}`, path);
      lines.append(path);
      const tip = tipOf(at(q), at(machine.tables[a][q]), ball, a, A, size);
      lines.append(s("path", { d: "M0,0 L-8,-3.4 L-8,3.4 Z", fill: tint(a, A), transform: `translate(${tip.x},${tip.y}) rotate(${tip.angle})` }));
    }
  }
  const balls = machine.states.map((name, q) => {
    const [x, y] = at(q);
    return s("g", { class: q === machine.start ? "ball start" : "ball" },
      s("circle", { cx: x, cy: y, r: ball, fill: hue(q, n) }),
      s("text", { x, y: y + 4, "text-anchor": "middle", class: n > 8 ? "tiny" : "" }, short(n > 12 ? String(q) : name, n > 8 ? 6 : 7)));
  });
  const element = s("svg", { viewBox: `0 0 ${size} ${size}`, class: "diagram", role: "img", "aria-label": caption }, lines, balls);
  return {
    element,
    mark(state, from, symbol) {
      balls.forEach((g, q) => g.classList.toggle("now", q === state));
      arrows.forEach((path) => path.classList.remove("now"));
      if (from !== undefined && symbol !== undefined) arrows.get(`${from} ${symbol}`)?.classList.add("now");
    },
  };
}

type Point = [number, number];

function controls(from: Point, to: Point, ball: number, a: number, A: number, size: number): { begin: Point; bend: Point; bend2: Point; end: Point } {
  const spread = (a - (A - 1) / 2) * 16;
  if (from[0] === to[0] && from[1] === to[1]) {
    // a loop, outwards from the middle; those of several symbols side by side
    const out = Math.atan2(from[1] - size / 2, from[0] - size / 2) || -Math.PI / 2;
    const side = out + ((a - (A - 1) / 2) * 0.62);
    const place = (angle: number, far: number): Point => [from[0] + far * Math.cos(angle), from[1] + far * Math.sin(angle)];
    return { begin: place(side - 0.22, ball), bend: place(side - 0.42, ball + 34), bend2: place(side + 0.42, ball + 34), end: place(side + 0.22, ball + 2) };
  }
  const [dx, dy] = [to[0] - from[0], to[1] - from[1]];
  const far = Math.hypot(dx, dy);
  const lift = 16 + spread;
  const bend: Point = [(from[0] + to[0]) / 2 - (dy / far) * lift * 1.4, (from[1] + to[1]) / 2 + (dx / far) * lift * 1.4];
  const edge = (center: Point, gap: number): Point => {
    const [x, y] = [bend[0] - center[0], bend[1] - center[1]];
    const length = Math.hypot(x, y);
    return [center[0] + (x / length) * gap, center[1] + (y / length) * gap];
  };
  return { begin: edge(from, ball), bend, bend2: bend, end: edge(to, ball + 2) };
}

function arrow(from: Point, to: Point, ball: number, a: number, A: number, size: number): string {
  const { begin, bend, bend2, end } = controls(from, to, ball, a, A, size);
  const f = (point: Point): string => point.map((v) => v.toFixed(1)).join(",");
  return `M${f(begin)} C${f(bend)} ${f(bend2)} ${f(end)}`;
}

function tipOf(from: Point, to: Point, ball: number, a: number, A: number, size: number): { x: number; y: number; angle: number } {
  const { bend2, end } = controls(from, to, ball, a, A, size);
  return { x: end[0], y: end[1], angle: (Math.atan2(end[1] - bend2[1], end[0] - bend2[0]) * 180) / Math.PI };
}
