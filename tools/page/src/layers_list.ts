// The nodes of an ONNX model, each with the layers that it became; it stands where a conversion has its passes.

import type { Context } from "./context.ts";
import { bdi, count, fill, h, plural } from "./dom.ts";
import type { Document, NodeId } from "./document.ts";
import { nameOf } from "./labels.ts";
import { VirtualList } from "./virtual.ts";

interface Item {
  node: NodeId;
  layers: readonly NodeId[];
  words: string; // searched by the filter
}

const ENDS = new Set(["Constant", "Parameter", "Result"]);

export class LayersList {
  readonly element: HTMLElement;
  private readonly filter = h("input", {
    type: "search", class: "filter", placeholder: "Filter nodes and layers", "aria-label": "Filter nodes and layers", spellcheck: "false", input: () => this.draw(),
  });
  private lost = false; // only nodes without layers are shown
  private readonly list: VirtualList<Item>;
  private readonly status = h("p", { class: "dim facts", role: "status" });
  private readonly items: Item[];

  constructor(private readonly context: Context, pairs: NonNullable<Document["pairs"]>) {
    const layers = new Map(pairs);
    const text = (node: NodeId) => {
      const record = context.record(node);
      return record ? `${record.op} ${nameOf(record)}` : "";
    };
    this.items = context.document.nodes.filter((each) => !ENDS.has(each.op)).map(({ id }) => {
      const found = layers.get(id) ?? [];
      return { node: id, layers: found, words: [id, ...found].map(text).join(" ").slice(0, 2000).toLowerCase() };
    });
    const lost = this.items.filter((item) => !item.layers.length).length;
    const button = h("button", {
      type: "button", class: "toggle", "aria-pressed": "false",
      click: () => {
        this.lost = !this.lost;
        button.setAttribute("aria-pressed", String(this.lost));
        this.draw();
      },
    }, `Without a layer ${count(lost)}`);
    this.list = new VirtualList<Item>((item) => this.row(item), { role: "list", "aria-label": "Nodes and layers" });
    this.element = h("section", { class: "panel-section changes-section", "aria-label": "Nodes and layers" },
      h("header", { class: "section-head" }, h("h2", {}, "Nodes and layers"), h("span", { class: "dim" }, count(this.items.length))),
      h("div", { class: "section-tools wrap" }, this.filter, lost ? h("div", { class: "kinds" }, button) : null), this.status, this.list.element);
    context.store.subscribe((shown, before) => shown.selection !== before.selection && this.list.redraw());
    this.draw();
  }

  private draw(): void {
    const wanted = this.filter.value.trim().toLowerCase();
    const shown = this.items.filter((item) => (!this.lost || !item.layers.length) && item.words.includes(wanted));
    fill(this.status, shown.length === this.items.length ? "" : `${count(shown.length)} of ${plural(this.items.length, "node")}`);
    this.list.set(shown.map((item) => ({ item, height: 48 })));
  }

  private row(item: Item): HTMLElement {
    const { context } = this;
    const { selection } = context.store.get();
    const chosen = selection !== null && "node" in selection ? selection.node : null;
    const current = chosen !== null && (item.node === chosen || item.layers.includes(chosen));
    const [first] = item.layers;
    const more = item.layers.length - 1;
    return h("div", { class: `difference ${current ? "current" : ""}`, role: "listitem" },
      h("div", {}, context.link(item.node, { limit: 34 })),
      h("div", { class: "dim difference-text" },
        ...(first === undefined ? [bdi("no layer")] : ["→ ", context.link(first, { limit: 24 }), more ? ` and ${count(more)} more` : ""])));
  }
}
