// The selected node: what it is, where it comes from, who reads it, and what the passes did with it.

import { CHANGE_SIGNS, changeChip, type Context } from "./context.ts";
import { bdi, bytes, h, plural, shorten, whole, type Child } from "./dom.ts";
import type { NodeId, NodeRecord } from "./document.ts";
import { decisions, decisionsAbout } from "./decisions.ts";
import { inputRole, innerRoles, entryText, outputRole, scopePath } from "./labels.ts";
import { iterations, portMap } from "./loop_details.ts";
import { differences, type Difference } from "./record_changes.ts";
import { section, tall } from "./sections.ts";
import { placesOf } from "./weights.ts";
import { longList } from "./virtual.ts";

/** The sections about a node; `extra` come after the first ones. */
export function nodeDetails(context: Context, record: NodeRecord, extra: (HTMLElement | null)[]): HTMLElement[] {
  const isControl = record.port_map !== undefined;
  const decided = decisionsAbout(context, record);
  const sections: (HTMLElement | null)[] = [
    partners(context, record),
    thisStep(context, record),
    isControl ? section("Iterations", iterations(context, record, decided)) : null,
    ...extra,
    decisions(context, record, decided),
    isControl ? section("Port map", portMap(context, record)) : null,
    inBody(context, record),
    constant(context, record),
    section("Inputs", inputs(context, record)),
    section("Outputs", outputs(context, record)),
    attributes(record),
    origins(context, record),
    history(context, record),
    record.info ? section("Additional info (rt_info)", h("pre", {}, whole(record.info, 1000))) : null,
  ];
  return sections.filter((each) => each !== null);
}

/** The operator, the name and where the node stands. */
export function nodeHead(context: Context, record: NodeRecord): HTMLElement {
  const change = context.changeOf(record.id);
  const path = scopePath(context.stateOf(record.id), record.scope);
  const layer = context.state.layer(record.id);
  return h("div", { class: "details-head" },
    h("p", { class: "details-op" }, h("strong", {}, record.op), h("span", { class: "dim" }, record.opset === "" ? "" : ` opset ${record.opset}`, layer === undefined ? "" : ` · layer ${layer}`), " ", change ? changeChip(change, true) : null),
    h("p", { class: "details-name" }, record.name ? whole(record.name) : h("span", { class: "dim" }, `no name (node ${record.id} of this page)`)),
    path.length ? h("p", { class: "details-scope dim" }, "in ", ...path.flatMap(({ owner, tag }, index): Child[] => [index ? " › " : null, context.link(owner, { limit: 24 }), ` ${tag.replace("_", " ")}`])) : null);
}

/** The layers of a node of an ONNX model, or the nodes of a layer of its IR. */
function partners(context: Context, record: NodeRecord): HTMLElement | null {
  if (!context.document.pairs) return null;
  const found = context.states.partners(record.id);
  const isLayer = context.state.nodes.has(record.id);
  const none = isLayer ? "None: no node of the model is known to have become it." : "None: it was computed, not needed, or became part of other layers.";
  return section(isLayer ? "Of these ONNX nodes" : "Became these layers",
    found.length ? longList([...found], (node) => context.link(node), isLayer ? "nodes of the layer" : "layers of the node", 12) : h("p", { class: "dim" }, none));
}

/** What the shown step did with the node. */
function thisStep(context: Context, record: NodeRecord): HTMLElement | null {
  const { step } = context.store.get();
  const what = context.changeOf(record.id);
  if (!what) return null;
  const told = context.document.steps[step]?.details?.[record.id] ?? [];
  const [old, now] = [context.stateBefore.nodes.get(record.id), context.state.nodes.get(record.id)];
  const found = old && now ? differences(old, now, context.stateBefore, context.state) : [];
  const subject = context.document.kind === "diff" ? "This difference" : context.document.steps[step]?.name ?? "";
  return h("section", { class: `details-section this-step ${what}` },
    h("h3", {}, h("span", { "aria-hidden": "true" }, `${CHANGE_SIGNS[what]} `), context.document.kind === "diff" ? diffWord(what) : `${subject} ${what} it`),
    told.length ? h("ul", { class: "items" }, ...told.map((text) => h("li", {}, bdi(text, 300)))) : null,
    found.length && !told.length ? differenceTable(found) : null);
}

export function diffWord(what: string): string {
  return { added: "Only in the new model", removed: "Only in the old model", rewired: "Differs: its inputs", changed: "Differs" }[what] ?? what;
}

function differenceTable(found: Difference[]): HTMLElement {
  return h("table", { class: "differences" },
    h("thead", { class: "sr" }, h("tr", {}, h("th", { scope: "col" }, "What"), h("th", { scope: "col" }, "Before and after"))),
    h("tbody", {}, ...found.slice(0, 40).map((each) => h("tr", {}, h("th", { scope: "row" }, each.what),
      h("td", {}, h("del", {}, bdi(each.from || "none", 80)), h("span", { class: "arrow", "aria-label": "becomes" }, " → "), h("ins", {}, bdi(each.to || "none", 80)))))));
}

