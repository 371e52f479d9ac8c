import { readDocument, readText } from "./document.ts";
import { Layouter } from "./layout.ts";

async function start(): Promise<void> {
  const [data, source] = await Promise.all([readDocument(), readText("worker")]);
  const layouter = new Layouter(source);
  const layout = (await layouter.layout("digraph { a -> b }")) as { bb: string };
  const text = document.createElement("p");
  text.textContent = `${data.title}: ${data.nodes.length} nodes, ${data.steps.length} steps, ${layout.bb}`;
  document.body.append(text);
}

void start();
