// Starts the page: reads the document, makes the panels and the drawing, and connects them.

import { Canvas } from "./canvas.ts";
import { ChangesList } from "./changes_list.ts";
import { Context } from "./context.ts";
import { copyText, saveFile } from "./copy.ts";
import { crumbs } from "./crumbs.ts";
import { Details, selectionText } from "./details.ts";
import { readDocument, readText } from "./document.ts";
import { bdi, h, iconButton, shorten } from "./dom.ts";
import { Explanation } from "./explain.ts";
import { firstShown, fromHash, History } from "./hash.ts";
import { HeatPanel } from "./heat_panel.ts";
import { followKeys, keyTable } from "./keys.ts";
import { nameOf } from "./labels.ts";
import { LayersList } from "./layers_list.ts";
import { Layouter } from "./layout.ts";
import { Legend } from "./legend.ts";
import { Passes } from "./passes.ts";
import { Search } from "./search.ts";
import { dialog, Shell, showNotes, Tabs } from "./shell.ts";
import { States } from "./states.ts";
import { Stepper } from "./stepper.ts";
import { Store, type Mode, type Shown } from "./store.ts";
import { followTheme, storedTheme } from "./theme.ts";
import { Weights } from "./weights.ts";

async function start(): Promise<void> {
  const [data, source] = await Promise.all([readDocument(), readText("worker")]);
  const states = new States(data);
  const store = new Store({
    ...firstShown(data), folds: new Map(), selection: null, query: "", highlights: new Set(), types: false, theme: storedTheme(),
    ...fromHash(location.hash, data, states),
  });
  followTheme(store);
  const shell = new Shell(data.kind !== "graph");
  shell.mount();
  const canvas = new Canvas(shell.canvas, store, states, new Layouter(source));
  const context = new Context(data, states, store, canvas, (text) => shell.say(text), (text) => shell.toast(text));
  connect(context, shell);
  const { selection } = store.get();
  if (selection) canvas.focus("node" in selection ? selection.node : selection.edge);
  await canvas.ready;
  document.body.dataset["ready"] = "true";
}

/** Make the panels and tie them together. */
function connect(context: Context, shell: Shell): void {
  const { document: data, store, states, canvas } = context;
  const search = new Search(context);
  const legend = new Legend(data, store);
  const help = helpDialog();
  const stepper = data.kind === "conversion" ? new Stepper(context) : null;
  const tabs = new Tabs();
  const details = new Details(context, (query) => search.ask(query));
  const weights = new Weights(context);
  tabs.add("Details", details.element, () => {});
  tabs.add("Weights", weights.element, () => weights.show());
  if (data.heat) {
    const heat = new HeatPanel(context, data.heat);
    tabs.add("Differences", heat.element, () => heat.show());
    if (!store.get().selection) tabs.show("Differences");
  }
  store.subscribe((shown, before) => {
    if (shown.selection !== before.selection && shown.selection) {
      tabs.show("Details");
      if (!matchMedia("(max-width: 760px)").matches) shell.set("right", true);
    }
  });
  if (data.pairs) shell.left.append(new LayersList(context, data.pairs).element);
  else if (data.kind === "diff") shell.left.append(new ChangesList(context, data.steps.length - 1).element);
  else shell.left.append(new Passes(context).element, new Explanation(context).element);
  shell.right.append(tabs.element);
  shell.header.append(...headerParts(context, shell, search, help));
  shell.bar.append(...barParts(context, legend));
  shell.over.append(crumbs(context), legend.element, cameraButtons(context));
  if (stepper) shell.bottom.append(stepper.element);
  showNotes(shell.notes, data.notes ?? []);

  new History(store, data, states, (node) => nameFor(context, node), (selection) => {
    if (selection) canvas.focus("node" in selection ? selection.node : selection.edge);
  });
  followKeys(context, {
    move: (by, any) => stepper?.move(by, any),
    first: () => context.go(-1),
    last: () => context.goToEnd(),
    search: () => search.focus(),
    clearSearch: () => search.clear(),
    help: () => help.showModal(),
    legend: () => toggleLegend(legend),
    tab: (name) => {
      shell.set("right", true);
      tabs.show(name);
      (name === "Weights" ? weights : details).element.focus();
    },
    panel: (side) => shell.toggle(side),
  });
}

function nameFor(context: Context, node: number): string {
  const record = context.record(node) ?? context.lastRecord(node);
  return record && nameOf(record) !== `#${node}` ? nameOf(record) : "";
}

