// The boxes of the picture with their texts and sizes in pixels.

import { CHANGE_SIGNS } from "./context.ts";
import type { NodeId, NodeRecord } from "./document.ts";
import { count, plural } from "./dom.ts";
import { familyOf } from "./families.ts";
import type { Counts } from "./folding.ts";
import { isConstant, nameIn, type Group } from "./groups.ts";
import { iterationsOf } from "./labels.ts";
import { fit, widthOf, type Font } from "./measure.ts";
import type { Status, View, ViewEdge } from "./view.ts";

const WIDEST = 210;
const LINES = 4; // constants in one box
const SMALL_VALUE = 26; // characters of a value that stands in a line
const NARROW = 14; // ports before cells hold numbers only

export const PAD = 10;
export const TITLE_HEIGHT = 22; // of a cluster

export type BoxKind = "node" | "constant" | "parameter" | "result" | "fold" | "ports";

export interface Line {
  text: string;
  full: string;
  font: Font;
  node: NodeId | null; // the constant of the line
  status: Status;
}

export interface Cell {
  port: number;
  text: string;
  below: string; // the value of a constant
  full: string;
  width: number;
  node: NodeId | null; // the constant that the port reads
  status: Status;
}

export interface Box {
  key: string;
  kind: BoxKind;
  node: NodeId | null;
  group: Group | null; // what opens when the box is opened
  status: Status;
  family: string;
  title: string;
  lines: Line[];
  counts: Counts; // of changes inside
  cells: Cell[];
  full: string; // for title and screen readers
  width: number;
  height: number;
  cluster: Cluster;
  place: number;
}

export interface Cluster {
  key: string;
  group: Group;
  title: string;
  full: string;
  titleWidth: number;
  note: string; // the trip count
  noteWidth: number;
  status: Status;
  node: NodeId | null;
  family: string;
  parent: Cluster | null;
  clusters: Cluster[];
  boxes: Box[];
  top: Box | null; // the row of input ports
  bottom: Box | null; // the row of output ports
  place: number;
}

export const SIGNS: Record<Status, string> = { same: "", ...CHANGE_SIGNS };

const SAID: Record<Status, string> = { same: "", added: ", added", removed: ", removed", rewired: ", rewired", changed: ", changed" };

/** "+3 −1 ~2": the changes in a group. */
export function countsText(counts: Counts): string {
  return (["added", "removed", "rewired", "changed"] as const)
    .filter((status) => counts[status])
    .map((status) => `${SIGNS[status]}${count(counts[status] ?? 0)}`)
    .join(" ");
}

export function nodeBox(node: NodeRecord, view: View, cluster: Cluster, edges: readonly ViewEdge[], inside: string): Box {
  const kind = kindOf(node);
  const title = fit(titleOf(node, kind), "title", WIDEST - 2 * PAD);
  const lines: Line[] = [];
  const status = view.status(node.id);
  if (kind === "constant") lines.push(textLine(typeOf(node), status, "line"));
  else if (node.name && node.name !== title) lines.push({ ...textLine(nameIn(cluster.group, node.name), "same", "text"), full: node.name });
  if (inside) lines.push(textLine(inside, "same", "label"));
  if (inside && iterationsOf(node)) lines.push(textLine(iterationsOf(node), "same", "label"));
  if (kind === "parameter") lines.push(textLine(typeOf(node), "same", "line"));
  lines.push(...constantLines(view, edges));
  return withSize({
    key: `n${node.id}`, kind, node: node.id, group: null, status, family: familyOf(node.op), title, lines, counts: {}, cells: [],
    full: fullOf(node, status), cluster, place: 0, width: 0, height: 0,
  });
}

/** The blocks of a run, also of the runs in it. */
function blocksOf(group: Group): number {
  if (group.kind !== "run") return 0;
  return group.groups.reduce((sum, each) => sum + (each.kind === "names" ? 1 : blocksOf(each)), 0);
}

export function foldBox(group: Group, size: number, counts: Counts, cluster: Cluster, name: string): Box {
  const named = blocksOf(group);
  const blocks = named > 1 ? `${plural(named, "block")}, ` : "";
  const lines = [textLine(`${blocks}${plural(size, "node")}`, "same", "label")];
  const title = fit(name, "title", WIDEST - 2 * PAD - 14);
  const changes = countsText(counts);
  const full = `${name}, folded group of ${plural(size, "node")}${changes ? `, changes: ${changes}` : ""}`;
  return withSize({
    key: `g${group.id}`, kind: "fold", node: null, group, status: "same", family: group.kind, title, lines, counts, cells: [], full,
    cluster, place: 0, width: 0, height: 0,
  });
}

