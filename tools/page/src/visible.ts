// The graph that is visible when some groups are folded: boxes in clusters, and edges between boxes.

import { foldBox, nodeBox, portCell, portsBox, tellTraffic, type Box, type Cluster } from "./boxes.ts";
import type { NodeId, NodeRecord } from "./document.ts";
import { familyOf } from "./families.ts";
import type { Folding } from "./folding.ts";
import type { Group, Groups } from "./groups.ts";
import { iterationsOf } from "./labels.ts";
import { fit, widthOf } from "./measure.ts";
import { EXTRA, inputName, outputName } from "./roles.ts";
import type { States } from "./states.ts";
import type { EdgeKey } from "./store.ts";
import { edgeText, type Status, type View } from "./view.ts";

export type EdgeKind = "data" | "port" | "back" | "capture";

export interface End {
  box: Box;
  cell: number | null; // a port of a row of ports
}

export interface VisibleEdge {
  key: EdgeKey; // of the first edge that it stands for
  text: string; // its id
  kind: EdgeKind;
  role: string;
  label: string;
  below: string; // a second line of the label
  status: Status;
  count: number; // of edges that it stands for
  from: End;
  to: End;
}

export class Visible {
  readonly boxes: Box[] = [];
  readonly clusters: Cluster[] = []; // parents before children; the first is the whole picture
  readonly edges: VisibleEdge[] = [];
  readonly runs = new Map<Box, Group[]>(); // open runs, which have no frame, by the first box of each
  private readonly byKey = new Map<string, Box>();
  private readonly clusterOf = new Map<Group, Cluster>();
  private readonly shownBy: (Box | undefined)[] = []; // by the id of the node
  private readonly traffic = new Map<Box, { into: Set<string>; out: Set<string> }>(); // tensors of folded groups
  private readonly merged = new Map<string, VisibleEdge>();

  constructor(
    readonly view: View,
    readonly groups: Groups,
    readonly folding: Folding,
    private readonly states: States,
  ) {
    this.cluster(groups.root);
    const shown: NodeRecord[] = [];
    for (const node of view.nodes()) {
      if (!view.isInlined(node) && !folding.hidingNode(node)) shown.push(node);
    }
    shown.sort((a, b) => states.place(a.id) - states.place(b.id) || a.id - b.id);
    for (const node of shown) this.addNode(node);
    for (const group of groups.all()) {
      if (group !== groups.root && folding.size(group) && folding.hiding(group) === group && !this.box(group)) this.addFold(group);
    }
    for (const node of view.nodes()) this.shownBy[node.id] = this.findBox(node);
    for (const node of view.nodes()) this.addEdges(node);
    for (const [box, { into, out }] of this.traffic) tellTraffic(box, into.size, out.size);
    this.order();
    this.findRuns();
  }

  /** The box that shows a node: its own, or that of the group that hides it. */
  boxOf(id: NodeId): Box | undefined {
    return this.shownBy[id];
  }

  private findBox(node: NodeRecord): Box | undefined {
    const hidden = this.folding.hidingNode(node);
    if (hidden) return this.box(hidden);
    return this.view.isInlined(node) ? undefined : (this.byKey.get(`n${node.id}`) ?? this.byKey.get(`i${node.id}`));
  }

  private box(group: Group): Box | undefined {
    return this.byKey.get(`g${group.id}`) ?? this.byKey.get(`n${this.folding.head(group)?.id}`);
  }

