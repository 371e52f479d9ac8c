// What can be folded: groups over all nodes that any state has, so that a group is the same in all steps.
//
//   scope   a body                                         "17/body"
//   names   nodes whose names share a path                 "17/body:layers/0/attn"
//   run     consecutive nodes, where there are too many    "17/body:layers/0#3.1"
//   owner   a control-flow operation with its bodies       "17", after the first operation that had the body
//
// A body can get another owner, and an owner can move into another body: how bodies and owners are nested is a fact of a
// state (folding.ts), how names and runs are nested in a body is the same in all states.

import type { NodeId, NodeRecord, ScopeId } from "./document.ts";
import type { States } from "./states.ts";

const MANY = 110; // children of a group before they are cut into runs
const BRANCHES = 36; // of a tree of runs
const FEW_IN_SCOPE = 40; // a scope of fewer operations has no groups by name
const FEW = 3; // fewer nodes make no group
const DEPTH = 12; // of a path of names

export type GroupKind = "scope" | "owner" | "names" | "run";

export interface Group {
  readonly id: string;
  readonly kind: GroupKind;
  readonly title: string;
  readonly scope: ScopeId; // of its nodes
  readonly parent: Group | null; // of names and runs
  readonly groups: Group[]; // names and runs
}

interface Branch {
  path: string[];
  branches: Map<string, Branch>;
  leaves: NodeRecord[];
  size: number;
}

type Item = { leaf: NodeRecord } | { branch: Branch };

export class Groups {
  readonly root: Group = { id: "", kind: "scope", title: "", scope: "", parent: null, groups: [] };
  private readonly byId = new Map<string, Group>([["", this.root]]);
  private readonly homes = new Map<ScopeId, Map<NodeId, Group>>();
  private readonly members = new Map<ScopeId, NodeRecord[]>();
  private readonly companions = new Map<NodeId, NodeId>(); // a constant goes where its first reader is
  private readonly paths = new Map<NodeRecord, readonly string[]>();

  constructor(private readonly states: States) {
    const constants = new Set<NodeId>();
    const scopeOf = new Map<NodeId, ScopeId>();
    for (const node of states.ever) {
      const list = this.members.get(node.scope);
      if (list) list.push(node);
      else this.members.set(node.scope, [node]);
      if (isConstant(node)) constants.add(node.id);
      scopeOf.set(node.id, node.scope);
    }
    for (const node of states.ever) {
      for (const value of node.inputs) {
        if (!value || !constants.has(value[0]) || this.companions.has(value[0])) continue;
        if (scopeOf.get(value[0]) === node.scope && !isConstant(node)) this.companions.set(value[0], node.id);
      }
    }
    this.findPaths(constants);
    const scopes = new Set([...this.members.keys(), ...states.scopeIds()]);
    for (const scope of scopes) {
      const tag = scope.slice(scope.indexOf("/") + 1);
      const title = scope.startsWith("function/") ? `function ${tag}` : tag.replaceAll("_", " ");
      this.fillScope(scope === "" ? this.root : this.add({ id: scope, kind: "scope", title, scope, parent: null }), scope);
    }
  }

  /** Names say where a node is; a node whose name does not is where all its readers are. */
  private findPaths(constants: ReadonlySet<NodeId>): void {
    const wanted = new Map<NodeId, readonly string[]>();
    const byPlace = [...this.states.ever].sort((a, b) => this.states.place(b.id) - this.states.place(a.id) || b.id - a.id);
    for (const node of byPlace) {
      const isPort = node.op === "Parameter" || node.op === "Result";
      const own = isPort ? [] : pathOf(node);
      const path = own.length || isPort ? own : (wanted.get(node.id) ?? []);
      this.paths.set(node, path);
      for (const value of node.inputs) {
        if (!value || constants.has(value[0])) continue;
        const other = wanted.get(value[0]);
        wanted.set(value[0], other ? common(other, path) : path);
      }
    }
  }

  get(id: string): Group | undefined {
    return this.byId.get(id);
  }

  /** The innermost group around a node. */
  home(node: NodeRecord): Group {
    return this.homes.get(node.scope)?.get(node.id) ?? this.byId.get(node.scope) ?? this.root;
  }

  ofScope(scope: ScopeId): Group | undefined {
    return this.byId.get(scope);
  }

  /** The group of a control-flow operation with an id, which is made when there is none. */
  owner(id: string): Group {
    return this.byId.get(id) ?? this.add({ id, kind: "owner", title: "", scope: "", parent: null });
  }

  all(): Iterable<Group> {
    return this.byId.values();
  }

  private add(group: Omit<Group, "groups">): Group {
    const made: Group = { ...group, groups: [] };
    group.parent?.groups.push(made);
    this.byId.set(made.id, made);
    return made;
  }

  private fillScope(group: Group, scope: ScopeId): void {
    const homes = new Map<NodeId, Group>();
    this.homes.set(scope, homes);
    const members = this.members.get(scope) ?? [];
    const leaves = members.filter((node) => !this.companions.has(node.id));
    const named = leaves.filter((node) => !isConstant(node)).length >= FEW_IN_SCOPE;
    const top: Branch = { path: [], branches: new Map(), leaves: [], size: 0 };
    for (const node of leaves) place(top, node, (named && this.paths.get(node)) || []);
    dissolve(top);
    this.fill(group, top, homes);
    for (const node of members) {
      const reader = this.companions.get(node.id);
      if (reader !== undefined) homes.set(node.id, homes.get(reader) ?? group);
    }
  }

