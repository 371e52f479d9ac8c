// The right side: what is known of the selected node or edge; of the graph where nothing is selected.

import { Labels, TextForm } from "./text_form.ts";
import { copyText, linkHere } from "./copy.ts";
import type { Context } from "./context.ts";
import { fill, h, iconButton } from "./dom.ts";
import { edgeDetails } from "./edge_details.ts";
import { loopPlot } from "./heat_panel.ts";
import { nodeDetails, nodeHead, standIns } from "./node_details.ts";
import { graphSummary } from "./summary.ts";

export class Details {
  readonly element = h("section", { class: "details", "aria-label": "Details", tabindex: "-1" });
  private drawn = "";

  constructor(private readonly context: Context, private readonly search: (query: string) => void) {
    context.store.subscribe((shown, before) => {
      if (shown.selection !== before.selection || shown.step !== before.step) this.draw();
    });
    this.draw();
  }

  private draw(): void {
    const { context } = this;
    const { selection } = context.store.get();
    const key = JSON.stringify(selection);
    const top = key === this.drawn ? this.element.scrollTop : 0; // going through the steps keeps the place
    this.drawn = key;
    if (!selection) fill(this.element, this.tools(false), ...graphSummary(context, this.search));
    else if ("edge" in selection) fill(this.element, this.tools(true), ...edgeDetails(context, selection.edge));
    else this.node(selection.node);
    this.element.scrollTop = top;
  }

  private node(node: number): void {
    const { context } = this;
    const record = context.record(node);
    if (record) {
      const plot = context.document.heat?.loops[node];
      fill(this.element, this.tools(true), nodeHead(context, record), ...nodeDetails(context, record, plot ? [loopPlot(plot)] : []));
      return;
    }
    const step = context.stepWith(node);
    const last = step === null ? undefined : context.states.at(step).nodes.get(node);
    if (!last || step === null) return fill(this.element, h("p", { class: "dim" }, "The document has no such node."));
    fill(this.element, this.tools(true), nodeHead(context, last),
      h("p", { class: "notice" }, "This node is not in the graph of this step. It is in ", step < 0 ? "the graph " : "the graph after ", context.stepLink(step, node), "."),
      ...[standIns(context, last)].filter((each) => each !== null),
      ...nodeDetails(context, last, []));
  }

  private tools(selected: boolean): HTMLElement {
    const { context } = this;
    return h("div", { class: "details-tools" },
      selected ? iconButton("target", "Show in the graph", () => this.focus()) : null,
      selected ? iconButton("link", "Copy link", () => copyText(linkHere(), "The link", context.toast)) : null,
      iconButton("copy", "Copy as text", () => copyText(selectionText(context), selected ? "The text of the selection" : "The text of the graph", context.toast)),
      selected ? iconButton("close", "Clear the selection (Escape)", () => context.store.set({ selection: null })) : null);
  }

  private focus(): void {
    const { selection } = this.context.store.get();
    if (selection && "node" in selection) this.context.select(selection.node);
    else if (selection) this.context.canvas.focus(selection.edge);
  }
}

/** The selection in the text form of the dumps; the whole graph where nothing is selected. */
export function selectionText(context: Context): string {
  const { selection } = context.store.get();
  const { state } = context;
  const labels = new Labels(context.states.ever);
  if (!selection) return new TextForm(state, labels).scope("");
  const node = "node" in selection ? selection.node : selection.edge.to;
  const form = new TextForm(state.nodes.has(node) ? state : context.stateBefore, labels);
  return "node" in selection ? form.node(node) : form.node(selection.edge.from, false) + form.node(node, false);
}
