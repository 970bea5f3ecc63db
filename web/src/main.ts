/** The page: a header, five panels, one at a time. In a report it opens at #play with the machine of the run. */

import "./style.css";
import { type Machine, machineFromContent } from "./automata/machine";
import { h, replace } from "./dom";
import { parseJson } from "./json";
import { CertificatePanel } from "./panels/certificate";
import { ComparePanel } from "./panels/compare";
import { DriftPanel } from "./panels/drift";
import { LearnPanel } from "./panels/learn";
import { ScanPanel } from "./panels/scan";
import { button, type Panel } from "./ui";

interface Tab {
  id: string;
  title: string;
  panel: Panel;
}

class Page {
  readonly element: HTMLElement;
  private readonly tabs: Tab[];
  private readonly buttons = new Map<string, HTMLElement>();
  private readonly scan: ScanPanel;
  private readonly compare: ComparePanel;
  private readonly certificate: CertificatePanel;
  private current = "";

  /** `base` stands before the name of a panel in the address: "play/" in a report, nothing in the page itself. */
  constructor(private readonly base: string, back: boolean) {
    const toCertificate = (file: File): void => {
      this.go("certificate");
      this.certificate.drop(file);
    };
    this.certificate = new CertificatePanel();
    this.scan = new ScanPanel(toCertificate);
    this.compare = new ComparePanel();
    this.tabs = [
      { id: "scan", title: "The scan", panel: this.scan },
      { id: "drift", title: "Losing track", panel: new DriftPanel() },
      { id: "learn", title: "Learning", panel: new LearnPanel() },
      { id: "certificate", title: "Certificate", panel: this.certificate },
      { id: "compare", title: "Two machines", panel: this.compare },
    ];
    const bar = h("div", { class: "tabs", role: "tablist", "aria-label": "Panels" });
    for (const [i, { id, title }] of this.tabs.entries()) {
      const tab = h("button", { type: "button", role: "tab", id: `tab-${id}`, "aria-controls": `panel-${id}`, onclick: () => this.go(id) },
        h("span", { class: "number", "aria-hidden": "true" }, String(i + 1)), title);
      this.buttons.set(id, tab);
      bar.append(tab);
    }
    bar.addEventListener("keydown", (event) => this.key(event));
    this.element = h("div", { class: "page" },
      h("a", { class: "skip", href: `#${this.base}`, onclick: (event: Event) => this.skip(event) }, "Skip to the panel"),
      h("header", {},
        h("div", { class: "brand" }, h("h1", {}, "exactstate"), h("p", {}, "State tracking that you can move.")),
        h("div", { class: "corner" }, back && h("a", { href: "#", class: "button" }, "Back to the report"), themeButton())),
      bar,
      h("main", {}, this.tabs.map(({ id, panel }) =>
        h("section", { id: `panel-${id}`, role: "tabpanel", "aria-labelledby": `tab-${id}`, tabindex: "-1", hidden: true }, panel.element))),
      h("footer", {}, h("p", {}, "Everything on this page runs here, in your browser. No file that you open leaves it, and nothing is loaded from anywhere.")));
    this.element.addEventListener("dragover", (event) => {
      event.preventDefault();
      this.element.classList.add("dragging");
    });
    this.element.addEventListener("dragleave", () => this.element.classList.remove("dragging"));
    this.element.addEventListener("drop", (event) => {
      event.preventDefault();
      this.element.classList.remove("dragging");
      const files = [...(event.dataTransfer?.files ?? [])];
      const { panel, id } = this.tabs.find((tab) => tab.id === this.current)!;
      const target = id === "drift" || id === "learn" ? this.certificate : panel;
      if (target !== panel && files.length) this.go("certificate");
      files.slice(0, 2).forEach((file) => target.drop(file));
    });
  }

  private key(event: KeyboardEvent): void {
    const at = this.tabs.findIndex((tab) => tab.id === this.current);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: this.tabs.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    const { id } = this.tabs[(to + this.tabs.length) % this.tabs.length];
    this.go(id);
    this.buttons.get(id)!.focus();
  }

