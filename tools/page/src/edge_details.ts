// The selected edge: type, shape, the symbols of its dimensions, who makes and who reads it, its role in a port map.

import type { Context } from "./context.ts";
import { bdi, h, whole, type Child } from "./dom.ts";
import type { NodeId, NodeRecord, PortEntry } from "./document.ts";
import { dimensions, entryText, inputRole, innerRoles, nameOf, outputRole, symbols } from "./labels.ts";
import { section } from "./sections.ts";
import type { EdgeKey } from "./store.ts";

type Fact = [label: string, children: Child[]];

/** What an edge is: its title, the tensor that goes along it, and what it connects. */
interface Told {
  title: string;
  output: { type: string; names: string[] } | undefined;
  facts: Fact[];
}

export function edgeDetails(context: Context, edge: EdgeKey): HTMLElement[] {
  const [from, to] = [context.record(edge.from), context.record(edge.to)];
  if (!from || !to) return [h("p", { class: "dim" }, "This edge is not in the graph of this step.")];
  const told = intoBody(context, edge, from, to) ?? outOfBody(context, edge, from, to) ?? backEdge(context, edge, from, to) ?? plain(context, edge, from, to);
  const names = told.output?.names ?? [];
  return [
    h("div", { class: "details-head" },
      h("p", { class: "details-op" }, h("strong", {}, told.title)),
      h("p", { class: "details-name" }, h("span", { class: "type" }, told.output ? whole(told.output.type, 160) : "no type"))),
    h("section", { class: "details-section" }, h("dl", { class: "facts-list" }, ...told.facts.flatMap(([label, children]) => [h("dt", {}, label), h("dd", {}, ...children)]))),
    section("Tensor names", names.length ? h("ul", { class: "items" }, ...names.slice(0, 40).map((name) => h("li", {}, whole(name)))) : h("p", { class: "dim" }, "none")),
    shape(context, told.output?.type ?? ""),
  ].filter((each) => each !== null);
}

/** Whether the first node owns the body that the second one is in. */
function owns(context: Context, owner: NodeRecord, inner: NodeRecord): boolean {
  const scope = context.state.scopes.get(inner.scope) ?? context.stateBefore.scopes.get(inner.scope);
  return scope?.owner === owner.id;
}

function outputOf(context: Context, value: [NodeId, number] | null | undefined): Told["output"] {
  return value ? context.record(value[0])?.outputs[value[1]] : undefined;
}

/** From an input of a control-flow operation to a Parameter of its body. */
function intoBody(context: Context, edge: EdgeKey, from: NodeRecord, to: NodeRecord): Told | null {
  if (to.op !== "Parameter" || !owns(context, from, to)) return null;
  const roles = innerRoles(from, to.id).filter((each) => each.side === "input");
  const role = roles.find((each) => each.entry?.port === edge.port) ?? roles[0];
  const value = edge.port < 0 ? null : from.inputs[edge.port];
  const facts: Fact[] = [["Role", [h("strong", {}, role?.text ?? ""), numbers(role?.entry)]], ["Into", [context.link(to.id), h("span", { class: "dim" }, " in the body")]]];
  if (value) facts.unshift(["From", [context.link(value[0]), h("span", { class: "dim" }, ` by input ${edge.port} of `), context.link(from.id, { limit: 28 })]]);
  else facts.unshift(["From", [context.link(from.id)]]);
  if (role?.entry?.role === "Merged" && role.entry.result !== undefined) facts.push(["Next value", [context.link(role.entry.result)]]);
  const outer = outputOf(context, value);
  if (outer && outer.type !== to.outputs[0]?.type) facts.push(["Type outside", [h("span", { class: "type" }, bdi(outer.type, 60))]]);
  return { title: "Into the body", output: to.outputs[0], facts: [...facts, ...layer(context, to.id)] };
}

/** From a Result of a body to an output of its owner. */
function outOfBody(context: Context, edge: EdgeKey, from: NodeRecord, to: NodeRecord): Told | null {
  if (from.op !== "Result" || !owns(context, to, from)) return null;
  const roles = innerRoles(to, from.id).filter((each) => each.side === "output");
  const role = roles.find((each) => each.entry?.port === edge.input) ?? roles[0];
  const readers = edge.input < 0 ? [] : context.stateOf(to.id).readers(to.id).filter((each) => each.port === edge.input);
  const facts: Fact[] = [
    ["Role", [h("strong", {}, role?.text ?? ""), numbers(role?.entry)]],
    ["From", [context.link(from.id), h("span", { class: "dim" }, " in the body")]],
    ["Into", [edge.input < 0 ? null : `output ${edge.input} of `, context.link(to.id, { limit: 30 })]],
  ];
  if (readers.length) facts.push(["Read by", readers.slice(0, 6).flatMap((reader): Child[] => [h("div", {}, context.link(reader.node))])]);
  const outer = edge.input < 0 ? undefined : to.outputs[edge.input];
  const inner = outputOf(context, from.inputs[0]);
  if (outer && outer.type !== inner?.type) facts.push(["Type outside", [h("span", { class: "type" }, bdi(outer.type, 60))]]);
  return { title: "Out of the body", output: inner ?? outer, facts: [...facts, ...layer(context, from.id)] };
}

