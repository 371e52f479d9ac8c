// The picture of the graph: what is shown follows from the store, clicks change the store.
//
//   const canvas = new Canvas(host, store, new States(data), layouter);
//   await canvas.ready;
//
// The host gets data-state ("busy" or "ready") and data-milliseconds (from the last change to its picture).

import type { NodeId } from "./document.ts";
import type { Layouter } from "./layout.ts";
import type { States } from "./states.ts";
import type { EdgeKey, Store } from "./store.ts";

export type Direction = "up" | "down" | "left" | "right" | "in" | "out";

export class Canvas {
  /** Resolves when the last layout is drawn. */
  ready: Promise<void> = Promise.resolve();

  constructor(
    readonly host: HTMLElement,
    readonly store: Store,
    readonly states: States,
    readonly layouter: Layouter,
  ) {
    host.dataset["state"] = "ready";
    host.dataset["milliseconds"] = "0";
  }

  /** Open the groups around a node or an edge, and bring it to the middle. */
  focus(_target: NodeId | EdgeKey): void {}

  /** Show the whole graph. */
  fit(): void {}

  /** Zoom about the middle: above 1 is nearer. */
  zoom(_factor: number): void {}

  /** Move the picture by pixels of the screen. */
  pan(_x: number, _y: number): void {}

  /** The node to which a key moves from a node; "in" enters its body or its group, "out" leaves to the owner. */
  neighbours(_node: NodeId, _direction: Direction): NodeId | null {
    return null;
  }

  /** The group that hides a node, or else the innermost group (or body owner) that a key would fold: its id for `toggle`. */
  groupOf(_node: NodeId): string | null {
    return null;
  }

  /** Fold an open group, open a folded one. */
  toggle(_group: string): void {}

  /** Fold every group. */
  foldAll(): void {}

  /** Open every group. */
  openAll(): void {}

  /** Forget what the user folded and opened. */
  resetFolds(): void {}

  /** Open the groups around a node without moving the camera. */
  unfold(_node: NodeId): void {}


  /** The picture as a standalone SVG document, with its styles inside. */
  svg(): string {
    return "";
  }
}
