// The constants of the shown graph: by size, those of equal content, and weights of the model that stand there in several forms.

import type { Context } from "./context.ts";
import { bdi, bytes, count, fill, h, plural } from "./dom.ts";
import type { Document, NodeId, NodeRecord } from "./document.ts";
import { nameOf } from "./labels.ts";
import type { State } from "./states.ts";
import { tall } from "./sections.ts";
import { VirtualList } from "./virtual.ts";

const SMALL = 64; // bytes; smaller constants are axes and scalars, of which equal ones are no news

export interface WeightGroups {
  constants: NodeRecord[]; // the largest first
  total: number;
  stored: number; // what stands in one place counts once
  copies: NodeRecord[][]; // equal contents in several places
  equal: NodeRecord[][]; // equal contents in one place
  forms: { origin: string; records: NodeRecord[] }[];
}

export function weightGroups(state: State, kind: Document["kind"]): WeightGroups {
  const constants = [...state.nodes.values()].filter((record) => record.op === "Constant");
  constants.sort((a, b) => (b.bytes ?? 0) - (a.bytes ?? 0) || a.id - b.id);
  const byData = new Map<string, NodeRecord[]>();
  const byOrigin = new Map<string, NodeRecord[]>();
  const byForm = new Map<string, NodeRecord[]>(); // a matrix and the same one transposed
  const places = new Set<string>();
  let total = 0;
  let stored = 0;
  for (const record of constants) {
    total += record.bytes ?? 0;
    const place = placeOf(record, kind);
    if (!places.has(place)) stored += record.bytes ?? 0;
    places.add(place);
    const equal = record.data === undefined ? undefined : byData.get(record.data);
    if (equal) equal.push(record);
    else if (record.data !== undefined) byData.set(record.data, [record]);
    const form = record.transposed ?? record.data;
    const forms = form === undefined ? undefined : byForm.get(form);
    if (forms) forms.push(record);
    else if (form !== undefined) byForm.set(form, [record]);
    for (const tensor of new Set(record.origins?.filter((each) => !each[1] && each[3]).map((each) => each[3]))) {
      const list = byOrigin.get(tensor);
      if (list) list.push(record);
      else byOrigin.set(tensor, [record]);
    }
  }
  const size = (records: NodeRecord[]) => records[0]?.bytes ?? 0;
  const alike = [...byData.values()].filter((records) => records.length > 1 && size(records) >= SMALL).sort((a, b) => size(b) - size(a));
  const isOnce = (records: NodeRecord[]) => placesOf(records, kind) === 1;
  for (const [data, records] of byForm) {
    if (new Set(records.map(contentOf)).size > 1) byOrigin.set(`\n${data}`, records);
  }
  const isSeen = new Set<string>();
  const forms = [...byOrigin].map(([origin, records]) => ({ origin: origin.startsWith("\n") ? nameOf(records[0]!) : origin, records }))
    .filter(({ records }) => {
      const contents = [...new Set(records.map(contentOf))].sort().join();
      const isNew = !isSeen.has(contents);
      isSeen.add(contents);
      return isNew && contents.includes(",") && size(records) >= SMALL;
    })
    .sort((a, b) => size(b.records) - size(a.records));
  return { constants, total, stored, copies: alike.filter((records) => !isOnce(records)), equal: alike.filter(isOnce), forms };
}

/** In how many places the same content stands. */
export function placesOf(records: readonly NodeRecord[], kind: Document["kind"]): number {
  return new Set(records.map((record) => placeOf(record, kind))).size;
}

/** Where a constant stands: a file tells it, and a conversion writes equal contents once. */
function placeOf(record: NodeRecord, kind: Document["kind"]): string {
  return (kind === "conversion" ? undefined : record.stored) ?? contentOf(record);
}

/** A text that is equal for equal contents. */
function contentOf(record: NodeRecord): string {
  return record.data ?? `#${record.id}`;
}

export class Weights {
  readonly element = h("section", { class: "weights", "aria-label": "Weights", tabindex: "-1" });
  private stale = true;

  constructor(private readonly context: Context) {
    context.store.subscribe((shown, before) => {
      if (shown.step === before.step) return;
      this.stale = true;
      if (this.element.isConnected && !this.element.closest("[hidden]")) this.show();
    });
  }

