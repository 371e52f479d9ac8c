// Control flow: how often the body runs, and the port map as tables.

import { expression, constantValue } from "./expression.ts";
import { bdi, h, type Child } from "./dom.ts";
import type { Context } from "./context.ts";
import type { NodeId, NodeRecord, PortEntry } from "./document.ts";
import { coded } from "./explain.ts";
import type { Decision } from "./decisions.ts";
import { dimensions, entryText, ROLES } from "./labels.ts";

const ITERATOR_PASSES = new Set(["ScanLowering", "LoopToTI"]); // those that decide between a Loop and a TensorIterator

/** Rows of "label: value" about the iterations of a Loop or a TensorIterator; the condition of an If. */
export function iterations(context: Context, record: NodeRecord, decided: readonly Decision[]): HTMLElement | null {
  const rows: [string, Child[]][] = [];
  if (record.op === "If" && record.inputs[0]) rows.push(["Condition", computed(context, record.inputs[0])]);
  if (record.op === "Loop") {
    rows.push(["Trip count", tripCount(context, record)]);
    if (record.inputs[1]) rows.push(["First condition", computed(context, record.inputs[1])]);
  }
  const sliced = record.port_map?.inputs.filter((entry) => entry.role === "Sliced") ?? [];
  if (sliced.length && record.op !== "If") rows.push([record.op === "Loop" ? "Slices" : "Trip count", slices(context, record, sliced)]);
  const result = record.port_map?.condition;
  if (result !== undefined) {
    const value = context.record(result)?.inputs[0];
    rows.push(["Next condition", [...(value ? computed(context, value) : []), h("span", { class: "dim" }, " in the body: "), context.link(result, { limit: 24 })]]);
  }
  const iteration = record.port_map?.iteration;
  if (iteration !== undefined) rows.push(["Current iteration", [context.link(iteration, { limit: 32 })]]);
  const refusal = record.op === "Loop" || record.op === "Scan" ? notIterator(decided) : null;
  if (refusal) rows.push(["TensorIterator", ["no: ", ...coded(refusal.text.replace(/^to a Loop, because /, "")), h("div", { class: "dim" }, "decided by ", context.stepLink(refusal.step, refusal.node))]]);
  if (!rows.length) return null;
  return h("dl", { class: "facts-list" }, ...rows.flatMap(([label, children]) => [h("dt", {}, label), h("dd", {}, ...children)]));
}

/** The last decision not to make a TensorIterator. */
function notIterator(decided: readonly Decision[]): Decision | undefined {
  return decided.findLast((each) => ITERATOR_PASSES.has(each.pass) && (each.outcome === "refused" || each.text.startsWith("to a Loop")));
}

/** What decides how often a Loop runs, and what computes its trip count. */
function tripCount(context: Context, record: NodeRecord): Child[] {
  const value = record.inputs[0];
  const told = record.port_map?.trip_count;
  const known = value ? constantValue(context, ...value) : null;
  const shown = told ?? known;
  let input: Child[] = [];
  if (value && known === null) input = ["input 0 is ", expression(context, ...value)];
  else if (value && known === shown) input = ["constant ", context.link(value[0], { limit: 28 })];
  else if (value) input = ["input 0 is ", context.link(value[0], { limit: 28 }), ` = ${known}`];
  return [shown === null ? null : h("strong", {}, bdi(shown, 72)), input.length ? h("div", { class: "dim" }, ...input) : null];
}

/** A value that decides: its constant, or what computes it. */
function computed(context: Context, value: [NodeId, number]): Child[] {
  const known = constantValue(context, ...value);
  if (known !== null) return [h("strong", {}, known), h("span", { class: "dim" }, " constant: "), context.link(value[0], { limit: 28 })];
  return [expression(context, ...value)];
}

/** The number of iterations that slices give: "T, the dimension 0 of x". */
function slices(context: Context, record: NodeRecord, sliced: PortEntry[]): Child[] {
  const told = record.op === "Loop" ? undefined : record.port_map?.trip_count; // of a Loop, the trip count tells it
  const parts: Child[] = [told ? h("strong", {}, bdi(told, 60)) : null];
  sliced.forEach((entry, index) => {
    const value = record.inputs[entry.port];
    if (!value || index > 3) return;
    const type = context.record(value[0])?.outputs[value[1]]?.type ?? "";
    const dims = dimensions(type);
    const axis = entry.axis ?? 0;
    const size = dims?.at(axis) ?? "?";
    parts.push(h("div", {}, h("span", { class: "mono" }, bdi(size, 32)), h("span", { class: "dim" },
      `${(entry.part_size ?? 1) > 1 ? ` / ${entry.part_size}` : ""} = dimension ${axis} of `), context.link(value[0], { limit: 26 })));
  });
  return parts;
}

