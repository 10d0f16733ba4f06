// Every page in every state that invented data can show: accessible, no wider than the window, no error in the console.
import { expect, test, type Page } from "@playwright/test";
import { spawn, type ChildProcess } from "node:child_process";
import { fileURLToPath } from "node:url";
import { accessible, findings } from "./axe";

const PORT = 8791;
const BASE = `http://127.0.0.1:${PORT}`;
let mock: ChildProcess;

test.beforeAll(async () => {
  mock = spawn("node", [fileURLToPath(new URL("../dev/mock.mjs", import.meta.url))], { env: { ...process.env, PORT: String(PORT) }, stdio: ["ignore", "pipe", "inherit"] });
  await new Promise((done) => mock.stdout?.once("data", done));
});
test.afterAll(() => void mock.kill());

async function enter(page: Page, token = "admin"): Promise<string[]> {
  const errors: string[] = [];
  await page.goto(BASE);
  await page.getByLabel("Token").or(page.getByRole("navigation", { name: "Pages" })).first().waitFor();
  await page.request.post(`${BASE}/api/v1/login`, { data: { token } });
  page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
  page.on("pageerror", (error) => errors.push(String(error)));
  return errors;
}

const RUN = "/runs/keep-order-7f3a";
const PAGES: Record<string, [string, string]> = {
  "the runs": ["/", "Keep router order under load"],
  "a run that needs you": [RUN, "Approve"],
  "a run at work": ["/runs/migrate-sessions-19bc", "Fresh session"],
  "a run that is done": ["/runs/fix-flaky-4e10", "Proven in a clean checkout"],
  "a run that failed": ["/runs/too-dear-99aa", "Raise the budget"],
  "the board": ["/board", "Finished today"],
  "a race": ["/races/race-a", "codex wins."],
  "a comparison": [`${RUN}/diff?iteration=6&against=2`, "tests fixed"],
  "the timeline": [`${RUN}/timeline?iteration=12`, "Prompt"],
  "every event": [`${RUN}/timeline?show=events`, "codex starts"],
  "the logs": ["/runs/migrate-sessions-19bc/logs", "cargo test router_order"],
  "the output of an iteration": [`${RUN}/logs?iteration=2`, "expected [1, 2, 3], got [1, 3, 2]"],
  "the task": [`${RUN}/task`, "version 2"],
  "the guardrails": [`${RUN}/rules`, "Never edit generated files"],
  "the diff": [`${RUN}/diff`, "tests/router.rs"],
  "the diagnosis": [`${RUN}/diagnostics`, "Observed"],
  "the sandbox": [`${RUN}/sandbox`, "bwrap"],
  "the charts": [`${RUN}/charts`, "Getting closer?"],
  "a new run": ["/new", "What should be true when it is done?"],
  "the costs": ["/costs", "Cost per day"],
  "the settings": ["/settings", "Notifications"],
  "the users": ["/settings/people", "Add user"],
  "the secrets": ["/settings/secrets", "ANTHROPIC_API_KEY"],
  "the workers": ["/settings/workers", "no synchronous standby"],
  "the audit log": ["/settings/audit", "pause"],
  "an unknown page": ["/nowhere", "Page not found"],
};

for (const [theme, width] of [["light", 1440], ["dark", 1024], ["dark", 390]] as const) {
  test(`pages are accessible and fit: ${theme}, ${width} px`, async ({ page }) => {
    test.setTimeout(400_000);
    await page.emulateMedia({ colorScheme: theme });
    await page.setViewportSize({ width, height: 844 });
    const errors = await enter(page);
    const found: string[] = [];
    for (const [name, [path, words]] of Object.entries(PAGES)) {
      await page.goto(BASE + path);
      await expect(page.getByText(words).first(), name).toBeVisible();
      found.push(...(await findings(page)).map((one) => `${name}: ${one}`));
      const over = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
      if (over > 0) found.push(`${name} is ${over} px wider than the window`);
    }
    expect(found).toEqual([]);
    expect(errors).toEqual([]);
  });
}

test("the login is accessible, and reports a wrong token", async ({ page }) => {
  await page.request.post(`${BASE}/api/v1/login`, { data: { token: "admin" } });
  await page.request.post(`${BASE}/api/v1/logout`);
  await page.goto(BASE);
  await accessible(page, "the login");
  await page.getByLabel("Token").fill("wrong");
  await page.getByRole("button", { name: "Log in" }).click();
  await expect(page.getByRole("alert")).toContainText("Unknown token");
});

