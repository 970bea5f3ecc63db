/** Panel 4: a certificate is checked here, by a second implementation; a machine is run step by step. */

import { Unreadable, checkFile } from "../certificate/check";
import { type Certificate } from "../certificate/form";
import { NOT_ESTABLISHED, columnMargins, columnName, machineOf, sentences } from "../certificate/sentences";
import { type Machine } from "../automata/machine";
import { count, h, replace, s } from "../dom";
import example from "../example-certificate.json?raw";
import { readFile } from "../files";
import { type Panel, Status, button, fileButton, layout, openFile, p, pictureWidth } from "../ui";
import { Player } from "./player";

const MAX_BARS = 60;

export class CertificatePanel implements Panel {
  readonly element: HTMLElement;
  private readonly status = new Status();
  private readonly content = h("div", { class: "certificate" });
  private readonly running = h("div", {});

  constructor() {
    this.element = h("div", { class: "panel" }, layout(
      [
        h("h2", {}, "Your certificate"),
        p("A certificate states that a trained network computes exactly its target, on words of every length, and contains what is needed to check that: the tables, everything that words reach, and the matching with the target."),
        p("Drop a ", h("code", {}, "certificate.json"), " on the page. It is checked here by a second checker, written from the description of the format in another language than the first. Tables are replayed, every reachable pair is visited, labels, counts and margins are compared."),
        p("Or drop a ", h("code", {}, "machine.json"), " or a ", h("code", {}, ".dot"), " file and run it on text, step by step."),
        h("p", { class: "soft" }, NOT_ESTABLISHED),
      ],
      [
        h("div", { class: "row" }, fileButton("Open a file…", ".json,.dot,.gv,.txt", (file) => this.drop(file)),
          button("Example: S3", () => this.check("the example", new TextEncoder().encode(example))),
          button("Example with one digit changed", () => this.check("the changed example", new TextEncoder().encode(tampered(example))))),
        this.status.element, this.content, this.running,
      ],
    ));
    this.status.say("No file is open yet.");
  }

  drop(file: File): void {
    openFile(file)
      .then(({ name, bytes }) => {
        if (readFile(bytes).kind === "certificate") return this.check(name, bytes);
        const content = readFile(bytes);
        if (content.kind === "machine") {
          this.run(name, content.machine);
          replace(this.content);
          this.status.good(`${name} is a machine with ${count(content.machine.states.length, "state")} and ${count(content.machine.symbols.length, "symbol")}.`);
        }
      })
      .catch((error: unknown) => {
        this.clear();
        this.status.bad(`${file.name}: ${error instanceof Error ? error.message : String(error)}`);
      });
  }

  private clear(): void {
    replace(this.content);
    replace(this.running);
  }

  run(name: string, machine: Machine): void {
    replace(this.running, h("h3", {}, `Run ${name}`), new Player(machine).element);
  }

  check(name: string, bytes: Uint8Array): void {
    this.clear();
    const began = performance.now();
    try {
      const { findings, certificate } = checkFile(bytes);
      const time = `${((performance.now() - began) / 1000).toFixed(2)} s`;
      if (findings.length || !certificate) {
        this.status.bad(`Not valid: ${name}.`);
        replace(this.content, h("ul", { class: "findings" }, findings.map((finding) => h("li", {}, finding))));
        return;
      }
      this.status.good(`Valid: ${certificate.name || name}, checked in ${time}.`);
      this.show(certificate);
    } catch (error) {
      if (!(error instanceof Unreadable)) throw error;
      this.status.bad(`${name}: ${error.message}`);
    }
  }

  private show(certificate: Certificate): void {
    const { machine, permitted } = machineOf(certificate);
    replace(this.content, h("ul", { class: "sentences" }, sentences(certificate).map((one) => h("li", {}, one))), this.bars(certificate));
    replace(this.running, h("h3", {}, "The machine in the certificate"), new Player(machine, permitted).element);
  }

  private bars(certificate: Certificate): HTMLElement | null {
    const margins = columnMargins(certificate);
    if (!margins.length) return null;
    const shown = margins.slice(0, MAX_BARS);
    const most = shown[shown.length - 1].value || 1;
    const whole = pictureWidth(620);
    const width = (whole - 60) / shown.length;
    const weakest = `${columnName(certificate, margins[0])}: ${margins[0].value.toPrecision(4)}`;
    const picture = s("svg", { viewBox: `0 0 ${whole} 150`, class: "bars", role: "img", "aria-label": `Margins of ${count(margins.length, "column")}; the weakest is ${weakest}` },
      [0, 0.5, 1].map((share) => [
        s("line", { x1: 50, x2: whole - 8, y1: 120 - 100 * share, y2: 120 - 100 * share, class: share ? "grid" : "axis" }),
        s("text", { x: 44, y: 124 - 100 * share, "text-anchor": "end", class: "label" }, (most * share).toPrecision(2)),
      ]),
      shown.map((margin, i) => s("rect", { x: 51 + i * width, y: 120 - (100 * margin.value) / most, width: Math.max(1, width - Math.min(2, width / 4)), height: (100 * margin.value) / most, class: i === 0 ? "bar weakest" : "bar" },
        s("title", {}, `${columnName(certificate, margin)}: ${margin.value.toPrecision(4)}`))),
      s("text", { x: 51, y: 142, class: "label strong" }, `weakest: ${weakest}`));
    const rest = margins.length > shown.length ? ` The ${MAX_BARS} smallest of ${margins.length.toLocaleString("en")} are shown.` : "";
    return h("figure", { class: "margins" }, picture, h("figcaption", {}, `Margins: the lead of the arg max in every column that words use, smallest first.${rest}`));
  }
}

/** One entry of the tables changed, as a careless editor would. */
function tampered(text: string): string {
  const at = text.indexOf('"tables"');
  return text.slice(0, at) + text.slice(at).replace(/\d/, (digit) => String((Number(digit) + 1) % 3));
}
