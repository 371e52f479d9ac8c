import { readDocument } from "./document.ts";
import { Layouter } from "./layout.ts";

async function start(): Promise<void> {
  const source = document.getElementById("worker")?.textContent ?? "";
  const layouter = new Layouter(source);
  const data = await readDocument(document.getElementById("document") as HTMLElement);
  const layout = (await layouter.layout("digraph { a -> b }")) as { bb: string };
  const text = document.createElement("p");
  text.textContent = `${data.title}: ${data.nodes.length} nodes, ${data.steps.length} steps, ${layout.bb}`;
  document.body.append(text);
}

void start();
