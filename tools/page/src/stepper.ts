// The slider over the steps that changed the graph, with buttons for the previous and the next one.

import type { Context } from "./context.ts";
import { fill, h, iconButton } from "./dom.ts";
import { stepSentence, stops } from "./labels.ts";

export class Stepper {
  readonly element: HTMLElement;
  private readonly stops: number[];
  private readonly slider: HTMLInputElement;
  private readonly label = h("output", { class: "step-label", "aria-hidden": "true" });
  private readonly back: HTMLButtonElement;
  private readonly on: HTMLButtonElement;

  constructor(private readonly context: Context) {
    this.stops = stops(context.document);
    this.slider = h("input", {
      type: "range", class: "steps", min: 0, max: this.stops.length - 1, step: 1, "aria-label": "Steps that changed the graph",
      input: () => context.go(this.stops[Number(this.slider.value)] ?? -1),
    });
    this.back = iconButton("previous", "Previous change (left arrow)", () => this.move(-1));
    this.on = iconButton("next", "Next change (right arrow)", () => this.move(1));
    this.element = h("div", { class: "stepper", role: "group", "aria-label": "Steps" }, this.back, this.slider, this.on, this.label);
    context.store.subscribe((shown, before) => {
      if (shown.mode !== before.mode || shown.step !== before.step) this.draw();
      if (shown.step === before.step) return;
      context.say(stepSentence(context.document, context.states.at(context.states.before(shown.step)), shown.step));
    });
    this.slider.disabled = this.stops.length < 2;
    this.draw();
  }

  /** Go to the previous (-1) or the next (1) step that changed the graph; with `any`, any step. */
  move(by: -1 | 1, any = false): void {
    const { step } = this.context.store.get();
    const all = any ? [-1, ...this.context.document.steps.keys()] : this.stops;
    const next = by > 0 ? all.find((each) => each > step) : all.findLast((each) => each < step);
    if (next !== undefined) this.context.go(next);
  }

  private draw(): void {
    const { document, store } = this.context;
    const { step } = store.get();
    const at = this.stops.findLastIndex((each) => each <= step);
    this.slider.value = String(at);
    const found = document.steps[step];
    this.slider.setAttribute("aria-valuetext", found ? `${found.name}, change ${at} of ${this.stops.length - 1}` : "as loaded");
    this.back.disabled = step <= -1;
    this.on.disabled = step >= this.stops[this.stops.length - 1]!;
    fill(this.label, h("span", { class: "step-count" }, `${at} / ${this.stops.length - 1}`), " ", this.context.isAtEnd ? "as written" : found?.name ?? "as loaded");
  }
}
