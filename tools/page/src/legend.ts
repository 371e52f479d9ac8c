// What colours, signs and lines of the drawing mean. The samples have the classes of the drawing, so they look as it does.

import { CHANGE_SIGNS, CHANGE_WORDS } from "./context.ts";
import { fill, h, s } from "./dom.ts";
import type { Document } from "./document.ts";
import { heatLegend } from "./heat_panel.ts";
import type { Change } from "./states.ts";
import type { Store } from "./store.ts";

const EDGES: [kind: string, meaning: string][] = [
  ["data", "a tensor from its producer to a reader"],
  ["port", "an edge of a port map, into a body or out of it"],
  ["back", "a back edge: the value for the next iteration"],
  ["capture", "a tensor of an outer graph, read in a body"],
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
    fill(this.element,
      this.document.steps.length && shown.mode !== "after" ? h("div", {}, h("h3", {}, "This step"), h("ul", {}, ...changes)) : null,
      h("div", {}, h("h3", {}, "Lines"), h("ul", {}, ...EDGES.map(([kind, meaning]) => h("li", {}, line(kind), meaning)))),
      shown.heat ? h("div", {}, h("h3", {}, "Difference of a tensor"), heatLegend()) : null);
  }
}

function line(kind: string): SVGElement {
  return s("svg", { class: "line-sample", viewBox: "0 0 44 12", width: 44, height: 12, "aria-hidden": "true" },
    s("g", { class: `edge ${kind}`, "data-kind": kind }, s("path", { class: "line", d: "M2 6H42" })));
}
