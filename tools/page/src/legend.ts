// What colours, signs and lines of the drawing mean. The samples have the classes of the drawing, so they look as it does.

import { CHANGE_SIGNS, CHANGE_WORDS } from "./context.ts";
import { fill, h, s } from "./dom.ts";
import type { Document } from "./document.ts";
import { heatLegend } from "./heat_panel.ts";
import type { Change } from "./states.ts";
import type { Store } from "./store.ts";

const EDGES: [classes: string, meaning: string][] = [
  ["data", "a tensor, from its producer to a reader"],
  ["data several", "edges of a folded group, with their number"],
  ["port", "an edge of a port map, into a body or out of it"],
  ["back", "a back edge: the value for the next iteration"],
  ["port role-execution-condition", "whether another iteration runs"],
  ["capture", "a tensor of an outer graph, read in a body"],
];

const FAMILIES: [family: string, meaning: string][] = [
  ["control", "control flow"], ["matrix", "matrices, convolutions, cells"], ["math", "elementwise mathematics"], ["reduce", "reductions, normalisation"],
  ["shape", "shapes and movement"], ["logic", "comparison and selection"], ["quantised", "types and quantisation"],
];

export class Legend {
  readonly element = h("section", { class: "legend", "aria-label": "Legend", hidden: true });

  constructor(private readonly document: Document, private readonly store: Store) {
    store.subscribe((shown, before) => {
      if (shown.heat !== before.heat || shown.mode !== before.mode) this.draw();
    });
    this.draw();
  }

  toggle(): boolean {
    this.element.hidden = !this.element.hidden;
    return !this.element.hidden;
  }

  private draw(): void {
    const shown = this.store.get();
    const words = this.document.kind === "diff"
      ? { added: "only in the new model", removed: "only in the old model", rewired: "other inputs", changed: "differs otherwise" } : CHANGE_WORDS;
    const changes = (Object.keys(CHANGE_SIGNS) as Change[]).map((what) => h("li", {},
      h("span", { class: `swatch ${what}`, "aria-hidden": "true" }, CHANGE_SIGNS[what]), words[what]));
    const edges = (["added", "removed"] as const).map((what) => h("li", {}, line(`data is-${what}`), `an edge that is ${words[what]}`));
    const marked = this.document.steps.length > 0 && !this.document.pairs && shown.mode !== "after";
    fill(this.element,
      marked ? h("div", {}, h("h3", {}, this.document.kind === "diff" ? "Differences" : "What the step changed"), h("ul", {}, ...changes, ...edges)) : null,
      h("div", {}, h("h3", {}, "Lines"), h("ul", {}, ...EDGES.map(([kind, meaning]) => h("li", {}, line(kind), meaning)))),
      h("div", {}, h("h3", {}, "Operators"), h("ul", {}, ...FAMILIES.map(([family, meaning]) => h("li", {}, box(family), meaning)))),
      shown.heat ? h("div", {}, h("h3", {}, "Difference of a tensor"), heatLegend()) : null);
  }
}

function sample(drawn: SVGElement): SVGElement {
  return s("svg", { class: "graph sample", viewBox: "0 0 44 14", width: 44, height: 14, "aria-hidden": "true" }, drawn);
}

function box(family: string): SVGElement {
  return sample(s("g", { class: `box family-${family}` }, s("rect", { class: "body", x: 9, y: 1, width: 26, height: 12, rx: 2 })));
}

function line(kind: string): SVGElement {
  return sample(s("g", { class: `edge ${kind}` }, s("path", { class: "line", d: "M2 7H36" }), s("path", { class: "arrow", d: "M36 3.5L43 7L36 10.5Z" })));
}
