// Runs test/*.test.ts with node's own test runner.

import { build } from "esbuild";
import { readdir, rm } from "node:fs/promises";
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";

const here = fileURLToPath(new URL(".", import.meta.url));
const out = `${here}test/.built`;
const names = (await readdir(`${here}test`)).filter((name) => name.endsWith(".test.ts"));
await build({
  absWorkingDir: here,
  entryPoints: names.map((name) => `test/${name}`),
  bundle: true,
  platform: "node",
  format: "esm",
  outExtension: { ".js": ".mjs" },
  outdir: out,
  logLevel: "warning",
});
const { status } = spawnSync(process.execPath, ["--test", out], { stdio: "inherit" });
await rm(out, { recursive: true });
process.exit(status ?? 1);
