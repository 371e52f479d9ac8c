// The picture of the graph: what is shown follows from the store, clicks change the store.
//
//   const canvas = new Canvas(host, store, new States(data), layouter);
//   await canvas.ready;
//
// The host gets data-state ("busy" or "ready"), data-busy ("true" or "false"), and data-milliseconds (from the last
// change to its picture).

import { clamp, type Point } from "./camera.ts";
import type { NodeId, NodeRecord } from "./document.ts";
import { dotOf } from "./dot.ts";
import type { Rectangle } from "./draw.ts";
import { Folding } from "./folding.ts";
import { Groups } from "./groups.ts";
import { Cancelled, type Layouter } from "./layout.ts";
import { middleOf } from "./curves.ts";
import { Pane, union, type HeatMap } from "./pane.ts";
import { pictureOf } from "./picture.ts";
import { Progress } from "./progress.ts";
import type { States } from "./states.ts";
import type { EdgeKey, Shown, Store } from "./store.ts";
import { edgeText, viewsOf, type Side } from "./view.ts";
import { Visible } from "./visible.ts";
import { Walk, type Direction } from "./walk.ts";

export type { Direction } from "./walk.ts";

const EDGE = 28; // pixels that stay free around what is brought into view
const SMALLEST = 0.6; // scale to which the camera goes back by itself
const FIRST = 0.75; // scale of the first picture of what is not shown as a whole
const WHOLE = 0.5; // scale at which the whole picture is shown first; where it would be smaller, only its beginning is
const FARTHEST = 0.04; // scale to which the whole picture is fitted
const READABLE = 0.7;
const STARTS = 100; // changed boxes from which the area with the most changes is looked for
const NEAR = 0.9; // scale up to which the camera comes nearer to what is opened

type Target = NodeId | EdgeKey;

/** What the camera does when the picture is drawn. */
interface Aim {
  anchor?: { of: (pane: Pane) => Rectangle | null; at: Map<Pane, Point>; shown?: boolean; near?: boolean }; // stays where it is on the screen
  target?: Target; // comes to the middle of the panes that have no anchor
  changes?: boolean; // what the step changed comes into view
  all?: boolean;
  first?: boolean; // all, but large enough to be read
}

export class Canvas {
  /** Resolves when the last layout is drawn. */
  ready: Promise<void> = Promise.resolve();
  private readonly groups: Groups;
  private readonly heat: HeatMap;
  private readonly progress: Progress;
  private readonly frame: HTMLElement;
  private panes: Pane[] = [];
  private aim: Aim = { first: true };
  private turn = 0;
  private drawnFolds: Shown["folds"];

  constructor(
    readonly host: HTMLElement,
    readonly store: Store,
    readonly states: States,
    readonly layouter: Layouter,
  ) {
    this.groups = new Groups(states);
    this.heat = new Map((states.document.heat?.tensors ?? []).map(([node, port, found]) => [`${node}:${port}`, found.worst]));
    this.drawnFolds = store.get().folds;
    this.frame = document.createElement("div");
    this.frame.className = "panes";
    host.append(this.frame);
    this.progress = new Progress(host, () => this.cancel());
    store.subscribe((shown, before) => this.changed(shown, before));
    new ResizeObserver(() => this.panes.forEach((pane) => pane.place())).observe(this.frame);
    this.update();
  }

  /** Open the groups around a node or an edge, and bring it to the middle. */
  focus(target: Target): void {
    this.aim = { target };
    const nodes = typeof target === "number" ? [target, ...this.states.partners(target).slice(0, 1)] : [target.from, target.to];
    if (!this.open(nodes)) void this.ready.then(() => this.point());
  }

  /** Show the whole graph. */
  fit(): void {
    this.aim = { all: true };
    this.point();
  }

  /** Zoom about the middle: above 1 is nearer. */
  zoom(factor: number): void {
    for (const pane of this.panes) pane.camera.zoom(factor, pane.camera.middle);
    this.place();
  }

