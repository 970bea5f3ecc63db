/** Panel 3: a small NFSM trains in a worker; its tables settle in view, heads that are not needed fade. */

import { minimize } from "../automata/compare";
import { type Machine } from "../automata/machine";
import { count, h, replace, s, short, tint } from "../dom";
import { MAX_DRAWN, diagram } from "../draw";
import LearnWorker from "../learn/worker?worker&inline";
import { type Message } from "../learn/worker";
import { type Outcome, type Progress, wideShape } from "../learn/recipe";
import { type Panel, Status, button, layout, p, pictureWidth } from "../ui";
import { type Named, Picker } from "./picker";

const MAX_STATES = 12;
const MAX_SYMBOLS = 8;

export class LearnPanel implements Panel {
  readonly element: HTMLElement;
  private readonly picker: Picker;
  private task!: Named;
  private worker: Worker | null = null;
  private seed = 1;
  private history: { step: number; firstError: number; length: number }[] = [];
  private readonly status = new Status();
  private readonly tables = h("div", { class: "heads" });
  private readonly chart = h("div", { class: "progress" });
  private readonly result = h("div", { class: "result" });
  private readonly go: HTMLButtonElement;

  constructor() {
    this.go = button("Train", () => this.toggle(), { class: "primary" });
    this.picker = new Picker("Task", (named) => this.setTask(named), "S3", ["S3", "FF", "Z2", "Z5", "Z7"]);
    this.element = h("div", { class: "panel" }, layout(
      [
        h("h2", {}, "Learning, live"),
        p("A small network sees words and, after every symbol, the right label. It is never shown a table. It starts with eight heads of at least twelve indices, many more than it needs: each is another draw, and some will fit."),
        p("Forward, every step takes the ", h("em", {}, "arg max"), ": an exact table. Backward, the gradient goes through the softmax. A label counts up to the first error of its word; after that the state is wrong and labels say little."),
        p("When 256 fresh words of 64 symbols are all right, heads are removed, the least useful first, as long as fresh words stay right. What is left is read out as a machine, and only then compared with the target, on ", h("em", {}, "all"), " words at once."),
        h("p", { class: "soft" }, "Each square is a head's table for one symbol: from column to row, darker is likelier. The recipe is that of exactstate train, on a smaller network; margins are not widened here, so there is no certificate at the end."),
      ],
      [
        this.picker.element, this.picker.status.element, h("div", { class: "row" }, this.go, button("New seed", () => this.reseed())),
        this.status.element, this.chart, this.tables, this.result,
      ],
    ));
    this.picker.choose("S3");
  }

  drop(file: File): void {
    this.picker.open(file);
  }

  hidden(): void {
    this.stop();
  }

  private setTask(named: Named): void {
    this.stop();
    const { machine } = named;
    this.task = named;
    replace(this.tables);
    replace(this.result);
    replace(this.chart);
    const large = machine.states.length > MAX_STATES || machine.outputs.length > MAX_STATES || machine.symbols.length > MAX_SYMBOLS;
    this.go.disabled = large;
    if (large) {
      this.status.bad(`This machine has ${count(machine.states.length, "state")} and ${count(machine.symbols.length, "symbol")}; the page trains up to ${MAX_STATES} and ${MAX_SYMBOLS}. exactstate train takes larger ones.`);
    } else {
      this.status.say(`${count(machine.symbols.length, "symbol")}, ${count(machine.outputs.length, "label")}. Seed ${this.seed}.`);
    }
  }

  private reseed(): void {
    this.stop();
    this.seed++;
    this.setTask(this.task);
  }

  private toggle(): void {
    if (this.worker) {
      this.stop();
      this.status.say("Stopped.");
      return;
    }
    replace(this.result);
    this.history = [];
    this.status.say("Training …");
    replace(this.go, "Stop");
    this.worker = new LearnWorker();
    this.worker.addEventListener("message", (event: MessageEvent<Message>) => this.receive(event.data));
    this.worker.addEventListener("error", () => {
      this.stop();
      this.status.bad("The browser did not let the page start a worker.");
    });
    const { machine, weights } = this.task;
    this.worker.postMessage({ task: { machine, weights }, seed: this.seed });
  }

  private stop(): void {
    this.worker?.terminate();
    this.worker = null;
    replace(this.go, "Train");
  }

  private receive(message: Message): void {
    if (message.kind === "progress") this.show(message.progress, message.seconds);
    else this.finish(message.outcome, message.seconds);
  }

  private show(progress: Progress, seconds: number): void {
    if (progress.phase === "train") this.history.push(progress);
    const right = `right for ${progress.firstError.toFixed(1)} of ${progress.length} symbols on average`;
    const phase = { train: `Step ${progress.step}: ${right}.`, prune: `Pruning. ${progress.note}`, done: progress.note }[progress.phase];
    // not announced at every step: only the beginning and the end are
    this.status.element.setAttribute("aria-live", "off");
    this.status.say(`${phase} ${seconds.toFixed(1)} s`);
    replace(this.chart, this.curve());
    this.drawHeads(progress);
  }