  private fill(group: Group, branch: Branch, homes: Map<NodeId, Group>): void {
    const items: [number, Item][] = [
      ...branch.leaves.map((leaf): [number, Item] => [this.states.place(leaf.id), { leaf }]),
      ...[...branch.branches.values()].map((each): [number, Item] => [this.firstPlace(each), { branch: each }]),
    ];
    items.sort((a, b) => a[0] - b[0]);
    this.split(group, items.map((item) => item[1]), group.kind === "names" ? group.id : `${group.scope}:`, homes);
  }

  private split(group: Group, items: Item[], prefix: string, homes: Map<NodeId, Group>): void {
    if (items.length <= MANY) {
      for (const item of items) this.put(group, item, homes);
      return;
    }
    const levels = Math.ceil(Math.log(items.length) / Math.log(BRANCHES));
    const length = Math.ceil(items.length / Math.ceil(items.length / BRANCHES ** (levels - 1)));
    for (let at = 0, index = 0; at < items.length; at += length, index++) {
      const part = items.slice(at, at + length);
      const id = `${prefix}${prefix.includes("#") ? "." : "#"}${index}`;
      const run = this.add({ id, kind: "run", title: titleOfRun(part), scope: group.scope, parent: group });
      this.split(run, part, id, homes);
    }
  }

  private put(group: Group, item: Item, homes: Map<NodeId, Group>): void {
    if ("branch" in item) {
      const path = item.branch.path.join("/");
      const outer = this.outerNames(group);
      const rest = outer && path.startsWith(`${outer}/`) ? path.slice(outer.length + 1) : path;
      const title = /^\d+$/.test(rest) ? item.branch.path.slice(-2).join("/") : rest; // "layers/0"
      const id = `${group.scope}:${path}`;
      if (this.byId.has(id)) {
        for (const leaf of leavesOf(item.branch)) this.put(group, { leaf }, homes);
        return;
      }
      this.fill(this.add({ id, kind: "names", title, scope: group.scope, parent: group }), item.branch, homes);
      return;
    }
    homes.set(item.leaf.id, group);
  }

  private outerNames(group: Group): string {
    let at: Group | null = group;
    while (at && at.kind === "run") at = at.parent;
    return at?.kind === "names" ? at.id.slice(at.scope.length + 1) : "";
  }

  private firstPlace(branch: Branch): number {
    const places = branch.leaves.map((leaf) => this.states.place(leaf.id));
    for (const each of branch.branches.values()) places.push(this.firstPlace(each));
    return places.reduce((a, b) => Math.min(a, b), Infinity);
  }
}

export function isConstant(node: NodeRecord): boolean {
  return node.op === "Constant" || node.op === "Const" || node.op === "Initializer";
}

/** The path in a node's name, or in that of its ONNX origin: "/layers/0/attn/MatMul" is in layers, 0, attn. */
export function pathOf(node: NodeRecord): string[] {
  if (node.op === "Parameter" || node.op === "Result") return [];
  const own = split(node.name);
  if (own.length) return own;
  for (const origin of node.origins ?? []) {
    const path = split(origin[1]);
    if (path.length) return path;
  }
  return [];
}

function common(one: readonly string[], other: readonly string[]): readonly string[] {
  const differs = one.findIndex((part, index) => part !== other[index]);
  return differs < 0 ? one : one.slice(0, differs);
}

/** A name without the path of the group that it stands in. */
export function nameIn(group: Group, name: string): string {
  const path = group.kind === "names" ? group.id.slice(group.scope.length + 1).split("/") : [];
  if (group.kind === "run" && group.parent) return nameIn(group.parent, name);
  const parts = split(name);
  if (!path.length || path.some((part, index) => part !== parts[index])) return name;
  const separator = name.includes("/") ? "/" : ".";
  return name.split(separator).filter((part) => part).slice(path.length).join(separator);
}

function split(name: string): string[] {
  if (name.length > 2000) return [];
  const parts = name.split(name.includes("/") ? "/" : ".").filter((part) => part);
  return parts.slice(0, -1).slice(0, DEPTH);
}

function place(top: Branch, node: NodeRecord, path: readonly string[]): void {
  let at = top;
  at.size++;
  for (const [depth, part] of path.entries()) {
    let next = at.branches.get(part);
    if (!next) {
      next = { path: path.slice(0, depth + 1), branches: new Map(), leaves: [], size: 0 };
      at.branches.set(part, next);
    }
    at = next;
    at.size++;
  }
  at.leaves.push(node);
}

/** Give small groups back to their parents, and let a group of one group be that group. */
function dissolve(branch: Branch): void {
  for (const [name, each] of [...branch.branches]) {
    dissolve(each);
    const [only] = each.branches.values();
    if (each.size < FEW) {
      branch.leaves.push(...leavesOf(each));
      branch.branches.delete(name);
    } else if (only && each.branches.size === 1 && each.leaves.length === 0) {
      branch.branches.set(name, only);
    }
  }
}

function leavesOf(branch: Branch): NodeRecord[] {
  return [...branch.leaves, ...[...branch.branches.values()].flatMap(leavesOf)];
}

function titleOfRun(items: readonly Item[]): string {
  const paths = items.flatMap((item) => ("branch" in item ? [item.branch.path.slice(-2).join("/")] : []));
  if (paths.length > 1) return `${paths[0]} \u2026 ${paths.at(-1)}`;
  const counts = new Map<string, number>();
  for (const item of items) {
    if ("leaf" in item && !isConstant(item.leaf)) counts.set(item.leaf.op, (counts.get(item.leaf.op) ?? 0) + 1);
  }
  const most = [...counts].sort((a, b) => b[1] - a[1]).slice(0, 2).map((each) => each[0]);
  return [...paths, ...most].join(", ") + (counts.size > most.length ? ", \u2026" : "");
}