/** The role that a Parameter or Result of a body has, with the outside of its port. */
function inBody(context: Context, record: NodeRecord): HTMLElement | null {
  const scope = context.state.scopes.get(record.scope) ?? context.stateBefore.scopes.get(record.scope);
  const owner = scope && scope.owner !== null ? context.record(scope.owner) : undefined;
  if (!owner || (record.op !== "Parameter" && record.op !== "Result")) return null;
  const roles = innerRoles(owner, record.id);
  if (!roles.length) return null;
  return section("In the port map", h("ul", { class: "items" }, ...roles.map(({ text, entry, side }) => {
    const value = entry && side === "input" ? owner.inputs[entry.port] : null;
    const numbers = entry ? entryText(entry) : "";
    const partner = entry?.role === "Merged" ? (entry.parameter === record.id ? entry.result : entry.parameter) : undefined;
    return h("li", {}, h("strong", {}, text), numbers ? ` (${numbers})` : "",
      entry ? h("div", { class: "dim" }, side === "input" ? `input ${entry.port} of ` : `output ${entry.port} of `, context.link(owner.id, { limit: 28 })) : null,
      value ? h("div", {}, h("span", { class: "dim" }, "from "), context.link(value[0])) : null,
      partner !== undefined ? h("div", {}, h("span", { class: "dim" }, entry?.parameter === record.id ? "next value: " : "read in the next iteration as "), context.link(partner)) : null);
  })));
}

function constant(context: Context, record: NodeRecord): HTMLElement | null {
  if (record.value === undefined) return null;
  const { kind } = context.document;
  const offset = context.state.offset(record.id);
  const equal = record.data === undefined ? [] : [...context.state.nodes.values()].filter((each) => each.data === record.data && each.id !== record.id);
  const places = placesOf([record, ...equal], kind);
  return section("Value",
    h("pre", { class: "value-preview" }, whole(record.value, 600)),
    h("p", { class: "dim" }, [record.bytes === undefined ? "" : bytes(record.bytes), record.stored ? `${kind === "conversion" ? "from" : "stored at"} ${record.stored}` : "", offset === undefined || kind !== "conversion" ? "" : `at ${offset} in the .bin`].filter(Boolean).join(" · ")),
    equal.length ? h("div", {}, h("p", {}, `${plural(equal.length, "other constant")} with equal content${places === 1 ? ": the file stores it once" : `, in ${places} places of the file`}.`),
      longList(equal.map((each) => each.id), (node) => context.link(node), "constants with equal content", 4)) : null);
}

function typeText(type: string): HTMLElement {
  return h("span", { class: "type" }, bdi(type, 80));
}

function inputs(context: Context, record: NodeRecord): HTMLElement | null {
  if (!record.inputs.length) return null;
  const row = (input: number): HTMLElement => {
    const value = record.inputs[input];
    const { role } = inputRole(record, input);
    if (!value) return h("span", {}, h("span", { class: "port" }, input), h("span", { class: "dim" }, "none"));
    const output = context.record(value[0])?.outputs[value[1]];
    const edge = { from: value[0], port: value[1], to: record.id, input };
    return h("div", { class: "port-row" },
      h("button", { class: "port", type: "button", title: "Show this edge", "aria-label": `Edge into input ${input}`, click: () => context.selectEdge(edge) }, input),
      h("div", {}, context.link(value[0]), " ", output ? typeText(output.type) : null,
        role ? h("span", { class: "tag" }, role) : null, tensorNames(output?.names)));
  };
  return tall(record.inputs.map((_, input) => input), row, "inputs");
}

function tensorNames(names: string[] | undefined): HTMLElement | null {
  if (!names?.length) return null;
  const shown = names.slice(0, 3).flatMap((name, index): Child[] => [index ? " " : null, bdi(name, 60)]);
  return h("div", { class: "tensor-names dim" }, names.length > 1 ? "tensors " : "tensor ", ...shown, names.length > 3 ? ` and ${names.length - 3} more` : null);
}

function outputs(context: Context, record: NodeRecord): HTMLElement | null {
  const all = context.stateOf(record.id).readers(record.id);
  const names = record.op === "Result" && record.names?.length ? h("p", {}, h("span", { class: "dim" }, "Named "), ...record.names.flatMap((name): Child[] => [bdi(name, 80), " "])) : null;
  if (!record.outputs.length) return names;
  const row = (port: number): HTMLElement => {
    const output = record.outputs[port]!;
    const readers = all.filter((each) => each.port === port);
    const { role } = outputRole(record, port);
    return h("div", { class: "port-row" }, h("span", { class: "port" }, port),
      h("div", {}, typeText(output.type), role ? h("span", { class: "tag" }, role) : null, tensorNames(output.names),
        readers.length ? longList(readers, (reader) => readBy(context, record.id, reader), `readers of output ${port}`, 8) : h("div", { class: "dim" }, "not read")));
  };
  return tall(record.outputs.map((_, port) => port), row, "outputs");
}

