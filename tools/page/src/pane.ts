// One drawing with its camera. Of a large graph only what is on screen has elements.

import type { Box } from "./boxes.ts";
import { Camera, type Point } from "./camera.ts";
import { pathOf, type Curve } from "./curves.ts";
import type { NodeId } from "./document.ts";
import { boxAt, clusterAt, curveOf, drawBox, drawCluster, drawEdge, drawRuns, drawType, meets, type Rectangle } from "./draw.ts";
import type { Group } from "./groups.ts";
import { heatClass } from "./heat_scale.ts";
import type { Layout } from "./layout.ts";
import type { Shown } from "./store.ts";
import { make } from "./svg.ts";
import { edgeText } from "./view.ts";
import type { Visible, VisibleEdge } from "./visible.ts";

const FEW = 500; // boxes and edges that are all drawn, on screen or not
const MOST = 2500; // boxes and edges on screen that are drawn one by one
const READABLE = 1.15; // scale from which edges have their types, where that is set
const MARGIN = 0.5; // of the screen, drawn around it

export type HeatMap = ReadonlyMap<string, number>; // "node:port" to the worst difference

export interface PaneEvents {
  moved(pane: Pane, shift: Point, factor: number, about: Point): void;
  clicked(pane: Pane, event: MouseEvent): void;
}

export class Pane {
  readonly svg: SVGSVGElement;
  readonly camera: Camera;
  visible: Visible | null = null;
  layout: Layout | null = null;
  private shown: Shown | null = null;
  private heat: HeatMap = new Map();
  private readonly world = make("g", { class: "world" });
  private readonly layers = {
    clusters: make("g", { class: "clusters" }),
    edges: make("g", { class: "edges" }),
    boxes: make("g", { class: "boxes" }),
    runs: make("g", { class: "runs" }),
    far: make("g", { class: "far", "aria-hidden": "true" }),
    types: make("g", { class: "types", "aria-hidden": "true" }),
  };
  private boxes = new Map<number, SVGGElement>();
  private clusters: SVGGElement[] = [];
  private edges = new Map<number, SVGGElement>();
  private boxRects: Rectangle[] = [];
  private edgeRects: Rectangle[] = [];
  private curves: Curve[] = [];
  private indexes = new Map<Box, number>();
  private painted: Rectangle | null = null; // null: everything
  private planned = 0;

  constructor(
    host: HTMLElement,
    readonly side: string,
    events: PaneEvents,
  ) {
    this.svg = make("svg", { class: "graph", "data-side": side, role: "group", "aria-label": "Graph", tabindex: 0 });
    const { clusters, edges, boxes, runs, far, types } = this.layers;
    this.world.append(clusters, far, edges, boxes, runs, types);
    this.svg.append(this.world);
    host.append(this.svg);
    this.camera = new Camera(this.svg, (shift, factor, about) => events.moved(this, shift, factor, about));
    this.svg.addEventListener("click", (event) => {
      if (!this.camera.moved) events.clicked(this, event);
    });
  }

  remove(): void {
    this.svg.remove();
  }

  /** Draw a graph; the camera stays where it is. */
  show(visible: Visible, layout: Layout, shown: Shown, heat: HeatMap): void {
    [this.visible, this.layout, this.shown, this.heat] = [visible, layout, shown, heat];
    for (const layer of Object.values(this.layers)) layer.replaceChildren();
    [this.boxes, this.edges, this.clusters] = [new Map(), new Map(), []];
    this.indexes = new Map(visible.boxes.map((box, index) => [box, index]));
    this.boxRects = visible.boxes.map((box, index) => boxAt(layout, index, box));
    this.curves = visible.edges.map((edge, index) => curveOf(layout, index, edge));
    this.edgeRects = this.curves.map(boundsOf);
    this.svg.dataset["step"] = String(shown.step);
    this.svg.dataset["mode"] = shown.mode;
    this.svg.classList.toggle("has-changes", visible.view.marked && visible.view.changes.nodes.size > 0);
    visible.clusters.forEach((cluster, index) => {
      if (!cluster.parent) return;
      const element = drawCluster(cluster, clusterAt(layout, index));
      this.clusters[index] = element;
      this.layers.clusters.append(element);
    });
    for (const [box, runs] of visible.runs) {
      const at = this.rectangleOfBox(box);
      if (at) this.layers.runs.append(...drawRuns(runs, at));
    }
  }

