// Which groups are open. By default as many as fit a budget of visible boxes: first those with changes, then loops of
// moderate size, then level by level. What the user folded and opened goes before.

import type { NodeRecord } from "./document.ts";
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
  private readonly owners: Group[] = [];
  private spent = 0;

  constructor(
    private readonly groups: Groups,
    view: View,
    private readonly folds: ReadonlyMap<string, boolean>,
  ) {
    this.count(view);
    this.open(groups.root);
    this.spent = this.boxes(groups.root);
    for (const group of this.changed(view)) this.openTo(group, BUDGET);
    for (const owner of this.owners) {
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
    const outer = group.parent ? this.hiding(group.parent) : null;
    const answer = outer ?? (this.opened.has(group) ? null : group);
    this.hidden.set(group, answer);
    return answer;
  }

  private count(view: View): void {
    const owners: [NodeRecord, Group][] = [];
    const counted = new Set<Group>();
    for (const node of view.nodes()) {
      const home = this.groups.home(node);
      const status = view.status(node.id);
      const inlined = view.isInlined(node);
      this.of(home).boxes += inlined ? 0 : 1;
      for (let at: Group | null = home; at; at = at.parent) {
        const facts = this.of(at);
        facts.size++;
        if (status !== "same") facts.changes[status] = (facts.changes[status] ?? 0) + 1;
        if (counted.has(at)) continue;
        counted.add(at);
        if (at.parent && at.kind !== "owner") this.of(at.parent).boxes++;
      }
      const owner = node.bodies?.length ? this.groups.headedBy(node.id) : undefined;
      if (owner) owners.push([node, owner]);
    }
    for (const [, owner] of owners) if (this.size(owner)) this.owners.push(owner);
    this.owners.sort((a, b) => depth(a) - depth(b));
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
    for (let at: Group | null = group; at && !this.opened.has(at); at = at.parent) chain.unshift(at);
    for (const each of group.kind === "owner" ? [...chain, ...group.groups] : chain) {
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
    for (const each of group.groups) {
      if (total > limit) return total;
      total += this.inside(each, limit - total);
    }
    return total;
  }

  /** Open what still fits: the groups of one parent all together, or none of them. */
  private openLevels(): void {
    let level: Group[] = [...this.opened];
    while (level.length) {
      const next: Group[] = [];
      for (const parent of level) {
        const closed = parent.groups.filter((group) => !this.opened.has(group) && this.size(group));
        const cost = closed.reduce((sum, group) => sum + this.boxes(group) - 1, 0);
        if (!closed.length || this.spent + cost > BUDGET) continue;
        this.spent += cost;
        for (const group of closed) this.open(group);
        next.push(...closed);
      }
      level = next;
    }
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

function depth(group: Group): number {
  return group.parent ? 1 + depth(group.parent) : 0;
}

/** The groups around a node, from the outermost. */
export function around(groups: Groups, node: NodeRecord): Group[] {
  const found: Group[] = [];
  for (let at: Group | null = groups.home(node); at && at !== groups.root; at = at.parent) found.unshift(at);
  return found;
}

