// The list of passes in the order in which they ran, from the graph as loaded to the graph as written.

import type { Context } from "./context.ts";
import { count, duration, fill, h, plural } from "./dom.ts";
import type { Step } from "./document.ts";
import { sizes, stops, tally, tallyText } from "./labels.ts";

const MANY = 16; // from here on only the passes that changed something are shown at first

export class Passes {
  readonly element: HTMLElement;
  private readonly list = h("ol", { class: "passes", "aria-label": "Passes in the order in which they ran" });
  private readonly filter = h("input", {
    type: "search", class: "filter", placeholder: "Filter passes", "aria-label": "Filter passes", spellcheck: "false",
    input: () => this.draw(),
  });
  private readonly unchanged: HTMLInputElement;
  private readonly stops: number[];
  private readonly sizes: [number, number][];

  constructor(private readonly context: Context) {
    const { document } = context;
    this.stops = stops(document);
    this.sizes = sizes(document);
    this.unchanged = h("input", { type: "checkbox", change: () => this.draw() });
    this.unchanged.checked = document.steps.length <= MANY;
    const idle = document.steps.length - this.stops.length + 1;
    const seconds = document.steps.reduce((sum, step) => sum + step.seconds, 0);
    this.element = h("section", { class: "panel-section passes-section", "aria-label": "Passes" },
      h("header", { class: "section-head" },
        h("h2", {}, "Passes"),
        h("span", { class: "dim" }, `${this.stops.length - 1} of ${document.steps.length} changed the graph · ${duration(seconds)}`)),
      h("div", { class: "section-tools" }, this.filter,
        idle ? h("label", { class: "check" }, this.unchanged, ` ${count(idle)} without a change`) : null),
      this.list);
    this.draw();
    this.list.addEventListener("keydown", (event) => this.key(event));
    context.store.subscribe((shown, before) => {
      if (shown.step !== before.step || shown.mode !== before.mode) this.draw();
    });
  }

  private draw(): void {
    const { document, store } = this.context;
    const wanted = this.filter.value.trim().toLowerCase();
    const current = store.get().step;
    const focused = this.list.contains(globalThis.document.activeElement);
    const rows: HTMLElement[] = [];
    const first = this.context.states.at(-1);
    if (!wanted) rows.push(this.end(-1, "As loaded", `${plural(first.nodes.size, "node")}`));
    document.steps.forEach((step, index) => {
      const matches = !wanted || step.name.toLowerCase().includes(wanted) || step.matchers.some(([name]) => name.toLowerCase().includes(wanted));
      if (!matches) return;
      if (!step.delta && !this.unchanged.checked && !wanted && index !== current) return;
      rows.push(this.row(step, index));
    });
    const last = document.steps.length - 1;
    if (!wanted && last >= 0) rows.push(this.end(last, "As written", plural(this.sizes[last]![1], "node")));
    if (!rows.length) rows.push(h("li", { class: "empty" }, "No pass has this in its name."));
    fill(this.list, ...rows);
    const now = this.list.querySelector<HTMLElement>("[aria-current]");
    now?.scrollIntoView({ block: "nearest" });
    if (focused) now?.focus();
  }

  private row(step: Step, index: number): HTMLElement {
    const shown = this.context.store.get();
    const current = shown.step === index && !this.context.isAtEnd;
    const changes = tally(step);
    const facts = step.delta
      ? [step.matches ? plural(step.matches, "match", "matches") : "", nodesText(this.sizes[index]!)].filter(Boolean).join(" · ")
      : step.off ? "switched off" : "";
    return this.item(index, step.delta ? "changed" : step.off ? "off" : "unchanged", current,
      h("span", { class: "row-top" },
        h("span", { class: "place" }, step.place), h("span", { class: "row-name" }, step.name),
        step.off ? null : h("span", { class: "row-time" }, duration(step.seconds))),
      facts || step.delta ? h("span", { class: "row-facts" }, facts,
        step.delta ? h("span", { class: "row-tally", title: tallyText(changes) },
          changes.added ? h("span", { class: "added" }, `+${count(changes.added)}`) : null,
          changes.removed ? h("span", { class: "removed" }, `−${count(changes.removed)}`) : null,
          changes.changed ? h("span", { class: "changed" }, `~${count(changes.changed)}`) : null,
          h("span", { class: "sr" }, ` ${tallyText(changes)}`)) : null) : null);
  }

  private end(step: number, name: string, facts: string): HTMLElement {
    const { step: now } = this.context.store.get();
    const current = step < 0 ? now < 0 : this.context.isAtEnd;
    return this.item(step, "end", current, h("span", { class: "row-top" },
      h("span", { class: "row-name" }, name), h("span", { class: "row-time" }, facts)));
  }

  private item(step: number, kind: string, current: boolean, ...children: (HTMLElement | null)[]): HTMLElement {
    const button = h("button", {
      type: "button", class: "pass-row", "data-step": step, "aria-current": current ? "step" : null,
      tabindex: current ? 0 : -1,
      click: () => (kind === "end" && step >= 0 ? this.context.goToEnd() : this.context.go(step)),
    }, ...children);
    return h("li", { class: `pass ${kind}` }, button);
  }

  private key(event: KeyboardEvent): void {
    const buttons = [...this.list.querySelectorAll<HTMLElement>(".pass-row")];
    const at = buttons.indexOf(globalThis.document.activeElement as HTMLElement);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: buttons.length - 1 }[event.key];
    if (to === undefined || !buttons[to]) return;
    event.preventDefault();
    event.stopPropagation();
    buttons[to]!.focus();
  }
}

/** "3 nodes", or "5 → 3 nodes". */
export function nodesText([before, after]: [number, number]): string {
  return before === after ? plural(after, "node") : `${count(before)} → ${plural(after, "node")}`;
}