  private finish(outcome: Outcome, seconds: number): void {
    this.stop();
    this.status.element.setAttribute("aria-live", "polite");
    const { machine, difference } = outcome;
    const time = `${seconds.toFixed(1)} s`;
    if (!machine) {
      this.status.bad(`Not learned in ${count(outcome.steps, "step")} (${time}). Another seed may do; exactstate train tries more heads by itself.`);
      return;
    }
    const heads = `${count(outcome.heads.length, "head")} of ${outcome.heads.join(" and ")} indices`;
    if (difference) {
      const word = difference.word.map((a) => machine.symbols[a]).join(" ");
      this.status.bad(`Learned in ${count(outcome.steps, "step")} and ${time}, but not exactly: after ${word} the network says ${difference.outputs[0]}, the target ${difference.outputs[1]}. Every fresh word was right; this one is rare. Try another seed.`);
    } else {
      this.status.good(`Exact after ${count(outcome.steps, "step")} and ${time}: the machine in ${heads} equals the target on every word of every length.`);
    }
    const small = minimize(machine);
    replace(this.result, h("h3", {}, "The machine, read out of the weights"),
      h("p", {}, `${count(machine.states.length, "joint index", "joint indices")} reached; ${count(small.states.length, "state")} after merging those that behave alike. Smallest margin ${outcome.margin.toPrecision(2)}.`),
      small.states.length <= MAX_DRAWN && h("div", { class: "pair" },
        h("figure", {}, diagram(named(small, this.task.machine), "The machine that was learned").element, h("figcaption", {}, "Learned")),
        h("figure", {}, diagram(this.task.machine, "The target").element, h("figcaption", {}, "Target"))),
      legend(machine.symbols));
  }

  /** The first error over the steps. */
  private curve(): SVGElement {
    const last = Math.max(50, ...this.history.map(({ step }) => step));
    const most = Math.max(...this.history.map(({ length }) => length), 16);
    const end = pictureWidth(560) - 10;
    const line = this.history.map(({ step, firstError }) => `${(44 + ((end - 44) * step) / last).toFixed(1)},${(74 - (62 * firstError) / most).toFixed(1)}`).join(" ");
    const [now] = this.history.slice(-1);
    return s("svg", { viewBox: `0 0 ${end + 10} 96`, class: "curve", role: "img", "aria-label": now ? `After ${now.step} steps words are right for ${now.firstError.toFixed(1)} symbols on average` : "Nothing trained yet" },
      s("line", { x1: 44, x2: end, y1: 74, y2: 74, class: "axis" }), s("line", { x1: 44, x2: end, y1: 12, y2: 12, class: "grid" }),
      s("text", { x: 38, y: 16, "text-anchor": "end", class: "label" }, String(most)), s("text", { x: 38, y: 78, "text-anchor": "end", class: "label" }, "0"),
      s("text", { x: 44, y: 92, class: "label" }, "symbols right before an error"), s("text", { x: end, y: 92, "text-anchor": "end", class: "label" }, `step ${last}`),
      s("polyline", { points: line, class: "trail" }));
  }

  private drawHeads({ probabilities, active, reached }: Progress): void {
    const { symbols, outputs } = this.task.machine;
    const { heads: r, indices: d } = wideShape(symbols.length, outputs.length);
    if (this.tables.children.length !== r) {
      replace(this.tables, Array.from({ length: r }, (_, head) =>
        h("figure", { class: "head" },
          h("div", { class: "squares" }, symbols.map(() => h("canvas", { width: d, height: d, "aria-hidden": "true" }))),
          h("figcaption", {}, `head ${head + 1}`))));
    }
    const ink = getComputedStyle(this.element).getPropertyValue("--ink-rgb").split(",").map(Number);
    [...this.tables.children].forEach((figure, head) => {
      figure.classList.toggle("gone", !active[head]);
      const used = reached[head]?.length;
      replace(figure.querySelector("figcaption")!, `head ${head + 1}${active[head] ? (used ? `: ${count(used, "index", "indices")}` : "") : ": removed"}`);
      figure.querySelectorAll("canvas").forEach((canvas, a) => {
        const context = canvas.getContext("2d")!;
        const image = context.createImageData(d, d);
        for (let from = 0; from < d; from++) {
          for (let to = 0; to < d; to++) {
            const value = probabilities[((a * r + head) * d + from) * d + to];
            image.data.set([ink[0], ink[1], ink[2], Math.round(255 * Math.sqrt(value))], 4 * (to * d + from));
          }
        }
        context.putImageData(image, 0, 0);
      });
    });
  }
}

/** States named by what they output on the way in, and in the order of the target where the names are the same. */
function named(machine: Machine, target: Machine): Machine {
  const labels: Set<string>[] = machine.states.map(() => new Set());
  machine.tables.forEach((row, a) => row.forEach((next, q) => labels[next].add(machine.outputs[machine.readout[a][q]])));
  const states = labels.map((set, q) => (set.size === 1 ? [...set][0] : machine.states[q]));
  const order = target.states.map((name) => states.indexOf(name));
  if (states.length !== order.length || new Set(order).size < order.length || order.includes(-1)) return { ...machine, states };
  const number = (q: number): number => order.indexOf(q);
  const permuted = (rows: number[][], rename: (value: number) => number): number[][] => rows.map((row) => order.map((q) => rename(row[q])));
  return {
    ...machine, states: target.states, start: number(machine.start), tables: permuted(machine.tables, number), readout: permuted(machine.readout, (z) => z),
  };
}

export function legend(symbols: readonly string[]): HTMLElement {
  return h("ul", { class: "legend", "aria-label": "Colors of the symbols" }, symbols.slice(0, 12).map((symbol, a) =>
    h("li", {}, h("span", { class: "dot", style: { background: tint(a, symbols.length) } }), short(symbol, 20))));
}