function headerParts(context: Context, shell: Shell, search: Search, help: HTMLDialogElement): HTMLElement[] {
  const { document: data, store } = context;
  const theme = h("select", { class: "theme", "aria-label": "Theme", title: "Theme", change: () => store.set({ theme: theme.value as Shown["theme"] }) },
    ...["auto", "light", "dark"].map((each) => h("option", { value: each }, each[0]!.toUpperCase() + each.slice(1))));
  theme.value = store.get().theme;
  return [
    h("div", { class: "brand" },
      data.kind === "graph" ? null : shell.panelButton("left", { diff: "Differences (p)", layers: "Nodes and layers (p)" }[data.kind as string] ?? "Passes (p)"),
      h("h1", {}, bdi(data.title, 60)), h("span", { class: "dim producer" }, data.producer)),
    search.element,
    h("div", { class: "actions" },
      iconButton("link", "Copy link", () => void copyText(location.href, "The link", context.toast)),
      iconButton("copy", "Copy as text", () => void copyText(selectionText(context), store.get().selection ? "The text of the selection" : "The text of the graph", context.toast)),
      iconButton("save", "Save as SVG", () => saveFile(context.canvas.svg(), `${fileName(context)}.svg`, "image/svg+xml")),
      theme,
      h("button", { type: "button", class: "toggle keys", title: "Keys and licences (?)", click: () => help.showModal() }, "Keys ", h("kbd", {}, "?")),
      shell.panelButton("right", "Details (b)")),
  ];
}

function fileName(context: Context): string {
  const step = context.document.steps[context.store.get().step];
  return `${shorten(context.document.title, 60)}${step && context.document.kind === "conversion" ? `_${step.place}_${step.name}` : ""}`;
}

/** Above the drawing: how a step is shown, and what the drawing shows besides. */
function barParts(context: Context, legend: Legend): HTMLElement[] {
  const { document: data, store } = context;
  const words: [Mode, string][] = [["overlay", "Overlay"], ["side", "Side by side"], ["after", { diff: "New", layers: "IR" }[data.kind as string] ?? "After"]];
  if (data.pairs) words.shift();
  const modes = words.map(([mode, word]) => h("button", { type: "button", class: "segment", "data-mode": mode, click: () => store.set({ mode }) }, word));
  const types = toggle("Types", "Types on the edges (t)", () => store.set({ types: !store.get().types }));
  const heat = toggle("Differences", "Differences as colours (h)", () => store.set({ heat: !store.get().heat }));
  const button = toggle("Legend", "Legend (l)", () => toggleLegend(legend));
  button.dataset["legend"] = "";
  const draw = () => {
    const shown = store.get();
    for (const each of modes) each.setAttribute("aria-pressed", String(each.dataset["mode"] === shown.mode));
    types.setAttribute("aria-pressed", String(shown.types));
    heat.setAttribute("aria-pressed", String(shown.heat));
  };
  store.subscribe(draw);
  draw();
  return [
    ...(data.steps.length ? [h("div", { class: "segments", role: "group", "aria-label": "How a step is shown" }, ...modes)] : []),
    h("span", { class: "space" }), types, ...(data.heat ? [heat] : []), button,
  ];
}

function toggle(word: string, title: string, click: () => void): HTMLButtonElement {
  return h("button", { type: "button", class: "toggle", title, "aria-pressed": "false", click }, word);
}

function toggleLegend(legend: Legend): void {
  const open = legend.toggle();
  document.querySelector("[data-legend]")?.setAttribute("aria-pressed", String(open));
}

function cameraButtons({ canvas }: Context): HTMLElement {
  return h("div", { class: "camera", role: "group", "aria-label": "Zoom" },
    iconButton("plus", "Zoom in (+)", () => canvas.zoom(1.25)),
    iconButton("minus", "Zoom out (-)", () => canvas.zoom(0.8)),
    iconButton("fit", "Fit", () => canvas.fit()),
    iconButton("fold", "Fold all (F)", () => canvas.foldAll()));
}

function helpDialog(): HTMLDialogElement {
  const licences = h("pre", { class: "licences", tabindex: 0 }, "");
  const shown = h("details", { class: "fold" }, h("summary", {}, "Licences of the libraries in this page"), licences);
  shown.addEventListener("toggle", () => void readText("licenses").then((text) => (licences.textContent = text)), { once: true });
  return dialog("Keys", keyTable(), shown);
}

start().catch((error: unknown) => {
  const text = error instanceof Error ? error.message : String(error);
  document.body.append(h("p", { class: "failed", role: "alert" }, `The page cannot be shown: ${text}. It needs Chrome 111, Firefox 115, Safari 16.4 or newer.`));
});