  /** Move the picture by pixels of the screen. */
  pan(x: number, y: number): void {
    for (const pane of this.panes) pane.camera.shift({ x, y });
    this.place();
  }

  /** The node to which a key moves from a node; "in" enters its body or its group, "out" leaves to the owner. */
  neighbours(node: NodeId, direction: Direction): NodeId | null {
    const pane = [...this.panes].reverse().find((each) => each.visible?.view.node(node));
    return pane?.visible ? new Walk(pane, pane.visible).from(node, direction) : null;
  }

  /** The group that hides a node, or else the one that it heads, or else the innermost group around it: for `toggle`. */
  groupOf(node: NodeId): string | null {
    const record = this.record(node);
    const folding = this.folding(node);
    if (!record || !folding) return null;
    const hidden = folding.hidingNode(record);
    if (hidden) return hidden.id;
    const headed = folding.headedBy(node);
    if (headed) return headed.id;
    const inner = folding.around(record).filter((group) => !folding.isTransparent(group)).at(-1);
    return (inner?.kind === "scope" ? folding.parent(inner)?.id : inner?.id) ?? null;
  }

  /** Fold an open group, open a folded one; with `alike` all blocks that are equal to it, too. */
  toggle(id: string, alike = false): void {
    const group = this.groups.get(id);
    const folding = this.panes.map((pane) => pane.visible?.folding).find((each) => group && each?.size(group));
    if (!group || !folding) return;
    const folds = new Map(this.store.get().folds);
    const open = folding.isOpen(group);
    const key = folding.key(group);
    for (const each of alike ? [...this.groups.all()].filter((other) => folding.size(other) && folding.key(other) === key) : [group]) {
      folds.set(each.id, open);
      if (each.kind === "owner" && !open) for (const scope of folding.children(each)) folds.set(scope.id, false);
    }
    this.aim = { anchor: { ...this.anchor((pane) => pane.rectangleOfGroup(id)), shown: true, near: !open && !alike } };
    this.store.set({ folds });
  }

  /** Bring a group to the middle, as large as it fits; the whole graph for "". */
  show(id: string): void {
    for (const pane of this.panes) {
      const area = id ? pane.rectangleOfGroup(id) : wholeOf(pane);
      if (!area) continue;
      pane.camera.scale = clamp(fitting(pane, area), FARTHEST, 1);
      const room = pane.camera.height - area.height * pane.camera.scale;
      pane.camera.put(topOf(area), { x: pane.camera.width / 2, y: Math.max(EDGE, room / 2) });
    }
    this.place();
  }

  /** The open groups around the selected node, from the outermost; where none is selected, around the middle of the picture. */
  where(): { id: string; title: string }[] {
    const { selection } = this.store.get();
    const pane = this.panes.at(-1);
    const folding = pane?.visible?.folding;
    if (!pane || !folding) return [];
    const record = selection && "node" in selection ? this.boxed(selection.node) : undefined;
    const found = record ? folding.around(record) : pane.around();
    return found.filter((group) => !folding.isTransparent(group)).map((group) => {
      const head = folding.head(group);
      return { id: group.id, title: head ? `${head.op} ${head.name}` : group.title };
    });
  }

  /** Fold every group. */
  foldAll(): void {
    this.foldEvery(true);
  }

  /** Open every group. */
  openAll(): void {
    this.foldEvery(false);
  }

  /** Forget what the user folded and opened. */
  resetFolds(): void {
    this.aim = { all: true };
    this.store.set({ folds: new Map() });
  }

  /** Open the groups around a node without moving the camera. */
  unfold(node: NodeId): void {
    this.aim = { anchor: this.anchor((pane) => pane.rectangleOf(node)) };
    this.open([node]);
  }

  /** The picture as a standalone SVG document, with its styles inside. */
  svg(): string {
    return pictureOf(this.panes);
  }

  private foldEvery(folded: boolean): void {
    const folds = new Map<string, boolean>();
    for (const group of this.groups.all()) if (group !== this.groups.root) folds.set(group.id, folded);
    this.aim = { all: true };
    this.store.set({ folds });
  }

