// A list that makes elements only for the rows in sight, so that 20,000 rows cost what 30 cost.

import { fill, h } from "./dom.ts";

const AROUND = 6; // rows above and below those in sight

export interface Row<T> {
  item: T;
  height: number;
}

export class VirtualList<T> {
  readonly element: HTMLElement;
  private readonly inner = h("div", { class: "virtual-rows", role: "presentation" });
  private rows: Row<T>[] = [];
  private tops: number[] = [0];
  private shown = "";

  constructor(private readonly render: (item: T, index: number) => HTMLElement, props: Record<string, string> = {}) {
    this.element = h("div", { class: "virtual", tabindex: "0", ...props }, this.inner);
    this.element.addEventListener("scroll", () => this.draw(), { passive: true });
    new ResizeObserver(() => this.draw()).observe(this.element);
  }

  get length(): number {
    return this.rows.length;
  }

  item(index: number): T | undefined {
    return this.rows[index]?.item;
  }

  set(rows: Row<T>[]): void {
    this.rows = rows;
    this.tops = [0];
    for (const row of rows) this.tops.push(this.tops[this.tops.length - 1]! + row.height);
    this.inner.style.height = `${this.tops[rows.length]}px`;
    this.element.scrollTop = 0;
    this.redraw();
  }

  /** Draw the rows in sight anew. */
  redraw(): void {
    this.shown = "";
    this.draw();
  }

  /** Scroll so that a row is in sight. */
  reveal(index: number): void {
    const top = this.tops[index] ?? 0;
    const bottom = this.tops[index + 1] ?? top;
    const { scrollTop, clientHeight } = this.element;
    if (top < scrollTop) this.element.scrollTop = top;
    else if (bottom > scrollTop + clientHeight) this.element.scrollTop = bottom - clientHeight;
    this.draw();
  }

  private draw(): void {
    const { scrollTop, clientHeight } = this.element;
    const first = Math.max(0, this.at(scrollTop) - AROUND);
    const last = Math.min(this.rows.length - 1, this.at(scrollTop + Math.max(clientHeight, 200)) + AROUND);
    if (this.shown === `${first} ${last}`) return;
    this.shown = `${first} ${last}`;
    const elements: HTMLElement[] = [];
    for (let index = first; index <= last; index++) {
      const row = this.rows[index]!;
      const element = this.render(row.item, index);
      element.classList.add("virtual-row");
      element.style.top = `${this.tops[index]}px`;
      element.style.height = `${row.height}px`;
      elements.push(element);
    }
    fill(this.inner, ...elements);
  }

  private at(y: number): number {
    let low = 0;
    let high = this.rows.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.tops[middle]! <= y) low = middle;
      else high = middle - 1;
    }
    return Math.max(0, low);
  }
}

const FEW = 12;

/** A list that shows a few items; a button shows the others in a list of its own height. */
export function longList<T>(items: readonly T[], render: (item: T) => HTMLElement, label: string, few = FEW): HTMLElement {
  if (items.length <= few + 3) return h("ul", { class: "items", "aria-label": label }, ...items.map((each) => h("li", {}, render(each))));
  const first = h("ul", { class: "items", "aria-label": label }, ...items.slice(0, few).map((each) => h("li", {}, render(each))));
  const host = h("div", { class: "long-list" }, first);
  const button = h("button", {
    class: "quiet", type: "button",
    click: () => {
      const list = new VirtualList<T>((item) => h("div", { class: "virtual-item", role: "listitem" }, render(item)), {
        role: "list", "aria-label": label,
      });
      fill(host, list.element);
      list.set(items.map((item) => ({ item, height: 26 })));
      list.element.focus();
    },
  }, `Show all ${items.length.toLocaleString("en-US")}`);
  host.append(button);
  return host;
}
