// How nodes, steps and numbers are called.

import type { Document, NodeId, NodeRecord, PortEntry, ScopeId, Step } from "./document.ts";
import type { State } from "./states.ts";
import { count, plural } from "./dom.ts";

/** What a node is called where its operator stands beside: its name, else a tensor's, else its number. */
export function nameOf(record: NodeRecord): string {
  return record.name || record.outputs[0]?.names[0] || record.names?.[0] || `#${record.id}`;
}

/** A node in a sentence. */
export function titleOf(record: NodeRecord): string {
  return `${record.op} ${nameOf(record)}`;
}

/** The step's name for people: "as loaded" for -1. */
export function stepName(document: Document, step: number): string {
  const found = document.steps[step];
  if (found) return found.name;
  return document.kind === "diff" ? "old" : document.kind === "layers" ? "the ONNX model" : "as loaded";
}

/** The steps that changed the graph, after -1. */
export function stops(document: Document): number[] {
  const found = [-1];
  document.steps.forEach((step, index) => step.delta && found.push(index));
  return found;
}

/** The numbers of nodes before and after each step, as the states have them. */
export function sizes(document: Document): [before: number, after: number][] {
  let size = document.nodes.length;
  return document.steps.map((step) => {
    const before = size;
    const { added, removed } = tally(step);
    size += added - removed;
    return [before, size];
  });
}

export interface Tally {
  added: number;
  removed: number;
  changed: number;
}

export function tally(step: Step): Tally {
  const { added, removed, changed } = step.delta ?? { added: [], removed: [], changed: [] };
  return { added: added.length, removed: removed.length, changed: changed.length };
}

/** "2 added, 1 removed". */
export function tallyText({ added, removed, changed }: Tally): string {
  const parts = [];
  if (added) parts.push(`${count(added)} added`);
  if (removed) parts.push(`${count(removed)} removed`);
  if (changed) parts.push(`${count(changed)} changed`);
  return parts.join(", ") || "nothing changed";
}

const NAMED = 3;

/** What a step did, as one sentence for a screen reader. */
export function stepSentence(document: Document, before: State, step: number): string {
  const found = document.steps[step];
  if (!found) return document.kind === "diff" ? "The old model." : `The graph as loaded: ${plural(before.nodes.size, "node")}.`;
  if (found.off) return `${found.name} did not run.`;
  if (!found.delta) return `${found.name} changed nothing.`;
  const { added, removed, changed } = found.delta;
  const said = (what: string, records: (NodeRecord | undefined)[]) => {
    const named = records.slice(0, NAMED).map((record) => (record ? titleOf(record).slice(0, 80) : "a node"));
    const rest = records.length - named.length;
    return records.length ? `${what} ${named.join(", ")}${rest > 0 ? ` and ${count(rest)} more` : ""}` : "";
  };
  const parts = [
    said("added", added), said("removed", removed.map((id) => before.nodes.get(id))), said("changed", changed),
  ].filter(Boolean);
  const total = added.length + removed.length + changed.length;
  return `${found.name} changed ${plural(total, "node")}: ${parts.join("; ")}.`;
}

/** The path of a body: names of the owners from the outside in. */
export function scopePath(state: State, scope: ScopeId): { owner: NodeId; tag: string }[] {
  const path: { owner: NodeId; tag: string }[] = [];
  for (let at = state.scopes.get(scope); at && at.owner !== null; ) {
    path.unshift({ owner: at.owner, tag: at.tag });
    const owner = state.nodes.get(at.owner);
    at = owner && state.scopes.get(owner.scope);
  }
  return path;
}

/** How often a loop runs, "" where nothing tells it. */
export function iterationsOf(record: NodeRecord | undefined): string {
  const told = record?.port_map?.trip_count ?? "";
  return told && !/ steps(,| at) /.test(told) ? `trip count ${told}` : told;
}