  private record(node: NodeId): NodeRecord | undefined {
    for (const pane of [...this.panes].reverse()) {
      const found = pane.visible?.view.node(node);
      if (found) return found;
    }
    return undefined;
  }

  private folding(node: NodeId): Folding | undefined {
    return [...this.panes].reverse().find((pane) => pane.visible?.view.node(node))?.visible?.folding;
  }

  /** Open the groups around nodes; tells whether any was folded. */
  private open(nodes: readonly NodeId[]): boolean {
    const folds = new Map(this.store.get().folds);
    let opened = false;
    for (const id of nodes) {
      const [shown] = viewsOf(this.states, this.store.get().step, "overlay");
      const node = this.boxed(id);
      const folding = this.folding(id) ?? (shown && new Folding(this.groups, shown, folds));
      if (!node || !folding) continue;
      for (const group of folding.around(node)) {
        if (folding.isOpen(group)) continue;
        folds.set(group.id, false);
        opened = true;
      }
    }
    if (opened) this.store.set({ folds });
    return opened;
  }

  /** The node that has a box: for a constant that is a line, its first reader. */
  private boxed(id: NodeId): NodeRecord | undefined {
    const shown = this.store.get();
    const view = viewsOf(this.states, shown.step, shown.mode).find((each) => each.node(id));
    const node = view?.node(id);
    if (!node || !view?.isInlined(node)) return node;
    const reader = view.readers(id)[0];
    return reader ? view.node(reader.node) : node;
  }

  private changed(shown: Shown, before: Shown): void {
    if (shown.step !== before.step || shown.mode !== before.mode || shown.folds !== before.folds) {
      if (shown.step !== before.step && this.aim.target === undefined) this.aim = { ...this.keepSelection(), changes: true };
      if (shown.mode !== before.mode) this.aim = { ...this.aim, changes: true };
      this.update();
      return;
    }
    for (const pane of this.panes) pane.decorate(this.marked(shown));
  }

  /** What is shown, with the partners of the selected node marked as what a search found. */
  private marked(shown: Shown): Shown {
    const { selection } = shown;
    const partners = selection && "node" in selection ? this.states.partners(selection.node) : [];
    return partners.length ? { ...shown, highlights: new Set([...shown.highlights, ...partners]) } : shown;
  }

  /** What stays where it is when the step changes: the selection, else the node nearest to the middle that stays. */
  private keepSelection(): Aim {
    const { selection } = this.store.get();
    const node = !selection ? null : "node" in selection ? selection.node : selection.edge.to;
    const known = node !== null && this.panes.some((pane) => pane.rectangleOf(node));
    if (known) return { anchor: this.anchor((pane) => pane.rectangleOf(node)) };
    const inMiddle = new Map(this.panes.map((pane) => [pane, pane.nodesByDistance().find((id) => this.states.at(this.store.get().step).nodes.has(id))]));
    return { anchor: this.anchor((pane) => {
      const id = inMiddle.get(pane);
      return id === undefined ? null : pane.rectangleOf(id);
    }) };
  }

  private anchor(of: (pane: Pane) => Rectangle | null): NonNullable<Aim["anchor"]> {
    const at = new Map<Pane, Point>();
    for (const pane of this.panes) {
      const found = of(pane);
      if (found) at.set(pane, pane.camera.toScreen(topOf(found)));
    }
    return { of, at };
  }

  private update(): void {
    const turn = ++this.turn;
    const start = performance.now();
    this.host.dataset["state"] = "busy";
    this.host.dataset["busy"] = "true";
    this.ready = this.redraw(turn).then(() => {
      if (turn !== this.turn) return this.ready;
      this.host.dataset["milliseconds"] = (performance.now() - start).toFixed(1);
      this.host.dataset["state"] = "ready";
      this.host.dataset["busy"] = "false";
      return undefined;
    });
  }

