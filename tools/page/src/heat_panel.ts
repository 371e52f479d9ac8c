// The differences that verify --layers --dump found: where they begin, the worst tensors, and a loop's differences by iteration.

import type { Context } from "./context.ts";
import { count, fill, h, s } from "./dom.ts";
import type { Heat, LoopDifferences } from "./document.ts";
import { HEAT_CLASSES, heatClass } from "./heat_scale.ts";
import { VirtualList } from "./virtual.ts";

type Tensor = Heat["tensors"][number];

const BEYOND = 1e30; // stands for a difference that no number tells

/** "12 x the tolerance". */
export function worstText(worst: number): string {
  if (!Number.isFinite(worst) || worst >= BEYOND) return "beyond measure";
  return `${short(worst)} × the tolerance`;
}

function short(number: number): string {
  if (number === 0) return "0";
  return number >= 1e4 || number < 1e-3 ? number.toExponential(1) : String(Number(number.toPrecision(3)));
}

export class HeatPanel {
  readonly element = h("section", { class: "heat-panel", "aria-label": "Differences", tabindex: "-1" });
  private drawn = false;

  constructor(private readonly context: Context, private readonly heat: Heat) {}

  show(): void {
    if (this.drawn) return;
    this.drawn = true;
    const { context, heat } = this;
    const sorted = [...heat.tensors].sort((a, b) => b[2].worst - a[2].worst);
    const beyond = sorted.filter((each) => each[2].worst > 1).length;
    const list = new VirtualList<Tensor>((each) => this.row(each), { role: "list", "aria-label": "Tensors, the largest difference first" });
    list.element.classList.add("weights-list");
    const { first } = heat;
    const loops = Object.entries(heat.loops).map(([node, loop]) => ({ node: Number(node), loop, curve: worstCurve(loop) }));
    loops.sort((a, b) => largest(b.curve) - largest(a.curve));
    fill(this.element,
      h("div", { class: "details-head" }, h("p", { class: "details-op" }, h("strong", {}, "Differences")),
        h("p", { class: "dim" }, `${count(sorted.length)} tensors were compared, ${count(beyond)} ${beyond === 1 ? "differs" : "differ"} by more than the tolerance.`),
        h("p", { class: "dim" }, `OpenVINO computed in ${heat.precision}. Inputs: `, h("bdi", {}, heat.sets.join(", ")), heat.sets.length > 1 ? ". A tensor has the largest of its differences." : "")),
      first ? h("section", { class: "details-section this-step changed" }, h("h3", {}, "First difference"), h("p", {}, context.link(first.node)),
        ...first.text.split("\n").map((line) => h("p", { class: "dim" }, line.trim()))) : null,
      loops.length ? h("section", { class: "details-section" }, h("h3", {}, "Loops"),
        ...loops.map(({ node, loop, curve }) => h("div", { class: "weight-row" },
          h("span", { class: "weight-name" }, heatDot(largest(curve)), context.link(node, { limit: 26 })), spark(curve),
          h("span", { class: "weight-facts dim" }, `${count(loop.iterations)} iterations · up to ${worstText(largest(curve))}`)))) : null,
      h("section", { class: "details-section" }, h("h3", {}, "Scale"), heatLegend()),
      h("section", { class: "details-section" }, h("h3", {}, "All, the largest first"), list.element));
    list.set(sorted.map((item) => ({ item, height: 44 })));
  }

  private row([node, port, each]: Tensor): HTMLElement {
    const facts = each.text ?? [`largest ${short(each.abs)}`, `relative ${short(each.rel)}`, `${count(each.count)} of ${count(each.size)} elements`,
      each.iteration === undefined ? "" : `iteration ${each.iteration}`].filter(Boolean).join(" · ");
    return h("div", { class: "weight-row", role: "listitem" },
      h("span", { class: "weight-name" }, heatDot(each.worst), this.context.link(node, { limit: 26 }), port ? h("span", { class: "dim" }, ` output ${port}`) : null),
      h("span", { class: "weight-size" }, worstText(each.worst).replace(" the tolerance", "")),
      h("span", { class: "weight-facts dim", title: facts }, facts));
  }
}

/** By point, the largest difference of the tensors of a loop's body. */
function worstCurve(loop: LoopDifferences): number[] {
  const curve: number[] = [];
  for (const values of Object.values(loop.tensors)) {
    values.forEach((value, at) => { curve[at] = Math.max(curve[at] ?? 0, value ?? 0); });
  }
  return curve;
}

function largest(curve: number[]): number {
  return curve.reduce((most, each) => Math.max(most, each), 0);
}

/** A small plot with a logarithmic scale; the line in the middle is the tolerance. */
function spark(curve: number[]): SVGElement {
  const x = (at: number) => (curve.length > 1 ? (96 * at) / (curve.length - 1) : 48);
  const decades = Math.max(3, Math.log10(Math.min(largest(curve), BEYOND)));
  const y = (value: number) => 10 - (10 * Math.max(-decades, Math.min(decades, Math.log10(value)))) / decades;
  return s("svg", { class: "spark", viewBox: "-2 -2 100 24", width: 100, height: 24, "aria-hidden": "true" },
    s("line", { class: "plot-tolerance", x1: 0, x2: 96, y1: 10, y2: 10 }),
    curve.length > 1 ? s("polyline", { class: "plot-line plot-0", points: curve.map((value, at) => `${x(at)},${y(value)}`).join(" ") })
      : s("circle", { class: "plot-dot plot-0", cx: x(0), cy: y(curve[0] ?? 0), r: 2.4 }));
}