  /** The place of a node, or of the group that shows it. */
  rectangleOf(node: NodeId): Rectangle | null {
    const cluster = this.visible?.clusters.findIndex((each) => each.group.kind === "owner" && each.node === node) ?? -1;
    if (cluster > 0 && this.layout) return clusterAt(this.layout, cluster);
    const box = this.visible?.boxOf(node);
    return box ? this.rectangleOfBox(box) : null;
  }

  rectangleOfBox(box: Box): Rectangle | null {
    const index = this.indexes.get(box);
    return index === undefined ? null : (this.boxRects[index] ?? null);
  }

  rectangleOfGroup(id: string): Rectangle | null {
    if (!this.visible || !this.layout) return null;
    const cluster = this.visible.clusters.findIndex((each) => each.parent && each.group.id === id);
    if (cluster >= 0) return clusterAt(this.layout, cluster);
    const first = [...this.visible.runs].find(([, runs]) => runs.some((run) => run.id === id))?.[0];
    const box = first ?? this.visible.boxes.find((each) => each.group?.id === id);
    return box ? this.rectangleOfBox(box) : null;
  }

  /** The open groups that hold the middle of the screen, from the outermost. */
  around(): Group[] {
    const middle = { ...this.camera.toDrawing(this.camera.middle), width: 0, height: 0 };
    const { layout } = this;
    if (!layout) return [];
    return (this.visible?.clusters ?? []).filter((each, index) => each.parent && contains(clusterAt(layout, index), middle)).map((each) => each.group);
  }

  /** Where the graph begins: its Parameters, or what hides them. */
  beginning(): Rectangle | null {
    const { view } = this.visible ?? {};
    const scope = view?.after.scopes.get("") ?? view?.before.scopes.get("");
    const found = (scope?.parameters ?? []).flatMap((id) => this.rectangleOf(id) ?? []);
    return found.reduce<Rectangle | null>((area, each) => (area ? union(area, each) : each), null);
  }

  /** The nodes with boxes, from the middle of the screen. */
  nodesByDistance(): NodeId[] {
    const middle = this.camera.toDrawing(this.camera.middle);
    const found = (this.visible?.boxes ?? []).flatMap((box, index): [number, NodeId][] => {
      const at = this.boxRects[index];
      if (box.node === null || box.kind === "ports" || !at) return [];
      return [[Math.hypot(at.x + at.width / 2 - middle.x, at.y + at.height / 2 - middle.y), box.node]];
    });
    return found.sort((a, b) => a[0] - b[0]).map((each) => each[1]);
  }

  edgeBy(text: string): VisibleEdge | undefined {
    return this.visible?.edges.find((edge) => edge.text === text);
  }

  curveBy(text: string): Curve | undefined {
    return this.curves[this.visible?.edges.findIndex((edge) => edge.text === text) ?? -1];
  }

  /** Follow the camera. */
  place(): void {
    const { x, y, scale } = this.camera;
    this.world.setAttribute("transform", `translate(${x.toFixed(2)} ${y.toFixed(2)}) scale(${scale.toFixed(4)})`);
    if (this.planned) return;
    if (this.painted && !contains(this.painted, this.onScreen(0))) {
      this.planned = requestAnimationFrame(() => {
        this.planned = 0;
        this.paint();
      });
    } else if (this.shown?.types) this.drawTypes();
  }

  /** Make the elements of what is on screen, or of everything. */
  paint(everything = false): void {
    const { visible, layout } = this;
    if (!visible || !layout) return;
    const all = everything || visible.boxes.length + visible.edges.length <= FEW;
    const area = all ? null : this.onScreen(MARGIN);
    const seen = (rectangles: readonly Rectangle[]) => indexesOf(rectangles, area);
    const [boxes, edges] = [seen(this.boxRects), seen(this.edgeRects)];
    this.painted = area;
    const far = !everything && boxes.length + edges.length > MOST;
    this.svg.classList.toggle("is-far", far);
    this.layers.far.replaceChildren();
    if (far) this.drawFar(boxes, edges);
    keep(this.boxes, far ? [] : boxes, this.layers.boxes, (index) => this.makeBox(visible.boxes[index], index));
    keep(this.edges, far ? [] : edges, this.layers.edges, (index) => this.makeEdge(visible.edges[index], index));
    this.decorate(this.shown);
  }

  private makeBox(box: Box | undefined, index: number): SVGGElement | null {
    const at = this.boxRects[index];
    const node = box && box.node !== null ? this.visible?.view.node(box.node) : undefined;
    return box && at ? drawBox(box, at, node?.op ?? "") : null;
  }

