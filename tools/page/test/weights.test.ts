import assert from "node:assert/strict";
import { test } from "node:test";
import { States } from "../src/states.ts";
import { weightGroups } from "../src/weights.ts";
import { data, node } from "./documents.ts";

const constant = (id: number, content: string, stored: string) => node(id, [], { op: "Constant", bytes: 100, data: content, stored });
const state = new States(data([constant(0, "a", "w:0"), constant(1, "a", "w:0"), constant(2, "b", "w:100"), constant(3, "b", "w:200")], [])).at(-1);
const ids = (groups: { id: number }[][]) => groups.map((each) => each.map(({ id }) => id));

test("in a file, equal contents in several places are copies", () => {
  const found = weightGroups(state, "graph");
  assert.deepEqual([ids(found.copies), ids(found.equal)], [[[2, 3]], [[0, 1]]]);
  assert.deepEqual([found.total, found.stored], [400, 300]);
});

test("a conversion stores equal contents once, wherever they come from", () => {
  const found = weightGroups(state, "conversion");
  assert.deepEqual([ids(found.copies), ids(found.equal)], [[], [[0, 1], [2, 3]]]);
  assert.equal(found.stored, 200);
});

test("a matrix and the same one transposed are two forms of one weight", () => {
  const tied = [
    node(0, [], { op: "Constant", name: "embedding", bytes: 100, data: "a" }), node(1, [], { op: "Constant", bytes: 100, data: "b", transposed: "a" }),
    node(2, [], { op: "Constant", bytes: 100, data: "c" }),
  ];
  const { forms } = weightGroups(new States(data(tied, [])).at(-1), "conversion");
  assert.deepEqual(forms.map(({ origin, records }) => [origin, ids([records])]), [["embedding", [[0, 1]]]]);
});

test("a weight of the model that passes changed in two ways has several forms", () => {
  const origins: [string, string, string, string][] = [["", "", "", "w"]];
  const made = [0, 1].map((id) => node(id, [], { op: "Constant", bytes: 100, data: `content ${id}`, origins }));
  assert.deepEqual(weightGroups(new States(data(made, [])).at(-1), "conversion").forms.map((each) => each.origin), ["w"]);
});
