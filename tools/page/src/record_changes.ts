// What differs between two records of one node.

import type { NodeRecord, PortMap } from "./document.ts";
import { nameOf, ROLES } from "./labels.ts";
import type { State } from "./states.ts";

export interface Difference {
  what: string;
  from: string;
  to: string;
}

/** The differences of a node, each with both sides as text. `before` and `after` are the states around the step. */
export function differences(old: NodeRecord, now: NodeRecord, before: State, after: State): Difference[] {
  const found: Difference[] = [];
  const put = (what: string, from: string, to: string) => from !== to && found.push({ what, from, to });
  put("operator", `${old.op} opset ${old.opset}`, `${now.op} opset ${now.opset}`);
  put("name", old.name, now.name);
  put("scope", old.scope || "main graph", now.scope || "main graph");
  for (let input = 0; input < Math.max(old.inputs.length, now.inputs.length); input++) {
    const [was, is] = [old.inputs[input], now.inputs[input]];
    if (was?.[0] === is?.[0] && was?.[1] === is?.[1] && (was === undefined) === (is === undefined)) continue;
    put(`input ${input}`, valueText(was, before), valueText(is, after));
  }
  for (let output = 0; output < Math.max(old.outputs.length, now.outputs.length); output++) {
    const [was, is] = [old.outputs[output], now.outputs[output]];
    put(`type of output ${output}`, was?.type ?? "none", is?.type ?? "none");
    put(`tensor names of output ${output}`, was?.names.join(" ") || "none", is?.names.join(" ") || "none");
  }
  for (const key of new Set([...Object.keys(old.attributes ?? {}), ...Object.keys(now.attributes ?? {})])) {
    put(key, old.attributes?.[key] ?? "none", now.attributes?.[key] ?? "none");
  }
  put("value", old.value ?? "", now.value ?? "");
  put("names of the Result", old.names?.join(" ") ?? "", now.names?.join(" ") ?? "");
  put("additional info", old.info ?? "none", now.info ?? "none");
  put("port map", portMapText(old.port_map), portMapText(now.port_map));
  return found;
}

function valueText(value: [number, number] | null | undefined, state: State): string {
  if (!value) return "none";
  const record = state.nodes.get(value[0]);
  const port = record && record.outputs.length > 1 ? ` output ${value[1]}` : "";
  return record ? `${record.op} ${nameOf(record)}${port}` : `#${value[0]}${port}`;
}

function portMapText(map: PortMap | undefined): string {
  if (!map) return "none";
  const tally = (entries: PortMap["inputs"]) => {
    const counts = new Map<string, number>();
    for (const { role } of entries) counts.set(ROLES[role], (counts.get(ROLES[role]) ?? 0) + 1);
    return [...counts].map(([role, number]) => `${number} ${role}`).join(", ") || "none";
  };
  const extras = [map.iteration !== undefined && "current iteration", map.condition !== undefined && "execution condition"].filter(Boolean);
  return `inputs: ${tally(map.inputs)}; outputs: ${tally(map.outputs)}${extras.length ? `; ${extras.join(", ")}` : ""}`;
}
