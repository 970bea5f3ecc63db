/** Run a machine by hand: press symbols or type text, and watch state, step and outputs. */

import { type Machine, wordFromText } from "../automata/machine";
import { count, h, replace, short, tint } from "../dom";
import { type Diagram, MAX_DRAWN, diagram } from "../draw";
import { Status, button } from "../ui";
import { legend } from "./learn";

const MAX_SHOWN = 400;
const MAX_TEXT = 100_000;

export class Player {
  readonly element: HTMLElement;
  private readonly picture: Diagram | null;
  private word: number[] = [];
  private at = 0;
  private states: number[] = [];
  private outputs: number[] = [];
  private readonly status = new Status();
  private readonly tape = h("ol", { class: "tape", tabindex: "0", "aria-label": "Steps" });
  private readonly text: HTMLInputElement;
  private readonly keys: HTMLButtonElement[];

  /** `permitted`: where not every symbol may be read in every state. */
  constructor(private readonly machine: Machine, private readonly permitted?: (state: number, symbol: number) => boolean) {
    const { symbols, states } = machine;
    this.picture = states.length <= MAX_DRAWN ? diagram(machine, `State diagram, ${count(states.length, "state")}`) : null;
    this.keys = symbols.slice(0, 24).map((symbol, a) =>
      h("button", { type: "button", class: "key", onclick: () => this.press(a), "aria-label": `read ${symbol}` },
        h("span", { class: "dot", style: { background: tint(a, symbols.length) } }), short(symbol)));
    this.text = h("input", { type: "text", autocomplete: "off", spellcheck: "false", "aria-label": "Text to read", placeholder: "or type a word" });
    this.text.addEventListener("input", () => this.typed());
    this.element = h("div", { class: "player" },
      this.picture && h("figure", {}, this.picture.element, legend(symbols)),
      h("div", { class: "player-side" },
        h("div", { class: "keys", role: "group", "aria-label": "Read a symbol" }, this.keys),
        this.text,
        h("div", { class: "row" }, button("Back", () => this.seek(this.at - 1)), button("Step", () => this.seek(this.at + 1)),
          button("To the end", () => this.seek(this.word.length)), button("Clear", () => this.setWord([]))),
        this.status.element, this.tape,
        !this.picture && h("p", { class: "soft" }, `${count(states.length, "state")} are too many to draw.`)));
    this.setWord([]);
  }

  private press(symbol: number): void {
    this.setWord([...this.word.slice(0, this.at), symbol]);
    this.text.value = this.word.map((a) => this.machine.symbols[a]).join(" ");
  }

  private typed(): void {
    try {
      const word = wordFromText(this.text.value.slice(0, MAX_TEXT), this.machine.symbols);
      this.setWord(word);
    } catch (error) {
      this.status.bad((error as Error).message);
    }
  }

  setWord(word: readonly number[]): void {
    this.states = [this.machine.start];
    this.outputs = [];
    this.word = [];
    for (const symbol of word) {
      const state = this.states[this.states.length - 1];
      if (this.permitted && !this.permitted(state, symbol)) break;
      this.word.push(symbol);
      this.outputs.push(this.machine.readout[symbol][state]);
      this.states.push(this.machine.tables[symbol][state]);
    }
    if (!word.length) this.text.value = "";
    const { symbols, outputs } = this.machine;
    const first = Math.max(0, this.word.length - MAX_SHOWN);
    replace(this.tape, first > 0 && h("li", { class: "soft" }, `… ${first.toLocaleString("en")} before`),
      this.word.slice(first).map((a, i) => h("li", { "data-step": first + i + 1 },
        h("span", { class: "symbol" }, short(symbols[a], 18)), h("span", { class: "output" }, short(outputs[this.outputs[first + i]] || "–", 18)))));
    this.tape.hidden = !this.word.length;
    this.seek(this.word.length);
    if (this.word.length < word.length) this.status.bad(`The grammar does not permit ${symbols[word[this.word.length]]} after ${count(this.word.length, "symbol")}.`);
  }

  private seek(at: number): void {
    this.at = Math.max(0, Math.min(this.word.length, at));
    const state = this.states[this.at];
    this.picture?.mark(state, this.at ? this.states[this.at - 1] : undefined, this.word[this.at - 1]);
    for (const item of this.tape.children) item.classList.toggle("now", Number(item.getAttribute("data-step")) === this.at);
    const now = this.tape.querySelector<HTMLElement>(".now");
    if (now) this.tape.scrollTop = now.offsetTop - this.tape.clientHeight / 2;
    this.keys.forEach((key, a) => (key.disabled = this.permitted ? !this.permitted(state, a) : false));
    const { states, outputs } = this.machine;
    if (!this.at) this.status.say(`In state ${short(states[state], 30)}, nothing read yet.`);
    else this.status.say(`After ${count(this.at, "symbol")}: state ${short(states[state], 30)}, output ${short(outputs[this.outputs[this.at - 1]] || "–", 30)}.`);
  }
}
