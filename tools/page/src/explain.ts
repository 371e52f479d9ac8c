// What the shown step is and did: its formula, the gaps of the runtime that it works around, what it changed, its decisions.

import { bdi, count, duration, fill, h, plural } from "./dom.ts";
import { CHANGE_SIGNS, changeChip, type Context } from "./context.ts";
import type { Gap, NodeId, Step } from "./document.ts";
import { nameOf, sizes, tally, tallyText } from "./labels.ts";
import { nodesText } from "./passes.ts";
import { differences } from "./record_changes.ts";
import type { Change } from "./states.ts";
import { longList } from "./virtual.ts";

export class Explanation {
  readonly element: HTMLElement;
  private readonly body = h("div", { class: "explanation-body" });
  private readonly title = h("h2", {}, "");
  private readonly open = new Set<string>(["changes", "decisions"]);

  constructor(private readonly context: Context) {
    this.element = h("section", { class: "panel-section explanation", "aria-label": "Explanation", tabindex: "-1" },
      h("header", { class: "section-head" }, this.title), this.body);
    context.store.subscribe((shown, before) => shown.step !== before.step && this.draw());
    this.draw();
  }

  private draw(): void {
    const { step } = this.context.store.get();
    const found = this.context.document.steps[step];
    this.body.scrollTop = 0;
    if (!found) {
      this.title.textContent = "As loaded";
      fill(this.body, h("p", {}, `${this.context.sizeText(this.context.state)}, before any pass. `,
        this.context.document.steps.some((step) => step.delta) ? "Use the slider or the arrow keys to go through the passes." : "No pass changed it."));
      return;
    }
    this.title.textContent = found.name;
    fill(this.body,
      found.doc ? formula(found.doc) : null,
      h("p", { class: "dim facts" }, factsText(found, sizes(this.context.document)[step]!)),
      ...(found.gaps ?? []).map(gapCard),
      this.changes(found, step),
      this.decisions(found, step),
      this.matchers(found));
  }

  private changes(found: Step, step: number): HTMLElement | null {
    const groups: Record<Change, NodeId[]> = { added: [], removed: [], rewired: [], changed: [] };
    for (const [node, what] of this.context.states.changes(step).nodes) groups[what].push(node);
    const lists = (Object.keys(groups) as Change[]).filter((what) => groups[what].length).map((what) =>
      h("div", { class: "change-group" },
        h("h4", { class: what }, h("span", { "aria-hidden": "true" }, CHANGE_SIGNS[what]), ` ${count(groups[what].length)} ${what}`),
        longList(groups[what], (node) => this.changed(node, what, step), `${what} nodes`, 6)));
    if (!lists.length) return null;
    return this.fold("changes", `What it changed: ${tallyText(tally(found))}`, ...lists);
  }

  private changed(node: NodeId, what: Change, step: number): HTMLElement {
    const { states } = this.context;
    const row = h("div", { class: "change-row" }, changeChip(what), this.context.link(node, { limit: 34 }));
    if (what === "added" || what === "removed") return row;
    const [before, after] = [states.at(states.before(step)), states.at(step)];
    const [old, now] = [before.nodes.get(node), after.nodes.get(node)];
    const parts = old && now ? differences(old, now, before, after).map((each) => each.what) : [];
    if (parts.length) row.append(" ", h("span", { class: "dim" }, parts.slice(0, 3).join(", ") + (parts.length > 3 ? ", …" : "")));
    return row;
  }

  private decisions(found: Step, step: number): HTMLElement | null {
    const { document } = this.context;
    const groups = new Map<string, { outcome: string; matcher: string; text: string; places: [NodeId | null, string][] }>();
    for (const [node, path, matcher, outcome, text] of found.reasons ?? []) {
      const key = `${outcome}\n${matcher}\n${text}`;
      const group = groups.get(key) ?? { outcome, matcher, text: document.texts?.[text] ?? "", places: [] };
      group.places.push([node, path]);
      groups.set(key, group);
    }
    if (!groups.size) return null;
    const sorted = [...groups.values()].sort((a, b) => Number(a.outcome === "refused") - Number(b.outcome === "refused") || b.places.length - a.places.length);
    const total = found.reasons?.length ?? 0;
    return this.fold("decisions", `Decisions: ${count(total)}`, ...sorted.map((group) =>
      h("details", { class: "decision", open: group.places.length <= 3 },
        h("summary", {}, outcomeChip(group.outcome), group.places.length > 1 ? ` ×${count(group.places.length)} ` : " ",
          h("span", { class: "reason" }, group.text || (group.outcome === "refused" ? "refused" : "the graph was changed")),
          group.matcher && group.matcher !== found.name ? h("span", { class: "dim" }, ` ${group.matcher}`) : null),
        longList(group.places, ([node, path]) => this.place(node, path, step), "nodes with this decision", 6))),
      found.left_out ? h("p", { class: "dim" }, `${count(found.left_out)} further decisions are not in the dump: it keeps 100 changes and 100 refusals of a pass in a step.`) : null);
  }

