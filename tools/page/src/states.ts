// The graph at each step, and what each step changed.
//
//   const states = new States(data);
//   states.at(-1).nodes             // as loaded
//   states.at(3).readers(17)        // who reads the outputs of node 17 after step 3
//   states.changes(3).nodes         // Map { 17 => "removed", 40 => "added", 18 => "rewired" }

import type { Document, NodeId, NodeRecord, Scope, ScopeId } from "./document.ts";
import type { EdgeKey } from "./store.ts";

export type Change = "added" | "removed" | "rewired" | "changed";

export interface Reader {
  node: NodeId;
  input: number;
  port: number;
}

export interface State {
  readonly nodes: ReadonlyMap<NodeId, NodeRecord>;
  readonly scopes: ReadonlyMap<ScopeId, Scope>;
  readers(node: NodeId): readonly Reader[];
  /** The nodes of one scope, in a stable order: producers mostly before consumers. */
  within(scope: ScopeId): readonly NodeId[];
  /** The id of a node's layer in the .xml, and the offset of a constant in the .bin, if this state was written. */
  layer(node: NodeId): number | undefined;
  offset(node: NodeId): number | undefined;
}

export interface Changes {
  nodes: ReadonlyMap<NodeId, Change>;
  edges: { added: readonly EdgeKey[]; removed: readonly EdgeKey[] };
}

export interface Event {
  step: number;
  what: Change;
}

const KEPT = 12; // states in memory

export class States {
  readonly count: number; // of states: the first one, and one for each step with a delta
  private readonly cache = new Map<number, GraphState>();
  private readonly changeCache = new Map<number, Changes>();
  private timeline: Timeline | undefined;
  private readonly pairs = new Map<NodeId, NodeId[]>();
  private readonly scopes: ReadonlyMap<string, readonly string[]>;

  constructor(readonly document: Document) {
    for (const [node, layers] of document.pairs ?? []) {
      this.pairs.set(node, layers);
      for (const layer of layers) this.pairs.set(layer, [...(this.pairs.get(layer) ?? []), node]);
    }
    this.scopes = new Map(Object.entries(document.name_scopes ?? {}));
    this.count = 1 + document.steps.filter((step) => step.delta).length;
  }

  /** Of an ONNX model and its IR: the layers of a node, the nodes of a layer. */
  partners(node: NodeId): readonly NodeId[] {
    return this.pairs.get(node) ?? [];
  }

  /** The names of the modules around an ONNX node, where the exporter wrote them. */
  scopesOf(name: string): readonly string[] | undefined {
    return this.scopes.get(name);
  }

  /** The graph after a step, -1 as loaded. A step without a delta has the state of the one before. */
  at(step: number): State {
    return this.state(this.settled(step));
  }

  /** The step whose state the given step began with. */
  before(step: number): number {
    return this.settled(this.settled(step) === step ? step - 1 : step);
  }

  /** What a step changed; nothing for -1 and for a step without a delta. */
  changes(step: number): Changes {
    const found = this.changeCache.get(step);
    if (found) return found;
    const computed = this.compare(step);
    this.changeCache.set(step, computed);
    return computed;
  }

  /** The steps that added, removed or changed a node. */
  history(node: NodeId): readonly Event[] {
    return this.events.history.get(node) ?? [];
  }

  /** A number by which nodes are ordered, the same in all states: an added node stands before its first reader. */
  place(node: NodeId): number {
    return this.events.places.get(node) ?? 0;
  }

  /** The ids of all scopes that any state has. */
  scopeIds(): Set<ScopeId> {
    const deltas = this.document.steps.flatMap((step) => step.delta?.scopes ?? []);
    return new Set([...this.document.scopes, ...deltas].map((scope) => scope.id));
  }

  /** Every record that any state has, the first of each node and scope. */
  get ever(): readonly NodeRecord[] {
    return this.events.ever;
  }

