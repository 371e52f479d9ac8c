// What can be folded: groups over all nodes that any state has, so that a group is the same in all steps.
//
//   scope   a body                                         "17/body"
//   names   nodes whose names share a path                 "17/body:layers/0/attn"
//   run     consecutive nodes, where there are too many    "17/body:layers/0#3.1"
//           blocks of one kind, or nodes between blocks    "17/body:layers~2"
//   owner   a control-flow operation with its bodies       "17", after the first operation that had the body
//
// A body can get another owner, and an owner can move into another body: how bodies and owners are nested is a fact of a
// state (folding.ts), how names and runs are nested in a body is the same in all states.

import type { NodeId, NodeRecord, ScopeId } from "./document.ts";
import type { States } from "./states.ts";

const MANY = 100; // children of a group before they are cut into runs
const BRANCHES = 12; // of a tree of runs; in a scope of many nodes, groups of more have runs of what is alike
const ALIKE = 4; // blocks, or nodes between blocks, that make a run
const PORTS = 8; // inputs or outputs of one kind that make a run
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

type Item = { leaf: NodeRecord } | { branch: Branch } | { run: Item[] };

export class Groups {
  readonly root: Group = { id: "", kind: "scope", title: "", scope: "", parent: null, groups: [] };
  private readonly byId = new Map<string, Group>([["", this.root]]);
  private readonly homes = new Map<ScopeId, Map<NodeId, Group>>();
  private readonly members = new Map<ScopeId, NodeRecord[]>();
  private readonly companions = new Map<NodeId, NodeId>(); // a constant goes where its first reader is
  private readonly paths = new Map<NodeRecord, readonly string[]>();
  private readonly names: ReadonlyMap<NodeId, string>; // of nodes that can have partners

