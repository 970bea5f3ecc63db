/** Panel 2: a rotation, a contracting flip-flop and an NFSM under the same perturbation. */

import { h, hue, replace, s } from "../dom";
import {
  FLIP_FLOP_GAP, LIMIT, MARGIN, ORDER, ROTATION_GAP, type Track, contractingHorizon, isometricHorizon, predictedRotation,
  trackFlipFlop, trackRotation,
} from "../drift/affine";
import { FORMATS, type Format, format } from "../drift/formats";
import { type Panel, Status, layout, p, pictureWidth, select, slider } from "../ui";

/** The slider of the perturbation moves in tenths of a decade; at its left end there is none. */
const [LEFT, RIGHT] = [-50, -4];
const etaOf = (notch: number): number => (notch <= LEFT ? 0 : 10 ** (notch / 10));

export class DriftPanel implements Panel {
  readonly element: HTMLElement;
  private eta = 0.01;
  private kappa = 0.9;
  private to: Format = format("fp64");
  private readonly etaSlider = slider("Perturbation of every step", { min: LEFT, max: RIGHT, step: 1, value: -20 }, (notch) => {
    this.eta = etaOf(notch);
    this.draw();
  });
  private readonly kappaSlider = slider("Contraction of the flip-flop, κ", { min: 0.5, max: 0.99, step: 0.01, value: 0.9 }, (kappa) => {
    this.kappa = kappa;
    this.draw();
  });
  private readonly rotation = h("div", { class: "model" });
  private readonly flipFlop = h("div", { class: "model" });
  private readonly nfsm = h("div", { class: "model" });
  private readonly line = h("div", { class: "timeline" });
  private readonly status = new Status();

  constructor() {
    const formats = select("Number format", FORMATS.map(({ name }) => [name, name] as const), (name) => {
      this.to = format(name);
      this.draw();
    }, "fp64");
    this.element = h("div", { class: "panel" }, layout(
      [
        h("h2", {}, "Why affine models lose track"),
        p("Linear RNNs and state-space models multiply their state by a matrix and add something. Such a step has one rate. If it ", h("em", {}, "keeps"), " distances, it keeps every error as well, and errors pile up. If it ", h("em", {}, "contracts"), ", it forgets errors, and states with them."),
        p("Left, a rotation counts modulo 7: the read-out asks in which sector the point lies. Middle, a flip-flop holds a bit by multiplying it with κ: the read-out asks for the sign. Both are right until they are not; the first wrong step is marked."),
        p("Right, an NFSM: the perturbation reaches its ", h("em", {}, "logits"), ", and the arg max is the same as long as two perturbations fit into the margin. The next step starts from an integer, not from something near it. Nothing is left to pile up."),
        h("p", { class: "soft" }, "The bounds are those of the paper: a guarantee ends at C / 2η steps for an isometry and at log(C / 2η) / log(1 / κ) for a contraction, where C is the distance of two code points and η the largest perturbation. Here the perturbation always pushes the wrong way. The format rounds the weights of the rotation, and weight and state of the flip-flop."),
      ],
      [
        h("div", { class: "row" }, this.etaSlider.element, formats.element, this.kappaSlider.element),
        h("div", { class: "models" }, this.rotation, this.flipFlop, this.nfsm),
        this.line, this.status.element,
      ],
    ));
    this.draw();
    window.addEventListener("resize", () => this.element.checkVisibility() && this.draw());
  }

  drop(): void {}

  private draw(): void {
    const { eta, kappa, to } = this;
    this.etaSlider.show(eta === 0 ? "none" : `η = ${eta.toPrecision(2)}`);
    this.kappaSlider.show(`κ = ${kappa.toFixed(2)}`);
    const turning = trackRotation(to, eta);
    const holding = trackFlipFlop(to, eta, kappa);
    const bounds = { rotation: isometricHorizon(ROTATION_GAP, eta), flipFlop: contractingHorizon(kappa, FLIP_FLOP_GAP, eta) };
    const predicted = turning.firstWrong ?? (eta === 0 ? predictedRotation(to) : null);
    const beyond = `none in ${LIMIT.toLocaleString("en")} steps`;
    replace(this.rotation, h("h3", {}, "Rotation, Z7"), this.sectors(turning),
      facts([
        ["first wrong step", turning.firstWrong ? steps(turning.firstWrong) : predicted ? `about ${steps(predicted)}, by its weights` : eta === 0 ? `${beyond}; about 10¹⁶ by its weights` : beyond],
        ["guarantee ends after", bound(bounds.rotation, "C / 2η")],
      ]));
    replace(this.flipFlop, h("h3", {}, "Contracting flip-flop"), this.decay(holding),
      facts([
        ["first wrong step", holding.firstWrong ? steps(holding.firstWrong) : beyond],
        ["guarantee ends after", bound(bounds.flipFlop, "log(C / 2η) / log(1 / κ)")],
      ]));
    const safe = 2 * eta < MARGIN;
    replace(this.nfsm, h("h3", {}, "NFSM, Z7"), this.logits(),
      facts([["first wrong step", safe ? "none, at any length" : "the first"], ["margin against twice η", `${MARGIN} > ${(2 * eta).toPrecision(2)}`]]));
    replace(this.line, this.timeline(turning.firstWrong ?? predicted, holding.firstWrong, bounds));
    const words = (name: string, first: number | null): string => (first ? `${name} is wrong from step ${steps(first)} on` : `${name} is not wrong within ${LIMIT.toLocaleString("en")} steps`);
    this.status.say(`${words("The rotation", turning.firstWrong)}; ${words("the flip-flop", holding.firstWrong)}. The NFSM is right at every step.`);
  }

