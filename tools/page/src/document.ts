// The data of the page, as docs/dump.md describes them; mo_loop/look/page/__init__.py writes them.

export type NodeId = number;
export type ScopeId = string; // "" is the main graph, "17/body" a body of node 17

export interface Document {
  schema: "mo-loop page";
  version: 1;
  kind: "conversion" | "graph" | "diff" | "layers"; // "layers": an ONNX model and its IR
  title: string;
  producer: string;
  notes?: string[];
  facts?: [name: string, text: string][]; // of the model: format, opsets, metadata
  scopes: Scope[];
  nodes: NodeRecord[]; // of all scopes; in each, producers before consumers
  steps: Step[];
  texts?: string[]; // reasons refer to them by index
  heat?: Heat;
  name_scopes?: Record<string, string[]>; // the names of the modules around an ONNX node, from the outside in
  pairs?: [node: NodeId, layers: NodeId[]][]; // of an ONNX model and its IR
  written?: { layers: Record<NodeId, number>; offsets: Record<NodeId, number> }; // of the last state: layers of the .xml, constants in the .bin
}

export interface Scope {
  id: ScopeId;
  owner: NodeId | null;
  tag: string; // "body", "then_body", "else_body", or the name of a function
  name: string;
  parameters: NodeId[];
  results: NodeId[];
  info?: string;
}

export interface NodeRecord {
  id: NodeId;
  scope: ScopeId;
  op: string;
  opset: number | string;
  name: string;
  inputs: ([NodeId, number] | null)[];
  outputs: { type: string; names: string[] }[];
  attributes?: Record<string, string>;
  value?: string; // the first elements of a constant
  content?: string; // the text that stands for a constant in dumps, if it is another one than `value`
  bytes?: number;
  data?: string; // equal for equal content
  transposed?: string; // `data` of an earlier matrix whose rows are the columns of this one
  stored?: string; // the file and offset where a constant stands
  names?: string[]; // of a Result
  info?: string;
  origins?: [scope: string, node: string, operator: string, output: string][];
  bodies?: ScopeId[];
  port_map?: PortMap;
}

export interface PortMap {
  inputs: PortEntry[];
  outputs: PortEntry[];
  iteration?: NodeId; // the Parameter that gets the number of the iteration
  condition?: NodeId; // the Result that lets the loop continue
  trip_count?: string;
}

export interface PortEntry {
  role: "Invariant" | "Merged" | "Sliced" | "Branched" | "Final" | "Concatenated" | "Selected";
  port: number; // the input or the output of the owner
  parameter?: NodeId;
  result?: NodeId;
  then?: NodeId | null;
  else_?: NodeId | null;
  axis?: number;
  start?: number;
  end?: number;
  stride?: number;
  part_size?: number;
}

export interface Step {
  name: string;
  place: number;
  seconds: number;
  matches: number;
  matchers: [string, number][];
  nodes: [before: number, after: number];
  doc?: string;
  off?: boolean;
  file?: string;
  gaps?: Gap[];
  reasons?: [node: NodeId | null, path: string, matcher: string, outcome: string, text: number][];
  left_out?: number; // decisions of the step beyond the limit
  delta?: Delta;
  details?: Record<NodeId, string[]>; // of a diff: what counts as changed, by node
}

export interface Gap {
  id: string;
  sentence: string;
  severity: string;
  form: string;
  since: string;
  until: string;
}

export interface Delta {
  added: NodeRecord[];
  removed: NodeId[];
  changed: NodeRecord[];
  scopes: Scope[];
  removed_scopes: ScopeId[];
}

export interface Heat {
  tensors: [node: NodeId, port: number, difference: TensorDifference][];
  loops: Record<NodeId, LoopDifferences>;
  first?: { node: NodeId; port: number; text: string };
  precision: string; // in which OpenVINO computed
  sets: string[]; // the names of the inputs: of their differences the largest counts
}

export interface LoopDifferences {
  iterations: number; // of the longest run of the loop
  per_point: number; // iterations that share one value, which is the largest of theirs; 1 up to 512 iterations
  tensors: Record<string, (number | null)[]>; // the worst difference of a tensor by iteration; null: not compared
}

export interface TensorDifference {
  worst: number; // the largest difference as a multiple of the tolerance; above 1 it differs, 1e30 is beyond measure
  abs: number;
  rel: number;
  count: number; // elements beyond the tolerance
  size: number;
  iteration?: number; // of the loop around the tensor
  text?: string; // why no number can be told: another shape or type, a number that is not finite
}

/** The text in an element of the page: gzip in base64. */
export async function readText(id: string): Promise<string> {
  const encoded = atob((document.getElementById(id)?.textContent ?? "").trim());
  const bytes = new Uint8Array(encoded.length);
  for (let at = 0; at < encoded.length; at++) bytes[at] = encoded.charCodeAt(at);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).text();
}

/** The document of the page. */
export async function readDocument(): Promise<Document> {
  return JSON.parse(await readText("document")) as Document;
}