/** The port map: each input and output of the operation, its role, and the nodes of the body that stand for it. */
export function portMap(context: Context, record: NodeRecord): HTMLElement | null {
  const map = record.port_map;
  if (!map) return null;
  const branches = record.op === "If";
  const extras: HTMLElement[] = [];
  const isMapped = (port: number) => map.inputs.some((entry) => entry.port === port);
  if (record.op === "Loop" && !isMapped(0)) {
    extras.push(row(0, "trip count", "", outside(context, record.inputs[0]), [h("span", { class: "dim" }, "—")], ""));
  }
  if (record.op === "Loop" && !isMapped(1)) {
    extras.push(row(1, "execution condition", "", outside(context, record.inputs[1]),
      map.condition === undefined ? [h("span", { class: "dim" }, "—")] : ["← ", context.link(map.condition, { op: false, limit: 22 })], ""));
  }
  if (branches) extras.push(row(0, "condition", "", outside(context, record.inputs[0]), [h("span", { class: "dim" }, "—")], ""));
  const inputs = map.inputs.map((entry) => row(entry.port, ROLES[entry.role], entryText(entry), outside(context, record.inputs[entry.port]),
    inside(context, entry), layerIds(context, entry)));
  const outputs = map.outputs.map((entry) => {
    const readers = context.stateOf(record.id).readers(record.id).filter((each) => each.port === entry.port);
    const first = readers[0];
    const shown: Child[] = first ? [context.link(first.node, { limit: 22 }), readers.length > 1 ? h("span", { class: "dim" }, ` +${readers.length - 1}`) : null]
      : [h("span", { class: "dim" }, "not read")];
    return row(entry.port, ROLES[entry.role], entryText(entry), shown, inside(context, entry), layerIds(context, entry));
  });
  if (map.iteration !== undefined) {
    extras.push(row(null, "current iteration", "", [h("span", { class: "dim" }, "made by the loop")], ["→ ", context.link(map.iteration, { op: false, limit: 22 })], ""));
  }
  const table = (title: string, side: string, rows: HTMLElement[]) => h("table", { class: "ports" },
    h("caption", {}, title),
    h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Port"), h("th", { scope: "col" }, "Role"), h("th", { scope: "col" }, side), h("th", { scope: "col" }, branches ? "In the branches" : "In the body"))),
    h("tbody", {}, ...rows));
  return h("div", { class: "port-map" }, table("Inputs", "From", [...extras, ...inputs]), table("Outputs", "Read by", outputs));
}

function row(port: number | null, role: string, numbers: string, out: Child[], inner: Child[], ids: string): HTMLElement {
  return h("tr", {},
    h("td", { class: "mono" }, port === null ? "—" : port),
    h("td", {}, role, numbers ? h("div", { class: "dim" }, numbers) : null),
    h("td", {}, ...out),
    h("td", {}, ...inner, ids ? h("div", { class: "dim mono" }, ids) : null));
}

function outside(context: Context, value: [NodeId, number] | null | undefined): Child[] {
  if (!value) return [h("span", { class: "dim" }, "none")];
  return [context.link(value[0], { limit: 22 })];
}

function inside(context: Context, entry: PortEntry): Child[] {
  const link = (node: NodeId) => context.link(node, { op: false, limit: 22 });
  if (entry.role === "Branched" || entry.role === "Selected") {
    return (["then", "else_"] as const).flatMap((key): Child[] => [
      h("div", {}, h("span", { class: "dim" }, key === "then" ? "then " : "else "), typeof entry[key] === "number" ? link(entry[key]) : h("span", { class: "dim" }, "not read")),
    ]);
  }
  const parts: Child[] = [];
  if (entry.parameter !== undefined) parts.push(h("div", {}, "→ ", link(entry.parameter)));
  if (entry.result !== undefined) parts.push(h("div", {}, "← ", link(entry.result), entry.role === "Merged" ? h("span", { class: "dim" }, " back edge") : null));
  return parts;
}

function layerIds(context: Context, entry: PortEntry): string {
  const ends = [entry.parameter, entry.result, entry.then, entry.else_].filter((end) => typeof end === "number");
  const ids = ends.map((end) => context.state.layer(end)).filter((id) => id !== undefined);
  return ids.length ? `internal_layer_id ${ids.join(", ")}` : "";
}
