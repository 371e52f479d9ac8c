// Starts the page: reads the document and draws it.

import { Canvas } from "./canvas.ts";
import { readDocument, readText } from "./document.ts";
import { Layouter } from "./layout.ts";
import { States } from "./states.ts";
import { Store } from "./store.ts";

async function start(): Promise<void> {
  const [data, source] = await Promise.all([readDocument(), readText("worker")]);
  const store = new Store({ step: -1, mode: "overlay", folds: new Map(), selection: null, query: "", highlights: new Set(), heat: false, types: false, theme: "auto" });
  const host = document.createElement("main");
  document.body.append(host);
  await new Canvas(host, store, new States(data), new Layouter(source)).ready;
  document.body.dataset["ready"] = "true";
}

void start();