  private get events(): Timeline {
    this.timeline ??= new Timeline(this.document);
    return this.timeline;
  }

  /** The last step up to the given one that has a delta, or -1. */
  private settled(step: number): number {
    let at = Math.min(step, this.document.steps.length - 1);
    while (at >= 0 && !this.document.steps[at]?.delta) at--;
    return Math.max(at, -1);
  }

  private state(step: number): GraphState {
    const found = this.cache.get(step);
    if (found) return found;
    let from = step;
    while (from >= 0 && !this.cache.has(from)) from = this.settled(from - 1);
    const base = this.cache.get(from);
    const nodes = new Map(base ? base.nodes : this.document.nodes.map((node) => [node.id, node]));
    const scopes = new Map(base ? base.scopes : this.document.scopes.map((scope) => [scope.id, scope]));
    for (let at = base ? from + 1 : 0; at <= step; at++) {
      const delta = this.document.steps[at]?.delta;
      if (!delta) continue;
      for (const id of delta.removed) nodes.delete(id);
      for (const id of delta.removed_scopes) scopes.delete(id);
      for (const node of [...delta.changed, ...delta.added]) nodes.set(node.id, node);
      for (const scope of delta.scopes) scopes.set(scope.id, scope);
    }
    const isLast = step === this.settled(this.document.steps.length - 1);
    const made = new GraphState(nodes, scopes, (node) => this.place(node), isLast ? this.document.written : undefined);
    this.cache.set(step, made);
    for (const old of [...this.cache.keys()].slice(0, this.cache.size - KEPT)) this.cache.delete(old);
    return made;
  }

  private compare(step: number): Changes {
    const nodes = new Map<NodeId, Change>();
    const added: EdgeKey[] = [];
    const removed: EdgeKey[] = [];
    const delta = this.document.steps[step]?.delta;
    if (!delta || this.document.pairs) return { nodes, edges: { added, removed } }; // other nodes, not changed ones
    const before = this.at(step - 1);
    const counted = this.document.steps[step]?.details; // in a diff, other changes do not count
    for (const node of delta.added) {
      nodes.set(node.id, "added");
      added.push(...edgesInto(node));
    }
    for (const id of delta.removed) {
      nodes.set(id, "removed");
      const old = before.nodes.get(id);
      if (old) removed.push(...edgesInto(old));
    }
    for (const node of delta.changed) {
      const old = before.nodes.get(node.id);
      if (!counted || node.id in counted) nodes.set(node.id, old ? kindOfChange(old, node) : "added");
      if (!old) continue;
      const [was, is] = [edgesInto(old), edgesInto(node)];
      added.push(...is.filter((edge) => !sameEdge(edge, was[was.findIndex((each) => each.input === edge.input)])));
      removed.push(...was.filter((edge) => !sameEdge(edge, is[is.findIndex((each) => each.input === edge.input)])));
    }
    return { nodes, edges: { added, removed } };
  }
}

/** The edges that end in a node. */
export function edgesInto(node: NodeRecord): EdgeKey[] {
  const found: EdgeKey[] = [];
  node.inputs.forEach((value, input) => {
    if (value) found.push({ from: value[0], port: value[1], to: node.id, input });
  });
  return found;
}

function sameEdge(one: EdgeKey, other: EdgeKey | undefined): boolean {
  return other !== undefined && one.from === other.from && one.port === other.port;
}

function kindOfChange(old: NodeRecord, node: NodeRecord): Change {
  const ports = (record: NodeRecord) => record.port_map && { ...record.port_map, trip_count: "" };
  const wiring = (record: NodeRecord) => JSON.stringify([record.scope, record.inputs, ports(record)]);
  return wiring(old) === wiring(node) ? "changed" : "rewired";
}

class GraphState implements State {
  private index: Map<NodeId, Reader[]> | undefined;
  private lists: Map<ScopeId, NodeId[]> | undefined;

