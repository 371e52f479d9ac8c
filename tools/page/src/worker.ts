// The layout, in a worker: a graph in the DOT language comes in, positions go out.

import { instance, type Viz } from "@viz-js/viz";

export interface Request {
  id: number;
  dot: string;
}

export type Answer = { id: number; layout: unknown } | { id: number; error: string };

let viz: Promise<Viz> | undefined;

self.onmessage = async (event: MessageEvent<Request>) => {
  const { id, dot } = event.data;
  try {
    viz ??= instance();
    const layout = (await viz).renderJSON(dot);
    self.postMessage({ id, layout } satisfies Answer);
  } catch (error) {
    self.postMessage({ id, error: String(error) } satisfies Answer);
  }
};
