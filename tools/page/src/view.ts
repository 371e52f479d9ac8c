// One graph to draw: a state, or the union of the states before and after a step.

import type { NodeId, NodeRecord, Scope } from "./document.ts";
import { isConstant } from "./groups.ts";
import { portEdges, type PortEdge } from "./roles.ts";
import { edgesInto, type Change, type Changes, type Reader, type State, type States } from "./states.ts";
import type { EdgeKey, Mode } from "./store.ts";

export type Side = "before" | "after" | "both";
export type Status = Change | "same";

const MANY_READERS = 8; // a constant of more is a line in each reader
const SMALL = 64; // bytes of a constant that is a line in each of its readers

export interface ViewEdge {
  key: EdgeKey;
  status: Status;
}

export class View {
  readonly after: State;
  readonly before: State;
  readonly changes: Changes;
  private readonly addedEdges: Set<string>;
  private readonly removedEdges: Set<string>;
  private readonly inlined = new Map<NodeId, boolean>();

  constructor(
    states: States,
    readonly step: number,
    readonly side: Side,
    readonly marked: boolean, // whether changes are shown
  ) {
    const before = states.before(step);
    this.changes = states.changes(step);
    this.before = side === "after" ? states.at(step) : states.at(before);
    this.after = side === "before" ? this.before : states.at(step);
    this.addedEdges = new Set(this.changes.edges.added.map(edgeText));
    this.removedEdges = new Set(this.changes.edges.removed.map(edgeText));
  }

  /** All nodes, those that the step removed last. */
  *nodes(): Iterable<NodeRecord> {
    yield* this.after.nodes.values();
    if (this.side !== "both") return;
    for (const [id, change] of this.changes.nodes) {
      const old = change === "removed" ? this.before.nodes.get(id) : undefined;
      if (old) yield old;
    }
  }

  node(id: NodeId): NodeRecord | undefined {
    return this.after.nodes.get(id) ?? this.before.nodes.get(id);
  }

  status(id: NodeId): Status {
    return (this.marked && this.changes.nodes.get(id)) || "same";
  }

  readers(id: NodeId): readonly Reader[] {
    return this.after.nodes.has(id) ? this.after.readers(id) : this.before.readers(id);
  }

  /** All scopes, those that the step removed last. */
  *scopes(): Iterable<Scope> {
    yield* this.after.scopes.values();
    if (this.side !== "both") return;
    for (const [id, scope] of this.before.scopes) if (!this.after.scopes.has(id)) yield scope;
  }

  /** Whether a constant is a line in the boxes of its readers, and no box of its own. */
  isInlined(node: NodeRecord): boolean {
    if (!isConstant(node)) return false;
    const found = this.inlined.get(node.id);
    if (found !== undefined) return found;
    const readers = this.readers(node.id).length;
    const small = (node.bytes ?? 0) <= SMALL;
    const answer = readers === 1 || (readers > 0 && small) || readers > MANY_READERS;
    this.inlined.set(node.id, answer);
    return answer;
  }

  /** The edges that end in a node, with those that the step removed. */
  into(node: NodeRecord): ViewEdge[] {
    const found = edgesInto(node).map((key) => ({ key, status: this.statusOfEdge(key, node.id) }));
    if (this.side !== "both" || !this.marked) return found;
    const old = this.changes.nodes.has(node.id) && this.after.nodes.has(node.id) ? this.before.nodes.get(node.id) : undefined;
    if (!old) return found;
    const now = new Set(found.map((each) => edgeText(each.key)));
    const gone = edgesInto(old).filter((key) => !now.has(edgeText(key)));
    return [...found, ...gone.map((key) => ({ key, status: "removed" as const }))];
  }

  private statusOfEdge(key: EdgeKey, node: NodeId): Status {
    const status = this.status(node);
    if (status === "same" || status === "changed") return "same";
    if (this.side === "before") return this.removedEdges.has(edgeText(key)) ? "removed" : "same";
    if (status === "removed") return "removed";
    if (!this.addedEdges.has(edgeText(key))) return "same";
    return status === "rewired" ? "rewired" : "added";
  }

  /** The edges between a node and its bodies, with those that the step removed. */
  ports(node: NodeRecord): (PortEdge & { status: Status })[] {
    const status = this.status(node.id);
    const now = portEdges(node, (inner) => this.after.layer(inner));
    const old = this.changes.nodes.get(node.id) === "rewired" ? this.before.nodes.get(node.id) : undefined;
    if (!this.marked || !old || this.side === "before") {
      const all = status === "added" || status === "removed" ? status : "same";
      return now.map((each) => ({ ...each, status: all }));
    }
    const text = (each: PortEdge) => `${each.kind} ${edgeText(each.key)} ${each.label}`;
    const was = portEdges(old, () => undefined);
    const known = new Set(was.map(text));
    const kept = new Set(now.map(text));
    const found = now.map((each) => ({ ...each, status: known.has(text(each)) ? ("same" as const) : ("rewired" as const) }));
    if (this.side !== "both") return found;
    return [...found, ...was.filter((each) => !kept.has(text(each))).map((each) => ({ ...each, status: "removed" as const }))];
  }
}

export function edgeText(key: EdgeKey): string {
  return `${key.from}:${key.port}>${key.to}:${key.input}`;
}

/** The graphs that are drawn next to each other for a step. */
export function viewsOf(states: States, step: number, mode: Mode): View[] {
  const two = states.document.pairs !== undefined;
  const changes = states.changes(step).nodes.size > 0 || two;
  if (!changes || mode === "after") return [new View(states, step, "after", false)];
  if (mode === "overlay" && !two) return [new View(states, step, "both", true)];
  return [new View(states, step, "before", true), new View(states, step, "after", true)];
}
