/** Panel 3: the heads of an NFSM layer train in a worker; those that follow a part of the state exactly appear one by one. */

import { count, h, replace, s, short, tint } from "../dom";
import { MAX_DRAWN, diagram } from "../draw";
import LearnWorker from "../learn/worker?worker&inline";
import SETTINGS from "../learn/settings.json";
import { type Message } from "../learn/worker";
import { type Found, type Outcome, type Progress, machineOf } from "../learn/search";
import { type Panel, Status, button, layout, p, pictureWidth } from "../ui";
import { type Named, Picker } from "./picker";

const MAX_STATES = 64;
const MAX_SYMBOLS = 8;

export class LearnPanel implements Panel {
  readonly element: HTMLElement;
  private readonly picker: Picker;
  private task!: Named;
  private worker: Worker | null = null;
  private seed = 1;
  private history: Pick<Progress, "step" | "open" | "loss">[] = [];
  private readonly status = new Status();
  private readonly kept = h("div", { class: "heads kept" });
  private readonly tables = h("div", { class: "heads" });
  private readonly chart = h("div", { class: "progress" });
  private readonly result = h("div", { class: "result" });
  private readonly go: HTMLButtonElement;

  constructor() {
    this.go = button("Train", () => this.toggle(), { class: "primary" });
    this.picker = new Picker("Task", (named) => this.setTask(named), "S3", ["S3", "FF", "Z2", "Z5", "Z7", "S4", "A5"]);
    this.element = h("div", { class: "panel" }, layout(
      [
        h("h2", {}, "Learning, live"),
        p("The heads of a layer see words and, after every symbol, the state. They are never shown a table. Each predicts the state alone, from a read-out of its own: it need not know all of it, and is rewarded for the part that it can follow."),
        p("In training a head is ", h("em", {}, "spread"), ` over its indices, so that the gradient reaches all that it could have held. Every ${SETTINGS.checkEvery} steps the `, h("em", {}, "arg max"), ` is read: exact tables, on ${count((2 + SETTINGS.readLengths.length) * SETTINGS.readWords, "fresh word")}.`),
        p("A head that follows a part of the state exactly is kept, with the indices that it needs. The others are drawn anew and learn what it leaves open, until no two states are confused. Then the kept heads, side by side, are compared with the target, on ", h("em", {}, "all"), " words at once."),
        h("p", { class: "soft" }, "Each square is a head's table for one symbol: from column to row, darker is likelier. The method is that of exactstate train, with one layer, fewer heads and no network around them: there are no margins and no certificate at the end."),
      ],
      [
        this.picker.element, this.picker.status.element, h("div", { class: "row" }, this.go, button("New seed", () => this.reseed())),
        this.status.element, this.chart, this.kept, this.tables, this.result,
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
    for (const element of [this.kept, this.tables, this.result, this.chart]) replace(element);
    const large = machine.states.length > MAX_STATES || machine.symbols.length > MAX_SYMBOLS;
    this.go.disabled = large;
    if (large) {
      this.status.bad(`This machine has ${count(machine.states.length, "state")} and ${count(machine.symbols.length, "symbol")}; the page trains up to ${MAX_STATES} and ${MAX_SYMBOLS}. exactstate train takes larger ones.`);
    } else {
      this.status.say(`${count(machine.symbols.length, "symbol")}, ${count(machine.states.length, "state")}. Seed ${this.seed}.`);
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
    for (const element of [this.kept, this.result]) replace(element);
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
    this.history.push(progress);
    // not announced at every step: only the beginning and the end are
    this.status.element.setAttribute("aria-live", "off");
    const open = progress.kept.length ? `${count(progress.kept.length, "head")} kept, ${progress.open.toFixed(2)} nats open.` : "No head kept yet.";
    this.status.say(`Step ${progress.step}, words of ${progress.length} symbols. ${open} ${seconds.toFixed(1)} s`);
    replace(this.chart, this.curve());
    for (const [at, head] of progress.kept.entries()) if (at >= this.kept.children.length) this.kept.append(this.keptHead(head, at));
    this.drawHeads(progress);
  }

  private finish(outcome: Outcome, seconds: number): void {
    this.stop();
    this.status.element.setAttribute("aria-live", "polite");
    const { machine, difference } = outcome;
    const time = `${count(outcome.steps, "step")} and ${seconds.toFixed(1)} s`;
    if (!machine) {
      this.status.bad(`Not learned in ${time}: the kept heads leave ${outcome.open.toFixed(2)} nats of the state open. Another seed may do; exactstate train has more and larger heads, and further layers.`);
      return;
    }
    replace(this.tables);
    const heads = `${count(outcome.heads.length, "head")} of ${outcome.heads.join(", ").replace(/, (?=\d+$)/, " and ")} indices`;
    if (difference) {
      const word = difference.word.map((a) => machine.symbols[a]).join(" ");
      this.status.bad(`Learned in ${time}, but not exactly: after ${word} the heads say ${difference.outputs[0]}, the target ${difference.outputs[1]}. Every fresh word was right; this one is rare. Try another seed.`);
    } else {
      this.status.good(`Exact after ${time}: ${heads} equal the target on every word of every length.`);
    }
    const target = this.task.machine;
    const named = { ...machine, states: machine.states.map((_, q) => machine.outputs[machine.stateOutputs![q]]) };
    const drawn = named.states.length <= MAX_DRAWN && target.states.length <= MAX_DRAWN;
    replace(this.result, h("h3", {}, "The machine of these heads"),
      h("p", {}, `${count(machine.states.length, "joint index", "joint indices")} reached, for ${count(target.states.length, "state")} of the target${drawn ? "" : ": too many to draw"}.`),
      drawn && h("div", { class: "pair" },
        h("figure", {}, diagram(named, "The machine that was learned").element, h("figcaption", {}, "Learned")),
        h("figure", {}, diagram(target, "The target").element, h("figcaption", {}, "Target"))),
      legend(machine.symbols));
  }

  /** The nats that the kept heads leave open, as stairs, and those of the best head in training. */
  private curve(): SVGElement {
    const [now] = this.history.slice(-1);
    const last = Math.max(100, now.step);
    const most = Math.max(Math.log(this.task.machine.states.length), 0.1);
    const end = pictureWidth(560) - 10;
    const x = (step: number): string => (44 + ((end - 44) * step) / last).toFixed(1);
    const y = (nats: number): string => (74 - 62 * Math.min(1, nats / most)).toFixed(1);
    const open = this.history.map(({ open }) => (open < Infinity ? open : most));
    const stairs = this.history.map(({ step }, i) => `${x(step)},${y(open[Math.max(0, i - 1)])} ${x(step)},${y(open[i])}`).join(" ");
    return s("svg", { viewBox: `0 0 ${end + 10} 96`, class: "curve", role: "img", "aria-label": `After ${now.step} steps kept heads leave ${open[open.length - 1].toFixed(2)} nats open` },
      s("line", { x1: 44, x2: end, y1: 74, y2: 74, class: "axis" }), s("line", { x1: 44, x2: end, y1: 12, y2: 12, class: "grid" }),
      s("text", { x: 38, y: 16, "text-anchor": "end", class: "label" }, most.toFixed(1)), s("text", { x: 38, y: 78, "text-anchor": "end", class: "label" }, "0"),
      s("text", { x: 44, y: 92, class: "label" }, "nats open: kept, best in training"), s("text", { x: end, y: 92, "text-anchor": "end", class: "label" }, `step ${last}`),
      s("polyline", { points: this.history.map(({ step, loss }) => `${x(step)},${y(loss)}`).join(" "), class: "trail faint" }),
      s("polyline", { points: stairs, class: "trail" }));
  }

  private keptHead(head: Found, at: number): HTMLElement {
    const size = head.indices.length;
    const drawing = diagram(machineOf(head, this.task.machine.symbols), `Head ${at + 1}, ${count(size, "index", "indices")}`, 60 + 6 * size).element;
    return h("figure", {}, size <= MAX_DRAWN && drawing, h("figcaption", {}, h("strong", {}, `kept: ${count(size, "index", "indices")}`), ` at step ${head.step}; ${head.open.toFixed(2)} nats open`));
  }

  private drawHeads({ training }: Progress): void {
    const { symbols } = this.task.machine;
    const sizes = training.map(({ size }) => size).join();
    if (this.tables.dataset.sizes !== sizes || !this.tables.children.length) {
      this.tables.dataset.sizes = sizes;
      replace(this.tables, training.map(({ size }) =>
        h("figure", { class: "head" },
          h("div", { class: "squares" }, symbols.map(() => h("canvas", { width: size, height: size, "aria-hidden": "true" }))),
          h("figcaption", {}, count(size, "index", "indices")))));
    }
    const ink = getComputedStyle(this.element).getPropertyValue("--ink-rgb").split(",").map(Number);
    [...this.tables.children].forEach((figure, head) => {
      const { size: d, moves } = training[head];
      figure.querySelectorAll("canvas").forEach((canvas, a) => {
        const context = canvas.getContext("2d")!;
        const image = context.createImageData(d, d);
        for (let from = 0; from < d; from++) {
          for (let to = 0; to < d; to++) {
            const value = moves[(a * d + from) * d + to];
            image.data.set([ink[0], ink[1], ink[2], Math.round(255 * Math.sqrt(value))], 4 * (to * d + from));
          }
        }
        context.putImageData(image, 0, 0);
      });
    });
  }
}

export function legend(symbols: readonly string[]): HTMLElement {
  return h("ul", { class: "legend", "aria-label": "Colors of the symbols" }, symbols.slice(0, 12).map((symbol, a) =>
    h("li", {}, h("span", { class: "dot", style: { background: tint(a, symbols.length) } }), short(symbol, 20))));
}