  constructor(
    readonly nodes: ReadonlyMap<NodeId, NodeRecord>,
    readonly scopes: ReadonlyMap<ScopeId, Scope>,
    private readonly place: (node: NodeId) => number,
    private readonly written: Document["written"],
  ) {}

  layer(node: NodeId): number | undefined {
    return this.written?.layers[node];
  }

  offset(node: NodeId): number | undefined {
    return this.written?.offsets[node];
  }

  readers(node: NodeId): readonly Reader[] {
    this.index ??= this.readersOfAll();
    return this.index.get(node) ?? [];
  }

  within(scope: ScopeId): readonly NodeId[] {
    this.lists ??= this.listsOfAll();
    return this.lists.get(scope) ?? [];
  }

  private readersOfAll(): Map<NodeId, Reader[]> {
    const index = new Map<NodeId, Reader[]>();
    for (const node of this.nodes.values()) {
      node.inputs.forEach((value, input) => {
        if (!value) return;
        const reader = { node: node.id, input, port: value[1] };
        const list = index.get(value[0]);
        if (list) list.push(reader);
        else index.set(value[0], [reader]);
      });
    }
    return index;
  }

  private listsOfAll(): Map<ScopeId, NodeId[]> {
    const lists = new Map<ScopeId, NodeId[]>();
    for (const node of this.nodes.values()) {
      const list = lists.get(node.scope);
      if (list) list.push(node.id);
      else lists.set(node.scope, [node.id]);
    }
    for (const list of lists.values()) list.sort((a, b) => this.place(a) - this.place(b) || a - b);
    return lists;
  }
}

/** What happens to each node over all steps, found in one walk over the deltas. */
class Timeline {
  readonly history = new Map<NodeId, Event[]>();
  readonly places = new Map<NodeId, number>();
  readonly ever: NodeRecord[] = [];
  private readonly records = new Map<NodeId, NodeRecord>();
  private end = 0;

  constructor(document: Document) {
    for (const node of document.nodes) {
      this.records.set(node.id, node);
      this.ever.push(node);
      this.places.set(node.id, this.end++);
    }
    document.steps.forEach((step, at) => {
      const delta = step.delta;
      if (!delta) return;
      this.settle(delta.added, delta.changed, 0.5 ** (1 + (at % 40)));
      for (const node of delta.added) this.note(node.id, at, "added");
      for (const id of delta.removed) this.note(id, at, "removed");
      for (const node of delta.changed) {
        const old = this.records.get(node.id);
        this.note(node.id, at, old ? kindOfChange(old, node) : "added");
        if (old?.scope !== node.scope) this.ever.push(node);
        this.records.set(node.id, node);
      }
      for (const node of delta.added) {
        this.records.set(node.id, node);
        this.ever.push(node);
      }
      for (const id of delta.removed) this.records.delete(id);
    });
  }

  private note(node: NodeId, step: number, what: Change): void {
    const events = this.history.get(node);
    if (events) events.push({ step, what });
    else this.history.set(node, [{ step, what }]);
  }

  /** Give added nodes a place just before their first reader; its inputs changed too, so it is in the same delta. */
  private settle(added: readonly NodeRecord[], changed: readonly NodeRecord[], gap: number): void {
    const wanted = new Map<NodeId, number>();
    const want = (node: NodeRecord, place: number) => {
      for (const value of node.inputs) {
        if (value) wanted.set(value[0], Math.min(place, wanted.get(value[0]) ?? Infinity));
      }
    };
    for (const node of changed) want(node, (this.places.get(node.id) ?? this.end) - gap);
    for (const node of [...added].reverse()) {
      if (this.places.has(node.id)) continue; // an earlier step removed it and this one brings it back
      const place = wanted.get(node.id);
      if (place === undefined) continue;
      this.places.set(node.id, place);
      want(node, place);
    }
    for (const node of added) if (!this.places.has(node.id)) this.places.set(node.id, this.end++);
  }
}
