// Makes elements. Text only ever becomes text nodes and attributes that are listed here: names of models cannot be markup.

import { plain } from "./measure.ts";

export type Child = Node | string | number | null | undefined | false;
type Handler = (event: never) => void;
export type Props = Record<string, string | number | boolean | null | undefined | Handler>;

/** An element. A function is a listener, `true` an attribute without value; false, null and undefined are left out. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K, props: Props = {}, ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  apply(element, props);
  add(element, children);
  return element;
}

/** An element of SVG. */
export function s<K extends keyof SVGElementTagNameMap>(
  tag: K, props: Props = {}, ...children: Child[]
): SVGElementTagNameMap[K] {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  apply(element, props);
  add(element, children);
  return element;
}

function apply(element: Element, props: Props): void {
  for (const [key, value] of Object.entries(props)) {
    if (typeof value === "function") element.addEventListener(key, value as unknown as EventListener);
    else if (value === true) element.setAttribute(key, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(key, String(value));
  }
}

export function add(element: Element, children: Child[]): void {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    element.append(typeof child === "number" ? String(child) : child);
  }
}

/** Replace what an element holds. */
export function fill(element: Element, ...children: Child[]): void {
  element.replaceChildren();
  add(element, children);
}

const SHORT = 52;

/** Keep the beginning and the end of a long text: the end of a path says most. */
export function shorten(text: string, limit = SHORT): string {
  const letters = text.length > 4 * limit ? [...text.slice(0, limit), ...text.slice(-2 * limit)] : [...text];
  if (text.length <= limit || letters.length <= limit) return text;
  const head = Math.floor(limit / 3);
  return `${letters.slice(0, head).join("")}…${letters.slice(-(limit - head - 1)).join("")}`;
}

/** A name of the model: isolated from the direction of the text around it, control characters as signs, shortened, whole in the tooltip. */
export function bdi(text: string, limit = SHORT): HTMLElement {
  const seen = plain(text);
  const short = shorten(seen, limit);
  return h("bdi", { class: "name", title: short === seen ? null : seen.slice(0, 1000) }, short);
}

const WHOLE = 240;

/** A text that is shown whole, except that a very long one has a button that shows the rest. */
export function whole(name: string, limit = WHOLE): HTMLElement {
  const text = plain(name);
  const shown = h("bdi", { class: "name" }, shorten(text, limit));
  if (text.length <= limit) return shown;
  const button = h("button", {
    class: "quiet", type: "button", "aria-expanded": "false",
    click: () => {
      const open = button.getAttribute("aria-expanded") !== "true";
      button.setAttribute("aria-expanded", String(open));
      shown.textContent = open ? text : shorten(text, limit);
      button.textContent = open ? "Show less" : `Show all ${count(text.length)} characters`;
    },
  }, `Show all ${count(text.length)} characters`);
  return h("span", { class: "whole" }, shown, " ", button);
}

const grouped = new Intl.NumberFormat("en-US");

/** 20000 as "20,000". */
export function count(number: number): string {
  return grouped.format(number);
}

/** "1 node", "3 nodes". */
export function plural(number: number, one: string, many = `${one}s`): string {
  return `${count(number)} ${number === 1 ? one : many}`;
}

export function bytes(number: number): string {
  if (number < 1000) return `${number} B`;
  for (const unit of ["KB", "MB", "GB"]) {
    number /= 1000;
    if (number < 1000) return `${number < 10 ? number.toFixed(1) : Math.round(number)} ${unit}`;
  }
  return `${number.toFixed(1)} TB`;
}

/** A time with two or three digits. */
export function duration(seconds: number): string {
  if (seconds < 1e-3) return `${Math.round(seconds * 1e6)} µs`;
  if (seconds < 1) return `${seconds < 1e-2 ? (seconds * 1e3).toFixed(1) : Math.round(seconds * 1e3)} ms`;
  return `${seconds < 10 ? seconds.toFixed(2) : Math.round(seconds)} s`;
}

const ICONS: Record<string, string> = {
  copy: "M5 5V3.5A1.5 1.5 0 0 1 6.5 2h6A1.5 1.5 0 0 1 14 3.5v6a1.5 1.5 0 0 1-1.5 1.5H11M3.5 5h6A1.5 1.5 0 0 1 11 6.5v6A1.5 1.5 0 0 1 9.5 14h-6A1.5 1.5 0 0 1 2 12.5v-6A1.5 1.5 0 0 1 3.5 5Z",
  link: "M6.5 9.5l3-3M7 4.5l1.6-1.6a3.2 3.2 0 0 1 4.5 4.5L11.5 9M9 11.5l-1.6 1.6a3.2 3.2 0 0 1-4.5-4.5L4.5 7",
  save: "M8 2v8M4.8 7L8 10.2 11.2 7M2.5 11v1.5A1.5 1.5 0 0 0 4 14h8a1.5 1.5 0 0 0 1.5-1.5V11",
  plus: "M8 3v10M3 8h10",
  minus: "M3 8h10",
  fit: "M2.5 6V3.5a1 1 0 0 1 1-1H6M10 2.5h2.5a1 1 0 0 1 1 1V6M13.5 10v2.5a1 1 0 0 1-1 1H10M6 13.5H3.5a1 1 0 0 1-1-1V10",
  fold: "M8 2v4.2M5.8 4.2L8 6.4l2.2-2.2M2.5 8h11M8 14V9.8M5.8 11.8L8 9.6l2.2 2.2",
  legend: "M2.5 4h3M2.5 8h3M2.5 12h3M8 4h5.5M8 8h5.5M8 12h5.5",
  previous: "M10 3.5L5.5 8l4.5 4.5",
  next: "M6 3.5L10.5 8 6 12.5",
  target: "M8 1.8v2.4M8 11.8v2.4M1.8 8h2.4M11.8 8h2.4M12 8a4 4 0 1 1-8 0 4 4 0 0 1 8 0ZM8 7.4v1.2",
  close: "M3.5 3.5l9 9M12.5 3.5l-9 9",
  search: "M7 12A5 5 0 1 0 7 2a5 5 0 0 0 0 10ZM10.7 10.7L14 14",
  heat: "M8 1.8c.4 2.6 3.8 4 3.8 7.6a3.8 3.8 0 0 1-7.6 0C4.2 7.600 5.500 7 5.800 5.200 7 5.600 7.400 6.600 7.400 7.400 8.400 6 8.400 3.800 8 1.800Z",
  panel: "M2.5 3.500h11v9h-11ZM6.500 3.500v9",
  detailsPanel: "M2.5 3.500h11v9h-11ZM9.500 3.500v9",
};

/** A small picture for a button; buttons have names of their own. */
export function icon(name: keyof typeof ICONS & string): SVGElement {
  return s("svg", { class: "icon", viewBox: "0 0 16 16", width: 16, height: 16, "aria-hidden": "true" },
    s("path", { d: ICONS[name] ?? "" }));
}

/** A button with a picture, and a name that the tooltip shows too. */
export function iconButton(name: string, label: string, click: () => void, props: Props = {}): HTMLButtonElement {
  return h("button", { type: "button", class: "icon-button", "aria-label": label, title: label, click, ...props }, icon(name));
}
