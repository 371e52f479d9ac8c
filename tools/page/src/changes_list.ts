// The differences of two models as a list that can be filtered by kind; it stands where a conversion has its passes.

import { CHANGE_SIGNS, changeChip, type Context } from "./context.ts";
import { bdi, count, fill, h } from "./dom.ts";
import type { NodeId } from "./document.ts";
import { nameOf } from "./labels.ts";
import { diffWord } from "./node_details.ts";
import { differences } from "./record_changes.ts";
import type { Change } from "./states.ts";
import { VirtualList } from "./virtual.ts";

const KINDS: readonly Change[] = ["removed", "added", "rewired", "changed"];

interface Item {
  node: NodeId;
  what: Change;
  text: string; // what differs
  words: string; // searched by the filter
}

export class ChangesList {
  readonly element: HTMLElement;
  private readonly filter = h("input", {
    type: "search", class: "filter", placeholder: "Filter differences", "aria-label": "Filter differences", spellcheck: "false", input: () => this.draw(),
  });
  private readonly hidden = new Set<Change>();
  private readonly list: VirtualList<Item>;
  private readonly status = h("p", { class: "dim facts", role: "status" });
  private readonly items: Item[];

  constructor(private readonly context: Context, private readonly step: number) {
    this.items = this.found();
    this.list = new VirtualList<Item>((item) => this.row(item), { role: "list", "aria-label": "Differences" });
    const kinds = KINDS.filter((what) => this.items.some((item) => item.what === what));
    this.element = h("section", { class: "panel-section changes-section", "aria-label": "Differences" },
      h("header", { class: "section-head" }, h("h2", {}, "Differences"), h("span", { class: "dim" }, count(this.items.length))),
      h("div", { class: "section-tools wrap" }, this.filter,
        h("div", { class: "kinds", role: "group", "aria-label": "Kinds of differences" }, ...kinds.map((what) => this.kind(what)))),
      this.status, this.list.element);
    context.store.subscribe((shown, before) => shown.selection !== before.selection && this.list.redraw());
    this.draw();
  }

  private kind(what: Change): HTMLElement {
    const number = this.items.filter((item) => item.what === what).length;
    const button = h("button", {
      type: "button", class: `toggle ${what}`, "aria-pressed": "true",
      click: () => {
        if (!this.hidden.delete(what)) this.hidden.add(what);
        button.setAttribute("aria-pressed", String(!this.hidden.has(what)));
        this.draw();
      },
    }, h("span", { "aria-hidden": "true" }, CHANGE_SIGNS[what]), ` ${diffWord(what)} ${count(number)}`);
    return button;
  }

  private found(): Item[] {
    const { states, document } = this.context;
    const [before, after] = [states.at(states.before(this.step)), states.at(this.step)];
    const details = document.steps[this.step]?.details ?? {};
    return [...states.changes(this.step).nodes].map(([node, what]) => {
      const [old, now] = [before.nodes.get(node), after.nodes.get(node)];
      const record = now ?? old;
      const told = details[node] ?? (old && now ? differences(old, now, before, after).map((each) => `${each.what}: ${each.from} → ${each.to}`) : []);
      return { node, what, text: told.join("; "), words: `${record?.op} ${record ? nameOf(record) : ""} ${told.join(" ")}`.slice(0, 2000).toLowerCase() };
    }).sort((a, b) => states.place(a.node) - states.place(b.node));
  }

  private draw(): void {
    const wanted = this.filter.value.trim().toLowerCase();
    const shown = this.items.filter((item) => !this.hidden.has(item.what) && item.words.includes(wanted));
    fill(this.status, this.items.length ? (shown.length === this.items.length ? "" : `${count(shown.length)} of ${count(this.items.length)} are shown`) : "The models do not differ.");
    this.list.set(shown.map((item) => ({ item, height: 48 })));
  }

  private row(item: Item): HTMLElement {
    const { selection } = this.context.store.get();
    const current = selection !== null && "node" in selection && selection.node === item.node;
    return h("div", { class: `difference ${current ? "current" : ""}`, role: "listitem" },
      h("div", { class: "change-row" }, changeChip(item.what), this.context.link(item.node, { limit: 30 })),
      h("div", { class: "dim difference-text" }, item.text ? bdi(item.text, 120) : diffWord(item.what)));
  }
}
