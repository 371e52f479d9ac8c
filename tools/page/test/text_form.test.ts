import assert from "node:assert/strict";
import { test } from "node:test";
import { States } from "../src/states.ts";
import { Labels, TextForm } from "../src/text_form.ts";
import { data, node } from "./documents.ts";

const type = (text: string, names: string[] = []) => [{ type: text, names }];

test("a graph is written like a dump: short names are labels, small constants stand among the inputs", () => {
  const states = new States(data([
    node(0, [], { op: "Parameter", name: "x", outputs: type("f32[2,N]", ["x"]) }),
    node(1, [], { op: "Constant", name: "", value: "[1]", outputs: type("i64[1]") }),
    node(2, [0, 1], { op: "Squeeze", name: "a/b", outputs: type("f32[2]", ["s \"1\""]), attributes: { kept: "false" } }),
    node(3, [2], { op: "Result", name: "", outputs: [], names: ["y"] }),
  ], []));
  const form = new TextForm(states.at(-1), new Labels(states.ever));
  assert.equal(form.node(2), '%2 = Squeeze(%x, i64 [1]) {kept: false} : f32[2] "a/b" names "s \\"1\\""\n');
  assert.match(form.scope(""), /^graph \w* ?\{\n  %x = Parameter : f32\[2,N\] "x" names "x"\n  %2 = [^\n]*\n  Result\(%2\) names "y"\n\}\n$/);
});

test("a name that two nodes have is the label of the first", () => {
  const states = new States(data([node(0, [], { name: "x" }), node(1, [], { name: "x" })], []));
  const labels = new Labels(states.ever);
  assert.deepEqual(states.ever.map((record) => labels.of(record, 0)), ["x", "1"]);
});