test("keys, palette and sheet reach everything", async ({ page }) => {
  await enter(page);
  await page.goto(BASE);
  await page.getByText("Keep router order under load").first().waitFor();
  await page.keyboard.press("?");
  await expect(page.getByRole("dialog", { name: "Keys" })).toContainText("New run");
  await accessible(page, "the sheet of keys");
  await page.keyboard.press("Escape");
  await page.keyboard.press("j");
  await page.keyboard.press("Enter");
  await expect(page).toHaveURL(/keep-order/);
  await page.getByRole("heading", { level: 1 }).waitFor();
  await page.keyboard.press("6");
  await expect(page).toHaveURL(/\/diff$/);
  await page.keyboard.press("Control+k");
  await page.getByRole("dialog").getByRole("combobox").fill("charts");
  await accessible(page, "the palette");
  await page.keyboard.press("Enter");
  await expect(page).toHaveURL(/\/charts$/);
  await page.keyboard.press("n");
  await expect(page.getByRole("dialog", { name: "Add a note" })).toBeVisible();
  await page.keyboard.press("Escape");
  await page.keyboard.press("g");
  await page.keyboard.press("c");
  await expect(page).toHaveURL(/\/costs$/);
});

test("destructive actions ask first and say what will happen", async ({ page }) => {
  await enter(page);
  await page.goto(`${BASE}/runs/migrate-sessions-19bc`);
  await page.getByRole("button", { name: "More actions" }).click();
  await page.getByRole("menuitem", { name: /Cancel now/ }).click();
  const dialog = page.getByRole("dialog", { name: "Cancel now" });
  await expect(dialog).toContainText("cannot be resumed");
  await accessible(page, "a dialog");
  await dialog.getByRole("button", { name: "Cancel", exact: true }).click();
  await expect(dialog).toBeHidden();
});

test("a run that needs you is answered from the list with two clicks or keys", async ({ page }) => {
  await enter(page);
  await page.goto(BASE);
  const sections = page.locator(".run-group");
  await expect(sections.first()).toContainText("Needs you 1");
  await expect(page).toHaveTitle("(1) Runs · ralph");
  await page.getByRole("link", { name: "Review tests", exact: true }).click();
  const banner = page.getByRole("region", { name: "This run needs you" });
  await expect(banner.locator(".diff-removed")).toContainText("assert_eq!(router.drain_ids(), [1, 2, 3])");
  await page.keyboard.press("u");
  await expect(banner.getByRole("textbox")).toBeFocused();
  await expect(banner.getByRole("textbox")).toHaveValue(/Keep the original tests/);
  await page.keyboard.press("Escape");
  const sent = page.waitForRequest((request) => request.url().endsWith("/control"));
  await page.keyboard.press(".");
  expect((await sent).postDataJSON()).toEqual({ kind: "approve" });
});

test("a result is taken from the list with two clicks", async ({ page }) => {
  await enter(page);
  await page.goto(`${BASE}/?q=flaky+test+in`);
  await page.getByRole("link", { name: "Take the result" }).click();
  const dialog = page.getByRole("dialog", { name: "Take the result" });
  await expect(dialog.getByRole("radio", { name: /pull request/ })).toBeDisabled();
  await accessible(page, "taking a result");
  await dialog.getByRole("button", { name: "Apply" }).click();
  await expect(page.getByText("Applied 2 files to /home/ana/acme/api.")).toBeVisible();
  await expect(dialog).toBeHidden();
});

test("a race is one row that opens", async ({ page }) => {
  await enter(page);
  await page.goto(`${BASE}/?q=parser`);
  await expect(page.locator(".run-row")).toHaveCount(1);
  await page.getByRole("button", { name: "Show the runs of the race" }).click();
  await expect(page.locator(".run-row")).toHaveCount(3);
  await expect(page.locator(".run-racer").nth(1)).toContainText("unknown");
});