/** A row of ports: cells next to each other. */
export function portsBox(key: string, node: NodeRecord, cells: Cell[], status: Status, cluster: Cluster, full: string): Box {
  const narrow = cells.length > NARROW;
  for (const cell of cells) {
    if (narrow) [cell.text, cell.below] = [cell.port < 0 ? "\u2022" : String(cell.port), ""];
    cell.width = narrow ? 26 : Math.ceil(Math.max(30, widthOf(cell.text, "label"), widthOf(cell.below, "line")) + 14);
  }
  const height = cells.some((cell) => cell.below) ? 34 : 22;
  const width = Math.max(40, cells.reduce((sum, cell) => sum + cell.width, 0));
  return {
    key, kind: "ports", node: node.id, group: null, status, family: "control", title: "", lines: [], counts: {}, cells, full,
    width, height, cluster, place: 0,
  };
}

export function portCell(port: number, name: string, constant: NodeRecord | undefined, status: Status): Cell {
  const value = constant ? valueOf(constant) : "";
  return {
    port, text: fit(name, "label", 110), below: fit(value, "line", 110), full: value ? `${name}: ${value}` : name, width: 0,
    node: constant?.id ?? null, status,
  };
}

export function fullOf(node: NodeRecord, status: Status): string {
  const types = node.outputs.slice(0, 4).map((each) => each.type).join(", ");
  return `${`${node.op} ${node.name}`.trim()}${types ? `: ${types}` : ""}${SAID[status]}`;
}

function kindOf(node: NodeRecord): BoxKind {
  if (isConstant(node)) return "constant";
  if (node.op === "Parameter" || node.op === "Input") return "parameter";
  return node.op === "Result" || node.op === "Output" ? "result" : "node";
}

function titleOf(node: NodeRecord, kind: BoxKind): string {
  return kind === "constant" ? node.name || node.op : node.op;
}

function typeOf(node: NodeRecord): string {
  return node.outputs[0]?.type ?? "";
}

/** The value of a small constant, the type of a large one. */
function valueOf(node: NodeRecord): string {
  const value = node.value ?? "";
  return value && value.length <= SMALL_VALUE ? value : typeOf(node);
}

function textLine(text: string, status: Status, font: Font): Line {
  return { text: fit(text, font, WIDEST - 2 * PAD), full: text, font, node: null, status };
}

function constantLines(view: View, edges: readonly ViewEdge[]): Line[] {
  const found: Line[] = [];
  let more = 0;
  for (const { key, status } of edges) {
    const constant = view.node(key.from);
    if (!constant || !view.isInlined(constant)) continue;
    if (found.length === LINES) {
      more++;
      continue;
    }
    const line = textLine(`${key.input}: ${valueOf(constant)}`, status === "same" ? view.status(constant.id) : status, "line");
    found.push({ ...line, full: fullOf(constant, line.status), node: constant.id });
  }
  if (more) found.push(textLine(`and ${more} more constants`, "same", "label"));
  return found;
}

/** Tell how many tensors a folded group reads and gives. */
export function tellTraffic(box: Box, inputs: number, outputs: number): void {
  const traffic = [inputs && `${inputs} in`, outputs && `${outputs} out`].filter(Boolean).join(", ");
  const [first] = box.lines;
  if (!first || !traffic) return;
  box.lines[0] = textLine(`${first.text}, ${traffic}`, "same", "label");
  box.full += `, ${traffic}`;
  withSize(box);
}

function withSize(box: Box): Box {
  const texts = box.lines.map((line) => widthOf(line.text, line.font));
  const sign = box.group || box.kind === "fold" ? 18 : 0;
  const counts = countsText(box.counts);
  const inner = Math.max(widthOf(box.title, "title") + sign, counts ? widthOf(counts, "label") + 8 : 0, ...texts);
  box.width = Math.ceil(Math.max(48, inner + 2 * PAD));
  box.height = 24 + 14 * box.lines.length + (box.lines.length ? 3 : 0) + (counts ? 15 : 0);
  return box;
}
