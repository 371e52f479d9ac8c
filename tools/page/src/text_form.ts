// Nodes as text, in the form of the text dumps: %3 = Add(%1, %2) : f32[2,N] "name"

import type { NodeId, NodeRecord, PortEntry, ScopeId } from "./document.ts";
import type { State } from "./states.ts";

const WORD = /^[\p{L}_][\p{L}\p{N}_]*$/u;
const LONGEST = 24; // characters of a name that is a label
const INLINE = 8; // elements of a constant that is written among the inputs of its reader

/** The labels of nodes, the same in all states and in the files of a dump: a short name that no earlier node has, else the id. */
export class Labels {
  private readonly labels = new Map<NodeId, string>();

  constructor(ever: readonly NodeRecord[]) {
    const taken = new Set<string>();
    for (const { id, name } of ever) {
      if (this.labels.has(id)) continue;
      const label = name.length <= LONGEST && !taken.has(name) && WORD.test(name) ? name : String(id);
      taken.add(label);
      this.labels.set(id, label);
    }
  }

  of(record: NodeRecord, port: number): string {
    const label = this.labels.get(record.id) ?? String(record.id);
    return record.outputs.length === 1 ? label : `${label}.${port}`;
  }
}

interface Plan {
  order: NodeRecord[];
  results: Map<NodeId, string>;
}

/** Writes the nodes of one state. */
export class TextForm {
  constructor(private readonly state: State, private readonly labels: Labels) {}

  /** A graph or a body with everything in it. */
  scope(scope: ScopeId): string {
    return [...this.graph(scope, "graph", "")].join("\n") + "\n";
  }

  /** One node, with its bodies if wanted. */
  node(node: NodeId, bodies = true): string {
    const record = this.state.nodes.get(node);
    return record ? [...this.statement(record, this.plan(record.scope), "", bodies)].join("\n") + "\n" : "";
  }

  private plan(scope: ScopeId): Plan {
    const { state } = this;
    const found = state.scopes.get(scope);
    const ends = new Set([...(found?.parameters ?? []), ...(found?.results ?? [])]);
    const middle = state.within(scope).filter((id) => !ends.has(id));
    const ids = [...(found?.parameters ?? []), ...inOrder(state, middle), ...(found?.results ?? [])];
    const order = ids.map((id) => state.nodes.get(id)).filter((record) => record !== undefined).filter((record) => !isInline(state, record));
    const results = new Map<NodeId, string>();
    const counts = new Map<string, number>();
    for (const id of found?.results ?? []) {
      const value = state.nodes.get(id)?.inputs[0];
      const label = value ? this.label(value).slice(1) : "";
      const number = (counts.get(label) ?? 0) + 1;
      counts.set(label, number);
      results.set(id, number === 1 ? label : `${label}:${number}`);
    }
    return { order, results };
  }

  private label([node, port]: [NodeId, number]): string {
    const record = this.state.nodes.get(node);
    return `%${record ? this.labels.of(record, port) : node}`;
  }

  /** A value as an input: its label, or a small constant itself. */
  private input(value: [NodeId, number] | null): string {
    const record = value && this.state.nodes.get(value[0]);
    if (!value) return "_";
    return (record && isInline(this.state, record) && literal(record)) || this.label(value);
  }

  private *graph(scope: ScopeId, tag: string, pad: string): Iterable<string> {
    const found = this.state.scopes.get(scope);
    const plan = this.plan(scope);
    yield `${pad}${tag}${found?.name ? ` ${WORD.test(found.name) ? found.name : quoted(found.name)}` : ""} {`;
    if (found?.info) yield `${pad}  info ${found.info}`;
    for (const record of plan.order) yield* this.statement(record, plan, `${pad}  `, true);
    yield `${pad}}`;
  }

  private *statement(record: NodeRecord, plan: Plan, pad: string, bodies: boolean): Iterable<string> {
    const outputs = record.outputs.map((_, port) => this.label([record.id, port])).join(", ");
    const result = plan.results.get(record.id) ?? "";
    const operands = record.op === "Parameter" ? ""
      : record.op === "Constant" ? ` ${record.content ?? record.value ?? ""}`
        : `(${record.inputs.map((value) => this.input(value)).join(", ")})${result.includes(":") ? ` @${result}` : ""}`;
    const attributes = [...this.portMap(record), ...Object.entries(record.attributes ?? {})].map(([key, value]) => `${key}: ${value}`);
    const left = `${pad}${outputs ? `${outputs} = ` : ""}${record.op}${operands}`;
    const types = record.outputs.length ? ` : ${record.outputs.map((each) => each.type).join(", ")}` : "";
    const right = `${types}${record.name ? ` ${quoted(record.name)}` : ""}${tensorNames(record)}${record.info ? ` info ${record.info}` : ""}`;
    if (record.bodies?.length && left.length + right.length + attributes.join(", ").length + 3 > WIDTH) {
      yield `${left} {`;
      yield* attributes.map((each) => `${pad}    ${each}`);
      yield `${pad}}${right}`;
    } else yield `${left}${attributes.length ? ` {${attributes.join(", ")}}` : ""}${right}`;
    if (!bodies) return;
    for (const body of record.bodies ?? []) yield* this.graph(body, this.state.scopes.get(body)?.tag ?? "body", `${pad}  `);
  }

  private portMap(record: NodeRecord): [string, string][] {
    const map = record.port_map;
    const results = (record.bodies ?? []).map((body) => this.plan(body).results);
    if (!map || !results.length) return [];
    const label = (node: NodeId | null | undefined, body = 0) => {
      if (node === null || node === undefined) return "_";
      return results[body]?.has(node) ? `@${results[body].get(node)}` : this.label([node, 0]);
    };
    const entry = (each: PortEntry) => {
      const isIf = each.role === "Branched" || each.role === "Selected";
      const nodes = isIf ? [label(each.then, 0), label(each.else_, 1)] : [each.parameter, each.result].filter((node) => node !== undefined).map((node) => label(node));
      const numbers = NUMBERS.filter(([key, usual]) => typeof each[key] === "number" && each[key] !== usual).map(([key]) => `${key}: ${each[key]}`);
      return `${each.role}(${[...nodes, ...numbers].join(", ")})`;
    };
    const found: [string, string][] = [];
    if (map.iteration !== undefined) found.push(["iteration", label(map.iteration)]);
    if (map.condition !== undefined) found.push(["condition", label(map.condition)]);
    if (map.inputs.length) found.push(["input_map", `[${map.inputs.map(entry).join(", ")}]`]);
    if (map.outputs.length) found.push(["output_map", `[${map.outputs.map(entry).join(", ")}]`]);
    return found;
  }
}

const NUMBERS = [["axis", undefined], ["start", 0], ["end", -1], ["stride", 1], ["part_size", 1]] as const; // with their defaults
const WIDTH = 120;

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
  const isWhole = record.value !== undefined && record.content === undefined && !record.value.includes("...");
  if (!isWhole || !(size <= INLINE) || (size === 0 && shape !== "0")) return null;
  return `${type.slice(0, type.indexOf("["))} ${record.value}`;
}

function tensorNames(record: NodeRecord): string {
  const lists = record.op === "Result" ? [record.names ?? []] : record.outputs.map((output) => output.names);
  while (lists.length && !lists[lists.length - 1]!.length) lists.pop();
  return lists.length ? ` names ${lists.map((names) => (names.length ? names.map(quoted).join(" ") : "_")).join(", ")}` : "";
}

function quoted(text: string): string {
  return JSON.stringify(text);
}
