// The client of the worker: one layout at a time, a newer request replaces the one that waits, what is known is kept.

import type { Answer, Layout, Request } from "./worker.ts";

export type { Layout } from "./worker.ts";

const KEPT = 60; // layouts
const PATIENCE = 600; // milliseconds after which a newer request ends a layout that is under way

/** A layout was not made because another one was asked for, or because the user cancelled it. */
export class Cancelled extends Error {}

interface Job {
  dot: string;
  resolve: (layout: Layout) => void;
  reject: (error: Error) => void;
}

export class Layouter {
  private readonly url: string;
  private worker: Worker;
  private readonly known = new Map<string, Layout>();
  private count = 0;
  private since = 0;
  private running: Job | null = null;
  private waiting: Job[] = [];

  constructor(source: string) {
    this.url = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
    this.worker = this.start();
  }

  /** The layouts of graphs in the DOT language. What was asked for before and is not done is cancelled. */
  layout(dots: readonly string[]): Promise<Layout[]> {
    for (const job of this.waiting.splice(0)) job.reject(new Cancelled());
    const all = Promise.all(dots.map((dot) => this.one(dot)));
    if (this.running && this.waiting.length && performance.now() - this.since > PATIENCE) this.end();
    this.next();
    return all;
  }

  /** End what is under way, and what waits. */
  cancel(): void {
    for (const job of this.waiting.splice(0)) job.reject(new Cancelled());
    if (this.running) this.end();
  }

  private one(dot: string): Promise<Layout> {
    const known = this.known.get(dot);
    if (known) return Promise.resolve(known);
    return new Promise((resolve, reject) => this.waiting.push({ dot, resolve, reject }));
  }

  private start(): Worker {
    const worker = new Worker(this.url);
    worker.onmessage = (event: MessageEvent<Answer>) => this.answered(event.data);
    worker.onerror = (event) => {
      event.preventDefault();
      this.answered({ id: this.count, error: event.message });
    };
    return worker;
  }

  private end(): void {
    this.worker.terminate();
    this.worker = this.start();
    this.running?.reject(new Cancelled());
    this.running = null;
  }

  private next(): void {
    if (this.running) return;
    const job = this.waiting.shift();
    if (!job) return;
    this.running = job;
    this.since = performance.now();
    this.worker.postMessage({ id: ++this.count, dot: job.dot } satisfies Request);
  }

  private answered(answer: Answer): void {
    const job = this.running;
    if (!job || answer.id !== this.count) return;
    this.running = null;
    if ("error" in answer) {
      job.reject(new Error(answer.error));
    } else {
      this.known.set(job.dot, answer.layout);
      for (const old of [...this.known.keys()].slice(0, this.known.size - KEPT)) this.known.delete(old);
      job.resolve(answer.layout);
    }
    this.next();
  }
}
