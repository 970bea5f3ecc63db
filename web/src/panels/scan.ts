/** Panel 1: tables compose up the tree, states come down; the loop runs beside it, and both always agree. */

import { type Machine, run, wordFromText, wordToText } from "../automata/machine";
import { count, h, hue, replace, s, short, tint } from "../dom";
import { Random } from "../random";
import { type Node as TreeNode, type Scan, scan } from "../scan/scan";
import { type Panel, Status, button, layout, p, reducedMotion, slider } from "../ui";
import { type Named, Picker } from "./picker";

export const MAX_WORD = 32;
const [COLUMN, STRIP, TALL, GAP] = [34, 20, 46, 34];
/** Tables up to this size are drawn with arrows and names. */
const MAX_ARROWS = 16;

/** Of a word that nobody has typed yet. */
function usualLength(): number {
  return window.innerWidth < 600 ? 8 : 16;
}

export class ScanPanel implements Panel {
  readonly element: HTMLElement;
  readonly picker: Picker;
  private machine!: Machine;
  private word: number[] = [];
  private tree!: Scan;
  private clock = 0;
  private timer = 0;
  private focused: TreeNode | null = null;
  private readonly random = new Random(7);
  private readonly text = h("input", { type: "text", id: "scan-word", autocomplete: "off", spellcheck: "false", "aria-describedby": "scan-word-status" });
  private readonly wordStatus = new Status();
  private readonly symbols = h("div", { class: "keys", role: "group", "aria-label": "Append a symbol" });
  private readonly picture = h("div", { class: "scroll tree", tabindex: "0", role: "group", "aria-label": "The tree" });
  private readonly detail = h("div", { class: "card detail", "aria-live": "polite" });
  private readonly verdict = new Status();
  private readonly time = slider("Round", { min: 0, max: 1, step: 1, value: 0 }, (value) => this.seek(value));
  private readonly play = button("Play", () => this.toggle(), { class: "primary" });

  constructor(certificate: (file: File) => void) {
    this.picker = new Picker("Machine", (named) => this.setMachine(named), "S3", undefined, certificate);
    this.wordStatus.element.id = "scan-word-status";
    this.text.addEventListener("input", () => this.typed());
    const edit = h("div", { class: "row" },
      h("div", { class: "field grow" }, h("label", { for: "scan-word" }, `Word (at most ${MAX_WORD} symbols)`), this.text),
      button("Delete last", () => this.setWord(this.word.slice(0, -1))),
      button("Random", () => this.randomWord(usualLength())));
    const transport = h("div", { class: "row transport" }, button("Back", () => this.seek(this.clock - 1)), this.play,
      button("Step", () => this.seek(this.clock + 1)), this.time.element);
    this.element = h("div", { class: "panel" }, layout(
      [
        h("h2", {}, "A scan without rounding"),
        p("A machine reads a word, one symbol at a time. Each symbol is a ", h("em", {}, "table"), ": it says, for every state, which state comes next."),
        p("Tables compose. Two neighbors make one table for both symbols, two of those one for four, up to the whole word. Then states come down: each node learns the state before its stretch, and hands it to its children."),
        p("All nodes of a row are computed at once. A loop needs one round per symbol; the tree about two per ", h("em", {}, "doubling"), ". And since tables are integers, nothing is ever rounded: both give the same states, always."),
        h("p", { class: "soft" }, "A strip is a table. From top to bottom, cell by cell, it has the color of the state to which states 1, 2, 3 … go. A strip of one color forgets the past."),
        h("p", { class: "soft" }, "Click a strip, or use the arrow keys in the tree, to see its arrows. Draw in the grid under the tree to change the word."),
      ],
      [this.picker.element, this.picker.status.element, edit, this.wordStatus.element, this.symbols, transport, this.picture, this.verdict.element, this.detail],
    ));
    this.picture.addEventListener("keydown", (event) => this.key(event));
    this.picker.choose("S3");
  }

  drop(file: File): void {
    this.picker.open(file);
  }

  hidden(): void {
    this.pause();
  }

  private setMachine({ machine }: Named): void {
    this.machine = machine;
    this.focused = null;
    const A = machine.symbols.length;
    replace(this.symbols, machine.symbols.slice(0, 12).map((symbol, a) =>
      h("button", { type: "button", class: "key", onclick: () => this.setWord([...this.word, a]), "aria-label": `append ${symbol}` },
        h("span", { class: "dot", style: { background: tint(a, A) } }), short(symbol))));
    this.randomWord(usualLength());
  }

  private randomWord(length: number): void {
    this.setWord(Array.from({ length }, () => this.random.below(this.machine.symbols.length)));
  }

