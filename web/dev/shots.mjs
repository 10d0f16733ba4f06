// Pictures of the page at three widths, light and dark: `node dev/shots.mjs OUT [BASE]`, against any server (a mock by default).
import { chromium } from "@playwright/test";
import { mkdirSync } from "node:fs";

const [out = "shots", base = "http://127.0.0.1:8000", only = ""] = process.argv.slice(2);
mkdirSync(out, { recursive: true });
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
const id = process.env.RUN ?? "keep-order-7f3a";
const working = process.env.WORKING ?? "migrate-sessions-19bc";
const pages = { runs: "/", run: `/runs/${id}`, working: `/runs/${working}`, timeline: `/runs/${id}/timeline?iteration=12`, logs: `/runs/${working}/logs`, task: `/runs/${id}/task`, rules: `/runs/${id}/rules`, diff: `/runs/${id}/diff`, diagnostics: `/runs/${id}/diagnostics`, sandbox: `/runs/${id}/sandbox`, charts: `/runs/${id}/charts`, new: "/new", costs: "/costs", people: "/settings/people", secrets: "/settings/secrets" };
for (const theme of ["light", "dark"]) {
  for (const width of [1440, 1024, 390]) {
    const context = await browser.newContext({ viewport: { width, height: width === 390 ? 844 : 900 }, colorScheme: theme, deviceScaleFactor: 1 });
    const page = await context.newPage();
    const errors = [];
    page.on("console", (m) => m.type() === "error" && errors.push(m.text()));
    page.on("pageerror", (e) => errors.push(String(e)));
    await page.goto(base);
    const token = page.getByLabel("Token");
    if (await token.waitFor({ timeout: 8000 }).then(() => true, () => false)) {
      await token.fill(process.env.TOKEN ?? "admin");
      await page.getByRole("button", { name: "Log in" }).click();
      await page.getByRole("navigation", { name: "Pages" }).waitFor();
    }
    for (const [name, path] of Object.entries(pages)) {
      if (only && !only.split(",").includes(name)) continue;
      await page.goto(base + path);
      await page.waitForTimeout(700);
      await page.screenshot({ path: `${out}/${name}-${width}-${theme}.png` });
    }
    if (errors.length) console.log(theme, width, [...new Set(errors)].slice(0, 6));
    await context.close();
  }
}
await browser.close();
