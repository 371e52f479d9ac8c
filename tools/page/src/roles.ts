// The edges between a control-flow operation and its bodies, with their roles.
//
// Their keys are keys of edges like any other: a port of the operation stands for the operation itself.
//   input 2 of loop 7 -> Parameter 9     {from: 7, port: 2, to: 9, input: 0}
//   Result 11 -> output 0 of loop 7      {from: 11, port: 0, to: 7, input: 0}
//   Result 11 -> Parameter 9             {from: 11, port: 0, to: 9, input: 0}      the back edge
//   iteration number -> Parameter 10     {from: 7, port: -1, to: 10, input: 0}
//   Result 12 -> execution condition     {from: 12, port: 0, to: 7, input: -1}

import type { NodeId, NodeRecord, PortEntry } from "./document.ts";
import type { EdgeKey } from "./store.ts";

export const EXTRA = -1; // the port of the iteration number, and of the execution condition

export interface PortEdge {
  kind: "port" | "back";
  role: string; // one word or two: "merged", "current iteration"
  label: string; // with axis and stride
  layer: number | undefined; // internal_layer_id
  key: EdgeKey;
}

/** All edges between a node and its bodies; `layer` gives the id of a node's layer, if there is one. */
export function portEdges(node: NodeRecord, layer: (node: NodeId) => number | undefined): PortEdge[] {
  const map = node.port_map;
  if (!map) return [];
  const found: PortEdge[] = [];
  const into = (port: number, parameter: NodeId | null | undefined, role: string, entry?: PortEntry) => {
    if (parameter === null || parameter === undefined) return;
    const key = { from: node.id, port, to: parameter, input: 0 };
    found.push({ kind: "port", role, label: labelOf(role, entry), layer: layer(parameter), key });
  };
  const outOf = (port: number, result: NodeId | null | undefined, role: string, entry?: PortEntry) => {
    if (result === null || result === undefined) return;
    const key = { from: result, port: 0, to: node.id, input: port };
    found.push({ kind: "port", role, label: labelOf(role, entry), layer: layer(result), key });
  };
  for (const entry of map.inputs) {
    const role = entry.role.toLowerCase();
    into(entry.port, entry.parameter, role, entry);
    into(entry.port, entry.then, role, entry);
    into(entry.port, entry.else_, role, entry);
    if (entry.role !== "Merged" || entry.result === undefined || entry.parameter === undefined) continue;
    const key = { from: entry.result, port: 0, to: entry.parameter, input: 0 };
    found.push({ kind: "back", role: "back edge", label: "back edge", layer: undefined, key });
  }
  for (const entry of map.outputs) {
    const role = entry.role.toLowerCase();
    outOf(entry.port, entry.result, role, entry);
    outOf(entry.port, entry.then, role, entry);
    outOf(entry.port, entry.else_, role, entry);
  }
  into(EXTRA, map.iteration, "current iteration");
  outOf(EXTRA, map.condition, "execution condition");
  return found;
}

function labelOf(role: string, entry?: PortEntry): string {
  if (entry?.axis === undefined) return role;
  const parts = [role, `axis=${entry.axis}`];
  if (entry.stride !== undefined && entry.stride !== 1) parts.push(`stride=${entry.stride}`);
  if (entry.part_size !== undefined && entry.part_size !== 1) parts.push(`part_size=${entry.part_size}`);
  return parts.join(" ");
}

/** The name of an input of a control-flow operation, where its position says what it is. */
export function inputName(node: NodeRecord, port: number): string {
  if (port === EXTRA) return "current iteration";
  if (node.op === "Loop" && port === 0) return "trip count";
  if (node.op === "Loop" && port === 1) return "execution condition";
  if (node.op === "If" && port === 0) return "condition";
  return `input ${port}`;
}

/** The name of an output of a control-flow operation. */
export function outputName(port: number): string {
  return port === EXTRA ? "execution condition" : `output ${port}`;
}
