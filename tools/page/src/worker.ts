// The layout, in a worker: graphs in the DOT language come in, positions go out.

import { instance, type Viz } from "@viz-js/viz";

export interface Request {
  id: number;
  dot: string;
}

/** Positions in pixels, y downwards, by the numbers that dot.ts gives: boxes n0, n1, ..., clusters c0, c1, ..., edges 0, 1, ... */
export interface Layout {
  width: number;
  height: number;
  boxes: Float64Array; // x and y of the middle of each
  clusters: Float64Array; // x, y, width, height of each
  edges: Float64Array[]; // x and y of the points of a cubic Bezier spline
  labels: Float64Array; // x and y of the middle of each edge's label, NaN where there is none
}

export type Answer = { id: number; layout: Layout } | { id: number; error: string };

interface Found {
  name?: string;
  pos?: string;
  bb?: string;
  id?: string;
  lp?: string;
}

let viz: Promise<Viz> | undefined;

function load(): Promise<Viz> {
  viz ??= instance();
  return viz;
}

void load();

self.onmessage = async (event: MessageEvent<Request>) => {
  const { id, dot } = event.data;
  try {
    const layout = compact((await load()).render(dot, { format: "json0", yInvert: true }));
    const parts = [layout.boxes.buffer, layout.clusters.buffer, layout.labels.buffer];
    self.postMessage({ id, layout } satisfies Answer, { transfer: parts });
  } catch (error) {
    viz = undefined; // after a failure the memory of the module may be in any state
    self.postMessage({ id, error: String(error) } satisfies Answer);
  }
};

function compact(result: { status: string; output?: string | undefined; errors: { message?: string }[] }): Layout {
  if (result.status !== "success" || !result.output) throw new Error(result.errors.map((each) => each.message).join("; "));
  const json = JSON.parse(result.output) as { bb: string; objects?: Found[]; edges?: Found[] };
  const [left = 0, bottom = 0, right = 0, top = 0] = numbers(json.bb);
  const objects = json.objects ?? [];
  const edges = (json.edges ?? []).filter((edge) => edge.id !== undefined);
  const layout: Layout = {
    width: Math.abs(right - left),
    height: Math.abs(top - bottom),
    boxes: new Float64Array(2 * objects.length),
    clusters: new Float64Array(4 * (objects.length + 1)),
    edges: [],
    labels: new Float64Array(2 * edges.length).fill(NaN),
  };
  for (const each of objects) {
    if (each.pos) layout.boxes.set(numbers(each.pos), 2 * Number(each.name?.slice(1)));
    if (!each.bb) continue;
    const [x0 = 0, y0 = 0, x1 = 0, y1 = 0] = numbers(each.bb);
    const index = Number(each.name?.slice("cluster_c".length));
    layout.clusters.set([Math.min(x0, x1), Math.min(y0, y1), Math.abs(x1 - x0), Math.abs(y1 - y0)], 4 * index);
  }
  for (const each of edges) {
    layout.edges[Number(each.id)] = Float64Array.from(numbers(each.pos ?? ""));
    if (each.lp) layout.labels.set(numbers(each.lp), 2 * Number(each.id));
  }
  return layout;
}

function numbers(text: string): number[] {
  return text ? text.split(/[ ,]/).map(Number) : [];
}
