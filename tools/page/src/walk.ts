// Moving over the picture with keys: from a node to what it reads, to its readers, sideways, into bodies and out.

import type { Box } from "./boxes.ts";
import type { NodeId } from "./document.ts";
import type { Group } from "./groups.ts";
import type { Pane } from "./pane.ts";
import type { View } from "./view.ts";
import type { Visible } from "./visible.ts";

export type Direction = "up" | "down" | "left" | "right" | "in" | "out";

export class Walk {
  private readonly view: View;

  constructor(
    private readonly pane: Pane,
    private readonly visible: Visible,
  ) {
    this.view = visible.view;
  }

  from(node: NodeId, direction: Direction): NodeId | null {
    if (direction === "up") return this.up(node);
    if (direction === "down") return this.down(node);
    if (direction === "in") return this.into(node);
    if (direction === "out") return this.ownerOf(node);
    return this.sideways(node, direction === "right" ? 1 : -1);
  }

  private up(id: NodeId): NodeId | null {
    const node = this.view.node(id);
    if (!node) return null;
    const own = this.visible.boxOf(id);
    for (const { key } of this.view.into(node)) {
      const producer = this.view.node(key.from);
      if (producer && !this.view.isInlined(producer) && this.visible.boxOf(key.from) !== own) return key.from;
    }
    if (own && own.kind === "fold") return this.ends(own, "from");
    return node.op === "Parameter" ? this.ownerOf(id) : null;
  }

  private down(id: NodeId): NodeId | null {
    const own = this.visible.boxOf(id);
    const reader = this.view.readers(id).find((each) => this.visible.boxOf(each.node) !== own || !own);
    if (reader) return reader.node;
    if (own && own.kind === "fold") return this.ends(own, "to");
    return this.view.node(id)?.op === "Result" ? this.ownerOf(id) : null;
  }

  /** A node beyond a folded group, along one of its edges. */
  private ends(box: Box, end: "from" | "to"): NodeId | null {
    const edge = this.visible.edges.find((each) => each[end === "from" ? "to" : "from"].box === box);
    return edge ? edge.key[end] : null;
  }

  private into(id: NodeId): NodeId | null {
    for (const scope of this.view.node(id)?.bodies ?? []) {
      const body = this.view.after.scopes.get(scope) ?? this.view.before.scopes.get(scope);
      const first = body?.parameters[0] ?? this.view.after.within(scope)[0] ?? body?.results[0];
      if (first !== undefined) return first;
    }
    return null;
  }

  private ownerOf(id: NodeId): NodeId | null {
    const node = this.view.node(id);
    if (!node) return null;
    return (this.view.after.scopes.get(node.scope) ?? this.view.before.scopes.get(node.scope))?.owner ?? null;
  }

  private sideways(id: NodeId, sign: 1 | -1): NodeId | null {
    const at = this.pane.rectangleOf(id);
    const own = this.visible.boxOf(id);
    if (!at) return null;
    const [x, y] = [at.x + at.width / 2, at.y + at.height / 2];
    let [best, nearest]: [Box | null, number] = [null, Infinity];
    for (const box of this.visible.boxes) {
      const other = this.pane.rectangleOfBox(box);
      if (box === own || box.kind === "ports" || !other) continue;
      const across = (other.x + other.width / 2 - x) * sign;
      const along = Math.abs(other.y + other.height / 2 - y);
      if (across <= 0 || along > (other.height + at.height) / 2) continue;
      if (across < nearest) [best, nearest] = [box, across];
    }
    if (!best) return null;
    return best.node ?? (best.group ? this.firstIn(best.group) : null);
  }

  /** Some node of a folded group: selecting it selects the group. */
  private firstIn(group: Group): NodeId | null {
    for (const node of this.view.nodes()) {
      if (this.visible.folding.hidingNode(node) === group) return node.id;
    }
    return null;
  }
}
