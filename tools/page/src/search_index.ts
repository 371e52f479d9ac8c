// Finds nodes by words and fields in all states of the document.
//
//   index.find("attn op:MatMul type:f32", ...)    all terms must fit
//
// Fields: op, name, tensor, onnx, scope, type, attr, value, id, changed. A term without a field fits any text of a node.

import type { Document, NodeId, NodeRecord } from "./document.ts";
import type { Change, States } from "./states.ts";

export type Group = "Name" | "Operator" | "Tensor" | "ONNX" | "Scope" | "Other" | "In other steps";
export const GROUPS: readonly Group[] = ["Operator", "Name", "Tensor", "ONNX", "Scope", "Other", "In other steps"];

export interface Found {
  record: NodeRecord;
  group: Group;
  elsewhere: boolean; // the shown step does not have the node
}

interface Entry {
  record: NodeRecord;
  name: string;
  op: string;
  tensors: string;
  onnx: string;
  scope: string;
  value: string;
}

interface Term {
  field: string;
  text: string;
  exact: boolean;
}

const FIELDS = ["op", "name", "tensor", "onnx", "scope", "type", "attr", "value", "id", "changed"];
const CUT = 2000; // characters of one text of a node that are searched

export class SearchIndex {
  private entries: Entry[] | undefined;

  constructor(private readonly document: Document, private readonly states: States) {}

  /** Build what the first search needs. */
  prepare(): void {
    this.entries ??= this.build();
  }

  find(query: string, step: number): Found[] {
    const terms = parse(query);
    if (!terms.length) return [];
    this.entries ??= this.build();
    const [state, before] = [this.states.at(step), this.states.at(this.states.before(step))]; // what the step removed is shown too
    const changed = this.changed(terms, step);
    const seen = new Set<NodeId>();
    const buckets: Found[][] = []; // by rank: sorting 20,000 results takes longer than finding them
    const word = terms.find((term) => !term.field)?.text ?? "";
    const op = terms.find((term) => term.field === "op")?.text ?? word;
    const name = terms.find((term) => term.field === "name" || term.field === "tensor")?.text ?? word;
    for (const entry of this.entries) {
      const { id } = entry.record;
      if (seen.has(id) || (changed && !changed.has(id))) continue;
      const record = state.nodes.get(id) ?? before.nodes.get(id);
      if (!terms.every((term) => fits(entry, record ?? entry.record, term))) continue;
      seen.add(id);
      const group = record ? groupOf(entry, terms) : "In other steps";
      const rank = GROUPS.indexOf(group) * 16 + byName(entry, name) * 4 + byKind(entry, op);
      (buckets[rank] ??= []).push({ record: record ?? entry.record, group, elsewhere: !record });
    }
    return buckets.flat();
  }

  private build(): Entry[] {
    const names = new Map<NodeId, string>(this.states.ever.map((record) => [record.id, record.name]));
    const scopes = new Map<string, string>();
    const note = (list: Document["scopes"]) => list.forEach((scope) => scopes.set(scope.id, `${scope.name} ${scope.owner === null ? "" : names.get(scope.owner) ?? ""} ${scope.tag}`));
    note(this.document.scopes);
    for (const step of this.document.steps) if (step.delta) note(step.delta.scopes);
    scopes.delete(""); // the main graph is no scope to search for
    return this.states.ever.map((record) => entryOf(record, scopes.get(record.scope) ?? ""));
  }

  /** The nodes that `changed:` terms ask for; null without such a term. */
  private changed(terms: Term[], step: number): Set<NodeId> | null {
    const asked = terms.filter((term) => term.field === "changed");
    if (!asked.length) return null;
    const sets = asked.map(({ text }) => {
      const isKind = ["", "yes", "added", "removed", "changed", "rewired"].includes(text);
      const steps = isKind ? [step] : this.document.steps.flatMap((each, index) => (each.name.toLowerCase().includes(text) ? [index] : []));
      const found = new Set<NodeId>();
      for (const each of steps) {
        for (const [node, what] of this.states.changes(each).nodes) if (wanted(what, text, isKind)) found.add(node);
      }
      return found;
    });
    return sets.reduce((all, each) => new Set([...all].filter((node) => each.has(node))));
  }
}

function wanted(what: Change, text: string, isKind: boolean): boolean {
  if (!isKind || text === "" || text === "yes") return true;
  return what === text || (text === "changed" && what === "rewired");
}