export function heatDot(worst: number): HTMLElement {
  return h("span", { class: `heat-dot heat-${heatClass(worst)}`, "aria-hidden": "true" });
}

export function heatLegend(): HTMLElement {
  return h("ul", { class: "heat-legend" }, ...HEAT_CLASSES.map((each) => h("li", {},
    h("span", { class: `heat-dot heat-${each.index}`, "aria-hidden": "true" }), each.text, each.index >= 3 ? h("span", { class: "dim" }, " differs") : null)));
}

interface Point {
  at: number;
  value: number;
}

const WIDTH = 340;
const HEIGHT = 130;
const LEFT = 44;
const BOTTOM = 22;

/** The differences of the tensors of a loop's body by iteration, drawn and as a table. */
export function loopPlot(loop: LoopDifferences): HTMLElement {
  const tensors = Object.entries(loop.tensors).map(([label, all]) => {
    const values = all.flatMap((value, at): Point[] => (value === null ? [] : [{ at, value }]));
    return { label, values, worst: values.reduce((most, each) => Math.max(most, each.value), 0), length: all.length };
  });
  tensors.sort((a, b) => b.worst - a.worst);
  const shown = tensors.slice(0, 4);
  const length = Math.max(1, ...shown.map((each) => each.length));
  const logs = shown.flatMap((each) => each.values).filter(({ value }) => value > 0).map(({ value }) => Math.log10(Math.min(value, BEYOND)));
  const low = Math.floor(Math.min(-1, ...logs));
  const high = Math.ceil(Math.max(1, ...logs));
  const x = (index: number) => LEFT + (WIDTH - LEFT - 8) * (length > 1 ? index / (length - 1) : 0.5);
  const y = (value: number) => 8 + (HEIGHT - BOTTOM - 8) * (1 - ((value > 0 ? Math.log10(Math.min(value, BEYOND)) : low) - low) / (high - low));
  const ticks = [...new Set([low, 0, high])];
  const picture = s("svg", { class: "plot", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": "Difference by iteration; the table below has the numbers" },
    ...ticks.flatMap((tick) => [
      s("line", { class: tick === 0 ? "plot-tolerance" : "plot-grid", x1: LEFT, x2: WIDTH - 8, y1: y(10 ** tick), y2: y(10 ** tick) }),
      s("text", { class: "plot-text", x: LEFT - 6, y: y(10 ** tick) + 4, "text-anchor": "end" }, tick === 0 ? "1 ×" : `1e${tick}`),
    ]),
    s("text", { class: "plot-text", x: LEFT, y: HEIGHT - 6 }, "0"),
    s("text", { class: "plot-text", x: WIDTH - 8, y: HEIGHT - 6, "text-anchor": "end" }, `iteration ${count(loop.iterations - 1)}`),
    ...shown.flatMap((each, index) => [
      s("polyline", { class: `plot-line plot-${index}`, points: each.values.map(({ at, value }) => `${x(at)},${y(value)}`).join(" ") }),
      ...(each.values.length <= 40 ? each.values.map(({ at, value }) => s("circle", { class: `plot-dot plot-${index}`, cx: x(at), cy: y(value), r: 2.4 },
        s("title", {}, `iteration ${at * loop.per_point}: ${worstText(value)}`))) : []),
    ]));
  const rows = (values: Point[]) => values.slice(0, 512).map(({ at, value }) => h("tr", {}, h("td", { class: "mono" }, at * loop.per_point), h("td", { class: "mono" }, short(value)), h("td", {}, value > 1 ? "differs" : "")));
  return h("section", { class: "details-section" }, h("h3", {}, "Difference by iteration"),
    h("p", { class: "dim" }, `As a multiple of the tolerance, ${count(loop.iterations)} iterations${loop.per_point > 1 ? `, the largest of ${loop.per_point} at each point` : ""}.`),
    picture,
    h("ul", { class: "plot-legend" }, ...shown.map((each, index) => h("li", {}, h("span", { class: `plot-key plot-${index}`, "aria-hidden": "true" }), h("bdi", {}, each.label), h("span", { class: "dim" }, ` up to ${worstText(each.worst)}`)))),
    ...shown.map((each) => h("details", { class: "fold" }, h("summary", {}, "Numbers of ", h("bdi", {}, each.label)),
      h("div", { class: "scroll-table", tabindex: 0, role: "group", "aria-label": `Numbers of ${each.label}` }, h("table", { class: "plain" },
        h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Iteration"), h("th", { scope: "col" }, "× tolerance"), h("th", { scope: "col" }, ""))), h("tbody", {}, ...rows(each.values)))))));
}
