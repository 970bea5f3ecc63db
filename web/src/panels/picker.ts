/** Choose a machine: one of the library, or a file. */

import { type Machine } from "../automata/machine";
import { h } from "../dom";
import { readFile } from "../files";
import { LIBRARY } from "../library";
import { Status, fileButton, openFile, select } from "../ui";

export interface Named {
  name: string;
  machine: Machine;
  weights: number[];
}

export class Picker {
  readonly element: HTMLElement;
  readonly status = new Status();
  private readonly input: HTMLSelectElement;
  private own: Named | null = null;

  constructor(
    label: string,
    private readonly change: (named: Named) => void,
    first: string,
    names: readonly string[] = LIBRARY.map((one) => one.name),
    private readonly certificate?: (file: File) => void,
  ) {
    const options = LIBRARY.filter((one) => names.includes(one.name)).map((one) => [one.name, `${one.about} (${one.name})`] as const);
    const chooser = select(label, options, (value) => this.choose(value), first);
    this.input = chooser.input;
    this.element = h("div", { class: "picker" }, chooser.element, fileButton("Open a machine…", ".json,.dot,.gv,.txt", (file) => this.open(file)));
  }

  choose(name: string): void {
    this.status.say();
    const entry = LIBRARY.find((one) => one.name === name);
    if (entry) this.change(entry);
    else if (this.own) this.change(this.own);
  }

  /** A machine that is not in the library becomes an option of its own. */
  set(named: Named): void {
    this.own = named;
    this.input.querySelector("option[value='own file']")?.remove();
    this.input.prepend(h("option", { value: "own file" }, named.name));
    this.input.value = "own file";
    this.change(named);
  }

  open(file: File): void {
    openFile(file)
      .then(({ name, bytes }) => {
        const content = readFile(bytes);
        if (content.kind === "certificate") {
          if (!this.certificate) throw new Error("this is a certificate; drop it on the panel “Certificate”.");
          this.certificate(file);
          return;
        }
        this.set({ name, machine: content.machine, weights: content.machine.symbols.map(() => 1) });
        this.status.good(`${name} is open.`);
      })
      .catch((error: unknown) => this.status.bad(`${file.name}: ${error instanceof Error ? error.message : String(error)}`));
  }
}
