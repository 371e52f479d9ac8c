// Which groups are open. By default as many as fit a budget of visible boxes: first those with changes, then loops of
// moderate size, then level by level. What the user folded and opened goes before.

import type { NodeId, NodeRecord } from "./document.ts";
import type { Group, Groups } from "./groups.ts";
import type { Status, View } from "./view.ts";

const BUDGET = 150;
const MODERATE = 90; // boxes in a control-flow operation that opens by itself

export type Counts = Partial<Record<Status, number>>;

interface Facts {
  size: number; // nodes, at any depth
  boxes: number; // directly in the group: nodes and groups
  changes: Counts; // at any depth
}

export class Folding {
  private readonly facts = new Map<Group, Facts>();
  private readonly opened = new Set<Group>();
  private readonly hidden = new Map<Group, Group | null>();
  private readonly links = new Map<Group, Group>(); // from a body to its owner, from an owner to where that is
  private readonly inner = new Map<Group, Group[]>(); // the other way round
  private readonly heads = new Map<NodeId, Group>();
  private readonly headOf = new Map<Group, NodeRecord>();
  private readonly homes: (Group | undefined)[] = []; // by the id of the node
  private spent = 0;

  constructor(
    private readonly groups: Groups,
    view: View,
    private readonly folds: ReadonlyMap<string, boolean>,
  ) {
    this.nest(view);
    this.count(view);
    this.open(groups.root);
    this.spent = this.boxes(groups.root);
    for (const group of this.changed(view)) this.openTo(group, BUDGET);
    for (const owner of [...this.headOf.keys()].sort((a, b) => this.depth(a) - this.depth(b))) {
      if (this.inside(owner, MODERATE) <= MODERATE) this.openTo(owner, BUDGET);
    }
    this.openLevels();
    this.obey();
  }

  size(group: Group): number {
    return this.facts.get(group)?.size ?? 0;
  }

  changes(group: Group): Counts {
    return this.facts.get(group)?.changes ?? {};
  }

  /** The group around a group, null around the whole graph. */
  parent(group: Group): Group | null {
    if (group === this.groups.root) return null;
    return group.parent ?? this.links.get(group) ?? this.groups.root;
  }

  /** The groups directly in a group. */
  children(group: Group): readonly Group[] {
    const inner = this.inner.get(group);
    return inner ? [...group.groups, ...inner] : group.groups;
  }

  /** The group of a control-flow operation and its bodies. */
  headedBy(node: NodeId): Group | undefined {
    return this.heads.get(node);
  }

  /** The control-flow operation of a group of kind "owner". */
  head(group: Group): NodeRecord | undefined {
    return this.headOf.get(group);
  }

  /** The outermost folded group around a node, null if all are open. */
  hidingNode(node: NodeRecord): Group | null {
    return this.hiding(this.homes[node.id] ?? this.groups.home(node));
  }

  /** The groups around a node, from the outermost. */
  around(node: NodeRecord): Group[] {
    const found: Group[] = [];
    for (let at: Group | null = this.groups.home(node); at && at !== this.groups.root; at = this.parent(at)) found.unshift(at);
    return found;
  }

  isOpen(group: Group): boolean {
    return this.opened.has(group);
  }

  /** Whether a group is drawn as nothing: what is in it stands in its parent. */
  isTransparent(group: Group): boolean {
    return (group.kind === "names" || group.kind === "run") && this.boxes(group) <= 1;
  }

  /** The outermost folded group around something in this group, null if all are open. */
  hiding(group: Group): Group | null {
    const found = this.hidden.get(group);
    if (found !== undefined) return found;
    const parent = this.parent(group);
    const outer = parent && this.hiding(parent);
    const answer = outer ?? (this.opened.has(group) ? null : group);
    this.hidden.set(group, answer);
    return answer;
  }

  /** Find which bodies are in which operations, and these in which groups. */
  private nest(view: View): void {
    for (const scope of view.scopes()) {
      const owner = scope.owner === null ? undefined : view.node(scope.owner);
      const body = this.groups.ofScope(scope.id);
      if (!body || body === this.groups.root || this.links.has(body)) continue;
      if (!owner) {
        this.link(body, this.groups.root); // a function
        continue;
      }
      let group = this.heads.get(owner.id);
      if (!group) {
        const first = this.groups.owner(scope.id.slice(0, scope.id.indexOf("/")));
        group = this.headOf.has(first) ? this.groups.owner(`${owner.id}.`) : first;
        this.heads.set(owner.id, group);
        this.headOf.set(group, owner);
        this.link(group, this.groups.home(owner));
      }
      this.link(body, group);
    }
  }

