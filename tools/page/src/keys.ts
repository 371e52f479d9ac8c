// The keyboard. Keys do nothing where text is written.

import { copyText } from "./copy.ts";
import type { Context } from "./context.ts";
import { h } from "./dom.ts";
import { selectionText } from "./details.ts";
import { nameOf } from "./labels.ts";
import type { Direction } from "./canvas.ts";
import type { Mode } from "./store.ts";

export interface Commands {
  move(by: -1 | 1, any?: boolean): void;
  first(): void;
  last(): void;
  search(): void;
  clearSearch(): boolean;
  help(): void;
  legend(): void;
  tab(name: string): void;
  panel(side: "left" | "right"): void;
}

const KEYS: [title: string, keys: [key: string, meaning: string][]][] = [
  ["Steps", [
    ["← →", "previous, next step that changed the graph"], ["Shift ← →", "previous, next step of all"],
    ["Home End", "as loaded, as written"], ["1 2 3", "overlay, side by side, after"],
  ]],
  ["Find and read", [
    ["/", "search"], ["d", "details"], ["w", "weights"], ["c", "copy the selection, or the graph, as text"], ["Esc", "clear the search, then the selection"],
  ]],
  ["Graph", [
    ["g", "move the focus to the graph"], ["← → ↑ ↓", "with a selected node in the focused graph: go to the node there"],
    ["i o", "go into the body, out to its owner"], ["Enter", "open or fold"], ["Shift Enter", "open or fold all equal blocks"], ["+ − 0", "zoom in, out, fit"], ["Shift ↑ ↓", "move the picture"], ["F U", "fold all, open all"],
    ["t", "types on the edges"], ["l", "legend"], ["h", "differences as colours"],
  ]],
  ["Page", [["p", "show or hide the left panel"], ["b", "show or hide the right panel"], ["?", "this list"]]],
];

const MODES: Record<string, Mode> = { "1": "overlay", "2": "side", "3": "after" };
const ARROWS: Record<string, Direction> = { ArrowUp: "up", ArrowDown: "down", ArrowLeft: "left", ArrowRight: "right", i: "in", o: "out" };
const PAN = 80;

export function followKeys(context: Context, commands: Commands): void {
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    if (document.querySelector("dialog[open]")) return;
    const target = event.target as HTMLElement;
    if (target.matches("input:not([type=checkbox], [type=range]), textarea, select") && event.key !== "Escape") return;
    const inGraph = context.canvas.host.contains(target) || target === document.body;
    const done = (inGraph && graphKey(context, event)) || pageKey(context, commands, event);
    if (done) event.preventDefault();
  });
}

/** Keys of the focused graph. */
function graphKey(context: Context, event: KeyboardEvent): boolean {
  const { canvas, store } = context;
  const { selection } = store.get();
  const focused = canvas.host.contains(event.target as Node);
  if (event.shiftKey && focused && (event.key === "ArrowUp" || event.key === "ArrowDown")) {
    canvas.pan(0, event.key === "ArrowUp" ? PAN : -PAN);
    return true;
  }
  if (!focused || !selection || !("node" in selection)) return false;
  if (event.key === "Enter") {
    const group = canvas.groupOf(selection.node);
    if (group !== null) canvas.toggle(group, event.shiftKey);
    return true;
  }
  const direction = event.shiftKey ? undefined : ARROWS[event.key];
  if (!direction) return false;
  const next = canvas.neighbours(selection.node, direction);
  if (next === null) context.say(`Nothing ${{ up: "above", down: "below", left: "to the left", right: "to the right", in: "inside", out: "outside" }[direction]}.`);
  else context.select(next);
  return true;
}

function pageKey(context: Context, commands: Commands, event: KeyboardEvent): boolean {
  const { canvas, store } = context;
  const target = event.target as HTMLElement;
  const onControl = target.matches("button, a, summary, input, [role=tab], .virtual");
  const steps = !target.matches("[role=tab], input[type=range], .virtual, [role=separator]");
  const mode = MODES[event.key];
  if (mode && context.document.steps.length) {
    store.set({ mode });
    return true;
  }
  switch (event.key) {
    case "ArrowLeft": return steps && act(() => commands.move(-1, event.shiftKey));
    case "ArrowRight": return steps && act(() => commands.move(1, event.shiftKey));
    case "Home": return steps && !onControl && act(() => commands.first());
    case "End": return steps && !onControl && act(() => commands.last());
    case "/": return act(() => commands.search());
    case "?": return act(() => commands.help());
    case "Escape": return act(() => commands.clearSearch() || store.set({ selection: null }));
    case "c": return act(() => void copyText(selectionText(context), "The text", context.toast));
    case "d": return act(() => commands.tab("Details"));
    case "w": return act(() => commands.tab("Weights"));
    case "l": return act(() => commands.legend());
    case "t": return act(() => store.set({ types: !store.get().types }));
    case "h": return context.document.heat !== undefined && act(() => store.set({ heat: !store.get().heat }));
    case "g": return act(() => focusGraph(context));
    case "p": return act(() => commands.panel("left"));
    case "b": return act(() => commands.panel("right"));
    case "+": case "=": return act(() => canvas.zoom(1.25));
    case "-": case "−": return act(() => canvas.zoom(0.8));
    case "0": return act(() => canvas.fit());
    case "F": return act(() => canvas.foldAll());
    case "U": return act(() => canvas.openAll());
    default: return false;
  }
}

function act(action: () => unknown): true {
  action();
  return true;
}

/** Give the graph the focus, with a node to start from. */
function focusGraph(context: Context): void {
  context.canvas.host.focus();
  const { selection } = context.store.get();
  const record = selection && "node" in selection ? context.record(selection.node) : undefined;
  if (record) return context.say(`Graph. Selected ${record.op} ${nameOf(record)}.`);
  const first = context.state.scopes.get("")?.parameters[0] ?? context.state.within("")[0];
  if (first !== undefined) context.select(first);
}

/** The list of keys. */
export function keyTable(): HTMLElement {
  return h("div", { class: "key-table" }, ...KEYS.map(([title, keys]) => h("section", {}, h("h3", {}, title),
    h("dl", {}, ...keys.flatMap(([key, meaning]) => [h("dt", {}, ...key.split(" ").map((each) => h("kbd", {}, each))), h("dd", {}, meaning)])))));
}