/** From a Result to the Parameter that has its value in the next iteration. */
function backEdge(context: Context, _edge: EdgeKey, from: NodeRecord, to: NodeRecord): Told | null {
  if (from.op !== "Result" || to.op !== "Parameter" || from.scope !== to.scope) return null;
  const owner = ownerOf(context, from);
  const entry = owner?.port_map?.inputs.find((each) => each.parameter === to.id && each.result === from.id);
  const first = owner && entry ? owner.inputs[entry.port] : null;
  const facts: Fact[] = [["Role", [h("strong", {}, "back edge"), h("span", { class: "dim" }, ": the value for the next iteration")]], ["From", [context.link(from.id)]], ["To", [context.link(to.id)]]];
  if (first) facts.push(["First value", [context.link(first[0])]]);
  if (owner) facts.push(["Of", [context.link(owner.id)]]);
  return { title: "Back edge", output: to.outputs[0], facts };
}

function plain(context: Context, edge: EdgeKey, from: NodeRecord, to: NodeRecord): Told {
  const facts: Fact[] = [
    ["From", [context.link(edge.from), h("span", { class: "dim" }, ` output ${edge.port}`)]],
    ["To", [context.link(edge.to), h("span", { class: "dim" }, ` input ${edge.input}`)]],
  ];
  const into = to.port_map ? inputRole(to, edge.input) : null;
  if (into?.role) facts.push(["Role", [h("strong", {}, into.role), numbers(into.entry)]]);
  for (const key of ["parameter", "then", "else_", "result"] as const) {
    const inner = into?.entry?.[key];
    if (typeof inner === "number") facts.push([{ parameter: "In the body", then: "In then", else_: "In else", result: "Back edge from" }[key], [context.link(inner)]]);
  }
  const out = from.port_map ? outputRole(from, edge.port) : null;
  if (out?.role) facts.push(["Made as", [h("strong", {}, out.role), numbers(out.entry)]]);
  for (const key of ["result", "then", "else_"] as const) {
    const inner = out?.entry?.[key];
    if (typeof inner === "number") facts.push([{ result: "From the body", then: "From then", else_: "From else" }[key], [context.link(inner)]]);
  }
  const owner = from.scope === to.scope ? undefined : ownerOf(context, to);
  if (owner) facts.push(["Capture", ["read in a body of ", context.link(owner.id)]]);
  return { title: owner ? "Capture" : "Edge", output: from.outputs[edge.port], facts: [...facts, ...layer(context, into?.entry?.parameter)] };
}

function ownerOf(context: Context, inner: NodeRecord): NodeRecord | undefined {
  const scope = context.state.scopes.get(inner.scope) ?? context.stateBefore.scopes.get(inner.scope);
  return scope && scope.owner !== null ? context.record(scope.owner) : undefined;
}

function numbers(entry: PortEntry | undefined): HTMLElement | null {
  const text = entry ? entryText(entry) : "";
  return text ? h("span", { class: "dim" }, ` ${text}`) : null;
}

function layer(context: Context, inner: NodeId | undefined): Fact[] {
  const id = inner === undefined ? undefined : context.state.layer(inner);
  return id === undefined ? [] : [["internal_layer_id", [String(id)]]];
}

function shape(context: Context, type: string): HTMLElement | null {
  const dims = dimensions(type);
  if (dims === null) return type.includes("...") ? section("Shape", h("p", {}, "The rank is dynamic.")) : null;
  if (!dims.length) return section("Shape", h("p", {}, "A scalar."));
  return section("Shape", h("table", { class: "plain" },
    h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Axis"), h("th", { scope: "col" }, "Size"), h("th", { scope: "col" }, "Meaning"))),
    h("tbody", {}, ...dims.slice(0, 32).map((dim, axis) => h("tr", {}, h("td", { class: "mono" }, axis), h("td", { class: "mono" }, bdi(dim, 40)), h("td", {}, ...meaning(context, dim)))))));
}

/** Where the symbols of a dimension come from: "N is dimension 0 of x". */
function meaning(context: Context, dim: string): Child[] {
  if (/^-?\d+$/.test(dim)) return [h("span", { class: "dim" }, "static")];
  const found = symbols(dim).map((symbol): Child[] => {
    for (const id of context.state.scopes.get("")?.parameters ?? []) {
      const record = context.state.nodes.get(id);
      const axis = dimensions(record?.outputs[0]?.type ?? "")?.findIndex((each) => each === symbol) ?? -1;
      if (record && axis >= 0) return [h("span", { class: "mono" }, bdi(symbol, 24)), ` = dimension ${axis} of `, context.link(id, { op: false, name: nameOf(record), limit: 24 })];
    }
    return [h("span", { class: "mono" }, bdi(symbol, 24)), h("span", { class: "dim" }, " is computed in the graph")];
  });
  if (!found.length) return [h("span", { class: "dim" }, "dynamic")];
  return found.flatMap((each, index): Child[] => [index ? h("br") : null, ...each]);
}