  private async redraw(turn: number): Promise<void> {
    const shown = this.store.get();
    const visibles = viewsOf(this.states, shown.step, shown.mode).map(
      (view) => new Visible(view, this.groups, new Folding(this.groups, view, shown.folds), this.states),
    );
    const boxes = visibles.reduce((sum, each) => sum + each.boxes.length, 0);
    this.progress.begin(`Laying out ${boxes} boxes`);
    try {
      const layouts = await this.layouter.layout(visibles.map((each) => dotOf(each)));
      if (turn !== this.turn) return;
      this.progress.end();
      this.setPanes(visibles);
      this.panes.forEach((pane, index) => {
        const [visible, layout] = [visibles[index], layouts[index]];
        if (visible && layout) pane.show(visible, layout, this.marked(this.store.get()), this.heat);
      });
      this.drawnFolds = shown.folds;
      this.point();
      for (const pane of this.panes) pane.paint();
    } catch (error) {
      if (turn === this.turn) this.failed(error);
    }
  }

  private failed(error: unknown): void {
    if (error instanceof Cancelled) this.progress.end();
    else this.progress.fail(`The layout failed: ${error instanceof Error ? error.message : String(error)}. Fold some groups.`);
    if (this.store.get().folds !== this.drawnFolds) this.store.set({ folds: this.drawnFolds });
  }

  private cancel(): void {
    this.layouter.cancel();
  }

  private setPanes(visibles: readonly Visible[]): void {
    const sides = visibles.map((each) => each.view.side);
    if (this.panes.length === sides.length) {
      this.panes.forEach((pane, index) => (pane.svg.dataset["side"] = sides[index]));
      return;
    }
    const camera = this.panes[0]?.camera;
    for (const pane of this.panes) pane.remove();
    this.panes = sides.map((side) => {
      const pane = new Pane(this.frame, side, {
        moved: (_, shift, factor, about) => this.moved(shift, factor, about),
        clicked: (from, event) => this.clicked(from, event),
      });
      if (camera) [pane.camera.x, pane.camera.y, pane.camera.scale] = [camera.x, camera.y, camera.scale];
      return pane;
    });
    this.frame.dataset["panes"] = String(sides.length);
    const names: typeof NAMES = this.states.document.pairs ? { before: "ONNX model", after: "IR" } : NAMES;
    this.panes.forEach((pane, index) => pane.svg.setAttribute("aria-label", names[sides[index] ?? "after"] ?? ""));
  }

  /** The cameras of two panes are linked. */
  private moved(shift: Point, factor: number, about: Point): void {
    for (const pane of this.panes) {
      pane.camera.shift(shift);
      if (factor !== 1) pane.camera.zoom(factor, about);
    }
    this.place();
  }

  private place(): void {
    for (const pane of this.panes) pane.place();
    this.host.dispatchEvent(new Event("moved"));
  }

  private clicked(pane: Pane, event: MouseEvent): void {
    const element = event.target instanceof Element ? event.target : null;
    const toggle = element?.closest<SVGElement>("[data-toggle]")?.dataset["toggle"];
    if (toggle !== undefined) {
      this.toggle(toggle, event.shiftKey);
      return;
    }
    const hit = element?.closest<SVGElement>(".line[data-node], [data-edge], .box, .head");
    const edge = hit?.dataset["edge"] === undefined ? undefined : pane.edgeBy(hit.dataset["edge"]);
    if (edge) {
      this.store.set({ selection: { edge: edge.key } });
      return;
    }
    const of = hit?.classList.contains("head") ? hit.closest<SVGElement>(".cluster") : hit;
    const node = of?.dataset["node"];
    const group = of?.dataset["group"];
    if (node !== undefined) {
      this.store.set({ selection: { node: Number(node) } });
      this.showPartner(pane, Number(node));
      if (event.detail === 2 && group !== undefined) this.toggle(group);
    } else if (group !== undefined) this.toggle(group, event.shiftKey);
    else if (hit?.classList.contains("ports")) this.selectOwner(pane, hit);
    else this.store.set({ selection: null });
  }