function entryOf(record: NodeRecord, scope: string): Entry {
  const lower = (text: string) => text.slice(0, CUT).toLowerCase();
  const name = lower(record.name);
  const op = record.op.toLowerCase();
  const tensors = lower([...record.outputs.flatMap((output) => output.names), ...(record.names ?? [])].join("\n"));
  const onnx = lower((record.origins ?? []).map((origin) => origin.slice(1).join("\n")).join("\n"));
  const within = lower(`${scope}\n${(record.origins ?? []).map((origin) => origin[0]).join("\n")}`);
  const value = record.value ? lower(record.value) : "";
  return { record, name, op, tensors, onnx, scope: within, value };
}

/** "a op:Add \"two words\"" as terms. */
export function parse(query: string): Term[] {
  const terms: Term[] = [];
  for (const match of query.matchAll(/(?:(\w+):)?(?:"([^"]*)"?|(\S+))/g)) {
    const [whole, field = "", quoted, plain = ""] = match;
    const known = FIELDS.includes(field.toLowerCase());
    const text = (known || !field ? quoted ?? plain : whole).toLowerCase();
    if (known || text) terms.push({ field: known ? field.toLowerCase() : "", text, exact: quoted !== undefined });
  }
  const open = /(?:^|\s)(\w+):$/.exec(query)?.[1]?.toLowerCase();
  if (open && FIELDS.includes(open)) terms.push({ field: open, text: "", exact: false });
  return terms.filter((term) => !(term.text === `${open}:` && !term.field));
}

const ANY = ["name", "op", "tensors", "onnx", "scope", "value"] as const;
const LOWERED = new Map<string, string>(); // few types are those of many nodes

function lowered(type: string): string {
  let found = LOWERED.get(type);
  if (found === undefined) LOWERED.set(type, (found = type.toLowerCase()));
  return found;
}

function fits(entry: Entry, record: NodeRecord, { field, text, exact }: Term): boolean {
  if (!text || field === "changed") return true;
  switch (field) {
    case "op": return exact ? entry.op === text : entry.op.startsWith(text) || hasOperator(record, text);
    case "name": return exact ? entry.name === text : entry.name.includes(text);
    case "tensor": return entry.tensors.includes(text);
    case "onnx": return entry.onnx.includes(text);
    case "scope": return entry.scope.includes(text);
    case "value": return entry.value.includes(text);
    case "id": return String(record.id) === text;
    case "type": return record.outputs.some((output) => lowered(output.type).includes(text));
    case "attr": return Object.entries(record.attributes ?? {}).some(([key, value]) => `${key}:${value}=${value}`.toLowerCase().includes(text) || `${key}=${value}`.toLowerCase().includes(text));
    default: return ANY.some((key) => entry[key].includes(text));
  }
}

const NO_OPERATORS = new Set(["Constant", "Parameter", "Result"]);

/** Whether the node was made of an ONNX operator; its constants and ports do not count. */
function hasOperator(record: NodeRecord, text: string): boolean {
  return !NO_OPERATORS.has(record.op) && (record.origins?.some((origin) => origin[2].toLowerCase() === text) ?? false);
}

/** How well a name of the node or of its tensors fits: the same before one that ends so. */
function byName({ name, tensors }: Entry, text: string): number {
  if (!text || name === text || `\n${tensors}\n`.includes(`\n${text}\n`)) return 0;
  return name.endsWith(text) ? 1 : 2;
}

/** The operator that is asked for, then control flow; what only feeds or ends other nodes comes last. */
function byKind({ record, op }: Entry, operator: string): number {
  if (op === operator) return 0;
  if (record.port_map) return 1;
  return NO_OPERATORS.has(record.op) ? 3 : 2;
}

function groupOf(entry: Entry, terms: Term[]): Group {
  const term = terms.find((each) => !each.field)?.text;
  if (!term) return terms.some((each) => each.field === "op") ? "Operator" : "Name";
  if (entry.op === term || (term.length > 2 && entry.op.startsWith(term))) return "Operator";
  if (entry.name.includes(term)) return "Name";
  if (entry.tensors.includes(term)) return "Tensor";
  if (entry.onnx.includes(term)) return "ONNX";
  return entry.scope.includes(term) ? "Scope" : "Other";
}