  /** The state seen from the right answer: it should stay in the sector on the right. */
  private sectors(track: Track): SVGElement {
    const [c, R] = [130, 108];
    const place = (x: number, y: number): [number, number] => [c + R * 0.82 * x, c - R * 0.82 * y];
    const cells = Array.from({ length: ORDER }, (_, k) => {
      const [from, to] = [k - 0.5, k + 0.5].map((turn) => (2 * Math.PI * turn) / ORDER);
      const point = (angle: number): string => `${c + R * Math.cos(angle)},${c - R * Math.sin(angle)}`;
      const middle = (2 * Math.PI * k) / ORDER;
      return s("g", {},
        s("path", { d: `M${c},${c} L${point(from)} A${R},${R} 0 0 0 ${point(to)} Z`, class: k === 0 ? "sector right" : "sector", fill: hue(k, ORDER) }),
        s("text", { x: c + R * 1.13 * Math.cos(middle), y: c - R * 1.13 * Math.sin(middle) + 4, "text-anchor": "middle", class: "label" }, k === 0 ? "right" : `+${k}`));
    });
    const trail = track.points.filter((_, i) => i % Math.ceil(track.points.length / 400) === 0 || i === track.points.length - 1);
    const last = trail[trail.length - 1];
    const [x, y] = place(last.x, last.y);
    return s("svg", { viewBox: "-14 0 296 260", class: "plot", role: "img", "aria-label": `Seven sectors. The state drifts out of the right one ${track.firstWrong ? `at step ${track.firstWrong}` : "not at all"}.` },
      cells, s("polyline", { points: trail.map((one) => place(one.x, one.y).map((v) => v.toFixed(1)).join(",")).join(" "), class: "trail" }),
      trail.length < 60 && trail.map((one) => { const [px, py] = place(one.x, one.y); return s("circle", { cx: px, cy: py, r: 2, class: "trail-dot" }); }),
      s("circle", { cx: x, cy: y, r: 6, class: track.firstWrong ? "wrong" : "ok" }),
      track.firstWrong && s("path", { d: `M${x - 4},${y - 4} L${x + 4},${y + 4} M${x + 4},${y - 4} L${x - 4},${y + 4}`, class: "cross" }));
  }

  private decay(track: Track): SVGElement {
    const last = Math.max(track.points[track.points.length - 1].step, 1);
    const shownTo = track.firstWrong ? Math.ceil(last * 1.15) + 1 : last;
    const place = (step: number, value: number): [number, number] => [34 + (212 * step) / shownTo, 130 - 96 * Math.max(-1, Math.min(1, value))];
    const trail = track.points.filter((_, i) => i % Math.ceil(track.points.length / 400) === 0 || i === track.points.length - 1);
    const [x, y] = place(last, track.points[track.points.length - 1].x);
    return s("svg", { viewBox: "0 0 260 260", class: "plot", role: "img", "aria-label": `The state decays from 1 towards 0${track.firstWrong ? ` and is read wrongly at step ${track.firstWrong}` : ""}.` },
      s("rect", { x: 34, y: 34, width: 212, height: 96, class: "sector right", fill: hue(0, 2) }),
      s("rect", { x: 34, y: 130, width: 212, height: 96, class: "sector", fill: hue(1, 2) }),
      s("line", { x1: 34, x2: 246, y1: 130, y2: 130, class: "axis" }),
      s("text", { x: 28, y: 40, "text-anchor": "end", class: "label" }, "+1"), s("text", { x: 28, y: 134, "text-anchor": "end", class: "label" }, "0"),
      s("text", { x: 28, y: 230, "text-anchor": "end", class: "label" }, "−1"),
      s("text", { x: 140, y: 54, "text-anchor": "middle", class: "label inner" }, "read as “set”"), s("text", { x: 140, y: 216, "text-anchor": "middle", class: "label outer" }, "read as “reset”"),
      s("text", { x: 246, y: 246, "text-anchor": "end", class: "label" }, `step ${steps(shownTo)}`),
      s("polyline", { points: trail.map((one) => place(one.step, one.x).map((v) => v.toFixed(1)).join(",")).join(" "), class: "trail" }),
      s("circle", { cx: x, cy: y, r: 6, class: track.firstWrong ? "wrong" : "ok" }),
      track.firstWrong && s("path", { d: `M${x - 4},${y - 4} L${x + 4},${y + 4} M${x + 4},${y - 4} L${x - 4},${y + 4}`, class: "cross" }));
  }

