// What the passes decided about a node: each change and each refusal with its reason.

import type { Context } from "./context.ts";
import { h } from "./dom.ts";
import type { NodeId, NodeRecord } from "./document.ts";
import { coded, outcomeChip } from "./explain.ts";
import { section, tall } from "./sections.ts";

export interface Decision {
  step: number;
  pass: string;
  node: NodeId;
  matcher: string;
  outcome: string;
  text: string;
}

/** The decisions of all passes about a node, or about the control flow that it was before a pass replaced it. */
export function decisionsAbout(context: Context, record: NodeRecord): Decision[] {
  const ids = new Set<NodeId>([record.id]);
  if (record.port_map && record.origins?.length) {
    const own = new Set(record.origins.map((each) => `${each[0]}\n${each[1]}`));
    for (const each of context.states.ever) {
      if ((each.port_map || each.op === "Scan") && each.origins?.some((origin) => own.has(`${origin[0]}\n${origin[1]}`))) ids.add(each.id);
    }
  }
  const found: Decision[] = [];
  context.document.steps.forEach((step, index) => {
    for (const [node, , matcher, outcome, text] of step.reasons ?? []) {
      if (node !== null && ids.has(node)) found.push({ step: index, pass: step.name, node, matcher, outcome, text: context.document.texts?.[text] ?? "" });
    }
  });
  return found;
}

/** The decisions as a section: those of one pass with one reason are one row. */
export function decisions(context: Context, record: NodeRecord, found: readonly Decision[]): HTMLElement | null {
  if (!found.length) return null;
  const merged = new Map<string, { one: Decision; steps: number[] }>();
  for (const each of found) {
    const key = `${each.pass}\n${each.matcher}\n${each.outcome}\n${each.text}\n${each.node}`;
    const group = merged.get(key);
    if (group) group.steps.push(each.step);
    else merged.set(key, { one: each, steps: [each.step] });
  }
  const row = ({ one, steps }: { one: Decision; steps: number[] }) => h("div", { class: "decision-row" },
    context.stepLink(steps[0]!, one.node), one.matcher && one.matcher !== one.pass ? h("span", { class: "dim" }, ` ${one.matcher}`) : null,
    " ", outcomeChip(one.outcome), steps.length > 1 ? h("span", { class: "dim" }, ` ×${steps.length}`) : null,
    one.text ? h("div", { class: "reason" }, ...coded(one.text)) : null,
    one.node !== record.id ? h("div", { class: "dim" }, "when it was ", context.link(one.node)) : null);
  return section("Decisions of passes about it", tall([...merged.values()], row, "decisions", 8));
}

