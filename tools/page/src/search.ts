// The search box and its results.

import { CHANGE_WORDS, type Context } from "./context.ts";
import { bdi, count, fill, h, icon, plural } from "./dom.ts";
import type { NodeId } from "./document.ts";
import { nameOf } from "./labels.ts";
import { SearchIndex, type Found, type Group } from "./search_index.ts";
import { VirtualList, type Row } from "./virtual.ts";

type Item = { head: Group; size: number } | Found;

const HINTS: [string, string][] = [
  ["op:Loop", "an operator, of the IR or of ONNX"], ["type:f32", "an output's type or shape"], ["tensor:x", "a tensor name"],
  ["onnx:Scan", "a name of the ONNX model"], ["scope:body", "a body or a scope"], ["changed:added", "what this step added, removed, changed"],
  ["attr:axis", "an attribute"], ["changed:LoopToTI", "what a pass changed"],
];

export class Search {
  readonly element: HTMLElement;
  private readonly input: HTMLInputElement;
  private readonly popup = h("div", { class: "search-popup", hidden: true });
  private readonly status = h("p", { class: "search-status dim", role: "status" });
  private readonly list: VirtualList<Item>;
  private readonly index: SearchIndex;
  private active = -1;
  private items: Item[] = [];

  constructor(private readonly context: Context) {
    this.index = new SearchIndex(context.document, context.states);
    this.list = new VirtualList<Item>((item, index) => this.row(item, index), { role: "listbox", id: "search-results", "aria-label": "Search results" });
    this.list.element.tabIndex = -1;
    this.input = h("input", {
      type: "search", placeholder: "Search nodes, tensors, operators", "aria-label": "Search", role: "combobox", "aria-expanded": "false",
      "aria-controls": "search-results", "aria-autocomplete": "list", autocomplete: "off", spellcheck: "false",
      input: () => this.find(), focus: () => this.open(), keydown: (event: KeyboardEvent) => this.key(event),
    });
    this.element = h("section", { class: "search", role: "search", "aria-label": "Search" },
      h("span", { class: "search-icon" }, icon("search")), this.input, h("kbd", { class: "search-key", "aria-hidden": "true" }, "/"), this.popup);
    this.element.addEventListener("focusout", (event) => {
      if (!this.element.contains(event.relatedTarget as Node | null)) this.close();
    });
    context.store.subscribe((shown, before) => {
      if (shown.step !== before.step && this.input.value && !this.popup.hidden) this.find();
    });
  }

  focus(): void {
    this.input.focus();
    this.input.select();
  }

  /** Search for something as if it had been typed. */
  ask(query: string): void {
    this.input.value = query;
    this.input.focus();
    this.find();
  }

  clear(): boolean {
    if (!this.input.value && this.popup.hidden) return false;
    this.input.value = "";
    this.find();
    this.close();
    return true;
  }

  private open(): void {
    setTimeout(() => this.index.prepare(), 50);
    if (!this.popup.hidden) return;
    this.popup.hidden = false;
    this.input.setAttribute("aria-expanded", "true");
    this.draw();
  }

  private close(): void {
    this.popup.hidden = true;
    this.input.setAttribute("aria-expanded", "false");
  }

  private find(): void {
    const query = this.input.value.trim();
    const found = query ? this.index.find(query, this.context.store.get().step) : [];
    this.items = [];
    let head: { head: Group; size: number } | undefined;
    for (const each of found) {
      if (each.group !== head?.head) this.items.push((head = { head: each.group, size: 0 }));
      head.size++;
      this.items.push(each);
    }
    this.active = -1;
    this.open();
    this.draw();
    this.context.store.set({ query, highlights: new Set<NodeId>(found.map((each) => each.record.id)) });
  }

