// Writes src/types/*.ts from the published schemas and the table of signs and colors; with --check it only says whether
// they are stale.
import { compile } from "json-schema-to-typescript";
import { readFile, writeFile, mkdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const schemas = join(here, "../../schemas");
const out = join(here, "../src/types");
/** File name of the schema and the name of its type. */
const wanted = { view: "RunView", control: "Control", diagnosis: "Report", receipt: "Receipt", events: "RunEvent" };

const stale = [];
await mkdir(out, { recursive: true });

async function put(file, code) {
  const path = join(out, file);
  if (process.argv.includes("--check")) {
    const now = await readFile(path, "utf8").catch(() => "");
    if (now !== code) stale.push(`src/types/${file}`);
  } else {
    await writeFile(path, code);
  }
}

for (const [file, name] of Object.entries(wanted)) {
  const schema = JSON.parse(await readFile(join(schemas, `${file}.schema.json`), "utf8"));
  delete schema.$id;
  schema.title = name;
  const code = await compile(schema, name, {
    bannerComment: `// Made by \`npm run types\` from schemas/${file}.schema.json. Do not edit.`,
    additionalProperties: false,
    unreachableDefinitions: true,
    style: { printWidth: 110 },
  });
  await put(`${file}.ts`, code);
}
const looks = JSON.parse(await readFile(join(schemas, "looks.json"), "utf8"));
const banner = "// Made by `npm run types` from schemas/looks.json. Do not edit.\n";
await put("looks.ts", `${banner}export const LOOKS = ${JSON.stringify(looks, null, 2)} as const;\n`);
if (stale.length > 0) {
  console.error(`error: ${stale.join(", ")} stale\n  The schemas have changed.\n  Run \`scripts/generate\`.`);
  process.exit(1);
}
