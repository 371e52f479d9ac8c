// The frame of the page: header, left and right panels that can be closed and resized, the middle, dialogs and messages.

import { bdi, fill, h, iconButton, plural } from "./dom.ts";

export type Side = "left" | "right";

const NARROW = "(max-width: 1100px)";
const PHONE = "(max-width: 760px)";
const WIDTHS: Record<Side, [least: number, first: number, most: number]> = { left: [220, 320, 560], right: [260, 400, 760] };

export class Shell {
  readonly header = h("header", { class: "top" });
  readonly notes = h("div", { class: "notes", role: "note", hidden: true });
  readonly left = h("aside", { class: "side left", id: "left", "aria-label": "Steps" });
  readonly right = h("aside", { class: "side right", id: "right", "aria-label": "Selection" });
  readonly bar = h("div", { class: "canvas-bar", role: "toolbar", "aria-label": "View" });
  readonly canvas = h("div", { class: "canvas", id: "graph", tabindex: "0", role: "application", "aria-label": "Graph", "aria-roledescription": "graph" });
  readonly over = h("div", { class: "over" });
  readonly bottom = h("div", { class: "bottom" });
  private readonly live = h("div", { class: "sr", "aria-live": "polite", role: "status" });
  private readonly message = h("div", { class: "toast", "aria-hidden": "true" });
  private readonly root: HTMLElement;
  private timer = 0;
  private readonly buttons = new Map<Side, HTMLButtonElement>();

  constructor(hasLeft: boolean) {
    const middle = h("main", { class: "middle", "aria-label": "Graph and steps" }, this.bar, h("div", { class: "stage" }, this.canvas, this.over), this.bottom);
    this.root = h("div", { class: "app" },
      h("a", { class: "skip", href: "#graph", click: (event: Event) => { event.preventDefault(); this.canvas.focus(); } }, "Skip to the graph"),
      this.header, this.notes,
      h("div", { class: "columns" }, ...(hasLeft ? [this.left, this.resizer("left")] : []), middle, this.resizer("right"), this.right),
      this.live, this.message);
    const [narrow, phone] = [matchMedia(NARROW).matches, matchMedia(PHONE).matches];
    this.set("left", hasLeft && !narrow);
    this.set("right", !phone);
    matchMedia(NARROW).addEventListener("change", (event) => this.set("left", hasLeft && !event.matches));
    matchMedia(PHONE).addEventListener("change", (event) => this.set("right", !event.matches));
  }

  mount(): void {
    document.body.append(this.root);
  }

  /** A button that shows and hides a panel. */
  panelButton(side: Side, label: string): HTMLButtonElement {
    const button = iconButton(side === "left" ? "panel" : "detailsPanel", label, () => this.toggle(side), {
      "aria-controls": side, "aria-expanded": String(this.isOpen(side)),
    });
    this.buttons.set(side, button);
    return button;
  }

  isOpen(side: Side): boolean {
    return this.root.dataset[side] === "open";
  }

  set(side: Side, open: boolean): void {
    this.root.dataset[side] = open ? "open" : "closed";
    this.buttons.get(side)?.setAttribute("aria-expanded", String(open));
  }

  toggle(side: Side): void {
    this.set(side, !this.isOpen(side));
    if (this.isOpen(side) && matchMedia(PHONE).matches) this.set(side === "left" ? "right" : "left", false);
  }

  /** Tell a screen reader. */
  say(text: string): void {
    this.live.textContent = text.slice(0, 600);
  }