  private skip(event: Event): void {
    event.preventDefault();
    this.element.querySelector<HTMLElement>("section:not([hidden])")?.focus();
  }

  private go(id: string): void {
    history.replaceState(null, "", `#${this.base}${id}`);
    this.show(id);
  }

  /** Open a panel by its name; the first one if there is none of that name. */
  show(name: string): void {
    const id = this.tabs.some((tab) => tab.id === name) ? name : this.tabs[0].id;
    if (id === this.current) return;
    for (const { id: one, panel } of this.tabs) {
      const tab = this.buttons.get(one)!;
      tab.setAttribute("aria-selected", String(one === id));
      tab.tabIndex = one === id ? 0 : -1;
      if (one === id) scrollTo(tab);
      this.element.querySelector<HTMLElement>(`#panel-${one}`)!.hidden = one !== id;
      if (one === this.current) panel.hidden?.();
      if (one === id) panel.shown?.();
    }
    this.current = id;
  }

  /** Put the machine and the certificate of a run into the panels. */
  load(name: string, machine: Machine | null, certificate: Uint8Array | null): void {
    if (machine) {
      const named = { name: `${name} (this run)`, machine, weights: machine.symbols.map(() => 1) };
      this.scan.picker.set(named);
      this.compare.load(named);
      this.certificate.run(named.name, machine);
    }
    if (certificate) this.certificate.check(`the certificate of ${name}`, certificate);
  }
}

/** Scroll the bar until a tab of it can be seen. `scrollIntoView` would also have the next Tab key begin there. */
function scrollTo(tab: HTMLElement): void {
  const bar = tab.parentElement!;
  const left = tab.offsetLeft - bar.offsetLeft;
  bar.scrollLeft = Math.min(left, Math.max(bar.scrollLeft, left + tab.offsetWidth - bar.clientWidth));
}

/** Light, dark, or what the system wants. */
function themeButton(): HTMLElement {
  const names = ["auto", "light", "dark"];
  const label = (at: number): string => `Theme: ${names[at]}`;
  let at = 0;
  const toggle = button(label(0), () => {
    at = (at + 1) % names.length;
    if (at) document.documentElement.dataset.theme = names[at];
    else delete document.documentElement.dataset.theme;
    replace(toggle, label(at));
  }, { class: "quiet" });
  return toggle;
}

/** What a report puts into the page: {"name": ..., "machine": ... or null, "certificate": the text of the file or null}. */
function embedded(): { name: string; machine: Machine | null; certificate: Uint8Array | null } | null {
  const text = document.getElementById("play-data")?.textContent;
  const data = text ? parseJson(text) : null;
  if (!(data instanceof Map)) return null;
  const [name, machine, certificate] = ["name", "machine", "certificate"].map((key) => data.get(key) ?? null);
  return {
    name: typeof name === "string" ? name : "run",
    machine: machine ? machineFromContent(machine) : null,
    certificate: typeof certificate === "string" ? new TextEncoder().encode(certificate) : null,
  };
}

function start(): void {
  const host = document.getElementById("play");
  if (!host) return;
  const data = embedded();
  if (!data) {
    const page = new Page("", false);
    host.append(page.element);
    const open = (): void => page.show(location.hash.slice(1));
    window.addEventListener("hashchange", open);
    open();
    return;
  }
  // inside a report: nothing is built before somebody asks for it
  let page: Page | null = null;
  const report = [...document.body.children].filter((one): one is HTMLElement => one instanceof HTMLElement && one !== host);
  const styles = { play: document.getElementById("play-style"), report: document.getElementById("report-style") };
  const open = (): void => {
    const playing = /^#play(\/|$)/.test(location.hash);
    styles.play?.setAttribute("media", playing ? "all" : "not all");
    styles.report?.setAttribute("media", playing ? "not all" : "all");
    report.forEach((one) => (one.hidden = playing));
    host.hidden = !playing;
    if (!playing) return;
    if (!page) {
      page = new Page("play/", true);
      host.append(page.element);
      page.load(data.name, data.machine, data.certificate);
      window.scrollTo(0, 0);
    }
    page.show(location.hash.slice("#play/".length));
  };
  window.addEventListener("hashchange", open);
  open();
}

start();