  constructor(private readonly states: States) {
    this.names = new Map(states.document.pairs && states.ever.map((node) => [node.id, node.name]));
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
      const isPort = placeOfPort(node) !== 0;
      const own = isPort || constants.has(node.id) ? [] : this.pathOf(node);
      const path = own.length || isPort ? own : (wanted.get(node.id) ?? []);
      this.paths.set(node, path);
      for (const value of node.inputs) {
        if (!value || constants.has(value[0])) continue;
        const other = wanted.get(value[0]);
        wanted.set(value[0], other ? common(other, path) : path);
      }
    }
  }

  /** The path in a node's name, or in that of its ONNX origin; the exporter may have written it beside the name. */
  private pathOf(node: NodeRecord): readonly string[] {
    const partners = this.states.partners(node.id).map((id) => this.names.get(id) ?? "");
    for (const name of [node.name, ...(node.origins ?? []).map((each) => each[1]), ...partners]) {
      const path = this.states.scopesOf(name) ?? split(name);
      if (path.length) return path;
    }
    return this.states.scopesOf(node.outputs[0]?.names[0] ?? "") ?? []; // of a node without a name
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
      ...branch.leaves.map((leaf): [number, Item] => [placeOfPort(leaf) || (isConstant(leaf) ? -1 : this.states.place(leaf.id)), { leaf }]),
      ...[...branch.branches.values()].map((each): [number, Item] => [this.firstPlace(each), { branch: each }]),
    ];
    items.sort((a, b) => (a[0] === b[0] ? 0 : a[0] - b[0]));
    const sorted = items.map((item) => item[1]);
    const isLarge = (this.members.get(group.scope)?.length ?? 0) > MANY;
    this.split(group, isLarge ? gathered(sorted) : sorted, group.kind === "names" ? group.id : `${group.scope}:`, homes);
  }

  private split(group: Group, items: Item[], prefix: string, homes: Map<NodeId, Group>): void {
    const isColumn = group.kind !== "run" && items.every((item) => "branch" in item);
    if (items.length <= (isColumn ? BRANCHES : MANY)) {
      items.forEach((item, index) => {
        if ("run" in item) this.run(group, item.run, `${prefix}~${index}`, homes);
        else this.put(group, item, homes);
      });
      return;
    }
    const isPort = (item: Item | undefined) => item !== undefined && "leaf" in item && placeOfPort(item.leaf) !== 0;
    let [from, to] = [0, items.length];
    while (isPort(items[from]) && from < PORTS) from++;
    while (isPort(items[to - 1]) && items.length - to < PORTS) to--;
    for (const item of [...items.slice(0, from), ...items.slice(to)]) if ("leaf" in item) this.put(group, item, homes);
    const inner = items.slice(from, to);
    const period = periodOf(inner);
    const least = inner.length / Math.min(BRANCHES, Math.ceil(inner.length / BRANCHES));
    const length = Math.ceil(least / period) * period;
    const count = Math.ceil(inner.length / length);
    for (let index = 0; index < count; index++) {
      const part = inner.slice(index * length, (index + 1) * length);
      this.run(group, part, `${prefix}${prefix.includes("#") ? "." : "#"}${index}`, homes, `${index + 1}/${count} `);
    }
  }

  private run(group: Group, items: Item[], id: string, homes: Map<NodeId, Group>, number = ""): void {
    while (this.byId.has(id)) id += "'"; // names hold any characters
    this.split(this.add({ id, kind: "run", title: titleOfRun(items, number), scope: group.scope, parent: group }), items, id, homes);
  }

  private put(group: Group, item: Exclude<Item, { run: Item[] }>, homes: Map<NodeId, Group>): void {
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

/** Inputs come before everything, outputs after it. */
function placeOfPort(node: NodeRecord): number {
  return node.op === "Parameter" ? -Infinity : node.op === "Result" ? Infinity : 0;
}

/**
 * In a large scope: constants that nothing in it reads as one item, and inputs and outputs of one kind. In a group of
 * many, blocks of one kind in a row, also with a node or two between them, and the nodes between blocks.
 */
function gathered(items: Item[]): Item[] {
  const isMany = items.length > BRANCHES;
  const runs: { kind: string; items: Item[] }[] = [];
  for (const item of items) {
    const kind = kindOf(item);
    const [before, last] = [runs.at(-2), runs.at(-1)];
    if (last?.kind === kind) last.items.push(item);
    else if (before?.kind === kind && last?.kind === LEAF && last.items.length < ALIKE) before.items.push(...runs.pop()!.items, item);
    else runs.push({ kind, items: [item] });
  }
  const hasBlocks = items.some((item) => "branch" in item || ("leaf" in item && item.leaf.bodies));
  return runs.flatMap(({ kind, items: alike }) => {
    const isGathered = kind === CONSTANTS || (isMany && (kind !== LEAF || hasBlocks));
    const least = kind.startsWith(PORT) ? PORTS : isGathered ? ALIKE : Infinity;
    return alike.length >= least && alike.length < items.length ? [{ run: alike }] : alike;
  });
}

const [LEAF, PORT, CONSTANTS] = ["", "port ", "constants"];
const [LONGEST, SEEN, EQUAL] = [400, 2000, 0.9]; // of a period: its nodes, the places that are compared, how many of them are equal

/** After how many nodes the same operators come again, 1 if they do not. */
function periodOf(items: readonly Item[]): number {
  if (items.some((item) => "branch" in item)) return 1;
  const kinds = items.map((item) => ("leaf" in item ? item.leaf.op : kindOf(item)));
  for (let period = ALIKE; period <= Math.min(LONGEST, kinds.length / ALIKE); period++) {
    const count = Math.min(SEEN, kinds.length - period);
    let equal = 0;
    for (let at = 0; at < count; at++) if (kinds[at] === kinds[at + period]) equal++;
    if (equal >= EQUAL * count) return period;
  }
  return 1;
}

function kindOf(item: Item): string {
  if ("branch" in item) return `block ${pattern(item.branch.path.join("/"))}`;
  if (!("leaf" in item)) return LEAF;
  const { op, name, bodies } = item.leaf;
  if (bodies) return `owner ${op} ${pattern(name)}`; // a loop is a box of its own
  if (isConstant(item.leaf)) return CONSTANTS; // that no node of the scope reads
  return placeOfPort(item.leaf) ? `${PORT}${op} ${pattern(name)}` : LEAF;
}

/** Equal for names that differ in numbers. */
export function pattern(name: string): string {
  return name.replace(/\d+/g, "0");
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

/** What a run holds: the first and the last block, or its operators, where many runs have the same ones with its number. */
function titleOfRun(items: readonly Item[], number: string): string {
  const named = (item: Item | undefined): string[] => {
    if (!item) return [];
    if ("run" in item) return [...named(item.run[0]), ...named(item.run.at(-1))];
    if ("branch" in item) return [item.branch.path.slice(/^\d+$/.test(item.branch.path.at(-1)!) ? -2 : -1).join("/")];
    return placeOfPort(item.leaf) || item.leaf.bodies ? [item.leaf.name] : [];
  };
  const names = items.flatMap(named);
  if (names.length > 1) return `${names[0]} \u2026 ${names.at(-1)}`;
  const counts = new Map<string, number>();
  for (const item of items) {
    if ("leaf" in item && !isConstant(item.leaf)) counts.set(item.leaf.op, (counts.get(item.leaf.op) ?? 0) + 1);
  }
  const most = [...counts].sort((a, b) => b[1] - a[1]).slice(0, 2).map((each) => each[0]);
  if (!names.length && !most.length) return `${number}Constants`;
  return number + [...names, ...most].join(", ") + (counts.size > most.length ? ", \u2026" : "");
}