  /** Show a short message, and tell a screen reader. */
  toast(text: string): void {
    this.say(text);
    this.message.textContent = text;
    this.message.dataset["shown"] = "true";
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => delete this.message.dataset["shown"], 2200);
  }

  private resizer(side: Side): HTMLElement {
    const [least, first, most] = WIDTHS[side];
    let width = first;
    const set = (wanted: number) => {
      width = Math.round(Math.min(most, Math.max(least, wanted)));
      document.documentElement.style.setProperty(`--${side}`, `${width}px`);
      bar.setAttribute("aria-valuenow", String(width));
    };
    const bar = h("div", {
      class: `resizer for-${side}`, role: "separator", tabindex: "0", "aria-orientation": "vertical", "aria-label": `Width of the ${side} panel`,
      "aria-valuemin": least, "aria-valuemax": most, "aria-valuenow": first, "aria-controls": side,
      keydown: (event: KeyboardEvent) => {
        const by = { ArrowLeft: -20, ArrowRight: 20 }[event.key];
        if (!by) return;
        event.preventDefault();
        set(width + (side === "left" ? by : -by));
      },
      dblclick: () => set(first),
      pointerdown: (event: PointerEvent) => {
        event.preventDefault();
        const [start, from] = [event.clientX, width];
        bar.setPointerCapture(event.pointerId);
        const move = (each: PointerEvent) => set(from + (side === "left" ? 1 : -1) * (each.clientX - start));
        bar.addEventListener("pointermove", move);
        bar.addEventListener("lostpointercapture", () => bar.removeEventListener("pointermove", move), { once: true });
      },
    });
    return bar;
  }
}

/** Tabs of a panel; a tab is drawn when it is first shown. */
export class Tabs {
  readonly element: HTMLElement;
  private readonly tabs = new Map<string, { button: HTMLButtonElement; panel: HTMLElement; show: () => void }>();
  private readonly list = h("div", { class: "tabs", role: "tablist", "aria-label": "Selection, weights" });

  constructor() {
    this.element = h("div", { class: "tabbed" }, this.list);
    this.list.addEventListener("keydown", (event) => {
      const names = [...this.tabs.keys()];
      const at = names.findIndex((name) => this.tabs.get(name)!.button === document.activeElement);
      const to = { ArrowRight: at + 1, ArrowLeft: at - 1 }[event.key];
      if (to === undefined) return;
      event.preventDefault();
      const name = names[(to + names.length) % names.length]!;
      this.show(name);
      this.tabs.get(name)!.button.focus();
    });
  }

  add(name: string, content: HTMLElement, show: () => void): void {
    const id = `tab-${name.toLowerCase()}`;
    const button = h("button", { type: "button", role: "tab", id, "aria-controls": `${id}-panel`, "aria-selected": "false", click: () => this.show(name) }, name);
    const panel = h("div", { class: "tab-panel", role: "tabpanel", id: `${id}-panel`, "aria-labelledby": id, hidden: true }, content);
    this.tabs.set(name, { button, panel, show });
    this.list.append(button);
    this.element.append(panel);
    if (this.tabs.size === 1) this.show(name);
  }

  show(name: string): void {
    for (const [each, { button, panel, show }] of this.tabs) {
      const selected = each === name;
      button.setAttribute("aria-selected", String(selected));
      button.tabIndex = selected ? 0 : -1;
      panel.hidden = !selected;
      if (selected) show();
    }
  }
}

/** A dialog with a title; Escape and the button close it. */
export function dialog(title: string, ...children: HTMLElement[]): HTMLDialogElement {
  const close = iconButton("close", "Close", () => element.close());
  const element = h("dialog", { class: "dialog", "aria-label": title, click: (event: MouseEvent) => event.target === element && element.close() },
    h("div", { class: "dialog-body" }, h("header", { class: "dialog-head" }, h("h2", {}, title), close), ...children));
  document.body.append(element);
  return element;
}

/** The notes of the document: what is missing in it, and why; what differs in two models as a whole. Several are folded. */
export function showNotes(host: HTMLElement, notes: readonly string[]): void {
  host.hidden = !notes.length;
  if (!notes.length) return;
  const close = iconButton("close", "Hide the notes", () => (host.hidden = true));
  const list = h("ul", {}, ...notes.map((note) => h("li", {}, h("bdi", {}, note.slice(0, 2000)))));
  fill(host, notes.length > 1 ? h("details", { class: "fold" }, h("summary", {}, `${plural(notes.length, "note")}: `, bdi(notes[0]!, 90)), list) : list, close);
}
