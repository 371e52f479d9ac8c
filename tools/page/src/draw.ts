// Draws the visible graph as SVG elements at the positions of a layout. graph.css gives them their looks.

import { countsText, SIGNS, type Box, type Cell, type Cluster, type Line } from "./boxes.ts";
import { headOf, middleOf, pathOf, pointAbove, reversed, type Curve } from "./curves.ts";
import { labelWidth } from "./dot.ts";
import type { Group } from "./groups.ts";
import type { Layout } from "./layout.ts";
import { fit, widthOf } from "./measure.ts";
import { make, text, title } from "./svg.ts";
import type { End, VisibleEdge } from "./visible.ts";
import type { View } from "./view.ts";

const BUTTON = 14;

export interface Rectangle {
  x: number;
  y: number;
  width: number;
  height: number;
}

export function meets(one: Rectangle, other: Rectangle): boolean {
  return one.x < other.x + other.width && other.x < one.x + one.width && one.y < other.y + other.height && other.y < one.y + one.height;
}

export function boxAt(layout: Layout, index: number, box: Box): Rectangle {
  const [x = 0, y = 0] = layout.boxes.subarray(2 * index, 2 * index + 2);
  return { x: x - box.width / 2, y: y - box.height / 2, width: box.width, height: box.height };
}

export function clusterAt(layout: Layout, index: number): Rectangle {
  const [x = 0, y = 0, width = 0, height = 0] = layout.clusters.subarray(4 * index, 4 * index + 4);
  return { x, y, width, height };
}

export function curveOf(layout: Layout, index: number, edge: VisibleEdge): Curve {
  const curve = layout.edges[index] ?? new Float64Array();
  return edge.kind === "back" ? reversed(curve) : curve;
}

export function drawCluster(cluster: Cluster, at: Rectangle): SVGGElement {
  const owner = cluster.group.kind === "owner";
  const group = make("g", {
    class: `cluster ${cluster.group.kind} family-${cluster.family} is-${cluster.status}`,
    "data-group": cluster.group.id, "data-open": "true", "data-kind": cluster.group.kind, "data-status": cluster.status,
    "data-node": owner ? cluster.node : null, role: "group", "aria-label": `${cluster.full}, open`, tabindex: owner ? -1 : null,
  });
  group.append(make("rect", { class: "frame", x: at.x, y: at.y, width: at.width, height: at.height, rx: 8 }));
  const head = make("g", { class: "head" }, title(cluster.note ? `${cluster.full}, ${cluster.note}` : cluster.full));
  head.append(make("rect", { class: "hit", x: at.x, y: at.y, width: at.width, height: 24 }));
  head.append(text(cluster.title, { class: "title", x: at.x + BUTTON + 16, y: at.y + 19 }));
  if (cluster.note) head.append(text(cluster.note, { class: "note", x: at.x + BUTTON + 26 + cluster.titleWidth, y: at.y + 19 }));
  group.append(head, button(at.x + 16, at.y + 15, cluster.group.id, true, cluster.full));
  if (cluster.status !== "same") group.append(badge(at.x + at.width - 4, at.y + 4, cluster.status));
  return group;
}

export function drawBox(box: Box, at: Rectangle, operator: string): SVGGElement {
  const fold = box.group !== null;
  const group = make("g", {
    class: `box ${box.kind} family-${box.family} is-${box.status}${hasChanges(box) ? " has-changes" : ""}`,
    transform: `translate(${round(at.x)} ${round(at.y)})`,
    "data-node": box.kind === "ports" ? null : box.node, "data-op": box.kind === "ports" ? null : operator || null,
    "data-status": box.status, "data-group": box.group?.id, "data-open": fold ? "false" : null, "data-kind": box.group?.kind,
    role: box.kind === "ports" ? "group" : "button", "aria-label": box.full, "aria-expanded": fold ? "false" : null, tabindex: -1,
  });
  group.append(title(box.full));
  if (box.kind === "ports") {
    drawCells(box, group);
    return group;
  }
  if (box.kind === "fold") group.append(make("rect", { class: "behind", x: 3, y: 3, width: at.width, height: at.height, rx: 6 }));
  const rx = box.kind === "parameter" || box.kind === "result" ? Math.min(14, at.height / 2) : 6;
  group.append(make("rect", { class: "body", width: at.width, height: at.height, rx }));
  const left = fold ? BUTTON + 4 : 0;
  group.append(text(box.title, { class: "title", x: left + (at.width - left) / 2, y: 16 }));
  if (box.group) group.append(button(14, 12, box.group.id, false, box.full));
  box.lines.forEach((line, index) => group.append(drawLine(line, index, at.width)));
  const counts = countsText(box.counts);
  if (counts) group.append(text(counts, { class: "counts", x: at.width / 2, y: at.height - 6 }));
  if (box.status !== "same") group.append(badge(at.width - 1, 1, box.status));
  return group;
}