  /** Bring what corresponds to a node of a pane to the middle of the other one. */
  private showPartner(pane: Pane, node: NodeId): void {
    const [target] = this.states.partners(node);
    if (target === undefined || this.panes.length < 2) return;
    this.aim = { target, anchor: this.anchor((each) => (each === pane ? each.rectangleOf(node) : null)) };
    if (!this.open([target])) this.point();
  }

  private selectOwner(pane: Pane, row: SVGElement): void {
    const box = pane.visible?.boxes.find((each) => each.kind === "ports" && each.full === row.getAttribute("aria-label"));
    if (box && box.node !== null) this.store.set({ selection: { node: box.node } });
  }

  /** Move the camera as asked. */
  private point(): void {
    const { aim } = this;
    this.aim = {};
    if (!this.panes.length) return;
    if (aim.all || aim.first) this.showAll(aim.first ? FIRST : FARTHEST);
    else if (aim.target !== undefined) {
      for (const pane of this.panes) {
        if (aim.anchor?.at.has(pane)) hold(pane, aim.anchor);
        else this.centre(pane, aim.target);
      }
    }
    else {
      for (const pane of this.panes) hold(pane, aim.anchor);
      if (aim.changes) this.showChanges();
      if (this.panes.some(isLost)) this.showAll(SMALLEST);
    }
    this.place();
  }

  private showAll(smallest: number): void {
    const fit = Math.min(...this.panes.map((pane) => fitting(pane, wholeOf(pane))), 1);
    const scale = fit >= WHOLE ? fit : Math.max(smallest, fit);
    for (const pane of this.panes) {
      const whole = wholeOf(pane);
      pane.camera.scale = scale;
      const high = whole.height * scale > pane.camera.height - 2 * EDGE;
      const { width, height } = pane.camera;
      const wide = whole.width * scale > width - 2 * EDGE;
      const beginning = wide ? pane.beginning() : null;
      pane.camera.put({ x: topOf(beginning ?? whole).x, y: 0 }, { x: width / 2, y: high ? EDGE : (height - whole.height * scale) / 2 });
      if (wide) pane.camera.x = clamp(pane.camera.x, width - EDGE - whole.width * scale, EDGE);
    }
  }

  private centre(pane: Pane, target: Target): void {
    const alike = typeof target === "number" ? [target, ...this.states.partners(target)] : [];
    const node = alike.flatMap((each) => this.boxed(each)?.id ?? []).find((each) => pane.rectangleOf(each));
    const curve = typeof target === "number" ? undefined : pane.curveBy(edgeText(target));
    const found = node === undefined ? null : pane.rectangleOf(node);
    if (!found && !curve) return;
    pane.camera.scale = clamp(pane.camera.scale, READABLE, 1.5);
    if (curve) {
      pane.camera.put(middleOf(curve), pane.camera.middle);
    } else if (found) {
      const tall = found.height * pane.camera.scale > pane.camera.height - 2 * EDGE;
      const at = { x: pane.camera.width / 2, y: tall ? EDGE : (pane.camera.height - found.height * pane.camera.scale) / 2 };
      pane.camera.put(topOf(found), at);
    }
  }

  /** Put the node nearest to the middle of one pane at the same place of the other one. */
  private align(from: number): void {
    const [one, other] = from === 0 ? this.panes : [...this.panes].reverse();
    if (!one || !other) return;
    const node = one.nodesByDistance().find((id) => other.rectangleOf(id));
    const [at, there] = node === undefined ? [] : [one.rectangleOf(node), other.rectangleOf(node)];
    if (at && there) other.camera.put(topOf(there), one.camera.toScreen(topOf(at)));
  }