  private cluster(group: Group): Cluster {
    const found = this.clusterOf.get(group);
    if (found) return found;
    const around = this.folding.parent(group);
    const parent = around && this.cluster(around);
    if (parent && (group.kind === "run" || this.folding.isTransparent(group))) {
      this.clusterOf.set(group, parent);
      return parent;
    }
    const owner = this.folding.head(group);
    const full = owner ? `${owner.op} ${owner.name}` : group.title;
    const title = fit(full, "title", 320);
    const note = fit(iterationsOf(owner), "label", 220);
    const made: Cluster = {
      key: `c${this.clusters.length}`, group, title, full, titleWidth: widthOf(title, "title"), note, noteWidth: note ? widthOf(note, "label") + 10 : 0,
      status: owner ? this.view.status(owner.id) : "same", node: owner?.id ?? null, family: owner ? familyOf(owner.op) : group.kind,
      parent, clusters: [], boxes: [], top: null, bottom: null, place: 0,
    };
    this.clusterOf.set(group, made);
    this.clusters.push(made);
    parent?.clusters.push(made);
    return made;
  }

  private addNode(node: NodeRecord): void {
    const foldable = this.folding.headedBy(node.id);
    if (foldable && this.folding.isOpen(foldable)) {
      this.addRows(node, foldable);
      return;
    }
    const inside = foldable ? this.insideText(foldable) : "";
    const box = nodeBox(node, this.view, this.cluster(this.groups.home(node)), this.view.into(node), inside);
    if (foldable) {
      box.group = foldable;
      box.counts = this.folding.changes(foldable);
    }
    this.add(box, this.states.place(node.id));
  }

  private insideText(owner: Group): string {
    return this.folding.children(owner).map((scope) => `${scope.title}: ${this.folding.size(scope)} nodes`).join(", ");
  }

  private addRows(node: NodeRecord, group: Group): void {
    const cluster = this.cluster(group);
    const status = this.view.status(node.id);
    const place = this.states.place(node.id);
    const edges = this.view.into(node);
    const cells = node.inputs.map((value, port) => {
      const constant = value ? this.view.node(value[0]) : undefined;
      const edge = edges.find((each) => each.key.input === port && each.status !== "removed");
      const shown = constant && this.view.isInlined(constant) ? constant : undefined;
      return portCell(port, inputName(node, port), shown, edge?.status ?? "same");
    });
    if (typeof node.port_map?.iteration === "number") cells.push(portCell(EXTRA, inputName(node, EXTRA), undefined, "same"));
    const outs = node.outputs.map((_, port) => portCell(port, outputName(port), undefined, "same"));
    if (typeof node.port_map?.condition === "number") outs.push(portCell(EXTRA, outputName(EXTRA), undefined, "same"));
    cluster.top = portsBox(`i${node.id}`, node, cells, status, cluster, `Inputs of ${node.op} ${node.name}`);
    cluster.bottom = portsBox(`o${node.id}`, node, outs, status, cluster, `Outputs of ${node.op} ${node.name}`);
    this.add(cluster.top, place);
    this.add(cluster.bottom, place);
  }

  private addFold(group: Group): void {
    const cluster = this.cluster(this.folding.parent(group) ?? this.groups.root);
    const box = foldBox(group, this.folding.size(group), this.folding.changes(group), cluster, group.title);
    this.add(box, Infinity);
  }

  private add(box: Box, place: number): void {
    box.place = place;
    this.byKey.set(box.key, box);
    this.boxes.push(box);
    box.cluster.boxes.push(box);
  }

  private addEdges(node: NodeRecord): void {
    const to = this.shownBy[node.id];
    if (!to) return;
    if (to.kind === "fold") to.place = Math.min(to.place, this.states.place(node.id));
    if (this.view.status(node.id) === "same" && !node.port_map && this.readsOnly(node, to)) return;
    for (const { key, status } of this.view.into(node)) {
      const producer = this.view.node(key.from);
      if (!producer || this.view.isInlined(producer)) continue;
      const kind = producer.scope === node.scope ? "data" : "capture";
      const from = this.byKey.get(`o${key.from}`) ?? this.boxOf(key.from);
      if (!from || from === to || (to.kind === "ports" && from.cluster === to.cluster && from.node === to.node)) continue;
      const label = kind === "capture" ? "capture" : "";
      this.connect({ key, kind, role: label, label: "", below: "", status, from: end(from, key.port), to: end(to, key.input) });
    }
    if (!node.port_map || to.kind !== "ports") return;
    for (const edge of this.view.ports(node)) {
      const outer = this.byKey.get(edge.key.to === node.id ? `o${node.id}` : `i${node.id}`);
      const source = edge.key.from === node.id ? outer : this.boxOf(edge.key.from);
      const target = edge.key.to === node.id ? outer : this.boxOf(edge.key.to);
      if (!source || !target || source === target) continue;
      const below = edge.layer === undefined ? "" : `internal_layer_id ${edge.layer}`;
      this.connect({ ...edge, below, from: end(source, edge.key.port), to: end(target, edge.key.input) });
    }
  }