  private typed(): void {
    try {
      const word = wordFromText(this.text.value, this.machine.symbols);
      if (word.length > MAX_WORD) throw new Error(`the word has ${word.length} symbols; the picture has room for ${MAX_WORD}.`);
      this.wordStatus.say();
      this.setWord(word, false);
    } catch (error) {
      this.wordStatus.bad((error as Error).message);
    }
  }

  private setWord(word: number[], write = true): void {
    this.word = word.slice(0, MAX_WORD);
    if (write) {
      this.text.value = wordToText(this.word, this.machine.symbols);
      this.wordStatus.say();
    }
    this.tree = scan(this.machine.tables, this.word, this.machine.start);
    this.focused = null;
    this.time.input.max = String(this.last());
    this.pause();
    this.seek(this.last());
  }

  private last(): number {
    return this.word.length ? Math.max(this.tree.rounds, this.word.length) : 0;
  }

  private seek(clock: number): void {
    this.clock = Math.max(0, Math.min(this.last(), clock));
    this.time.input.value = String(this.clock);
    this.time.show(`${this.clock} of ${this.last()}`);
    if (this.clock === this.last()) this.pause();
    this.draw();
  }

  private toggle(): void {
    if (this.timer) return this.pause();
    if (this.clock === this.last()) this.seek(0);
    replace(this.play, "Pause");
    this.timer = window.setInterval(() => this.seek(this.clock + 1), reducedMotion() ? 1200 : 650);
  }

  private pause(): void {
    window.clearInterval(this.timer);
    this.timer = 0;
    replace(this.play, "Play");
  }

  private nodes(): TreeNode[] {
    return this.tree.levels.flat();
  }

  private center(node: TreeNode): [number, number] {
    const top = this.tree.root?.level ?? 0;
    return [90 + COLUMN * ((node.from + node.to) / 2), 26 + (top - node.level) * (TALL + GAP)];
  }

  private draw(): void {
    const { machine, word, tree } = this;
    const [n, A, L] = [machine.states.length, machine.symbols.length, word.length];
    const top = tree.root?.level ?? 0;
    const rollTop = 26 + (top + 1) * (TALL + GAP) - 12;
    const cell = Math.max(5, Math.min(16, 96 / A));
    const rowTop = rollTop + A * cell + 22;
    const [width, height] = [110 + COLUMN * Math.max(L, 4), rowTop + 74];
    const edges = this.nodes().flatMap((node) => [node.left, node.right].flatMap((child) => {
      if (!child) return [];
      const [[x, y], [cx, cy]] = [this.center(node), this.center(child)];
      const passed = node.up <= this.clock;
      return [s("path", { d: `M${cx},${cy - 4} C${cx},${cy - GAP / 2} ${x},${y + TALL + GAP / 2} ${x},${y + TALL + 4}`, class: passed ? "edge done" : "edge" })];
    }));
    const strips = this.nodes().map((node) => this.strip(node, n));
    const loop = run(machine, word).states;
    const states = (label: string, y: number, known: (t: number) => boolean, values: number[]): SVGElement =>
      s("g", {}, s("text", { x: 0, y: y + 15, class: "label" }, label),
        values.map((state, t) => s("g", {},
          s("title", {}, `after ${count(t, "symbol")}: ${known(t) ? machine.states[state] : "not known yet"}`),
          s("rect", { x: 90 + COLUMN * t - 13, y, width: 26, height: 20, rx: 4, class: known(t) ? "state" : "state open", fill: known(t) ? hue(state, n) : "none" }),
          known(t) && s("text", { x: 90 + COLUMN * t, y: y + 14, "text-anchor": "middle", class: "on" }, this.mark(state)))));
    const picture = s("svg", { viewBox: `0 0 ${width} ${height}`, class: "scan", style: { "min-width": `${Math.round(width * 0.9)}px`, "max-width": `${Math.round(width * 1.25)}px` } },
      edges, strips, this.roll(rollTop, cell), s("text", { x: 0, y: rollTop + (A * cell) / 2 + 4, class: "label" }, "word"),
      states("tree", rowTop, (t) => t === 0 || tree.known[t] <= this.clock, tree.states),
      states("loop", rowTop + 30, (t) => t <= this.clock, loop));
    const focus = this.picture.contains(document.activeElement) && document.activeElement !== this.picture ? (document.activeElement as Element).getAttribute("data-key") : null;
    const left = this.picture.scrollLeft;
    replace(this.picture, picture);
    this.picture.scrollLeft = left;
    if (focus) this.picture.querySelector<SVGElement>(`[data-key="${focus}"]`)?.focus({ preventScroll: true });
    this.judge(loop);
    this.describe();
  }

