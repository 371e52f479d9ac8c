// Which groups are open. A small graph is open as a whole. Of a large one the first picture is an overview: it opens what
// a step changed, then level by level the groups that hold groups, as many as fit a budget of boxes. Equal blocks, whose
// names differ in numbers alone, are all open or all folded. What the user folded and opened goes before.

import type { NodeId, NodeRecord } from "./document.ts";
import { pattern, type Group, type Groups } from "./groups.ts";
import type { Status, View } from "./view.ts";

const SMALL = 80; // boxes of a graph that is open as a whole
const OVERVIEW = 20; // boxes of an overview
const CHANGED = 150; // boxes up to which the groups that a step changed are open

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
    this.opened.add(groups.root);
    this.spent = this.boxes(groups.root);
    if (this.inside(groups.root, SMALL) <= SMALL) for (const group of groups.all()) this.opened.add(group);
    for (const alike of this.classes(this.changed(view))) this.openAll(alike.flatMap((each) => this.closedTo(each)), CHANGED);
    this.overview();
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

  /** The folded groups around a group, and the group. */
  private closedTo(group: Group): Group[] {
    const found: Group[] = [];
    for (let at: Group | null = group; at && !this.opened.has(at); at = this.parent(at)) found.push(at);
    return found;
  }

  /** A group, with the bodies of a control-flow operation: these open together. */
  private unit(group: Group): readonly Group[] {
    return group.kind === "owner" ? [group, ...this.children(group)] : [group];
  }

  /** Groups that are equal blocks, those of the most nodes first. */
  private classes(groups: readonly Group[]): Group[][] {
    const found = new Map<string, Group[]>();
    for (const group of groups) {
      if (!this.size(group)) continue;
      const key = this.key(group);
      const alike = found.get(key);
      if (alike) alike.push(group);
      else found.set(key, [group]);
    }
    const size = (alike: readonly Group[]) => alike.reduce((sum, each) => sum + this.size(each), 0);
    return [...found.values()].sort((a, b) => size(b) - size(a));
  }

  /** Equal for groups that are equal blocks. */
  key(group: Group): string {
    const head = this.headOf.get(group);
    return pattern(head ? `${head.op} ${head.name} ${this.boxes(group)}` : group.id);
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

  /** Whether a group belongs to an overview when it is open: a loop, or a group of blocks. Nodes, and runs of them, do not. */
  private holdsBlocks(group: Group): boolean {
    return group.kind === "owner" || this.children(group).some((each) => this.size(each) && (each.kind !== "run" || group.kind !== "run"));
  }

  /** Open groups of blocks, level by level. */
  private overview(): void {
    for (let level: Group[] = [...this.opened]; level.length; ) {
      const next: Group[] = [];
      for (const alike of this.classes(level.flatMap((group) => this.children(group)))) {
        if (alike.some((group) => this.holdsBlocks(group)) && this.openAll(alike.flatMap((group) => this.unit(group)), OVERVIEW)) next.push(...alike.flatMap((group) => this.unit(group)));
      }
      level = next;
    }
  }

  /** Open groups if all fit. */
  private openAll(groups: readonly Group[], budget: number): boolean {
    const closed = [...new Set(groups)].filter((group) => !this.opened.has(group));
    const cost = closed.reduce((sum, group) => sum + this.boxes(group) - 1, 0);
    if (this.spent + cost > budget) return false;
    this.spent += cost;
    for (const group of closed) this.opened.add(group);
    return closed.length > 0;
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
