// Builds the program of the page into mo_loop/look/page/static: page.js, page.css and worker.js.
//
//   npm ci && npm run check && npm run build
//
// The output is a function of src/ and package-lock.json alone; `make page-check` compares it with what is committed.

import { build } from "esbuild";
import { readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";

const here = fileURLToPath(new URL(".", import.meta.url));
const out = fileURLToPath(new URL("../../mo_loop/look/page/static/", import.meta.url));

const shared = {
  absWorkingDir: here,
  bundle: true,
  minify: true,
  format: "iife",
  target: ["chrome111", "firefox115", "safari16.4"],
  charset: "ascii",
  legalComments: "none", // the licences stand in static/LICENSES.txt
  logLevel: "warning",
};

await build({ ...shared, entryPoints: ["src/app.ts"], outfile: `${out}page.js` });
await build({ ...shared, entryPoints: ["src/worker.ts"], outfile: `${out}worker.js` });
await build({ ...shared, entryPoints: ["src/page.css"], outfile: `${out}page.css` });

// Each file stands inline in an element of the page: nothing in it may end that element.
for (const [name, end] of [["page.js", "</script"], ["worker.js", "</script"], ["page.css", "</style"]]) {
  const text = await readFile(out + name, "utf8");
  const safe = text.replaceAll("<!--", "\\x3c!--").replaceAll(end, end.replace("<", "\\x3c"));
  if (safe.toLowerCase().includes(end) || safe.includes("<!--")) throw new Error(`${name} holds ${end}`);
  await writeFile(out + name, safe);
}
