// The client of the worker.

import type { Answer, Request } from "./worker.ts";

export class Layouter {
  private readonly worker: Worker;
  private count = 0;
  private readonly waiting = new Map<number, { resolve: (layout: unknown) => void; reject: (error: Error) => void }>();

  constructor(source: string) {
    const url = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
    this.worker = new Worker(url);
    URL.revokeObjectURL(url);
    this.worker.onmessage = (event: MessageEvent<Answer>) => {
      const answer = event.data;
      const waiting = this.waiting.get(answer.id);
      this.waiting.delete(answer.id);
      if ("error" in answer) waiting?.reject(new Error(answer.error));
      else waiting?.resolve(answer.layout);
    };
  }

  /** The layout of a graph in the DOT language, as Graphviz's JSON. */
  layout(dot: string): Promise<unknown> {
    const id = ++this.count;
    return new Promise((resolve, reject) => {
      this.waiting.set(id, { resolve, reject });
      this.worker.postMessage({ id, dot } satisfies Request);
    });
  }
}
