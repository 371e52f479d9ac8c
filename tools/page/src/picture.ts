// The picture as an SVG document of its own: the rules of graph.css and the colours of the theme are inside.

import type { Pane } from "./pane.ts";
import { make } from "./svg.ts";

const GAP = 40; // between the drawings of two panes

export function pictureOf(panes: readonly Pane[]): string {
  const styles = rules();
  let x = 0;
  let height = 0;
  const root = make("svg", { class: "graph" });
  for (const pane of panes) {
    if (!pane.layout) continue;
    pane.paint(true);
    const world = pane.svg.querySelector(".world")?.cloneNode(true) as SVGGElement;
    world.setAttribute("transform", `translate(${x + 10} 10)`);
    for (const element of world.querySelectorAll(".hit, .toggle")) element.remove();
    for (const name of pane.svg.classList) root.classList.add(name);
    root.append(world);
    x += pane.layout.width + GAP;
    height = Math.max(height, pane.layout.height);
    pane.paint();
  }
  const width = Math.max(0, x - GAP) + 20;
  for (const [key, value] of Object.entries({ width, height: height + 20, viewBox: `0 0 ${width} ${height + 20}` })) {
    root.setAttribute(key, String(value));
  }
  const style = make("style");
  style.textContent = `${variables(styles, panes[0]?.svg)}\n${styles}`;
  root.prepend(style, make("rect", { class: "background", width: "100%", height: "100%" }));
  const text = new XMLSerializer().serializeToString(root);
  return `<?xml version="1.0" encoding="UTF-8"?>\n${text.replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, "\u00b7")}\n`;
}

/** The rules about the graph, of all styles of the page. */
function rules(): string {
  const found: string[] = [];
  for (const sheet of document.styleSheets) {
    for (const rule of sheet.cssRules) {
      if (rule instanceof CSSStyleRule && rule.selectorText.includes(".graph")) found.push(rule.cssText);
    }
  }
  return found.join("\n");
}

/** The variables that rules use, with the values of the theme that is shown. */
function variables(styles: string, element: Element | undefined): string {
  if (!element) return "";
  const names = new Set([...styles.matchAll(/var\((--[\w-]+)/g)].map((match) => match[1] ?? ""));
  const computed = getComputedStyle(element);
  return `.graph{${[...names].map((name) => `${name}:${computed.getPropertyValue(name)}`).join(";")}}`;
}