  /** Bring what the step changed into view, with as little movement as possible. */
  private showChanges(): void {
    const current = this.panes[0]?.camera.scale ?? 1;
    const changed = this.panes.map((pane) => ({ pane, area: changedArea(pane, Math.min(current, SMALLEST)) }));
    const scales = changed.map(({ pane, area }) => (area ? fitting(pane, area) : Infinity));
    const scale = Math.max(Math.min(current, ...scales), Math.min(current, SMALLEST));
    for (const { pane, area } of changed) {
      if (scale !== pane.camera.scale) pane.camera.zoom(scale / pane.camera.scale, pane.camera.middle);
      if (area) bringIn(pane, area);
    }
    this.align(changed.at(-1)?.area ? 1 : 0);
  }
}

const NAMES: Partial<Record<Side, string>> = { before: "Graph before the step", after: "Graph after the step", both: "Graph before and after the step" };

function topOf(area: Rectangle): Point {
  return { x: area.x + area.width / 2, y: area.y };
}

function wholeOf(pane: Pane): Rectangle {
  return { x: 0, y: 0, width: pane.layout?.width ?? 0, height: pane.layout?.height ?? 0 };
}

/** The largest scale at which an area fits into the pane. */
function fitting(pane: Pane, area: Rectangle): number {
  return Math.min((pane.camera.width - 2 * EDGE) / Math.max(1, area.width), (pane.camera.height - 2 * EDGE) / Math.max(1, area.height));
}

/** Whether nothing of the drawing is on screen. */
function isLost(pane: Pane): boolean {
  const from = pane.camera.toScreen({ x: 0, y: 0 });
  const whole = wholeOf(pane);
  const to = pane.camera.toScreen({ x: whole.width, y: whole.height });
  return to.x < EDGE || to.y < EDGE || from.x > pane.camera.width - EDGE || from.y > pane.camera.height - EDGE;
}

function hold(pane: Pane, anchor: Aim["anchor"]): void {
  const at = anchor?.at.get(pane);
  const now = anchor?.of(pane);
  if (!at || !now) return;
  if (anchor?.near) pane.camera.scale = clamp(fitting(pane, now), pane.camera.scale, Math.max(pane.camera.scale, NEAR));
  pane.camera.put(topOf(now), at);
  if (anchor?.shown) bringIn(pane, now);
}

/**
 * The area of the boxes that a step changed, and of folded groups that hold such boxes; of an area that does not fit into
 * the pane, the part with the most changes.
 */
function changedArea(pane: Pane, smallest: number): Rectangle | null {
  const found: { at: Rectangle; changes: number }[] = [];
  for (const box of pane.visible?.boxes ?? []) {
    if (box.kind === "ports" || (box.status === "same" && !Object.keys(box.counts).length)) continue;
    const at = pane.rectangleOfBox(box);
    const inside = Object.values(box.counts).reduce((sum, each) => sum + each, 0);
    if (at) found.push({ at, changes: inside || 1 });
  }
  found.sort((a, b) => a.at.y - b.at.y || a.at.x - b.at.x);
  let best: { area: Rectangle; changes: number } | null = null;
  const step = Math.ceil(found.length / STARTS);
  for (let start = 0; start < found.length; start += step) {
    let [area, changes]: [Rectangle | null, number] = [null, 0];
    for (const each of found.slice(start)) {
      const grown: Rectangle = area ? union(area, each.at) : each.at;
      if (area && fitting(pane, grown) < smallest) continue;
      [area, changes] = [grown, changes + each.changes];
    }
    if (area && changes > (best?.changes ?? 0)) best = { area, changes };
  }
  return best?.area ?? null;
}

/** Shift the camera so that an area is on screen; of an area that is too large, its top. */
function bringIn(pane: Pane, area: Rectangle): void {
  const { camera } = pane;
  const from = camera.toScreen(area);
  const shiftOf = (at: number, length: number, room: number) => {
    if (length > room - 2 * EDGE) return at < EDGE && at + length > room - EDGE ? 0 : EDGE - at;
    return clamp(at, EDGE, room - EDGE - length) - at;
  };
  camera.shift({
    x: shiftOf(from.x, area.width * camera.scale, camera.width),
    y: shiftOf(from.y, area.height * camera.scale, camera.height),
  });
}