/** What folds open runs, to the left of their first box. */
export function drawRuns(runs: readonly Group[], at: Rectangle): SVGGElement[] {
  return runs.map((run, index) => {
    const group = make("g", { class: "run-head", "data-group": run.id, "data-open": "true", "data-kind": "run" }, title(run.title));
    group.append(button(at.x - 14 - 18 * index, at.y + 11, run.id, true, run.title));
    return group;
  });
}

function drawLine(line: Line, index: number, width: number): SVGGElement {
  const y = 31 + 14 * index;
  const constant = line.node !== null;
  const group = make("g", {
    class: `line font-${line.font} is-${line.status}`, "data-node": line.node, "data-op": constant ? "Constant" : null,
    "data-status": constant ? line.status : null, role: constant ? "button" : null, "aria-label": constant ? line.full : null,
  });
  group.append(title(line.full));
  if (constant) group.append(make("rect", { class: "hit", x: 4, y: y - 10.5, width: width - 8, height: 14, rx: 3 }));
  const sign = constant ? SIGNS[line.status] : "";
  group.append(text(sign ? `${sign} ${line.text}` : line.text, { x: width / 2, y }));
  return group;
}

function drawCells(box: Box, group: SVGGElement): void {
  let x = 0;
  for (const cell of box.cells) {
    group.append(drawCell(cell, x, box.height));
    x += cell.width;
  }
  if (!box.cells.length) group.append(make("rect", { class: "body", width: box.width, height: box.height, rx: 4 }));
}

function drawCell(cell: Cell, x: number, height: number): SVGGElement {
  const constant = cell.node !== null;
  const group = make("g", {
    class: `cell is-${cell.status}${constant ? " line" : ""}`, transform: `translate(${round(x)} 0)`, "data-node": cell.node,
    "data-port": cell.port, role: constant ? "button" : null, "aria-label": cell.full,
  });
  group.append(title(cell.full), make("rect", { class: "body", x: 1, width: cell.width - 2, height, rx: 4 }));
  group.append(text(cell.text, { class: "port", x: cell.width / 2, y: cell.below ? 14 : height / 2 + 3.5 }));
  if (cell.below) group.append(text(cell.below, { class: "value", x: cell.width / 2, y: 27 }));
  return group;
}

export function drawEdge(edge: VisibleEdge, curve: Curve, view: View, labelAt: { x: number; y: number } | null): SVGGElement {
  const type = typeOf(edge, view);
  const said = [edge.label || (edge.kind === "capture" ? "capture" : ""), type, edge.count > 1 ? `${edge.count} edges` : ""];
  const full = `${nameOf(edge.from)} to ${nameOf(edge.to)}${said.filter(Boolean).map((each) => `, ${each}`).join("")}`;
  const group = make("g", {
    class: `edge ${edge.kind} role-${edge.role.replaceAll(" ", "-") || "data"} is-${edge.status}${edge.count > 1 ? " several" : ""}`,
    "data-edge": edge.text, "data-kind": edge.kind, "data-role": edge.role || null, "data-status": edge.status,
    role: "button", "aria-label": full, tabindex: -1,
  });
  const d = pathOf(curve);
  group.append(title(full), make("path", { class: "hit", d }), make("path", { class: "line", d }), make("path", { class: "arrow", d: headOf(curve) }));
  const at = labelAt ?? middleOf(curve);
  if (edge.label) group.append(...labelTexts(edge, at));
  else if (edge.count > 1) group.append(text(String(edge.count), { class: "label count", x: at.x + 4, y: at.y + 3 }));
  return group;
}