test("the output of an iteration is readable", async ({ page }) => {
  await enter(page);
  await page.goto(`${BASE}${RUN}/logs?iteration=2`);
  const log = page.getByRole("log");
  await expect(log).toContainText("▸ Bash cargo test router_order");
  await expect(log).not.toContainText("line 9");
  await page.getByRole("button", { name: "… 37 more lines" }).click();
  await expect(log).toContainText("line 9");
  await page.getByRole("button", { name: "Tools" }).click();
  await expect(log).not.toContainText("two threads");
});

test("a log of 100,000 lines, one of a megabyte, is read in parts and searched as a whole", async ({ page }) => {
  await enter(page);
  await page.goto(`${BASE}${RUN}/logs?iteration=4`);
  const log = page.getByRole("log");
  await expect(log).toContainText("line 0 of many");
  await expect(page.getByRole("button", { name: "Load more" })).toBeVisible();
  await page.getByRole("searchbox", { name: "Search the log" }).fill("needle");
  await page.getByRole("searchbox", { name: "Search the log" }).press("Enter");
  await expect(page.locator(".log-target")).toHaveText(/the needle/);
  expect(await page.locator(".log-line").count()).toBeLessThan(200);
  await page.getByRole("button", { name: "Load earlier" }).click();
  await expect(page.locator(".log-target")).toHaveText(/the needle/);
});

test("a diff of 5,000 files stays a few dozen rows", async ({ page }) => {
  await enter(page);
  await page.goto(`${BASE}${RUN}/diff?iteration=4`);
  await expect(page.getByText("5,000 files")).toBeVisible();
  expect(await page.locator(".diff-item").count()).toBeLessThan(200);
});

test("comments on a diff are shown at their lines, and resolved once those changed", async ({ page }) => {
  await enter(page);
  await page.goto(`${BASE}${RUN}/diff`);
  await expect(page.locator(".comments summary")).toHaveText("2 comments · 1 open");
  await expect(page.locator(".comments li").first()).toContainText("resolved: the line has changed");
  await expect(page.locator(".diff-said")).toContainText("Why not `extend`?");
  await page.getByRole("button", { name: "src/router.rs:44" }).focus();
  for (const key of ["J", "J", "m"]) await page.keyboard.press(key);
  const draft = page.getByRole("textbox", { name: "Comment" });
  await expect(draft).toBeFocused();
  await accessible(page, "writing a comment");
  await draft.fill("Keep the sort.");
  const sent = page.waitForRequest((request) => request.url().endsWith("/control"));
  await page.keyboard.press("Control+Enter");
  expect((await sent).postDataJSON()).toEqual({ kind: "note", text: expect.stringMatching(/^Review comment on `src\/router\.rs`, removed line 42, after iteration 12:\n> out\.sort_by_key/) });
  await expect(draft).toBeHidden();
});

test("two iterations are compared with the keyboard", async ({ page }) => {
  await enter(page);
  await page.goto(`${BASE}${RUN}/timeline`);
  await page.getByText("Mark two iterations").waitFor();
  for (const key of ["j", "x", "j", "j", "x", "="]) await page.keyboard.press(key);
  await expect(page).toHaveURL(/diff\?iteration=12&against=10$/);
  await expect(page.getByText("tests fixed")).toBeVisible();
});

test("thousands of runs stay a few dozen rows", async ({ page }) => {
  await enter(page);
  await page.goto(BASE);
  await page.getByText("Keep router order under load").first().waitFor();
  expect(await page.locator(".run-row").count()).toBeLessThan(60);
  await expect(async () => {
    await page.locator(".runs").evaluate((box) => box.scrollBy(0, 4000));
    await expect(page.getByText(/\([23]\d\d\)/).first()).toBeVisible({ timeout: 500 });
  }).toPass();
  expect(await page.locator(".run-row").count()).toBeLessThan(60);
});

test("reports how soon the page is usable at a quarter of the speed", async ({ page }) => {
  await enter(page);
  const client = await page.context().newCDPSession(page);
  await client.send("Emulation.setCPUThrottlingRate", { rate: 4 });
  await page.goto(BASE);
  await page.getByText("Keep router order under load").first().waitFor();
  const ms = await page.evaluate(() => performance.now());
  test.info().annotations.push({ type: "usable after", description: `${Math.round(ms)} ms` });
  console.log(`usable after ${Math.round(ms)} ms at a quarter of the speed`);
});