export const ROLES: Record<PortEntry["role"], string> = {
  Invariant: "invariant",
  Merged: "merged",
  Sliced: "sliced",
  Branched: "input of the branches",
  Final: "final value",
  Concatenated: "concatenated",
  Selected: "output of the branch",
};

/** The numbers of an entry of a port map: "axis 1, stride -1". */
export function entryText(entry: PortEntry): string {
  if (entry.role !== "Sliced" && entry.role !== "Concatenated") return "";
  const parts = [`axis ${entry.axis ?? 0}`];
  if (entry.stride !== undefined && entry.stride !== 1) parts.push(entry.stride === -1 ? "backwards (stride -1)" : `stride ${entry.stride}`);
  if (entry.part_size !== undefined && entry.part_size !== 1) parts.push(`part size ${entry.part_size}`);
  const backwards = (entry.stride ?? 1) < 0;
  if (entry.start !== undefined && entry.start !== (backwards ? -1 : 0)) parts.push(`from ${entry.start}`);
  if (entry.end !== undefined && entry.end !== (backwards ? 0 : -1)) parts.push(`to ${entry.end}`);
  return parts.join(", ");
}

export interface Iterated {
  entry: PortEntry | undefined;
  role: string;
}

/** What an input of a control-flow operation is in its body. */
export function inputRole(owner: NodeRecord, input: number): Iterated {
  const entry = owner.port_map?.inputs.find((each) => each.port === input);
  if (entry) return { entry, role: ROLES[entry.role] };
  if (owner.op === "Loop" && input < 2) return { entry, role: input ? "execution condition" : "trip count" };
  if (owner.op === "If" && input === 0) return { entry, role: "condition" };
  return { entry, role: "" };
}

export function outputRole(owner: NodeRecord, output: number): Iterated {
  const entry = owner.port_map?.outputs.find((each) => each.port === output);
  return { entry, role: entry ? ROLES[entry.role] : "" };
}

/** The role that a Parameter or a Result has in the port map of the owner of its body. */
export function innerRoles(owner: NodeRecord, node: NodeId): { text: string; entry?: PortEntry; side: "input" | "output" }[] {
  const map = owner.port_map;
  if (!map) return [];
  const found: { text: string; entry?: PortEntry; side: "input" | "output" }[] = [];
  if (map.iteration === node) found.push({ text: "number of the current iteration", side: "input" });
  if (map.condition === node) found.push({ text: "execution condition: whether another iteration runs", side: "output" });
  for (const entry of map.inputs) {
    if ([entry.parameter, entry.then, entry.else_].includes(node)) found.push({ text: ROLES[entry.role], entry, side: "input" });
    else if (entry.result === node) found.push({ text: "back edge: the value for the next iteration", entry, side: "input" });
  }
  for (const entry of map.outputs) {
    if ([entry.result, entry.then, entry.else_].includes(node)) found.push({ text: ROLES[entry.role], entry, side: "output" });
  }
  return found;
}

/** The dimensions in the text of a type: "f32[2,N]" -> ["2", "N"]; null for a dynamic rank or no tensor. */
export function dimensions(type: string): string[] | null {
  const inside = /^[\w?]+\[(.*)\]$/s.exec(type)?.[1];
  if (inside === undefined || inside === "...") return null;
  if (inside === "") return [];
  const parts: string[] = [];
  let depth = 0;
  let start = 0;
  let quoted = false;
  for (let at = 0; at < inside.length; at++) {
    const letter = inside[at]!;
    if (letter === '"' && inside[at - 1] !== "\\") quoted = !quoted;
    else if (quoted) continue;
    else if ("({[".includes(letter)) depth++;
    else if (")}]".includes(letter)) depth--;
    else if (letter === "," && !depth) {
      parts.push(inside.slice(start, at));
      start = at + 1;
    }
  }
  return [...parts, inside.slice(start)];
}

/** The symbols of a dimension: ["N"] of "2N+1". */
export function symbols(dimension: string): string[] {
  return dimension.match(/[^\W\d]\w*|"(?:[^"\\]|\\.)*"/gu) ?? [];
}
