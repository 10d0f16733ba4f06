// What the first page loads: the entry, its static imports and its style, gzipped. Lazy parts are listed below it.
import { readFile, readdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const LIMIT = 60_000;
const dist = process.env.PAGE ?? join(dirname(fileURLToPath(import.meta.url)), "../../crates/server/page");
const html = await readFile(join(dist, "index.html"), "utf8");
const first = new Set([...html.matchAll(/(?:src|href)="\/([^"]+\.(?:js|css))"/g)].map((m) => m[1]));
const size = async (name) => gzipSync(await readFile(join(dist, name)), { level: 9 }).length;

let total = 0;
for (const name of first) total += await size(name);
const rows = [];
for (const name of await readdir(join(dist, "assets"))) {
  if (/\.(js|css)$/.test(name)) rows.push([`assets/${name}`, await size(`assets/${name}`)]);
}
rows.sort((a, b) => b[1] - a[1]);
for (const [name, n] of rows) console.log(`${String(n).padStart(8)}  ${first.has(name) ? "first" : "lazy "}  ${name}`);
console.log(`first load: ${total} bytes, gzipped, of ${LIMIT}`);
if (total > LIMIT) {
  console.error("error: the first load is too large\n  Something heavy is imported at once.\n  Make it lazy, or do without it.");
  process.exit(1);
}