  private strip(node: TreeNode, n: number): SVGElement {
    const [x, y] = this.center(node);
    const known = node.up <= this.clock;
    const told = known && this.clock >= (this.tree.root?.level ?? 0) && node.down <= this.clock;
    const size = TALL / n;
    const chosen = this.focused === node;
    const where = node.to - node.from === 1 ? `symbol ${node.to}` : `symbols ${node.from + 1} to ${node.to}`;
    const g = s("g", {
      class: `node${chosen ? " chosen" : ""}`, role: "button", tabindex: chosen || (!this.focused && node === this.tree.root) ? "0" : "-1",
      "data-key": `${node.level}:${node.from}`,
      "aria-label": `${where}: ${known ? this.sentence(node) : "not composed yet"}${told ? `; starts in ${this.machine.states[node.before]}` : ""}`,
    },
      known
        ? node.table.map((next, k) => s("rect", { x: x - STRIP / 2, y: y + k * size, width: STRIP, height: size + 0.3, fill: hue(next, n) }))
        : s("rect", { x: x - STRIP / 2, y, width: STRIP, height: TALL, class: "unknown" }),
      s("rect", { x: x - STRIP / 2, y, width: STRIP, height: TALL, class: "frame" }),
      // the cell that is used: the state before this stretch
      told && s("rect", { x: x - STRIP / 2 - 3, y: y + node.before * size, width: STRIP + 6, height: Math.max(size, 3), class: "used" }),
      told && s("circle", { cx: x - STRIP / 2 - 6, cy: y - 7, r: 6, fill: hue(node.before, n), class: "token" }));
    g.addEventListener("click", () => this.choose(node));
    g.addEventListener("pointerenter", () => {
      if (this.focused === null) this.describe(node);
    });
    return g;
  }

  /** The word as a grid: a column per position, a row per symbol. Draw in it, or use the arrow keys. */
  private roll(top: number, cell: number): SVGElement {
    const A = this.machine.symbols.length;
    const columns = this.word.map((symbol, t) => {
      const x = 90 + COLUMN * t + COLUMN / 2;
      return s("g", {
        role: "slider", tabindex: t === 0 ? "0" : "-1", class: "column", "data-key": `w${t}`, "data-t": t, "aria-orientation": "vertical",
        "aria-valuemin": 1, "aria-valuemax": A, "aria-valuenow": symbol + 1, "aria-valuetext": this.machine.symbols[symbol], "aria-label": `position ${t + 1}`,
      }, this.machine.symbols.map((_, a) =>
        s("rect", { x: x - 14, y: top + a * cell, width: 28, height: cell - 1, rx: 2, class: a === symbol ? "beat here" : "beat", fill: a === symbol ? tint(a, A) : undefined })),
        A > 8 || this.machine.symbols[symbol].length > 5 ? null : s("title", {}, this.machine.symbols[symbol]));
    });
    const grid = s("g", { class: "roll", role: "group", "aria-label": "The word; up and down change a symbol" }, columns);
    const paint = (event: PointerEvent): void => {
      const svg = grid.ownerSVGElement;
      if (!svg || event.buttons === 0) return;
      const box = svg.getBoundingClientRect();
      const scale = svg.viewBox.baseVal.width / box.width;
      const t = Math.floor(((event.clientX - box.left) * scale - 90) / COLUMN);
      const a = Math.floor(((event.clientY - box.top) * scale - top) / cell);
      if (t >= 0 && t < this.word.length && a >= 0 && a < A && this.word[t] !== a) this.setWord(this.word.map((old, i) => (i === t ? a : old)));
    };
    grid.addEventListener("pointerdown", (event) => {
      paint(event);
      const move = (later: PointerEvent): void => {
        const fresh = this.picture.querySelector<SVGElement>(".roll");
        fresh?.dispatchEvent(new CustomEvent("paint", { detail: later }));
      };
      const stop = (): void => {
        window.removeEventListener("pointermove", move);
        window.removeEventListener("pointerup", stop);
      };
      window.addEventListener("pointermove", move);
      window.addEventListener("pointerup", stop);
    });
    grid.addEventListener("paint", (event) => paint((event as CustomEvent<PointerEvent>).detail));
    return grid;
  }

  private key(event: KeyboardEvent): void {
    const target = event.target as Element;
    const key = target.getAttribute("data-key");
    if (!key || !event.key.startsWith("Arrow")) {
      const node = key && (event.key === "Enter" || event.key === " ") ? this.nodes().find((one) => `${one.level}:${one.from}` === key) : null;
      if (node) {
        event.preventDefault();
        this.choose(node);
      }
      return;
    }
    event.preventDefault();
    if (key.startsWith("w")) {
      const t = Number(target.getAttribute("data-t"));
      const A = this.machine.symbols.length;
      const move = { ArrowUp: A - 1, ArrowDown: 1 }[event.key];
      if (move) this.setWord(this.word.map((a, i) => (i === t ? (a + move) % A : a)));
      const to = t + (event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0);
      this.picture.querySelector<SVGElement>(`[data-key="w${to}"]`)?.focus();
      return;
    }
    const node = this.nodes().find((one) => `${one.level}:${one.from}` === key);
    if (!node) return;
    const row = this.tree.levels[node.level];
    const next = {
      ArrowUp: this.nodes().find((one) => one.left === node || one.right === node),
      ArrowDown: node.left,
      ArrowLeft: row[row.indexOf(node) - 1],
      ArrowRight: row[row.indexOf(node) + 1],
    }[event.key];
    if (next) this.choose(next);
  }

