// How soon the list is usable with a processor four times slower: `TOKEN=… node dev/load.mjs BASE [LOADS]`. Tells the median and the
// best of some loads, cold each: the first paint, the first row, and the time that scripts took.
import { chromium } from "@playwright/test";

const [base = "http://127.0.0.1:8000", loads = "9", path = "/"] = process.argv.slice(2);
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
const wanted = path === "/" ? ".run-row" : ".run-title, .tabs";

/** Notes the moment in which the wanted part is painted. */
function note(selector) {
  const look = () => {
    if (!document.querySelector(selector)) return requestAnimationFrame(look);
    requestAnimationFrame(() => setTimeout(() => (window.usable = performance.now())));
  };
  look();
}

const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
const login = await context.newPage();
await login.goto(base);
await login.getByLabel("Token").fill(process.env.TOKEN ?? "admin");
await login.getByRole("button", { name: "Log in" }).click();
await login.locator(".run-row").first().waitFor();
const cookies = await context.cookies();
await context.close();

const seen = [];
for (let n = 0; n < Number(loads); n++) {
  const fresh = await browser.newContext({ viewport: { width: 1440, height: 900 } });
  await fresh.addCookies(cookies);
  const page = await fresh.newPage();
  const session = await fresh.newCDPSession(page);
  await session.send("Performance.enable");
  await session.send("Emulation.setCPUThrottlingRate", { rate: Number(process.env.RATE ?? 4) });
  await page.addInitScript(note, wanted);
  await page.goto(base + path);
  await page.waitForFunction(() => window.usable);
  const usable = await page.evaluate(() => window.usable);
  const paint = await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? 0);
  const calls = await page.evaluate(() => performance.getEntriesByType("resource").map((r) => [r.name.replace(location.origin, ""), Math.round(r.startTime), Math.round(r.responseEnd)]));
  const { metrics } = await session.send("Performance.getMetrics");
  const script = (metrics.find((m) => m.name === "ScriptDuration")?.value ?? 0) * 1000;
  const task = (metrics.find((m) => m.name === "TaskDuration")?.value ?? 0) * 1000;
  seen.push({ usable, paint, script, task, calls });
  await fresh.close();
}
const by = (key) => seen.map((one) => one[key]).sort((a, b) => a - b);
for (const key of ["paint", "usable", "script", "task"]) console.log(`${key.padEnd(8)} median ${Math.round(by(key)[Math.floor(seen.length / 2)])} ms, best ${Math.round(by(key)[0])} ms`);
if (process.env.CALLS) for (const [name, from, to] of seen[seen.length - 1].calls) console.log(`${String(from).padStart(6)} – ${String(to).padEnd(6)} ${name}`);
await browser.close();
