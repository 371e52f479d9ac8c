// The selected edge: type, shape, the symbols of its dimensions, who makes and who reads it, its role in a port map.

import type { Context } from "./context.ts";
import { bdi, h, whole, type Child } from "./dom.ts";
import { dimensions, entryText, inputRole, innerRoles, nameOf, outputRole, symbols } from "./labels.ts";
import { section } from "./node_details.ts";
import type { EdgeKey } from "./store.ts";

export function edgeDetails(context: Context, edge: EdgeKey): HTMLElement[] {
  const [from, to] = [context.record(edge.from), context.record(edge.to)];
  const output = from?.outputs[edge.port];
  if (!from || !to) return [h("p", { class: "dim" }, "This edge is not in the graph of this step.")];
  const inInput = to.port_map ? inputRole(to, edge.input) : null;
  const outOutput = from.port_map ? outputRole(from, edge.port) : null;
  const head = h("div", { class: "details-head" },
    h("p", { class: "details-op" }, h("strong", {}, "Edge")),
    h("p", { class: "details-name" }, h("span", { class: "type" }, output ? whole(output.type, 160) : "no type")));
  const facts: [string, Child[]][] = [
    ["From", [context.link(edge.from), h("span", { class: "dim" }, ` output ${edge.port}`)]],
    ["To", [context.link(edge.to), h("span", { class: "dim" }, ` input ${edge.input}`)]],
  ];
  if (inInput?.role) facts.push(["Role", [inInput.role, inInput.entry ? h("span", { class: "dim" }, ` ${entryText(inInput.entry)}`) : null]]);
  for (const key of ["parameter", "then", "else_", "result"] as const) {
    const inner = inInput?.entry?.[key];
    if (typeof inner === "number") facts.push([{ parameter: "In the body", then: "In then", else_: "In else", result: "Back edge from" }[key], [context.link(inner)]]);
  }
  if (outOutput?.role) facts.push(["Role", [outOutput.role, outOutput.entry ? h("span", { class: "dim" }, ` ${entryText(outOutput.entry)}`) : null]]);
  for (const key of ["result", "then", "else_"] as const) {
    const inner = outOutput?.entry?.[key];
    if (typeof inner === "number") facts.push([{ result: "From the body", then: "From then", else_: "From else" }[key], [context.link(inner)]]);
  }
  for (const each of [from, to]) {
    if (each.op !== "Parameter" && each.op !== "Result") continue;
    const scope = context.state.scopes.get(each.scope);
    const owner = scope && scope.owner !== null ? context.record(scope.owner) : undefined;
    const roles = owner ? innerRoles(owner, each.id) : [];
    if (owner && roles.length) facts.push(["Port map", [roles.map((role) => role.text).join("; "), h("span", { class: "dim" }, " of "), context.link(owner.id, { limit: 28 })]]);
  }
  const names = output?.names ?? [];
  return [
    head,
    h("section", { class: "details-section" }, h("dl", { class: "facts-list" }, ...facts.flatMap(([label, children]) => [h("dt", {}, label), h("dd", {}, ...children)]))),
    section("Tensor names", names.length ? h("ul", { class: "items" }, ...names.slice(0, 40).map((name) => h("li", {}, whole(name)))) : h("p", { class: "dim" }, "none")),
    shape(context, output?.type ?? ""),
  ].filter((each) => each !== null);
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