  /** The column of logits that a step uses: one is ahead by the margin; the perturbation moves each of them by eta. */
  private logits(): SVGElement {
    const scale = 68;
    const zero = 150;
    return s("svg", { viewBox: "0 0 260 260", class: "plot", role: "img", "aria-label": `Seven logits; one is ahead by ${MARGIN}, and the perturbation moves each by at most ${this.eta}.` },
      Array.from({ length: ORDER }, (_, j) => {
        const value = j === 1 ? MARGIN / 2 : -MARGIN / 2;
        const x = 24 + j * 32;
        const top = zero - value * scale;
        const low = top + this.eta * scale;
        const high = top - this.eta * scale;
        return s("g", {},
          s("rect", { x, y: Math.min(top, zero), width: 20, height: Math.abs(zero - top), rx: 2, fill: hue(j, ORDER), class: j === 1 ? "sector right" : "sector" }),
          s("path", { d: `M${x + 10},${low} V${high} M${x + 4},${low} H${x + 16} M${x + 4},${high} H${x + 16}`, class: "whisker" }),
          s("text", { x: x + 10, y: 246, "text-anchor": "middle", class: "label" }, String(j)));
      }),
      s("line", { x1: 16, x2: 250, y1: zero, y2: zero, class: "axis" }),
      s("path", { d: `M${24 + 2 * 32 - 6},${zero - (MARGIN / 2) * scale} h14 m-7,0 V${zero + (MARGIN / 2) * scale} m-7,0 h14`, class: "bracket" }),
      s("text", { x: 104, y: zero - 30, class: "label" }, `margin ${MARGIN}`),
      s("text", { x: 140, y: 26, "text-anchor": "middle", class: "label" }, "logits of one column"));
  }

  private timeline(rotation: number | null, flipFlop: number | null, bounds: { rotation: number; flipFlop: number }): SVGElement {
    const whole = pictureWidth(820);
    const [left, right, top] = [84, whole - 36, 1e8];
    const x = (step: number): number => left + ((right - left) * Math.log10(Math.max(1, Math.min(step, top)))) / 8;
    const row = (y: number, name: string, first: number | null, bound: number, endless = false): SVGElement => {
      const end = endless ? right + 14 : x(first ?? top);
      return s("g", {},
        s("text", { x: 0, y: y + 4, class: "name" }, name),
        s("line", { x1: left, x2: end, y1: y, y2: y, class: endless ? "span forever" : "span" }),
        endless && s("path", { d: `M${end},${y} l-9,-6 v12 Z`, class: "forever-tip" }),
        !endless && first && s("path", { d: `M${end - 5},${y - 5} l10,10 m0,-10 l-10,10`, class: "cross" }),
        Number.isFinite(bound) && s("path", { d: `M${x(bound)},${y - 9} v18`, class: "bound" }));
    };
    return s("svg", { viewBox: `0 0 ${whole} 128`, class: "times", role: "img", "aria-label": "Steps until the first wrong one, on a logarithmic scale" },
      Array.from({ length: 9 }, (_, k) => k).filter((k) => whole > 500 || k % 2 === 0).map((k) => [
        s("line", { x1: x(10 ** k), x2: x(10 ** k), y1: 8, y2: 96, class: "grid" }),
        s("text", { x: x(10 ** k), y: 114, "text-anchor": "middle", class: "label" }, k < 4 ? String(10 ** k) : `10${"⁰¹²³⁴⁵⁶⁷⁸"[k]}`),
      ]),
      s("text", { x: 0, y: 114, class: "label" }, "steps"),
      row(24, "rotation", rotation, bounds.rotation), row(52, "flip-flop", flipFlop, bounds.flipFlop), row(80, "NFSM", null, Infinity, true));
  }
}

function steps(n: number): string {
  return n < 1e6 ? n.toLocaleString("en") : n.toExponential(1).replace(/e\+?(\d+)/, (_, e: string) => ` × 10${[...e].map((d) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[Number(d)]).join("")}`);
}

function bound(n: number, formula: string): string {
  return Number.isFinite(n) ? `${steps(n)} = ${formula}` : `never: ${formula} with η = 0`;
}

function facts(rows: [string, string][]): HTMLElement {
  return h("dl", { class: "facts" }, rows.map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));
}