  private place(node: NodeId | null, path: string, step: number): HTMLElement {
    if (node === null) return h("span", { class: "dim" }, bdi(path || "a node that a later step of this pass removed"));
    const { states } = this.context;
    const record = states.at(step).nodes.get(node) ?? states.at(states.before(step)).nodes.get(node);
    if (record) return this.context.link(node);
    return this.context.link(node, { name: path || (record ? nameOf(record) : `#${node}`) });
  }

  private matchers(found: Step): HTMLElement | null {
    if (!found.matchers.length) return null;
    const [used, unused] = [found.matchers.filter(([, number]) => number), found.matchers.filter(([, number]) => !number)];
    return this.fold("matchers", `Matchers: ${count(used.length)} of ${count(found.matchers.length)} matched`,
      used.length ? h("ul", { class: "items" }, ...used.map(([name, number]) => h("li", {}, h("span", { class: "mono" }, name), h("span", { class: "dim" }, ` ×${count(number)}`)))) : null,
      unused.length ? h("p", { class: "dim" }, "Without a match: ", unused.map(([name]) => name).join(", ")) : null);
  }

  private fold(key: string, title: string, ...children: (HTMLElement | null)[]): HTMLElement {
    const element = h("details", { class: "fold", open: this.open.has(key) }, h("summary", {}, h("h3", {}, title)));
    element.append(...children.filter((each) => each !== null));
    element.addEventListener("toggle", () => (element.open ? this.open.add(key) : this.open.delete(key)));
    return element;
  }
}

/** "a  ->  b" as a formula; alternatives that stand in one line get lines of their own. */
export function formula(doc: string): HTMLElement {
  const lines = doc.split(/\n|\s{5,}/).map((line) => line.trim()).filter(Boolean);
  return h("div", { class: "formula" }, ...lines.map((line) => {
    const [left, right] = line.split(/\s+->\s+/, 2);
    if (right === undefined) return h("div", { class: /\s{2,}|[=(\[]/.test(line) ? "" : "words" }, line);
    return h("div", {}, left!, h("span", { class: "arrow", "aria-label": "becomes" }, " → "), line.slice(line.indexOf("->") + 2).trim());
  }));
}

function factsText(step: Step, size: [number, number]): string {
  if (step.off) return `Pass ${step.place}. It did not run: it is switched off.`;
  return [
    `Pass ${step.place}`, duration(step.seconds), plural(step.matches, "match", "matches"),
    nodesText(size),
    step.delta ? "" : "changed nothing",
  ].filter(Boolean).join(" · ");
}

export function outcomeChip(outcome: string): HTMLElement {
  const kind = outcome === "refused" ? "removed" : outcome === "changed" ? "added" : "changed";
  return h("span", { class: `chip wide ${kind}` }, outcome);
}

/** One error of the runtime that the pass works around. */
function gapCard(gap: Gap): HTMLElement {
  const releases = gap.since || gap.until
    ? `${gap.since ? `since ${gap.since}` : "since the oldest release"}${gap.until ? `, until ${gap.until}` : ", also in the newest"}`
    : "in all supported releases";
  return h("aside", { class: "gap", "aria-label": `Gap of the runtime: ${gap.id}` },
    h("p", { class: "gap-head" }, h("span", { class: "chip wide severity" }, gap.severity), " ", h("span", { class: "mono" }, gap.id)),
    h("p", {}, `The runtime: ${gap.sentence}.`),
    gap.form ? h("p", {}, h("span", { class: "dim" }, "Written instead: "), ...coded(gap.form)) : null,
    h("p", { class: "dim" }, `OpenVINO: ${releases}.`));
}

/** Text with `code` in it. */
export function coded(text: string): (HTMLElement | string)[] {
  return text.split("`").map((part, index) => (index % 2 ? h("code", {}, part) : part));
}
