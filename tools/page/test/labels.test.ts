import assert from "node:assert/strict";
import { test } from "node:test";
import { dimensions, sizes, symbols } from "../src/labels.ts";
import { data, delta, node } from "./documents.ts";

test("dimensions are taken apart at the commas between them", () => {
  assert.deepEqual(dimensions("f32[2,2N+1,1..5]"), ["2", "2N+1", "1..5"]);
  assert.deepEqual(dimensions('f32["a,b]"{0..3},min(N,4)]'), ['"a,b]"{0..3}', "min(N,4)"]);
  assert.deepEqual([dimensions("i64[]"), dimensions("f32[...]"), dimensions("seq(f32[2])")], [[], null, null]);
});

test("the symbols of a dimension", () => {
  assert.deepEqual([symbols("2N+1"), symbols("7"), symbols('"a b"+M')], [["N"], [], ['"a b"', "M"]]);
});

test("the numbers of nodes follow from what the steps added and removed", () => {
  const document = data([node(0), node(1)], [null, delta({ added: [node(2), node(3)], removed: [0] })]);
  assert.deepEqual(sizes(document), [[2, 2], [2, 3]]);
});