  private makeEdge(edge: VisibleEdge | undefined, index: number): SVGGElement | null {
    const curve = this.curves[index];
    if (!edge || !curve || !this.visible || !this.layout) return null;
    const [x = NaN, y = NaN] = this.layout.labels.subarray(2 * index, 2 * index + 2);
    return drawEdge(edge, curve, this.visible.view, Number.isNaN(x) ? null : { x, y });
  }

  /** From far away: one path for the boxes of each status, one for the edges. */
  private drawFar(boxes: readonly number[], edges: readonly number[]): void {
    const paths = new Map<string, string[]>();
    for (const index of boxes) {
      const [box, at] = [this.visible?.boxes[index], this.boxRects[index]];
      if (!box || !at) continue;
      const name = `box family-${box.family} is-${box.status}`;
      const path = paths.get(name) ?? [];
      path.push(`M${at.x.toFixed()},${at.y.toFixed()}h${at.width}v${at.height}h${-at.width}z`);
      paths.set(name, path);
    }
    const lines = edges.map((index) => pathOf(this.curves[index] ?? new Float64Array()));
    this.layers.far.append(make("path", { class: "line", d: lines.join("") }));
    for (const [name, path] of paths) this.layers.far.append(make("path", { class: name, d: path.join("") }));
  }

  private onScreen(margin: number): Rectangle {
    const { width, height, scale } = this.camera;
    const corner = this.camera.toDrawing({ x: -width * margin, y: -height * margin });
    const grown = 1 + 2 * margin;
    return { x: corner.x, y: corner.y, width: (width * grown) / scale, height: (height * grown) / scale };
  }

  /** Show selection, what the search found, and heat. */
  decorate(shown: Shown | null): void {
    const { visible } = this;
    if (!shown || !visible) return;
    this.shown = shown;
    const { selection } = shown;
    const node = selection && "node" in selection ? selection.node : null;
    const edge = selection && "edge" in selection ? edgeText(selection.edge) : null;
    const own = node === null ? undefined : visible.boxOf(node);
    const near = new Set<Box>();
    const isOwn = (box: Box) => box === own || (node !== null && box.node === node);
    const inlined = node !== null && (own === undefined || !this.indexes.has(own));
    const readers = inlined && node !== null ? new Set(visible.view.readers(node).map((each) => visible.boxOf(each.node))) : null;
    visible.edges.forEach((each, index) => {
      const mine = each.text === edge || (node !== null && !inlined && (isOwn(each.from.box) || isOwn(each.to.box)));
      if (mine) near.add(each.from.box).add(each.to.box);
      const element = this.edges.get(index);
      if (!element) return;
      element.classList.toggle("selected", each.text === edge);
      element.classList.toggle("near", mine);
      this.heatUp(element, shown.heat ? this.heat.get(`${each.key.from}:${each.key.port}`) : undefined);
    });
    const found = new Set([...shown.highlights].map((id) => visible.boxOf(id)));
    for (const [index, element] of this.boxes) {
      const box = visible.boxes[index];
      if (!box) continue;
      const chosen = own !== undefined && (box === own || (box.kind === "ports" && box.node === node));
      element.classList.toggle("selected", chosen);
      element.classList.toggle("near", near.has(box) || (readers?.has(box) ?? false));
      element.classList.toggle("found", found.has(box));
      this.heatUp(element, shown.heat && box.kind !== "ports" && box.node !== null ? this.worstOf(box.node) : undefined);
    }
    this.clusters.forEach((element, index) => {
      const cluster = visible.clusters[index];
      const chosen = cluster?.group.kind === "owner" && cluster.node !== null;
      element.classList.toggle("selected", chosen && cluster.node === node);
      element.classList.toggle("found", chosen && shown.highlights.has(cluster.node ?? -1));
      this.heatUp(element, shown.heat && chosen && cluster.node !== null ? this.worstOf(cluster.node) : undefined);
    });
    for (const line of this.layers.boxes.querySelectorAll<SVGGElement>(".line[data-node]")) {
      const id = Number(line.dataset["node"]);
      line.classList.toggle("selected", id === node);
      line.classList.toggle("found", shown.highlights.has(id));
    }
    this.svg.classList.toggle("has-heat", shown.heat);
    this.rove(own ? this.boxes.get(this.indexes.get(own) ?? -1) : undefined, node);
    this.drawTypes();
  }

