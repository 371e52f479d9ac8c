// Parts of the panels: sections with a title, and lists of items of several lines.

import { count, h, type Child } from "./dom.ts";

/** A section with a title; none if it has nothing to show. */
export function section(title: string, ...children: Child[]): HTMLElement | null {
  const given = children.filter((each) => each !== null && each !== undefined && each !== false);
  return given.length ? h("section", { class: "details-section" }, h("h3", {}, title), ...given) : null;
}

/** Items of several lines: the first 24, the others when asked for, in steps. */
export function tall<T>(items: readonly T[], render: (item: T) => HTMLElement, label: string, step = 24): HTMLElement {
  const list = h("ul", { class: "items tall", "aria-label": label });
  let shown = 0;
  const button = h("button", { type: "button", class: "quiet", click: () => more() }, "");
  const more = () => {
    list.append(...items.slice(shown, shown + step).map((each) => h("li", {}, render(each))));
    shown = Math.min(items.length, shown + step);
    if (shown >= items.length) return button.remove();
    button.textContent = `Show ${count(Math.min(step, items.length - shown))} more of ${count(items.length)}`;
  };
  const host = h("div", {}, list, button);
  more();
  return host;
}

