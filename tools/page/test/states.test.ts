import assert from "node:assert/strict";
import { test } from "node:test";
import { States } from "../src/states.ts";
import { data, delta, node } from "./documents.ts";

// 0 -> 1 -> 2; step 1 puts 3 between 0 and 1; step 2 removes 1; step 3 changes the type of 2
const sample = () =>
  new States(
    data(
      [node(0), node(1, [0]), node(2, [1])],
      [
        null,
        delta({ added: [node(3, [0])], changed: [node(1, [3])] }),
        delta({ removed: [1], changed: [node(2, [3])] }),
        delta({ changed: [node(2, [3], { outputs: [{ type: "f32[2]", names: [] }] })] }),
      ],
    ),
  );

test("a state has what the deltas up to its step leave", () => {
  const states = sample();
  assert.equal(states.count, 4);
  assert.deepEqual([...states.at(3).nodes.keys()].sort(), [0, 2, 3]);
  assert.deepEqual([...states.at(-1).nodes.keys()], [0, 1, 2]);
  assert.equal(states.at(0), states.at(-1));
  assert.equal(states.before(1), -1);
  assert.equal(states.before(3), 2);
  assert.equal(states.before(0), -1);
});

test("a change is added, removed, rewired or changed", () => {
  const states = sample();
  assert.deepEqual([...states.changes(1).nodes], [[3, "added"], [1, "rewired"]]);
  assert.deepEqual(states.changes(1).edges.added, [{ from: 0, port: 0, to: 3, input: 0 }, { from: 3, port: 0, to: 1, input: 0 }]);
  assert.deepEqual(states.changes(1).edges.removed, [{ from: 0, port: 0, to: 1, input: 0 }]);
  assert.deepEqual([...states.changes(2).nodes], [[1, "removed"], [2, "rewired"]]);
  assert.deepEqual([...states.changes(3).nodes], [[2, "changed"]]);
  assert.deepEqual(states.changes(3).edges, { added: [], removed: [] });
  assert.equal(states.changes(-1).nodes.size, 0);
});

test("a node knows its readers and its history", () => {
  const states = sample();
  assert.deepEqual(states.at(1).readers(3), [{ node: 1, input: 0, port: 0 }]);
  assert.deepEqual(states.at(1).readers(2), []);
  assert.deepEqual(states.history(1), [{ step: 1, what: "rewired" }, { step: 2, what: "removed" }]);
  assert.deepEqual(states.history(0), []);
});

test("an added node is ordered before its first reader", () => {
  assert.deepEqual(sample().at(1).within(""), [0, 3, 1, 2]);
});

test("in a diff only the nodes that have details count as changed", () => {
  const found = data([node(0), node(1, [0]), node(2, [1])], [delta({ changed: [node(1, [0], { name: "a" }), node(2, [1], { name: "b" })] })]);
  found.kind = "diff";
  found.steps[0]!.details = { 2: ["name n2 -> b"] };
  assert.deepEqual([...new States(found).changes(0).nodes], [[2, "changed"]]);
});

test("the text of a trip count is no wiring", () => {
  const ports = (trip_count: string) => ({ port_map: { inputs: [], outputs: [], trip_count } });
  const states = new States(data([node(0), node(1, [0], ports("x"))], [delta({ changed: [node(1, [0], ports("y"))] })]));
  assert.deepEqual([...states.changes(0).nodes], [[1, "changed"]]);
});

test("the ids of layers are those of the last state", () => {
  const found = data([node(0), node(1, [0])], [delta({ changed: [node(1, [0], { name: "a" })] }), null]);
  found.written = { layers: { 1: 7 }, offsets: { 0: 64 } };
  const states = new States(found);
  assert.deepEqual([-1, 0, 1].map((step) => states.at(step).layer(1)), [undefined, 7, 7]);
  assert.equal(states.at(1).offset(0), 64);
});
