// What is shown as the part of the address after "#", so that a link shows it again:
//
//   #step=12.LoopToTI&mode=side&node=98.while_loop&open=98/body&fold=layers
//
// Steps and nodes are found by number and name; where the number means another thing (the page was made anew), by name.

import type { Document, NodeId } from "./document.ts";
import type { States } from "./states.ts";
import type { Mode, Selection, Shown, Store } from "./store.ts";

const NAME = 80; // characters of a name
const FOLDS = 3000; // characters of folds; more are left out

/** What is shown where the hash says nothing. Differences are those of the last state. */
export function firstShown(document: Document): Pick<Shown, "step" | "mode" | "heat"> {
  if (document.kind === "diff" || document.kind === "layers") return { step: document.steps.length - 1, mode: "side", heat: false };
  if (document.heat) return { step: document.steps.findLastIndex((step) => step.delta), mode: "after", heat: true };
  return { step: -1, mode: "overlay", heat: false };
}

/** The hash for what is shown. */
export function toHash(shown: Shown, document: Document, nameOf: (node: NodeId) => string): string {
  const parts: string[] = [];
  const put = (key: string, value: string) => parts.push(`${key}=${encode(value)}`);
  const first = firstShown(document);
  const step = document.steps[shown.step];
  if (shown.step !== first.step) put("step", step ? `${step.place}.${step.name.slice(0, NAME)}` : "loaded");
  if (shown.mode !== first.mode) put("mode", shown.mode);
  const selection = shown.selection;
  if (selection && "node" in selection) put("node", [selection.node, nameOf(selection.node).slice(0, NAME)].filter((each) => each !== "").join("."));
  else if (selection) {
    const { from, port, to, input } = selection.edge;
    put("edge", `${from}:${port}>${to}:${input}`);
  }
  if (shown.heat !== first.heat) put("heat", shown.heat ? "1" : "0");
  const lists: [string, boolean][] = [["open", false], ["fold", true]];
  for (const [key, folded] of lists) {
    const ids = [...shown.folds].filter(([, each]) => each === folded).map(([id]) => id);
    if (ids.length && ids.join().length < FOLDS) parts.push(`${key}=${ids.map(encode).join(",")}`);
  }
  return parts.length ? `#${parts.join("&")}` : "#";
}

/** The address of a node at what is shown now. */
export function linkTo(shown: Shown, document: Document, node: NodeId | null, name: string): string {
  const selection: Selection = node === null ? null : { node };
  return toHash({ ...shown, selection, folds: new Map() }, document, () => name);
}

/** What a hash says. Parts that mean nothing in this document are left out. */
export function fromHash(hash: string, document: Document, states: States): Partial<Shown> {
  const parts = new Map<string, string>();
  for (const part of hash.replace(/^#/, "").split("&")) {
    const at = part.indexOf("=");
    if (at > 0) parts.set(part.slice(0, at), part.slice(at + 1));
  }
  const found: Partial<Shown> = { ...firstShown(document), selection: null };
  if (parts.has("step")) found.step = stepOf(decode(parts.get("step")!), document);
  const mode = parts.get("mode");
  if (mode === "overlay" || mode === "side" || mode === "after") found.mode = mode satisfies Mode;
  if (parts.has("heat")) found.heat = parts.get("heat") === "1" && document.heat !== undefined;
  const node = parts.has("node") ? nodeOf(decode(parts.get("node")!), states) : null;
  if (node !== null) found.selection = { node };
  const edge = /^(\d+):(\d+)>(\d+):(\d+)$/.exec(decode(parts.get("edge") ?? ""));
  if (edge) {
    const [from, port, to, input] = edge.slice(1).map(Number) as [number, number, number, number];
    found.selection = { edge: { from, port, to, input } };
  }
  const folds = new Map<string, boolean>();
  for (const [key, folded] of [["open", false], ["fold", true]] as const) {
    for (const id of (parts.get(key) ?? "").split(",").filter(Boolean)) folds.set(decode(id), folded);
  }
  found.folds = folds;
  return found;
}

function stepOf(text: string, document: Document): number {
  const at = text.indexOf(".");
  const [place, name] = [Number(at < 0 ? text : text.slice(0, at)), at < 0 ? "" : text.slice(at + 1)];
  const is = (index: number) => document.steps[index]?.name.slice(0, NAME) === name;
  const index = document.steps.findIndex((step, each) => step.place === place && (!name || is(each)));
  return index >= 0 ? index : document.steps.findIndex((_, each) => is(each));
}

function nodeOf(text: string, states: States): NodeId | null {
  const at = text.indexOf(".");
  const [id, name] = [Number(at < 0 ? text : text.slice(0, at)), at < 0 ? "" : text.slice(at + 1)];
  const matches = (record: (typeof states.ever)[number]) =>
    [record.name, record.outputs[0]?.names[0], record.names?.[0]].some((each) => each?.slice(0, NAME) === name);
  const same = states.ever.filter((record) => record.id === id);
  if (same.length && (!name || same.some(matches))) return id;
  return states.ever.find(matches)?.id ?? (same.length ? id : null);
}

function encode(text: string): string {
  return encodeURIComponent(text.replace(/\p{Surrogate}/gu, "\ufffd")).replaceAll("%2F", "/").replaceAll("%3A", ":").replaceAll("%3E", ">");
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return "";
  }
}

/** Keep the address and what is shown alike; back and forward go through steps and selections. */
export class History {
  private written = "";
  private pushed = 0;
  private following = false;

  constructor(
    private readonly store: Store, private readonly document: Document, private readonly states: States,
    private readonly nameOf: (node: NodeId) => string, private readonly arrived: (selection: Selection) => void,
  ) {
    store.subscribe((shown, before) => this.write(shown, before));
    addEventListener("popstate", () => this.follow());
    addEventListener("hashchange", () => this.follow());
  }

  private write(shown: Shown, before: Shown): void {
    if (this.following) return;
    const hash = toHash(shown, this.document, this.nameOf);
    if (hash === this.written) return;
    const moved = shown.step !== before.step || shown.selection !== before.selection || shown.mode !== before.mode;
    const quick = performance.now() - this.pushed < 700; // a slider that is dragged is one entry
    this.written = hash;
    try {
      if (moved && !quick) history.pushState(null, "", hash);
      else history.replaceState(null, "", hash);
      if (moved) this.pushed = performance.now();
    } catch {
      // the browser limits how often the address changes; the next change writes it
    }
  }

  private follow(): void {
    if (location.hash === this.written || (location.hash === "" && this.written === "#")) return;
    this.written = location.hash;
    this.following = true;
    this.store.set(fromHash(location.hash, this.document, this.states));
    this.following = false;
    this.arrived(this.store.get().selection);
  }
}
