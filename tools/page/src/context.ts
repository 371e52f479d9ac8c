// What every panel works with: the document, its states, what is shown, and the ways to change that.

import { bdi, h, plural, shorten } from "./dom.ts";
import type { Canvas } from "./canvas.ts";
import type { Document, NodeId, NodeRecord } from "./document.ts";
import { linkTo } from "./hash.ts";
import { nameOf, titleOf } from "./labels.ts";
import type { State, States } from "./states.ts";
import type { EdgeKey, Store } from "./store.ts";

export class Context {
  constructor(
    readonly document: Document, readonly states: States, readonly store: Store, readonly canvas: Canvas,
    readonly say: (text: string) => void, // to a screen reader
    readonly toast: (text: string) => void, // on the page too
  ) {}

  /** The graph at the shown step. */
  get state(): State {
    return this.states.at(this.store.get().step);
  }

  /** The graph before the shown step: its own nodes that the step removed are still selectable. */
  get stateBefore(): State {
    const { step } = this.store.get();
    return this.states.at(step < 0 ? -1 : this.states.before(step));
  }

  /** The graph that has a node. */
  stateOf(node: NodeId): State {
    return this.state.nodes.has(node) ? this.state : this.stateBefore;
  }

  /** A node at the shown step, or before it if the step removed it. */
  record(node: NodeId): NodeRecord | undefined {
    return this.state.nodes.get(node) ?? this.stateBefore.nodes.get(node);
  }

  /** The step nearest to the shown one whose graph has a node. */
  stepWith(node: NodeId): number | null {
    if (this.record(node)) return this.store.get().step;
    const { step } = this.store.get();
    const candidates = this.states.history(node).map((event) => (event.what === "removed" ? this.states.before(event.step) : event.step));
    candidates.sort((a, b) => Math.abs(a - step) - Math.abs(b - step));
    return candidates.find((each) => this.states.at(each).nodes.has(node)) ?? null;
  }

  /** Select a node and bring it to the middle, in another step if the shown one does not have it. */
  select(node: NodeId): void {
    const step = this.stepWith(node);
    if (step === null) return this.say("This node is in no step of the document.");
    const moved = step !== this.store.get().step;
    this.store.set({ step, selection: { node } });
    this.canvas.focus(node);
    const record = this.record(node);
    if (!record) return;
    const where = moved ? `, in ${this.document.steps[step]?.name ?? "the graph as loaded"}` : "";
    this.say(`Selected ${shorten(titleOf(record), 120)}${where}.`);
  }

  selectEdge(edge: EdgeKey): void {
    this.store.set({ selection: { edge } });
    this.canvas.focus(edge);
  }

  go(step: number): void {
    this.store.set({ step });
  }

  /** Show the last state; of a conversion the graph as written, without the colours of the pass that made it. */
  goToEnd(): void {
    const step = this.document.steps.length - 1;
    const isChange = this.document.kind === "conversion" && this.document.steps[step]?.delta;
    this.store.set(isChange ? { step, mode: "after" } : { step });
  }

  /** Whether the graph as written is what is shown. */
  get isAtEnd(): boolean {
    const { step, mode } = this.store.get();
    const last = this.document.steps.length - 1;
    return step >= 0 && step === last && (mode === "after" || !this.document.steps[last]?.delta);
  }

  /** Show a step with a node of it selected. */
  goTo(step: number, node: NodeId | null): void {
    const there = node !== null && (this.states.at(step).nodes.has(node) || this.states.at(this.states.before(step)).nodes.has(node));
    this.store.set(there ? { step, selection: { node } } : { step });
    if (there) this.canvas.focus(node);
  }

  /** A link to a node: its operator and its name. */
  link(node: NodeId, options: { name?: string; limit?: number; op?: boolean } = {}): HTMLElement {
    const record = this.record(node) ?? this.lastRecord(node);
    const label = options.name ?? (record ? nameOf(record) : `#${node}`);
    const link = h("a", {
      class: "node-link", href: linkTo(this.store.get(), this.document, node, label === `#${node}` ? "" : label), "data-node": node,
      click: (event: MouseEvent) => {
        if (event.ctrlKey || event.metaKey || event.shiftKey) return;
        event.preventDefault();
        this.select(node);
      },
    });
    if (record && options.op !== false) link.append(h("span", { class: "op" }, record.op), " ");
    link.append(bdi(label, options.limit ?? 40));
    return link;
  }

  /** A link to a step. */
  stepLink(step: number, node: NodeId | null = null): HTMLElement {
    const name = this.document.steps[step]?.name ?? "As loaded";
    return h("a", {
      class: "step-link", href: linkTo({ ...this.store.get(), step }, this.document, node, ""),
      click: (event: MouseEvent) => {
        if (event.ctrlKey || event.metaKey || event.shiftKey) return;
        event.preventDefault();
        this.goTo(step, node);
      },
    }, step >= 0 && this.document.kind === "conversion" ? h("span", { class: "place" }, `${this.document.steps[step]!.place} `) : null, name);
  }

  /** The record of a node in the last state that has it. */
  lastRecord(node: NodeId): NodeRecord | undefined {
    const step = this.stepWith(node);
    return step === null ? undefined : this.states.at(step).nodes.get(node);
  }

  /** Whether the shown step added, removed, rewired or changed a node. */
  changeOf(node: NodeId): "added" | "removed" | "rewired" | "changed" | null {
    return this.states.changes(this.store.get().step).nodes.get(node) ?? null;
  }

  /** "12 nodes, 3 of them in bodies". */
  sizeText(state: State): string {
    const inner = state.nodes.size - state.within("").length;
    return `${plural(state.nodes.size, "node")}${inner ? `, ${plural(inner, "node")} of them in bodies` : ""}`;
  }
}

export const CHANGE_SIGNS = { added: "+", removed: "−", changed: "~", rewired: "⇄" } as const;
export const CHANGE_WORDS = { added: "added", removed: "removed", changed: "changed", rewired: "rewired" } as const;

/** A small sign with the word for a screen reader and the tooltip. */
export function changeChip(what: keyof typeof CHANGE_SIGNS, long = false): HTMLElement {
  return h("span", { class: `chip ${what}`, title: CHANGE_WORDS[what] },
    h("span", { "aria-hidden": "true" }, CHANGE_SIGNS[what]), long ? ` ${CHANGE_WORDS[what]}` : h("span", { class: "sr" }, CHANGE_WORDS[what]));
}
