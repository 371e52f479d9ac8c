// The visible graph in the DOT language. It holds numbered names and sizes, and no text of the model.

import { PAD, TITLE_HEIGHT, type Box, type Cluster } from "./boxes.ts";
import { widthOf } from "./measure.ts";
import type { End, Visible, VisibleEdge } from "./visible.ts";

const POINTS = 72; // in an inch: sizes of nodes are in inches, a pixel is a point
const SOME = 60; // boxes: an end to the search for straight edges; the pictures are the same
const MANY = 700; // boxes: less effort

export function dotOf(visible: Visible): string {
  const names = new Map(visible.boxes.map((box, index) => [box, `n${index}`]));
  const out: string[] = ["digraph{"];
  const count = visible.boxes.length;
  const effort = count > MANY ? ",splines=polyline,nslimit=2,nslimit1=2,mclimit=0.3" : count > SOME ? ",nslimit=8,nslimit1=2" : "";
  out.push(`graph[rankdir=TB,nodesep=0.25,ranksep=0.36,margin=0${effort}]`);
  out.push('node[shape=box,fixedsize=true,label="",margin=0]edge[arrowhead=none]');
  const [root] = visible.clusters;
  const fed = new Set(visible.edges.filter((edge) => edge.kind !== "back").map((edge) => edge.to.box));
  if (root) writeCluster(root, fed, names, out);
  visible.edges.forEach((edge, index) => out.push(edgeText(edge, index, names)));
  writeRanks(visible, names, out);
  out.push("}");
  return out.join("\n");
}

function writeCluster(cluster: Cluster, fed: ReadonlySet<Box>, names: ReadonlyMap<Box, string>, out: string[]): void {
  for (const box of cluster.boxes) out.push(boxText(box, names));
  const alone = cluster.boxes.filter((box) => box.kind === "result" && !fed.has(box));
  if (alone.length) out.push(`{rank=max;${alone.map((box) => names.get(box)).join(";")}}`); // a Result of a constant
  for (const inner of cluster.clusters) {
    out.push(`subgraph cluster_${inner.key}{graph[margin=${PAD},label=${area(inner.titleWidth + inner.noteWidth + 40, TITLE_HEIGHT)}]`);
    writeCluster(inner, fed, names, out);
    out.push("}");
  }
}

function boxText(box: Box, names: ReadonlyMap<Box, string>): string {
  const name = names.get(box);
  if (box.kind !== "ports" || !box.cells.length) {
    return `${name}[width=${(box.width / POINTS).toFixed(3)},height=${(box.height / POINTS).toFixed(3)}]`;
  }
  const cells = box.cells.map((cell) => `<TD PORT="${portName(cell.port)}" ${size(cell.width, box.height)}></TD>`);
  return `${name}[shape=plain,fixedsize=false,label=<${TABLE}${cells.join("")}</TR></TABLE>>]`;
}

const TABLE = '<TABLE BORDER="0" CELLBORDER="0" CELLSPACING="0" CELLPADDING="0"><TR>';

/** A label of a size and without text. */
function area(width: number, height: number): string {
  return `<${TABLE}<TD ${size(width, height)}></TD></TR></TABLE>>`;
}

function size(width: number, height: number): string {
  return `FIXEDSIZE="TRUE" WIDTH="${Math.ceil(width)}" HEIGHT="${Math.ceil(height)}"`;
}

function portName(port: number): string {
  return port < 0 ? "px" : `p${port}`;
}

function endText(end: End, side: "n" | "s", names: ReadonlyMap<Box, string>): string {
  return `${names.get(end.box)}${end.cell === null ? "" : `:${portName(end.cell)}:${side}`}`;
}

/** A back edge is written the other way round, so that it does not turn the body upside down. */
function edgeText(edge: VisibleEdge, index: number, names: ReadonlyMap<Box, string>): string {
  const options = [`id=${index}`];
  if (edge.label) options.push(`label=${area(labelWidth(edge), edge.below ? 26 : 14)}`);
  if (edge.kind === "back") return `${endText(edge.to, "s", names)}->${endText(edge.from, "n", names)}[${options.join()}]`;
  if (edge.kind === "capture") options.push("weight=0.5");
  return `${endText(edge.from, "s", names)}->${endText(edge.to, "n", names)}[${options.join()}]`;
}

export function labelWidth(edge: VisibleEdge): number {
  return Math.max(widthOf(edge.label, "label"), edge.below ? widthOf(edge.below, "label") : 0) + 6;
}

/** Keep everything of a body between the row of input ports and the row of output ports of its owner. */
function writeRanks(visible: Visible, names: ReadonlyMap<Box, string>, out: string[]): void {
  const fed = new Map<Cluster, Set<Box>>();
  const read = new Map<Cluster, Set<Box>>();
  for (const edge of visible.edges) {
    if (edge.kind === "back") continue;
    for (const owner of ownersOf(edge.to.box)) if (isIn(edge.from.box, owner)) put(fed, owner, edge.to.box);
    for (const owner of ownersOf(edge.from.box)) if (isIn(edge.to.box, owner)) put(read, owner, edge.from.box);
  }
  for (const box of visible.boxes) {
    for (const owner of ownersOf(box)) {
      if (box === owner.top || box === owner.bottom) continue;
      if (owner.top && !fed.get(owner)?.has(box)) out.push(`${names.get(owner.top)}->${names.get(box)}[style=invis,weight=0]`);
      if (owner.bottom && !read.get(owner)?.has(box)) out.push(`${names.get(box)}->${names.get(owner.bottom)}[style=invis,weight=0]`);
    }
  }
  for (const { top, bottom, clusters } of visible.clusters) {
    if (top && bottom && !clusters.length) out.push(`${names.get(top)}->${names.get(bottom)}[style=invis,weight=0]`);
  }
}

function ownersOf(box: Box): Cluster[] {
  const found: Cluster[] = [];
  for (let at: Cluster | null = box.cluster; at; at = at.parent) if (at.top) found.push(at);
  return found;
}

function isIn(box: Box, cluster: Cluster): boolean {
  for (let at: Cluster | null = box.cluster; at; at = at.parent) if (at === cluster) return true;
  return false;
}

function put(sets: Map<Cluster, Set<Box>>, cluster: Cluster, box: Box): void {
  const set = sets.get(cluster);
  if (set) set.add(box);
  else sets.set(cluster, new Set([box]));
}
