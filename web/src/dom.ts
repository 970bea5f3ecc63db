/** Elements as functions. Text is only ever set as text: no name from a file can become markup. */

import { printable } from "./json";

export type Child = Node | string | null | false | 0 | undefined | Child[];
type Props = Record<string, unknown>;

const SVG = "http://www.w3.org/2000/svg";

export function h<K extends keyof HTMLElementTagNameMap>(tag: K, props: Props = {}, ...children: Child[]): HTMLElementTagNameMap[K] {
  return fill(document.createElement(tag), props, children);
}

export function s<K extends keyof SVGElementTagNameMap>(tag: K, props: Props = {}, ...children: Child[]): SVGElementTagNameMap[K] {
  return fill(document.createElementNS(SVG, tag), props, children);
}

function fill<E extends HTMLElement | SVGElement>(element: E, props: Props, children: Child[]): E {
  for (const [key, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on") && typeof value === "function") {
      element.addEventListener(key.slice(2), value as EventListener);
    } else if (key === "style") {
      for (const [name, setting] of Object.entries(value as Record<string, string>)) element.style.setProperty(name, setting);
    } else {
      element.setAttribute(key, value === true ? "" : key === "aria-label" || key === "title" ? printable(String(value)) : String(value));
    }
  }
  append(element, children);
  return element;
}

export function append(element: Element, children: Child[]): void {
  for (const child of children) {
    if (Array.isArray(child)) append(element, child);
    else if (child !== null && child !== undefined && child !== false && child !== 0) {
      element.append(typeof child === "string" ? printable(child) : child);
    }
  }
}

export function replace(element: Element, ...children: Child[]): void {
  element.replaceChildren();
  append(element, children);
}

/** A name that fits: cut in the middle of nowhere is worse than an ellipsis. */
export function short(name: string, most = 14): string {
  const points = [...printable(name)];
  return points.length > most ? `${points.slice(0, most - 1).join("")}…` : points.join("");
}

export function count(n: number, one: string, many = `${one}s`): string {
  return `${n.toLocaleString("en")} ${n === 1 ? one : many}`;
}

let numbers = 0;

export function uniqueId(prefix: string): string {
  return `${prefix}-${++numbers}`;
}

/** The color of a symbol: stronger than those of states, and other hues. */
export function tint(a: number, A: number): string {
  const turn = A <= 6 ? [275, 35, 165, 345, 100, 220][a % 6] : Math.round((360 * a) / A + 275) % 360;
  return `oklch(var(--symbol-light) 0.15 ${turn})`;
}

/** The color of a state: evenly spaced hues of one lightness, set by the theme. */
export function hue(i: number, n: number): string {
  const turn = n <= 8 ? [255, 55, 150, 325, 95, 195, 20, 290][i % 8] : Math.round((360 * i) / n + 255) % 360;
  const shade = n > 12 && i % 2 ? "var(--tone-chroma-2)" : "var(--tone-chroma)";
  return `oklch(var(--tone-light) ${shade} ${turn})`;
}