function labelTexts(edge: VisibleEdge, at: { x: number; y: number }): SVGElement[] {
  const [width, height] = [labelWidth(edge), edge.below ? 26 : 14];
  const back = make("rect", { class: "paper", x: at.x - width / 2, y: at.y - height / 2, width, height, rx: 3 });
  const first = text(edge.label, { class: "label", x: at.x, y: edge.below ? at.y - 2 : at.y + 3.5 });
  return edge.below ? [back, first, text(edge.below, { class: "label layer", x: at.x, y: at.y + 10 })] : [back, first];
}

/**
 * The type of what an edge carries, drawn in its middle, or above the title of the cluster that it enters; nothing where
 * other types take the place.
 */
export function drawType(edge: VisibleEdge, curve: Curve, view: View, entered: Rectangle | null, taken: Rectangle[]): SVGGElement | null {
  const type = typeOf(edge, view);
  if (!type || edge.kind === "back") return null;
  const content = fit(type, "line", 180);
  const width = widthOf(content, "line") + 8;
  const at = entered ? pointAbove(curve, entered.y - 9) : middleOf(curve);
  const own = edge.label ? 16 : 0;
  const area = (shift: number): Rectangle => ({ x: at.x - width / 2, y: at.y - 7 + shift, width, height: 14 });
  const free = [own, own - 15, own + 15].find((shift) => !taken.some((each) => meets(each, area(shift))));
  if (free === undefined) return null;
  taken.push(area(free));
  const back = make("rect", { class: "paper", ...area(free), rx: 3 });
  return make("g", { class: "type" }, back, text(content, { x: at.x, y: at.y + 3.5 + free }));
}

function typeOf(edge: VisibleEdge, view: View): string {
  const producer = view.node(edge.key.from);
  return producer?.outputs[edge.key.port]?.type ?? "";
}

function nameOf(end: End): string {
  const { box } = end;
  return box.kind === "ports" ? box.cells.find((cell) => cell.port === end.cell)?.full || box.full : (box.full.split(": ")[0] ?? "");
}

function button(x: number, y: number, group: string, open: boolean, name: string): SVGGElement {
  const half = BUTTON / 2;
  const element = make("g", {
    class: "toggle", "data-toggle": group, transform: `translate(${round(x)} ${round(y)})`, role: "button",
    "aria-expanded": open ? "true" : "false", "aria-label": `${open ? "Fold" : "Open"} ${name}`,
  });
  element.append(make("rect", { x: -half, y: -half, width: BUTTON, height: BUTTON, rx: 4 }));
  element.append(make("path", { d: open ? "M-3.5,0H3.5" : "M-3.5,0H3.5M0,-3.5V3.5" }));
  return element;
}

/** The signs of a step as lines, which can be told apart when they are small. */
const MARKS: Record<string, string> = {
  added: "M-4,0H4M0,-4V4",
  removed: "M-4,0H4",
  rewired: "M-4.5,-2H3.5L1,-4.4M4.5,2H-3.5L-1,4.4",
  changed: "M-3.6,3.6L-2.8,0.9L2.2,-4.1L4.1,-2.2L-0.9,2.8ZM0.9,-2.8L2.8,-0.9", // a pencil
};

function badge(x: number, y: number, status: string): SVGGElement {
  const element = make("g", { class: `badge is-${status}`, transform: `translate(${round(x)} ${round(y)})`, "aria-hidden": "true" });
  element.append(make("circle", { r: 8 }), make("path", { d: MARKS[status] }));
  return element;
}

function hasChanges(box: Box): boolean {
  return Object.keys(box.counts).length > 0;
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