  private draw(): void {
    const query = this.input.value.trim();
    if (!query) {
      fill(this.popup, h("div", { class: "search-hints" }, h("p", { class: "dim" }, "All words must fit. Fields narrow the search:"),
        h("ul", {}, ...HINTS.map(([text, meaning]) => h("li", {}, h("button", { type: "button", class: "hint", click: () => this.ask(text) }, h("code", {}, text), h("span", { class: "dim" }, meaning)))))));
      return;
    }
    const hits = this.items.filter((item) => !("head" in item)) as Found[];
    const elsewhere = hits.filter((each) => each.elsewhere).length;
    this.status.textContent = !hits.length ? "Nothing has this." : `${plural(hits.length, "node")}${elsewhere ? `, ${count(elsewhere)} only in other steps` : ""}`;
    if (this.list.element.parentElement !== this.popup) fill(this.popup, this.status, this.list.element);
    const rows: Row<Item>[] = this.items.map((item) => ({ item, height: "head" in item ? 30 : 46 }));
    this.list.element.style.height = `${Math.min(rows.reduce((sum, row) => sum + row.height, 0), 460)}px`;
    this.list.set(rows);
  }

  private row(item: Item, index: number): HTMLElement {
    if ("head" in item) return h("div", { class: "result-head", role: "presentation" }, item.head, h("span", { class: "dim" }, ` ${count(item.size)}`));
    const { record } = item;
    const tensor = record.outputs[0]?.names[0];
    const onnx = record.origins?.[0]?.[1];
    const more = item.elsewhere ? this.where(record.id) : tensor && tensor !== record.name ? tensor : onnx && onnx !== record.name ? onnx : record.scope ? `in ${this.ownerName(record.scope)}` : "";
    return h("div", {
      class: "result", role: "option", id: `result-${index}`, "data-node": record.id, "aria-selected": String(index === this.active),
      mousedown: (event: MouseEvent) => event.preventDefault(), click: () => this.choose(index),
    },
      h("div", { class: "result-top" }, h("span", { class: "op" }, record.op), " ", bdi(nameOf(record), 56)),
      h("div", { class: "result-more dim" }, ...separated([record.outputs[0] ? h("span", { class: "type" }, bdi(record.outputs[0].type, 34)) : null, more ? bdi(more, 44) : null])));
  }

  private ownerName(scope: string): string {
    const owner = this.context.state.scopes.get(scope)?.owner;
    const record = owner === null || owner === undefined ? undefined : this.context.record(owner);
    return record ? `${record.op} ${nameOf(record)}` : "a body";
  }

  /** Why the shown step does not have a node. */
  private where(node: NodeId): string {
    const { document, states, store } = this.context;
    const { step } = store.get();
    const events = states.history(node);
    const event = events.find((each) => each.what === "added" && each.step > step) ?? events.findLast((each) => each.what === "removed" && each.step <= step);
    return event ? `${CHANGE_WORDS[event.what]} by ${document.steps[event.step]?.name ?? ""}` : "in another step";
  }

  private choose(index: number): void {
    const item = this.items[index];
    if (!item || "head" in item) return;
    this.active = index;
    this.list.redraw();
    this.close();
    this.context.canvas.host.focus({ preventScroll: true }); // keys of the graph work on what was found
    this.context.select(item.record.id);
  }

  private key(event: KeyboardEvent): void {
    event.stopPropagation();
    if (event.key === "Escape") {
      if (!this.clear()) this.input.blur();
      this.input.blur();
      return;
    }
    if (event.key === "Enter") {
      event.preventDefault();
      this.choose(this.active < 0 ? this.next(-1, 1) : this.active);
      if (this.popup.hidden) this.context.canvas.host.focus(); // its keys go on from the selected node
      return;
    }
    const moves: Record<string, [number, 1 | -1]> = {
      ArrowDown: [this.active, 1], ArrowUp: [this.active, -1], PageDown: [this.active + 7, 1], PageUp: [Math.max(this.active - 9, 0), 1],
    };
    const move = moves[event.key];
    if (!move || !this.items.length) return;
    event.preventDefault();
    this.open();
    this.active = this.next(...move);
    this.list.reveal(this.active);
    this.list.redraw();
    this.input.setAttribute("aria-activedescendant", `result-${this.active}`);
  }

  /** The next row that is a result. */
  private next(from: number, by: 1 | -1): number {
    let at = Math.min(from, this.items.length - 1) + by;
    while (this.items[at] && "head" in this.items[at]!) at += by;
    return this.items[at] ? at : this.active;
  }
}

function separated(parts: (HTMLElement | null)[]): (HTMLElement | string)[] {
  return parts.filter((each) => each !== null).flatMap((each, index) => (index ? [" · ", each] : [each]));
}