  private choose(node: TreeNode): void {
    this.focused = node;
    this.draw();
    this.picture.querySelector<SVGElement>(`[data-key="${node.level}:${node.from}"]`)?.focus({ preventScroll: true });
  }

  private sentence(node: TreeNode): string {
    const { states } = this.machine;
    if (node.table.every((next) => next === node.table[0])) return `Every state goes to ${states[node.table[0]]}.`;
    if (node.table.every((next, k) => next === k)) return "Every state stays where it is.";
    if (states.length > MAX_ARROWS) return `After this stretch, ${count(new Set(node.table).size, "state")} of ${states.length} are possible.`;
    return node.table.map((next, k) => `${states[k]} → ${states[next]}`).join(", ");
  }

  private describe(node = this.focused ?? this.tree.root): void {
    if (!node) return replace(this.detail, h("p", { class: "soft" }, "The empty word: nothing happens."));
    const known = node.up <= this.clock;
    const name = node.to - node.from === 1 ? `Symbol ${node.to}` : `Symbols ${node.from + 1} to ${node.to}`;
    const spelled = this.word.slice(node.from, node.to).map((a) => this.machine.symbols[a]);
    const title = h("h3", {}, name, h("span", { class: "soft" }, ` ${spelled.slice(0, 8).join(" ")}${spelled.length > 8 ? " …" : ""}`));
    if (!known) return replace(this.detail, title, h("p", { class: "soft" }, `Composed in round ${node.up}.`));
    const sentence = this.sentence(node);
    replace(this.detail, title, this.machine.states.length <= MAX_ARROWS && this.arrows(node), h("p", {}, sentence));
  }

  private arrows(node: TreeNode): SVGElement {
    const { states } = this.machine;
    const [n, line] = [states.length, 24];
    const used = node.down <= this.clock && this.clock >= (this.tree.root?.level ?? 0) ? node.before : -1;
    return s("svg", { viewBox: `0 0 300 ${n * line + 4}`, class: "arrows-view", "aria-hidden": "true" },
      states.map((name, k) => [
        s("path", { d: `M100,${k * line + 13} C150,${k * line + 13} 150,${node.table[k] * line + 13} 196,${node.table[k] * line + 13}`, stroke: hue(node.table[k], n), class: k === used ? "map used" : "map" }),
        s("circle", { cx: 92, cy: k * line + 13, r: 10, fill: hue(k, n) }),
        s("text", { x: 92, y: k * line + 17, "text-anchor": "middle", class: "on" }, this.mark(k)),
        s("text", { x: 76, y: k * line + 17, "text-anchor": "end" }, short(name, 10)),
        s("circle", { cx: 204, cy: k * line + 13, r: 10, fill: hue(k, n) }),
        s("text", { x: 204, y: k * line + 17, "text-anchor": "middle", class: "on" }, this.mark(k)),
        s("text", { x: 220, y: k * line + 17 }, short(name, 10)),
      ]));
  }

  /** A state in three letters: its name if all names are that short, else its number. */
  private mark(state: number): string {
    return this.machine.states.every((name) => [...name].length <= 3) ? this.machine.states[state] : String(state + 1);
  }

  private judge(loop: number[]): void {
    const { tree, word } = this;
    if (!word.length) return this.verdict.say("Type a word, or press a symbol.");
    const equal = loop.every((state, t) => state === tree.states[t]);
    const done = this.clock >= tree.rounds;
    const final = this.machine.states[loop[word.length]];
    if (!equal) this.verdict.bad("Tree and loop differ. This is a bug: please report it.");
    else if (this.clock === this.last()) this.verdict.good(`Equal after every symbol; the word ends in ${short(final, 24)}. The tree took ${count(tree.rounds, "round")}, the loop ${word.length}.`);
    else if (done) this.verdict.say(`The tree was done after round ${tree.rounds}. The loop has read ${this.clock} of ${word.length}.`);
    else if (this.clock < (tree.root?.level ?? 0)) this.verdict.say(`Round ${this.clock}: tables compose upwards.`);
    else this.verdict.say(`Round ${this.clock}: states come down.`);
  }
}