/** A reader; for control flow the Parameter inside that gets the value. */
function readBy(context: Context, from: NodeId, reader: { node: NodeId; input: number; port: number }): HTMLElement {
  const record = context.record(reader.node);
  const { entry, role } = record ? inputRole(record, reader.input) : { entry: undefined, role: "" };
  const inner = [entry?.parameter, entry?.then, entry?.else_].filter((each) => typeof each === "number");
  const edge = { from, port: reader.port, to: reader.node, input: reader.input };
  return h("span", { class: "reader" }, h("span", { class: "dim", "aria-hidden": "true" }, "→ "), context.link(reader.node, { limit: 30 }),
    record && record.inputs.length > 1 ? h("button", { type: "button", class: "quiet small", title: "Show this edge", click: () => context.selectEdge(edge) }, `input ${reader.input}`) : null,
    role ? h("span", { class: "tag" }, role) : null,
    ...inner.map((node) => h("span", {}, h("span", { class: "dim" }, " as "), context.link(node, { op: false, limit: 22 }))));
}

function attributes(record: NodeRecord): HTMLElement | null {
  const rows = Object.entries(record.attributes ?? {});
  if (!rows.length) return null;
  return section("Attributes", h("dl", { class: "facts-list mono-values" }, ...rows.flatMap(([key, value]) => [h("dt", {}, bdi(key, 40)), h("dd", {}, whole(value, 200))])));
}

function origins(context: Context, record: NodeRecord): HTMLElement | null {
  const found = record.origins ?? [];
  if (context.document.pairs || (!found.length && context.document.kind !== "conversion")) return null;
  if (!found.length) return section("Origin in ONNX", h("p", { class: "dim" }, "None: a pass made it without a node of the model."));
  const shown = (origin: [string, string, string, string]) => {
    const [scope, node, operator, tensor] = origin;
    return h("div", {}, operator ? h("span", { class: "op" }, operator) : h("span", { class: "dim" }, "tensor"), " ", bdi(node || tensor, 80),
      node && tensor ? h("div", { class: "dim" }, "tensor ", bdi(tensor, 80)) : null,
      scope ? h("div", { class: "dim" }, "in ", bdi(scope, 80)) : null);
  };
  return section("Origin in ONNX", tall(found, shown, "origins", 6), siblings(context, record));
}

/** What stands in the shown graph for a node that it does not have: nodes of the same ONNX node. */
export function standIns(context: Context, record: NodeRecord): HTMLElement | null {
  const found = sameOrigin(context, record);
  return found.length ? section("Of the same ONNX node in this step", longList(found, (node) => context.link(node), "nodes of the same origin", 8)) : null;
}

/** Other nodes of the shown graph that were made of the same ONNX node. */
function siblings(context: Context, record: NodeRecord): HTMLElement | null {
  const found = sameOrigin(context, record);
  if (!found.length || !context.record(record.id)) return null;
  return h("details", { class: "fold" }, h("summary", {}, `${plural(found.length, "other node")} of the same ONNX node`),
    longList(found, (node) => context.link(node), "nodes of the same origin", 8));
}

/** Control flow first, constants not at all. */
function sameOrigin(context: Context, record: NodeRecord): NodeId[] {
  const own = new Set(record.origins?.filter((each) => each[1]).map((each) => `${each[0]}\n${each[1]}`));
  if (!own.size) return [];
  const found: NodeRecord[] = [];
  for (const each of context.state.nodes.values()) {
    if (each.id !== record.id && each.op !== "Constant" && each.origins?.some((origin) => own.has(`${origin[0]}\n${origin[1]}`))) found.push(each);
  }
  return found.sort((a, b) => Number(b.port_map !== undefined) - Number(a.port_map !== undefined)).map((each) => each.id);
}

function history(context: Context, record: NodeRecord): HTMLElement | null {
  const { document, states } = context;
  if (document.kind !== "conversion") return null;
  const events = states.history(record.id);
  const rows: HTMLElement[] = [];
  if (states.at(-1).nodes.has(record.id)) rows.push(h("div", { class: "event" }, h("span", { class: "dot" }), context.stepLink(-1, record.id)));
  for (const { step, what } of events) {
    const [before, after] = [states.at(states.before(step)), states.at(step)];
    const [old, now] = [before.nodes.get(record.id), after.nodes.get(record.id)];
    const parts = old && now ? differences(old, now, before, after) : [];
    const text = parts.slice(0, 2).map((each) => `${each.what}: ${shorten(each.from || "none", 40)} → ${shorten(each.to || "none", 40)}`).join("; ");
    rows.push(h("div", { class: `event ${step === context.store.get().step ? "now" : ""}` }, h("span", { class: `dot ${what}` }),
      context.stepLink(step, record.id), " ", changeChip(what, true),
      text ? h("div", { class: "dim" }, text, parts.length > 2 ? ` and ${parts.length - 2} more` : "") : null));
  }
  if (!rows.length) return null;
  return section("History", tall(rows, (row) => row, "history", 16));
}
