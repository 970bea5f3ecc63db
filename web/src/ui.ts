/** The parts that panels share: controls with labels, files, announcements. */

import { type Child, h, replace, uniqueId } from "./dom";

export interface Opened {
  name: string;
  bytes: Uint8Array;
}

/** Files larger than this are not read. */
export const MAX_BYTES = 20_000_000;

export async function openFile(file: File): Promise<Opened> {
  if (file.size > MAX_BYTES) throw new Error(`the file has ${(file.size / 1e6).toFixed(0)} MB; the page reads at most ${MAX_BYTES / 1e6}.`);
  return { name: file.name, bytes: new Uint8Array(await file.arrayBuffer()) };
}

/** A button that opens a file; dropping one on the page does the same. */
export function fileButton(label: string, accept: string, open: (file: File) => void): HTMLElement {
  const input = h("input", { type: "file", accept, class: "visually-hidden", tabindex: "-1", "aria-hidden": "true" });
  input.addEventListener("change", () => {
    const file = input.files?.[0];
    if (file) open(file);
    input.value = "";
  });
  return h("span", { class: "file" }, input, h("button", { type: "button", onclick: () => input.click() }, label));
}

export function button(label: string, press: () => void, props: Record<string, unknown> = {}): HTMLButtonElement {
  return h("button", { type: "button", onclick: press, ...props }, label);
}

export function select(label: string, options: readonly (readonly [string, string])[], change: (value: string) => void, value?: string): { element: HTMLElement; input: HTMLSelectElement } {
  const id = uniqueId("select");
  const input = h("select", { id }, options.map(([key, text]) => h("option", { value: key, selected: key === value }, text)));
  input.addEventListener("change", () => change(input.value));
  return { element: h("div", { class: "field" }, h("label", { for: id }, label), input), input };
}

export interface Slider {
  element: HTMLElement;
  input: HTMLInputElement;
  show(text: string): void;
}

export function slider(label: string, range: { min: number; max: number; step: number; value: number }, change: (value: number) => void): Slider {
  const id = uniqueId("slider");
  const input = h("input", { id, type: "range", ...range });
  const text = h("output", { for: id });
  input.addEventListener("input", () => change(Number(input.value)));
  const show = (value: string): void => {
    replace(text, value);
    input.setAttribute("aria-valuetext", value);
  };
  return { element: h("div", { class: "field slider" }, h("label", { for: id }, label), input, text), input, show };
}

/** A sentence that appears and is read out. */
export class Status {
  readonly element = h("p", { class: "status", role: "status" });

  say(...children: Child[]): void {
    this.element.className = "status";
    replace(this.element, ...children);
  }

  good(...children: Child[]): void {
    this.element.className = "status good";
    replace(this.element, h("span", { class: "mark", "aria-hidden": "true" }, "✓"), ...children);
  }

  bad(...children: Child[]): void {
    this.element.className = "status bad";
    replace(this.element, h("span", { class: "mark", "aria-hidden": "true" }, "✕"), ...children);
  }
}

/** A panel: explanation on one side, the thing itself on the other; on a phone the title and the first lines come first. */
export function layout(text: Child[], stage: Child[]): Child[] {
  return [h("div", { class: "lead" }, text.slice(0, 2)), h("div", { class: "stage" }, stage), h("div", { class: "prose" }, text.slice(2))];
}

/** The width of a picture: at most this, and no wider than the stage, so that its letters keep their size. */
export function pictureWidth(most: number): number {
  const room = window.innerWidth > 960 ? Math.min(window.innerWidth, 1312) - 480 : window.innerWidth - 34;
  return Math.max(280, Math.min(most, room));
}

export const p = (...children: Child[]): HTMLElement => h("p", {}, ...children);

/** What every panel can do. */
export interface Panel {
  element: HTMLElement;
  /** A file was dropped on the page while this panel was open. */
  drop(file: File): void;
  shown?(): void;
  hidden?(): void;
}

export function reducedMotion(): boolean {
  return matchMedia("(prefers-reduced-motion: reduce)").matches;
}
