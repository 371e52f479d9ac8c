// What computes a value, as an expression with links: Squeeze(Gather(ShapeOf(x), 0)).

import { bdi, h, shorten } from "./dom.ts";
import type { Context } from "./context.ts";
import type { NodeId, NodeRecord } from "./document.ts";
import { innerRoles, nameOf } from "./labels.ts";

const DEEPEST = 5;
const MOST = 14; // operators in one expression

/** The expression that computes output `port` of a node. */
export function expression(context: Context, node: NodeId, port: number): HTMLElement {
  const budget = { left: MOST };
  return h("span", { class: "expression" }, ...terms(context, node, port, DEEPEST, budget));
}

function terms(context: Context, node: NodeId, port: number, depth: number, budget: { left: number }): (HTMLElement | string)[] {
  const record = context.record(node);
  if (!record) return [`#${node}`];
  if (record.op === "Constant") return [constant(context, record)];
  if (record.op === "Parameter") return [parameter(context, record)];
  const head = context.link(node, { name: "", limit: 1 });
  head.title = nameOf(record).slice(0, 300);
  head.replaceChildren(h("span", { class: "op" }, record.op));
  const after = record.outputs.length > 1 ? `.${port}` : "";
  if (record.bodies?.length || depth === 0 || --budget.left < 0) {
    return [head, after, record.inputs.length && !record.bodies?.length ? "(…)" : " ", record.bodies?.length ? bdi(nameOf(record), 24) : ""];
  }
  const parts: (HTMLElement | string)[] = [head, after, "("];
  record.inputs.forEach((value, index) => {
    if (index) parts.push(", ");
    parts.push(...(value ? terms(context, value[0], value[1], depth - 1, budget) : ["none"]));
  });
  return [...parts, ")"];
}

function constant(context: Context, record: NodeRecord): HTMLElement {
  const link = context.link(record.id, { limit: 1 });
  link.replaceChildren(h("span", { class: "value" }, shorten(record.value ?? record.outputs[0]?.type ?? "Constant", 28)));
  link.title = `Constant ${nameOf(record)}`.slice(0, 300);
  return link;
}

function parameter(context: Context, record: NodeRecord): HTMLElement {
  const scope = context.stateOf(record.id).scopes.get(record.scope);
  const owner = scope && scope.owner !== null ? context.record(scope.owner) : undefined;
  const role = owner ? innerRoles(owner, record.id).map((each) => each.text).join(", ") : "input of the model";
  return h("span", {}, context.link(record.id, { op: false, limit: 28 }), role ? h("span", { class: "dim" }, ` (${role})`) : null);
}

/** The value of a constant, through operations that keep it; null if it is not known. */
export function constantValue(context: Context, node: NodeId, port: number): string | null {
  for (let at = context.record(node), steps = 0; at && steps < 8; steps++) {
    if (at.op === "Constant") return at.value ?? null;
    if (!["Reshape", "Squeeze", "Unsqueeze", "Convert", "Identity"].includes(at.op) || !at.inputs[0] || port) return null;
    [, port] = at.inputs[0];
    at = context.record(at.inputs[0][0]);
  }
  return null;
}