  private link(group: Group, parent: Group): void {
    this.links.set(group, parent);
    const inner = this.inner.get(parent);
    if (inner) inner.push(group);
    else this.inner.set(parent, [group]);
  }

  private count(view: View): void {
    const counted = new Set<Group>();
    for (const node of view.nodes()) {
      const home = this.groups.home(node);
      this.homes[node.id] = home;
      const status = view.status(node.id);
      this.of(home).boxes += view.isInlined(node) ? 0 : 1;
      for (let at: Group | null = home; at; at = this.parent(at)) {
        const facts = this.of(at);
        facts.size++;
        if (status !== "same") facts.changes[status] = (facts.changes[status] ?? 0) + 1;
        if (counted.has(at)) continue;
        counted.add(at);
        const parent = this.parent(at);
        if (parent && at.kind !== "owner") this.of(parent).boxes++;
      }
    }
    for (const [node, group] of [...this.heads]) {
      if (this.size(group)) continue;
      this.heads.delete(node);
      this.headOf.delete(group);
    }
  }

  private of(group: Group): Facts {
    let facts = this.facts.get(group);
    if (!facts) {
      facts = { size: 0, boxes: 0, changes: {} };
      this.facts.set(group, facts);
    }
    return facts;
  }

  private boxes(group: Group): number {
    const facts = this.facts.get(group);
    if (!facts) return 0;
    return facts.boxes + (group.kind === "owner" ? 2 : 0);
  }

  /** The groups with changes, in the order of their nodes. */
  private changed(view: View): Group[] {
    const found = new Set<Group>();
    if (!view.marked) return [];
    for (const id of view.changes.nodes.keys()) {
      const node = view.node(id);
      if (node) found.add(this.groups.home(node));
    }
    return [...found];
  }

  private openTo(group: Group, budget: number): void {
    const chain: Group[] = [];
    for (let at: Group | null = group; at && !this.opened.has(at); at = this.parent(at)) chain.unshift(at);
    for (const each of group.kind === "owner" ? [...chain, ...this.children(group)] : chain) {
      const cost = this.boxes(each) - 1;
      if (this.opened.has(each) || !this.size(each)) continue;
      if (this.spent + cost > budget) return;
      this.spent += cost;
      this.open(each);
    }
  }

  private open(group: Group): void {
    this.opened.add(group);
  }

  /** The boxes that a group shows when everything in it is open; counts no further than the limit. */
  private inside(group: Group, limit: number): number {
    let total = this.boxes(group);
    for (const each of this.children(group)) {
      if (total > limit) return total;
      total += this.inside(each, limit - total);
    }
    return total;
  }

  /** Open what still fits: the groups of one parent all together or none, runs one by one. */
  private openLevels(): void {
    let level: Group[] = [...this.opened];
    while (level.length) {
      const next: Group[] = [];
      for (const parent of level) {
        const closed = this.children(parent).filter((group) => !this.opened.has(group) && this.size(group));
        const runs = closed.filter((group) => group.kind === "run");
        next.push(...this.openAll(closed.filter((group) => group.kind !== "run")));
        for (const run of runs) next.push(...this.openAll([run]));
      }
      level = next;
    }
  }

  private openAll(groups: readonly Group[]): readonly Group[] {
    const cost = groups.reduce((sum, group) => sum + this.boxes(group) - 1, 0);
    if (this.spent + cost > BUDGET) return [];
    this.spent += cost;
    for (const group of groups) this.open(group);
    return groups;
  }

  private depth(group: Group): number {
    const parent = this.parent(group);
    return parent ? 1 + this.depth(parent) : 0;
  }

  private obey(): void {
    for (const group of this.groups.all()) {
      if (this.isTransparent(group)) this.opened.add(group);
    }
    for (const [id, folded] of this.folds) {
      const group = this.groups.get(id);
      if (!group || group === this.groups.root || this.isTransparent(group)) continue;
      if (folded) this.opened.delete(group);
      else this.opened.add(group);
    }
  }
}
