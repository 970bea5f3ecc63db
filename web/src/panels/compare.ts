/** Panel 5: two machines, the shortest word that tells them apart, played on both. */

import { type Difference, distinguishingWord } from "../automata/compare";
import { type Machine, run } from "../automata/machine";
import { count, h, replace, short } from "../dom";
import { type Diagram, MAX_DRAWN, diagram } from "../draw";
import { type Panel, Status, button, layout, p, slider } from "../ui";
import { legend } from "./learn";
import { type Named, Picker } from "./picker";

export class ComparePanel implements Panel {
  readonly element: HTMLElement;
  private readonly pickers: [Picker, Picker];
  private readonly machines: (Named | null)[] = [null, null];
  private dropped = 0;
  private readonly status = new Status();
  private readonly played = h("div", {});

  constructor() {
    const picker = (i: 0 | 1, label: string, first: string): Picker => new Picker(label, (named) => {
      this.machines[i] = named;
      this.compare();
    }, first);
    this.pickers = [picker(0, "First machine", "S3"), picker(1, "Second machine", "S3")];
    this.element = h("div", { class: "panel" }, layout(
      [
        h("h2", {}, "Two machines"),
        p("Two machines are different if some word makes their outputs differ. There are infinitely many words, but only so many pairs of states: whoever has visited all pairs that one word can reach in both machines has seen everything."),
        p("So the page walks through the pairs, the nearest first. If outputs differ somewhere, the way there is a ", h("em", {}, "shortest"), " such word. If not, the machines agree on every word: that is what a certificate records."),
        h("p", { class: "soft" }, "Choose or open two machines; dropping a file on the page replaces first one, then the other. Or change one arrow of the second machine and see how soon it shows."),
      ],
      [
        h("div", { class: "row two" }, this.pickers.map((one) => h("div", {}, one.element, one.status.element))),
        h("div", { class: "row" }, button("Change one arrow of the second", () => this.mutate())),
        this.status.element, this.played,
      ],
    ));
    this.pickers[0].choose("S3");
    this.pickers[1].choose("S3");
  }

  drop(file: File): void {
    this.pickers[this.dropped++ % 2].open(file);
  }

  load(named: Named): void {
    this.pickers[0].set(named);
  }

  private mutations = 0;

  /** The same change every time it is pressed the same number of times: pages can be talked about. */
  private mutate(): void {
    const second = this.machines[1];
    if (!second) return;
    const { machine } = second;
    const n = machine.states.length;
    const state = (3 + 5 * this.mutations) % n;
    const symbol = this.mutations++ % machine.symbols.length;
    const tables = machine.tables.map((row) => row.slice());
    tables[symbol][state] = (tables[symbol][state] + 1) % n;
    const { stateOutputs } = machine;
    const readout = stateOutputs ? tables.map((row) => row.map((next) => stateOutputs[next])) : machine.kind === "semiautomaton" ? tables : machine.readout;
    const name = second.name.replace(/, changed$/, "");
    this.pickers[1].set({ ...second, name: `${name}, changed`, machine: { ...machine, tables, readout, heads: undefined } });
  }

  private compare(): void {
    const [one, other] = this.machines;
    if (!one || !other) return;
    replace(this.played);
    try {
      const found = distinguishingWord(one.machine, other.machine);
      if (!found) {
        this.status.good(`Equal: ${one.name} and ${other.name} give the same outputs on every word of every length.`);
        this.play(one, other, null);
        return;
      }
      const word = found.word.map((a) => one.machine.symbols[a]).join(" ");
      this.status.bad(found.word.length
        ? `Different after ${count(found.word.length, "symbol")}: ${word}. The first says ${found.outputs[0]}, the second ${found.outputs[1]}. No shorter word tells them apart.`
        : `Different before the first symbol: the first says ${found.outputs[0]}, the second ${found.outputs[1]}.`);
      this.play(one, other, found);
    } catch (error) {
      this.status.bad((error as Error).message);
    }
  }

  private play(one: Named, other: Named, found: Difference | null): void {
    const word = found?.word ?? [];
    const both = [one.machine, other.machine];
    const words = [word, word.map((a) => other.machine.symbols.indexOf(one.machine.symbols[a]))];
    const runs = both.map((machine, i) => run(machine, words[i]));
    const pictures: (Diagram | null)[] = both.map((machine, i) => (machine.states.length <= MAX_DRAWN ? diagram(machine, `${i ? "Second" : "First"} machine`) : null));
    const rows = word.map((a, t) => h("tr", { class: t === word.length - 1 ? "apart" : "" }, h("th", { scope: "row" }, short(one.machine.symbols[a], 18)),
      runs.map((each, i) => h("td", {}, short(both[i].outputs[each.outputs[t]] || "–", 22)))));
    const seek = (t: number): void => {
      time.show(t ? `after ${count(t, "symbol")}` : "nothing read");
      runs.forEach((each, i) => pictures[i]?.mark(each.states[t], t ? each.states[t - 1] : undefined, words[i][t - 1]));
      rows.forEach((row, i) => row.classList.toggle("now", i === t - 1));
    };
    const time = slider("Step", { min: 0, max: word.length, step: 1, value: word.length }, seek);
    const figure = (machine: Machine, i: number): HTMLElement => h("figure", {}, pictures[i]?.element ?? h("p", { class: "soft" }, `${count(machine.states.length, "state")}, too many to draw.`),
      h("figcaption", {}, `${i ? other.name : one.name}: ${count(machine.states.length, "state")}`));
    replace(this.played, word.length > 0 && time.element, h("div", { class: "pair" }, both.map(figure)), legend(one.machine.symbols),
      word.length > 0 && h("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "Outputs" },
        h("table", {}, h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "read"), h("th", { scope: "col" }, "first says"), h("th", { scope: "col" }, "second says"))), h("tbody", {}, rows))));
    seek(word.length);
  }
}
