import assert from "node:assert/strict";
import { test } from "node:test";
import type { NodeRecord, Scope } from "../src/document.ts";
import { Folding } from "../src/folding.ts";
import { Groups, nameIn } from "../src/groups.ts";
import { States } from "../src/states.ts";
import { viewsOf } from "../src/view.ts";
import { data, delta, node } from "./documents.ts";

function fold(states: States, step = -1, folds = new Map<string, boolean>()) {
  const groups = new Groups(states);
  const [view] = viewsOf(states, step, "overlay");
  assert.ok(view);
  return { groups, view, folding: new Folding(groups, view, folds) };
}

/** How many nodes have a box of their own. */
function shown({ view, folding }: ReturnType<typeof fold>): number {
  return [...view.nodes()].filter((each) => !view.isInlined(each) && !folding.hidingNode(each)).length;
}

const chain = (count: number, name = (id: number) => `n${id}`) =>
  Array.from({ length: count }, (_, id) => node(id, id ? [id - 1] : [], { name: name(id) }));

test("a small graph is open, a chain of 20,000 nodes is folded within the budget", () => {
  assert.equal(shown(fold(new States(data(chain(60), [])))), 60);
  const large = fold(new States(data(chain(20000), [])));
  const groups = [...large.groups.all()].filter((group) => large.folding.hiding(group) === group && large.folding.parent(group) && !large.folding.hiding(large.folding.parent(group)!));
  assert.ok(shown(large) + groups.length <= 20);
  assert.equal(groups.reduce((sum, group) => sum + large.folding.size(group), shown(large)), 20000);
});

test("names with a path make groups, which show what the path does not say", () => {
  const states = new States(data(chain(200, (id) => `/model/layers/${id >> 4}/${id % 16 < 8 ? "attn" : "mlp"}/op${id}`), []));
  const { groups, view } = fold(states);
  const home = groups.home(view.node(17)!);
  assert.equal(home.id, ":model/layers/1/attn");
  assert.equal(home.parent?.title, "layers/1");
  assert.equal(nameIn(home, view.node(17)!.name), "op17");
});

test("a step opens the groups that it changed", () => {
  const nodes = chain(20000);
  const states = new States(data(nodes, [delta({ changed: [{ ...nodes[12345]!, outputs: [] }] })]));
  assert.ok(fold(states).folding.hidingNode(nodes[12345]!));
  assert.equal(fold(states, 0).folding.hidingNode(nodes[12345]!), null);
});

const body: Scope = { id: "1/body", owner: 1, tag: "body", name: "b", parameters: [10], results: [12] };
const inside = [node(10, [], { scope: "1/body" }), node(11, [10], { scope: "1/body" }), node(12, [11], { scope: "1/body" })];
const loop = (id: number): NodeRecord => node(id, [0], { op: "Loop", bodies: ["1/body"], port_map: { inputs: [], outputs: [] } });

test("what the user folds stays folded, also when the body gets another owner", () => {
  const main = data([node(0), loop(1), node(2, [1]), ...inside], [
    delta({ added: [loop(3)], removed: [1], changed: [node(2, [3])], scopes: [{ ...body, owner: 3 }] }),
  ]);
  const states = new States({ ...main, scopes: [...main.scopes, body] });
  assert.equal(fold(states).folding.hidingNode(inside[1]!), null);
  const folds = new Map([["1", true]]);
  for (const step of [-1, 0]) assert.equal(fold(states, step, folds).folding.hidingNode(inside[1]!)?.id, "1");
  const after = fold(states, 0);
  assert.equal(after.folding.headedBy(3)?.id, "1");
  assert.equal(after.folding.headedBy(1), undefined);
});

test("a constant of one reader is a line of it, and no box", () => {
  const { view } = fold(new States(data([node(0), node(1, [], { op: "Constant", bytes: 4096 }), node(2, [0, 1]), node(3, [], { op: "Constant" })], [])));
  assert.equal(view.isInlined(view.node(1)!), true);
  assert.equal(view.isInlined(view.node(3)!), false);
});

