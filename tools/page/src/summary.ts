// The whole graph at the shown step: inputs, outputs, control flow as a tree, counts by operator. Shown where nothing is selected.

import type { Context } from "./context.ts";
import { bdi, count, h, plural, whole, type Child } from "./dom.ts";
import type { NodeId, ScopeId } from "./document.ts";
import { nameOf } from "./labels.ts";
import { section, tall } from "./sections.ts";
import type { State } from "./states.ts";

export function graphSummary(context: Context, search: (query: string) => void): HTMLElement[] {
  const { document, state } = context;
  const main = state.scopes.get("");
  const facts: [string, string][] = [["Nodes", context.sizeText(state)], ...(document.facts ?? [])];
  return [
    h("div", { class: "details-head" },
      h("p", { class: "details-op" }, h("strong", {}, "Graph"), h("span", { class: "dim" }, { diff: " of both models", layers: " of the IR" }[document.kind as string] ?? "")),
      h("p", { class: "details-name" }, whole(main?.name || document.title))),
    h("section", { class: "details-section" },
      h("dl", { class: "facts-list" }, ...facts.flatMap(([name, text]) => [h("dt", {}, bdi(name, 40)), h("dd", {}, whole(text, 160))]))),
    section("Inputs", ends(context, main?.parameters ?? [])),
    section("Outputs", ends(context, main?.results ?? [])),
    section("Control flow", controlFlow(context, state)),
    section("Functions", functions(state)),
    section("Operators", operators(state, search)),
    main?.info ? section("Additional info (rt_info)", h("pre", {}, whole(main.info, 600))) : null,
  ].filter((each) => each !== null);
}

function ends(context: Context, nodes: readonly NodeId[]): HTMLElement {
  if (!nodes.length) return h("p", { class: "dim" }, "none");
  return tall(nodes, (node) => {
    const record = context.record(node);
    const source = record?.op === "Result" ? record.inputs[0] : undefined;
    const type = source ? context.record(source[0])?.outputs[source[1]]?.type : record?.outputs[0]?.type;
    const name = record?.names?.[0] ?? (record ? nameOf(record) : "");
    return h("div", {}, context.link(node, { op: false, name, limit: 44 }), " ", h("span", { class: "type" }, bdi(type ?? "", 60)));
  }, "ends", 12);
}

/** Owners of bodies, each with those in its bodies below. */
function controlFlow(context: Context, state: State): HTMLElement | null {
  const within = new Map<ScopeId, NodeId[]>();
  for (const scope of state.scopes.values()) {
    const owner = scope.owner === null ? undefined : state.nodes.get(scope.owner);
    if (!owner) continue;
    const list = within.get(owner.scope) ?? [];
    if (!list.includes(owner.id)) list.push(owner.id);
    within.set(owner.scope, list);
  }
  let left = 300; // elements
  const level = (scope: ScopeId): HTMLElement | null => {
    const owners = within.get(scope) ?? [];
    if (!owners.length || left <= 0) return null;
    const shown = owners.slice(0, left);
    left -= shown.length;
    return h("ul", { class: "tree" }, ...shown.map((node) => {
      const record = state.nodes.get(node)!;
      const bodies = record.bodies ?? [];
      const inside = bodies.map((body): Child => {
        const tree = level(body);
        if (bodies.length < 2) return tree;
        return tree ? h("div", {}, h("span", { class: "dim" }, state.scopes.get(body)?.tag.replace("_", " ") ?? ""), tree) : null;
      });
      const size = bodies.reduce((sum, body) => sum + state.within(body).length, 0);
      return h("li", {}, context.link(node, { limit: 34 }), h("span", { class: "dim" }, ` ${plural(size, "node")}`), ...inside);
    }));
  };
  return level("");
}

/** Graphs that stand beside the main one. */
function functions(state: State): HTMLElement | null {
  const found = [...state.scopes.values()].filter((scope) => scope.id !== "" && scope.owner === null);
  if (!found.length) return null;
  return tall(found, (scope) => h("div", {}, bdi(scope.name || scope.tag, 60), h("span", { class: "dim" }, ` ${plural(state.within(scope.id).length, "node")}`)), "functions", 12);
}

function operators(state: State, search: (query: string) => void): HTMLElement {
  const counts = new Map<string, number>();
  for (const { op } of state.nodes.values()) counts.set(op, (counts.get(op) ?? 0) + 1);
  const sorted = [...counts].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
  return h("div", { class: "operators" }, ...sorted.slice(0, 120).map(([op, number]) => h("button", {
    type: "button", class: "operator", title: `Find all ${op}`, click: () => search(`op:${op}`),
  }, op, h("span", { class: "dim" }, ` ${count(number)}`))));
}
