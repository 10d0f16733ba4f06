// How soon an event is on the page of its run: `TOKEN=… node dev/live.mjs BASE RUN JOURNAL [PER_SECOND] [SECONDS]`. Adds events to
// the journal of a run that is over and tells when they came to the page, and when the frame after that was painted.
import { chromium } from "@playwright/test";
import { appendFileSync, readFileSync } from "node:fs";

const [base, run, journal, rate = "2000", seconds = "5"] = process.argv.slice(2);
const last = JSON.parse(readFileSync(journal, "utf8").trim().split("\n").at(-1));
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
const page = await browser.newPage({ viewport: { width: 1440, height: 900 } });

/** Notes when each event came, and when the page had painted it. */
function note() {
  const now = () => performance.timeOrigin + performance.now();
  window.came = [];
  window.painted = [];
  let waiting = [];
  const Plain = window.WebSocket;
  window.WebSocket = class extends Plain {
    constructor(...args) {
      super(...args);
      this.addEventListener("message", ({ data }) => {
        const sent = [...String(data).matchAll(/"message":"(\d{13}\.\d{3})"/g)].map((found) => Number(found[1]));
        if (sent.length === 0) return;
        window.came.push(...sent.map((at) => now() - at));
        if (waiting.length === 0)
          requestAnimationFrame(() =>
            setTimeout(() => {
              window.painted.push(...waiting.map((at) => now() - at));
              waiting = [];
            }),
          );
        waiting.push(...sent);
      });
    }
  };
}

await page.addInitScript(note);
await page.goto(base);
await page.getByLabel("Token").fill(process.env.TOKEN ?? "");
await page.getByRole("button", { name: "Log in" }).click();
await page.waitForURL((url) => !url.pathname.startsWith("/login"));
await page.goto(`${base}/runs/${run}`);
await page.locator(".run-title, .tabs").first().waitFor();
await page.waitForTimeout(1000);

const all = Number(rate) * Number(seconds);
const begun = performance.now();
for (let done = 0; done < all; ) {
  const due = Math.min(all, Math.floor(((performance.now() - begun) / 1000) * Number(rate)));
  let lines = "";
  for (; done < due; done++) {
    const message = (performance.timeOrigin + performance.now()).toFixed(3);
    lines += `{"seq":${last.seq + 1 + done},"at":"2026-11-17T00:00:00Z","kind":"notice","message":"${message}"}\n`;
  }
  if (lines) appendFileSync(journal, lines);
  await new Promise((go) => setTimeout(go, 1));
}
await page.waitForFunction((all) => window.painted.length >= all, all, { timeout: 20_000 }).catch(() => {});
const [came, painted] = await page.evaluate(() => [window.came, window.painted]);
await browser.close();
const tell = (name, took) => {
  took.sort((a, b) => a - b);
  const at = (part) => (took[Math.floor((took.length - 1) * part)] ?? Number.NaN).toFixed(1).padStart(8);
  console.log(`${name.padEnd(38)} ${at(0.5)} ms p50 ${at(0.99)} ms p99`);
};
tell(`event to browser at ${rate} a second`, came);
tell("  and painted", painted);
if (came.length !== all) {
  console.log(`${came.length} of ${all} events came: each has to come once`);
  process.exit(1);
}
