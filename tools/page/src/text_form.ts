// Nodes as text, in the form of the text dumps: %3 = Add(%1, %2) : f32[2,N] "name"

import type { NodeId, NodeRecord, PortEntry, ScopeId } from "./document.ts";
import type { State } from "./states.ts";

const WORD = /^[\p{L}_][\p{L}\p{N}_]*$/u;
const LONGEST = 24; // characters of a name that is a label
const INLINE = 8; // elements of a constant that is written among the inputs of its reader

interface Plan {
  order: NodeRecord[];
  values: Map<string, string>; // "node:port" -> label
  results: Map<NodeId, string>;
}

/** A graph or a body with everything in it. */
export function scopeText(state: State, scope: ScopeId): string {
  return [...graph(state, scope, "graph", "")].join("\n") + "\n";
}

/** One node, with its bodies if wanted; labels are those that it has in the text of its graph. */
export function nodeText(state: State, node: NodeId, bodies = true): string {
  const record = state.nodes.get(node);
  if (!record) return "";
  const plan = planOf(state, record.scope);
  if (!plan.order.includes(record)) plan.order.push(record);
  return [...statement(state, record, plan, "", bodies)].join("\n") + "\n";
}

function planOf(state: State, scope: ScopeId): Plan {
  const found = state.scopes.get(scope);
  const ends = new Set([...(found?.parameters ?? []), ...(found?.results ?? [])]);
  const middle = state.within(scope).filter((id) => !ends.has(id));
  const ids = [...(found?.parameters ?? []), ...inOrder(state, middle), ...(found?.results ?? [])];
  const order = ids.map((id) => state.nodes.get(id)).filter((record) => record !== undefined).filter((record) => !isInline(state, record));
  const plan: Plan = { order, values: new Map(), results: new Map() };
  const taken = new Set<string>();
  for (const record of order) {
    record.outputs.forEach((_, port) => {
      let label = record.outputs.length === 1 ? record.name : `${record.name}.${port}`;
      if (taken.has(label) || !WORD.test(record.name) || [...record.name].length > LONGEST) label = String(plan.values.size);
      taken.add(label);
      plan.values.set(`${record.id}:${port}`, label);
    });
  }
  const counts = new Map<string, number>();
  for (const id of found?.results ?? []) {
    const value = state.nodes.get(id)?.inputs[0];
    const label = value ? (plan.values.get(value.join(":")) ?? "") : "";
    const number = (counts.get(label) ?? 0) + 1;
    counts.set(label, number);
    plan.results.set(id, number === 1 ? label : `${label}:${number}`);
  }
  return plan;
}

/** Producers before consumers, otherwise in the given order. */
function inOrder(state: State, nodes: NodeId[]): NodeId[] {
  const left = new Set(nodes);
  const order: NodeId[] = [];
  for (const root of nodes) {
    const stack: [NodeId, number][] = left.delete(root) ? [[root, 0]] : [];
    while (stack.length) {
      const top = stack[stack.length - 1]!;
      const value = state.nodes.get(top[0])?.inputs[top[1]++];
      if (value === undefined) order.push(stack.pop()![0]);
      else if (value && left.delete(value[0])) stack.push([value[0], 0]);
    }
  }
  return order;
}

function isInline(state: State, record: NodeRecord): boolean {
  if (record.op !== "Constant" || record.name || record.outputs[0]?.names.length || record.info) return false;
  const readers = state.readers(record.id);
  if (readers.length !== 1 || state.nodes.get(readers[0]!.node)?.op === "Result") return false;
  return literal(record) !== null;
}