  /** Whether all that a node reads is in its own box. */
  private readsOnly(node: NodeRecord, box: Box): boolean {
    for (const value of node.inputs) if (value && this.shownBy[value[0]] !== box) return false;
    return true;
  }

  /** Add an edge; edges of a folded group that go the same way are one. */
  private connect(edge: Omit<VisibleEdge, "count" | "text">): void {
    const folded = this.isFold(edge.from.box) || this.isFold(edge.to.box);
    if (folded) this.tell(edge);
    const way = `${edge.from.box.key}:${edge.from.cell}>${edge.to.box.key}:${edge.to.cell} ${edge.kind}`;
    const text = folded ? way : `${edge.kind} ${edgeText(edge.key)} ${edge.status === "removed"}`;
    const found = this.merged.get(text);
    if (!found) {
      const made = { ...edge, text: `${edgeText(edge.key)}`, count: 1 };
      this.merged.set(text, made);
      this.edges.push(made);
      return;
    }
    found.count++;
    if (found.status !== edge.status) found.status = "same";
    if (found.label !== edge.label) found.label = "";
    found.below = "";
  }

  private tell(edge: Pick<VisibleEdge, "from" | "to" | "key">): void {
    const tensor = `${edge.key.from}:${edge.key.port}`;
    for (const box of [edge.from.box, edge.to.box]) {
      if (box.kind !== "fold") continue;
      const known = this.traffic.get(box) ?? { into: new Set(), out: new Set() };
      this.traffic.set(box, known);
      (box === edge.to.box ? known.into : known.out).add(tensor);
    }
  }

  private isFold(box: Box): boolean {
    return box.kind === "fold" || box.group !== null;
  }

  private findRuns(): void {
    const found = new Set<Group>();
    for (const { boxes } of this.clusters) {
      for (const box of boxes) {
        for (let at = this.groupOf(box); at; at = this.folding.parent(at)) {
          if (at.kind !== "run" || found.has(at) || !this.folding.isOpen(at) || this.folding.isTransparent(at)) continue;
          found.add(at);
          const runs = this.runs.get(box);
          if (runs) runs.push(at);
          else this.runs.set(box, [at]);
        }
      }
    }
  }

  /** The innermost group around a box. */
  private groupOf(box: Box): Group | null {
    const node = box.node === null ? undefined : this.view.node(box.node);
    if (box.kind === "ports" || !node) return box.group && this.folding.parent(box.group);
    return this.groups.home(node);
  }

  private order(): void {
    for (const cluster of [...this.clusters].reverse()) {
      cluster.boxes.sort(byPlace);
      cluster.place = Math.min(...[Infinity, cluster.boxes[0]?.place ?? Infinity, ...cluster.clusters.map((each) => each.place)]);
      cluster.clusters.sort(byPlace);
    }
  }
}

function byPlace(a: { place: number }, b: { place: number }): number {
  return a.place === b.place ? 0 : a.place - b.place;
}

function end(box: Box, port: number): End {
  const has = box.kind === "ports" && box.cells.some((cell) => cell.port === port);
  return { box, cell: has ? port : null };
}
