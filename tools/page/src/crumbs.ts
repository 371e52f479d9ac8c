// Where the picture is: the groups around the selected node, or around the middle of the picture. Each brings its group into view.

import type { Context } from "./context.ts";
import { bdi, fill, h } from "./dom.ts";

export function crumbs({ canvas, store }: Context): HTMLElement {
  const list = h("ol", {});
  const element = h("nav", { class: "crumbs", "aria-label": "Groups around this place" }, list);
  let shown = "";
  let planned = false;
  const draw = () => {
    planned = false;
    const groups = [{ id: "", title: "Graph" }, ...canvas.where()];
    const text = JSON.stringify(groups);
    if (text === shown) return;
    shown = text;
    element.hidden = groups.length < 2;
    fill(list, ...groups.map(({ id, title }) => h("li", {}, h("button", { type: "button", class: "quiet", "data-crumb": id, click: () => canvas.show(id) }, bdi(title, 28)))));
  };
  const plan = () => {
    if (!planned) requestAnimationFrame(draw);
    planned = true;
  };
  canvas.host.addEventListener("moved", plan);
  store.subscribe((now, before) => now.selection !== before.selection && plan());
  draw();
  return element;
}