  /** Draw what is not drawn yet; called when the panel comes into sight. */
  show(): void {
    if (!this.stale) return;
    this.stale = false;
    const { context } = this;
    const found = weightGroups(context.state, context.document.kind);
    const several = [
      ...found.copies.map((records) => ({ bytes: records[0]?.bytes ?? 0, card: () => this.equal(records) })),
      ...found.forms.map((each) => ({ bytes: each.records[0]?.bytes ?? 0, card: () => this.form(each) })),
    ].sort((a, b) => b.bytes - a.bytes);
    const list = new VirtualList<NodeRecord>((record) => this.row(record), { role: "list", "aria-label": "Constants by size" });
    list.element.classList.add("weights-list");
    fill(this.element,
      h("div", { class: "details-head" },
        h("p", { class: "details-op" }, h("strong", {}, "Weights")),
        h("p", { class: "dim" }, `${plural(found.constants.length, "constant")}, ${bytes(found.total)}.`,
          found.stored < found.total ? ` Some share their place: ${bytes(found.stored)} are stored.` : "")),
      h("section", { class: "details-section" }, h("h3", {}, "Stored more than once"),
        several.length ? tall(several, (each) => each.card(), "weights that are stored more than once", 8)
          : h("p", { class: "dim" }, "No weight of the model is stored more than once.")),
      found.equal.length ? h("section", { class: "details-section" }, h("h3", {}, "Equal contents, stored once"),
        tall(found.equal, (records) => this.equal(records), "constants of equal content", 8)) : null,
      h("section", { class: "details-section" }, h("h3", {}, "All by size"), list.element));
    list.set(found.constants.map((item) => ({ item, height: 44 })));
  }

  private form({ origin, records }: { origin: string; records: NodeRecord[] }): HTMLElement {
    const different = new Map(records.map((record) => [contentOf(record), record]));
    const total = [...different.values()].reduce((sum, record) => sum + (record.bytes ?? 0), 0);
    return h("div", { class: "card" },
      h("p", {}, h("strong", {}, bdi(origin, 60)), h("span", { class: "dim" }, ` stored in ${different.size} forms, ${bytes(total)} together`)),
      tall([...different.values()], (record) => this.line(record), "forms", 6));
  }

  private equal(records: NodeRecord[]): HTMLElement {
    const places = placesOf(records, this.context.document.kind);
    return h("div", { class: "card" },
      h("p", {}, h("strong", {}, `${count(records.length)} ×`), " ", h("span", { class: "type" }, bdi(records[0]?.outputs[0]?.type ?? "", 40)),
        h("span", { class: "dim" }, ` ${bytes(records[0]?.bytes ?? 0)}, the same content, stored ${places === 1 ? "once" : `${count(places)} times`}`)),
      tall(records, (record) => this.line(record), "constants", 4));
  }

  private line(record: NodeRecord): HTMLElement {
    const reader = this.reader(record.id);
    return h("div", {}, this.context.link(record.id, { op: false, limit: 34 }), " ", h("span", { class: "type" }, bdi(record.outputs[0]?.type ?? "", 32)),
      reader ? h("span", { class: "dim" }, " read by ", this.context.link(reader, { limit: 22 })) : null);
  }

  private reader(node: NodeId): NodeId | undefined {
    return this.context.state.readers(node)[0]?.node;
  }

  private row(record: NodeRecord): HTMLElement {
    const readers = this.context.state.readers(record.id);
    return h("div", { class: "weight-row", role: "listitem" },
      h("span", { class: "weight-name" }, this.context.link(record.id, { op: false, limit: 38 })),
      h("span", { class: "weight-size" }, record.bytes === undefined ? "" : bytes(record.bytes)),
      h("span", { class: "weight-facts dim" }, h("span", { class: "type" }, bdi(record.outputs[0]?.type ?? "", 30)),
        readers[0] ? h("span", {}, " · read by ", this.context.link(readers[0].node, { limit: 20 }), readers.length > 1 ? ` and ${count(readers.length - 1)} more` : "") : " · not read", record.stored ? ` · ${record.stored}` : ""));
  }
}