test("a function stands beside the graph, open when it is small", () => {
  const main = data([node(0), node(1, [0]), node(2, [], { scope: "function/f" })], []);
  const found = fold(new States({ ...main, scopes: [...main.scopes, { ...body, id: "function/f", owner: null, tag: "function f" }] }));
  assert.equal(found.groups.get("function/f")?.title, "function f");
  assert.equal(shown(found), 3);
});

test("equal blocks are all open or all folded, in an overview and where a step changed some of them", () => {
  const nodes = chain(600, (id) => `/layers/${Math.floor(id / 60)}/${id % 60 < 30 ? "attn" : "mlp"}/op${id}`);
  const open = ({ groups, folding }: ReturnType<typeof fold>) =>
    Array.from({ length: 10 }, (_, layer) => folding.isOpen(groups.get(`:layers/${layer}`)!));
  const states = new States(data(nodes, [delta({ changed: [70, 130, 190].map((id) => ({ ...nodes[id]!, outputs: [] })) })]));
  assert.equal(new Set(open(fold(states))).size, 1);
  const changed = open(fold(states, 0));
  assert.equal(changed[1], changed[2]);
  assert.equal(changed[2], changed[3]);
});

test("many equal blocks are one group, and so are the nodes between blocks", () => {
  const nodes = chain(700, (id) => (id < 100 ? `n${id}` : `/model/layers.${Math.floor(id / 20)}/op${id}`));
  const { groups, view } = fold(new States(data(nodes, [])));
  const layers = groups.home(view.node(300)!).parent;
  assert.equal(layers?.kind, "run");
  assert.match(layers!.title, /^layers\.\d+ \u2026 layers\.\d+$/);
});

test("the modules that an exporter wrote beside a name make groups, for the layers of the node, too", () => {
  const named = (id: number) => ["model", `layers.${id % 50 >> 1}`];
  const scopes = Object.fromEntries(Array.from({ length: 50 }, (_, id) => [`n${id}`, named(id)]));
  const made = chain(50).map((each) => ({ ...each, id: each.id + 50, name: "", inputs: [], origins: [["", each.name, "Relu", ""]] as [string, string, string, string][] }));
  const { groups, view } = fold(new States({ ...data([...chain(50), ...made], []), name_scopes: scopes }));
  assert.equal(groups.home(view.node(70)!).id, ":model/layers.10");
  assert.equal(groups.home(view.node(20)!), groups.home(view.node(70)!));
});

test("a chain of unnamed blocks is cut where its operators come again", () => {
  const ops = ["MatMul", "Add", "Relu", "Softmax", "Mul"];
  const nodes = chain(500).map((each, id) => ({ ...each, op: ops[id % 5]! }));
  const { groups } = fold(new States(data(nodes, [])));
  const runs = groups.root.groups.filter((group) => group.kind === "run");
  assert.equal(new Set(runs.slice(0, -1).map((run) => run.title.replace(/^\d+/, ""))).size, 1);
});

test("a loop between nodes is a box of its own, constants that nothing reads are one", () => {
  const nodes = chain(300, (id) => (id < 240 ? `/model/op${id}` : `n${id}`)).map((each) => (each.id === 270 ? { ...each, op: "Loop", bodies: ["270/body"] } : each));
  const constants = [400, 401, 402, 403, 404].map((id) => node(id, [], { op: "Constant", name: `/other/c${id}` }));
  const { groups, view } = fold(new States({ ...data([...nodes, ...constants], []), scopes: [...data([], []).scopes, { ...body, id: "270/body", owner: 270, parameters: [], results: [] }] }));
  assert.equal(groups.home(view.node(270)!), groups.root);
  assert.equal(groups.home(view.node(269)!).kind, "run");
  assert.equal(groups.home(constants[0]!).title, "Constants");
  assert.equal(groups.home(constants[0]!), groups.home(constants[4]!));
});