/** A small constant as an input: "i64 [1, 2]". */
function literal(record: NodeRecord): string | null {
  const type = record.outputs[0]?.type ?? "";
  const shape = /\[(.*)\]$/.exec(type)?.[1] ?? "?";
  const size = shape === "" ? 1 : shape.split(",").reduce((product, dim) => product * Number(dim), 1);
  const isWhole = record.value !== undefined && !/…|\.\.\.|^seed\(/.test(record.value);
  if (!isWhole || !(size <= INLINE) || (size === 0 && shape !== "0")) return null;
  return `${type.slice(0, type.indexOf("["))} ${record.value}`;
}

function* graph(state: State, scope: ScopeId, tag: string, pad: string): Iterable<string> {
  const found = state.scopes.get(scope);
  const plan = planOf(state, scope);
  yield `${pad}${tag}${found?.name ? ` ${WORD.test(found.name) ? found.name : quoted(found.name)}` : ""} {`;
  if (found?.info) yield `${pad}  info ${found.info}`;
  for (const record of plan.order) yield* statement(state, record, plan, `${pad}  `, true);
  yield `${pad}}`;
}

function* statement(state: State, record: NodeRecord, plan: Plan, pad: string, bodies: boolean): Iterable<string> {
  const label = (value: [NodeId, number]) => {
    const known = plan.values.get(value.join(":"));
    if (known !== undefined) return `%${known}`;
    const producer = state.nodes.get(value[0]);
    return (producer && literal(producer)) ?? `%${producer?.name || value.join(".")}`;
  };
  const outputs = record.outputs.map((_, port) => label([record.id, port])).join(", ");
  const result = plan.results.get(record.id) ?? "";
  const operands = record.op === "Parameter" ? ""
    : record.op === "Constant" ? ` ${record.value ?? ""}`
      : `(${record.inputs.map((value) => (value ? label(value) : "_")).join(", ")})${result.includes(":") ? ` @${result}` : ""}`;
  const attributes = [...portMap(state, record), ...Object.entries(record.attributes ?? {})].map(([key, value]) => `${key}: ${value}`);
  const isOwn = record.op === "Constant" && !plan.values.has(`${record.id}:0`);
  const left = `${pad}${outputs && !isOwn ? `${outputs} = ` : isOwn ? `%${record.id} = ` : ""}${record.op}${operands}`;
  const types = record.outputs.length ? ` : ${record.outputs.map((each) => each.type).join(", ")}` : "";
  const right = `${types}${record.name ? ` ${quoted(record.name)}` : ""}${tensorNames(record)}${record.info ? ` info ${record.info}` : ""}`;
  if (record.bodies?.length && left.length + right.length + attributes.join().length > 120) {
    yield `${left} {`;
    yield* attributes.map((each, index) => `${pad}    ${each}${index < attributes.length - 1 ? "," : ""}`);
    yield `${pad}}${right}`;
  } else yield `${left}${attributes.length ? ` {${attributes.join(", ")}}` : ""}${right}`;
  if (!bodies) return;
  for (const body of record.bodies ?? []) yield* graph(state, body, state.scopes.get(body)?.tag ?? "body", `${pad}  `);
}

function tensorNames(record: NodeRecord): string {
  const lists = record.op === "Result" ? [record.names ?? []] : record.outputs.map((output) => output.names);
  while (lists.length && !lists[lists.length - 1]!.length) lists.pop();
  return lists.length ? ` names ${lists.map((names) => (names.length ? names.map(quoted).join(" ") : "_")).join(", ")}` : "";
}

function portMap(state: State, record: NodeRecord): [string, string][] {
  const map = record.port_map;
  const plans = (record.bodies ?? []).map((body) => planOf(state, body));
  if (!map || !plans.length) return [];
  const label = (node: NodeId | null | undefined, plan: Plan | undefined) => {
    if (node === null || node === undefined) return "_";
    return plan?.results.has(node) ? `@${plan.results.get(node)}` : `%${plan?.values.get(`${node}:0`) ?? node}`;
  };
  const entry = (each: PortEntry) => {
    const isIf = each.role === "Branched" || each.role === "Selected";
    const nodes = isIf ? [label(each.then, plans[0]), label(each.else_, plans[1])]
      : [each.parameter, each.result].filter((node) => node !== undefined).map((node) => label(node, plans[0]));
    const numbers = (["axis", "start", "end", "stride", "part_size"] as const).filter((key) => typeof each[key] === "number").map((key) => `${key}: ${each[key]}`);
    return `${each.role}(${[...nodes, ...numbers].join(", ")})`;
  };
  const found: [string, string][] = [];
  if (map.iteration !== undefined) found.push(["iteration", label(map.iteration, plans[0])]);
  if (map.condition !== undefined) found.push(["condition", label(map.condition, plans[0])]);
  if (map.inputs.length) found.push(["input_map", `[${map.inputs.map(entry).join(", ")}]`]);
  if (map.outputs.length) found.push(["output_map", `[${map.outputs.map(entry).join(", ")}]`]);
  return found;
}

function quoted(text: string): string {
  return JSON.stringify(text);
}