  private heatUp(element: SVGGElement, worst: number | undefined): void {
    if (element.dataset["heat"] !== undefined) {
      for (const name of [...element.classList]) if (name.startsWith("heat-")) element.classList.remove(name);
      delete element.dataset["heat"];
    }
    if (worst === undefined) return;
    element.classList.add(`heat-${heatClass(worst)}`);
    element.dataset["heat"] = String(worst);
  }

  private worstOf(node: NodeId): number | undefined {
    const count = this.visible?.view.node(node)?.outputs.length ?? 0;
    let worst: number | undefined;
    for (let port = 0; port < Math.max(count, 1); port++) {
      const found = this.heat.get(`${node}:${port}`);
      if (found !== undefined && !(found <= (worst ?? -1))) worst = found;
    }
    return worst;
  }

  /** The selected element is the one that the tab key reaches. */
  private rove(box: SVGGElement | undefined, node: NodeId | null): void {
    for (const old of this.svg.querySelectorAll('g[tabindex="0"]')) old.setAttribute("tabindex", "-1");
    const cluster = this.clusters.find((each) => each && node !== null && each.dataset["node"] === String(node));
    const line = node === null ? null : this.layers.boxes.querySelector<SVGGElement>(`.line[data-node="${node}"]`);
    const chosen = cluster ?? line ?? box;
    (chosen ?? this.boxes.values().next().value)?.setAttribute("tabindex", "0");
    const active = document.activeElement;
    if (chosen && active !== chosen && active && this.svg.contains(active)) chosen.focus({ preventScroll: true });
  }

  /** The cluster of a control-flow operation that an edge enters from outside. */
  private enteredBy(edge: VisibleEdge): Rectangle | null {
    const { cluster, kind } = edge.to.box;
    const outside = kind === "ports" && cluster.top === edge.to.box && edge.from.box.cluster !== cluster;
    const index = outside ? (this.visible?.clusters.indexOf(cluster) ?? -1) : -1;
    return index >= 0 && this.layout ? clusterAt(this.layout, index) : null;
  }

  private drawTypes(): void {
    const { shown, visible, layers } = this;
    if (!shown || !visible) return;
    const all = shown.types && this.camera.scale >= READABLE && this.edges.size <= 400;
    const wanted = [...this.edges].filter(([, element]) => all || element.classList.contains("near"));
    if (!wanted.length && !layers.types.childElementCount) return;
    layers.types.replaceChildren();
    const taken: Rectangle[] = [];
    for (const [index] of wanted.slice(0, 200)) {
      const [edge, curve] = [visible.edges[index], this.curves[index]];
      const drawn = edge && curve ? drawType(edge, curve, visible.view, this.enteredBy(edge), taken) : null;
      if (drawn) layers.types.append(drawn);
    }
  }
}

function keep(made: Map<number, SVGGElement>, wanted: readonly number[], layer: SVGGElement, draw: (index: number) => SVGGElement | null): void {
  const set = new Set(wanted);
  for (const [index, element] of made) {
    if (set.has(index)) continue;
    element.remove();
    made.delete(index);
  }
  for (const index of wanted) {
    if (made.has(index)) continue;
    const element = draw(index);
    if (!element) continue;
    made.set(index, element);
    layer.append(element);
  }
}

function indexesOf(rectangles: readonly Rectangle[], area: Rectangle | null): number[] {
  const found: number[] = [];
  rectangles.forEach((each, index) => {
    if (!area || meets(each, area)) found.push(index);
  });
  return found;
}

export function union(one: Rectangle, other: Rectangle): Rectangle {
  const [x, y] = [Math.min(one.x, other.x), Math.min(one.y, other.y)];
  const right = Math.max(one.x + one.width, other.x + other.width);
  const bottom = Math.max(one.y + one.height, other.y + other.height);
  return { x, y, width: right - x, height: bottom - y };
}

function contains(outer: Rectangle, inner: Rectangle): boolean {
  return outer.x <= inner.x && outer.y <= inner.y && outer.x + outer.width >= inner.x + inner.width && outer.y + outer.height >= inner.y + inner.height;
}

function boundsOf(curve: Curve): Rectangle {
  let [x0, y0, x1, y1] = [Infinity, Infinity, -Infinity, -Infinity];
  for (let at = 0; at < curve.length; at += 2) {
    const [x = 0, y = 0] = curve.subarray(at, at + 2);
    [x0, y0, x1, y1] = [Math.min(x0, x), Math.min(y0, y), Math.max(x1, x), Math.max(y1, y)];
  }
  return { x: x0 - 5, y: y0 - 5, width: x1 - x0 + 10, height: y1 - y0 + 10 };
}
