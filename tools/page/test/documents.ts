// Small documents for tests.

import type { Delta, Document, NodeRecord } from "../src/document.ts";

export function node(id: number, inputs: number[] = [], more: Partial<NodeRecord> = {}): NodeRecord {
  const read = inputs.map((each): [number, number] => [each, 0]);
  return { id, scope: "", op: "Relu", opset: 1, name: `n${id}`, inputs: read, outputs: [{ type: "f32[1]", names: [] }], ...more };
}

export function delta(change: Partial<Delta>): Delta {
  return { added: [], removed: [], changed: [], scopes: [], removed_scopes: [], ...change };
}

export function data(nodes: NodeRecord[], deltas: (Delta | null)[]): Document {
  const steps = deltas.map((each, place) => ({
    name: `pass ${place}`, place, seconds: 0, matches: 0, matchers: [], nodes: [0, 0] as [number, number], ...(each ? { delta: each } : {}),
  }));
  const scopes = [{ id: "", owner: null, tag: "", name: "main", parameters: [], results: [] }];
  return { schema: "mo-loop page", version: 1, kind: "conversion", title: "t", producer: "p", scopes, nodes, steps };
}
