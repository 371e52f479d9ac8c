// What the page shows. Everything that draws subscribes to it; everything that the user does changes it.

import type { NodeId } from "./document.ts";

export type Mode = "overlay" | "side" | "after";

export interface EdgeKey {
  from: NodeId;
  port: number;
  to: NodeId;
  input: number;
}

export type Selection = { node: NodeId } | { edge: EdgeKey } | null;

export interface Shown {
  step: number; // an index of document.steps; -1 is the graph as loaded
  mode: Mode;
  folds: ReadonlyMap<string, boolean>; // what the user folded (true) or opened (false), by the id of the group
  selection: Selection;
  query: string; // of the search
  highlights: ReadonlySet<NodeId>; // what the search found: the drawing marks these nodes
  heat: boolean; // tensors have the colour of their difference
  types: boolean; // edges have their types when zoomed in, not only those of the selection
  theme: "auto" | "light" | "dark"; // the root element has data-theme="light" or "dark": what is shown, also for "auto"
}

export type Listener = (shown: Shown, before: Shown) => void;

export class Store {
  private listeners: Listener[] = [];

  constructor(private shown: Shown) {}

  get(): Shown {
    return this.shown;
  }

  set(change: Partial<Shown>): void {
    const before = this.shown;
    this.shown = { ...before, ...change };
    for (const listener of [...this.listeners]) listener(this.shown, before);
  }

  subscribe(listener: Listener): () => void {
    this.listeners.push(listener);
    return () => {
      this.listeners = this.listeners.filter((each) => each !== listener);
    };
  }
}
