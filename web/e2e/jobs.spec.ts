// Ten things that users do every day, on real runs. Each click and each key with an effect is a step; what a job may take is a
// number in its test. Typing a text isn't a step.
import { expect, test, type Locator, type Page } from "@playwright/test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { login, Stage } from "./stage";

/** Speaks like claude. What it does depends on its first argument. */
const AGENT = `
import { appendFileSync, existsSync, readFileSync, writeFileSync } from "node:fs";
const [mode, folder] = process.argv.slice(2);
const n = Number(process.env.RALPH_ITERATION);
const out = (line) => process.stdout.write(JSON.stringify(line) + "\\n");
const say = (text) => out({ type: "assistant", message: { role: "assistant", content: [{ type: "text", text }] } });
let calls = 0;
const tool = (name, input, content, is_error = false) => {
  calls++;
  out({ type: "assistant", message: { role: "assistant", content: [{ type: "tool_use", id: "t" + calls, name, input }] } });
  out({ type: "user", message: { role: "user", content: [{ type: "tool_result", tool_use_id: "t" + calls, content, is_error }] } });
};
out({ type: "system", subtype: "init", session_id: "s" + n });
say("I read the parts in session " + n + ".");
let done = false;
if (mode === "steps") {
  writeFileSync("parts.txt", ["one", "two", "three"].slice(0, n).join("\\n") + "\\n");
  tool("Bash", { command: "sh test.sh" }, Array.from({ length: 30 }, (_, at) => "line " + at).join("\\n") + "\\nnot ok - part " + (n + 1), n < 3);
  done = n >= 3;
} else if (mode === "cheat") {
  writeFileSync("parts.txt", "one\\ntwo\\n");
  writeFileSync("test.sh", readFileSync("test.sh", "utf8").replace("for part in one two three", "for part in one two"));
  done = true;
} else if (mode === "stuck") {
  const hinted = existsSync(folder + "/hinted");
  writeFileSync("parts.txt", hinted ? "one\\ntwo\\nthree\\n" : "one\\n# try " + (n % 2) + "\\n");
  done = hinted;
} else {
  // As many lines as a log of several parts has.
  for (let at = 0; at < 4000; at++) say("looked at file " + at + " of the archive, and found nothing that would matter for the task at hand");
  say("the needle is here");
  for (let at = 0; at < 500; at++) say("looked at sheet " + at);
  tool("Read", { file_path: process.cwd() + "/parts.txt" }, "one");
  appendFileSync(folder + "/at" + n, "");
  while (!existsSync(folder + "/go" + n)) await new Promise((then) => setTimeout(then, 100));
  writeFileSync("parts.txt", n === 1 ? "one\\nwrong line\\n" : "one\\ntwo\\nthree\\n");
  done = n > 1;
}
const promise = "<promise>COMPLETE</promise>";
if (done) say(promise);
out({ type: "result", subtype: "success", is_error: false, result: done ? promise : "more to do", total_cost_usd: 0.25, session_id: "s" + n, usage: { input_tokens: 900, output_tokens: 90 } });
`;

const TEST = `#!/bin/sh
n=0
failed=0
for part in one two three; do
  n=$((n + 1))
  if grep -qx "$part" parts.txt; then echo "ok $n - part $part"; else echo "not ok $n - part $part"; failed=$((failed + 1)); fi
done
echo "# pass $((n - failed))"
echo "# fail $failed"
exit $((failed > 0))
`;

const stage = new Stage();
test.describe.configure({ mode: "default" });

/** Configures one kind of agent, and commits a task. */
function prepare(mode: string, title: string, more: Record<string, unknown> = {}): void {
  stage.configure({
    agents: [{ name: "claude", command_argv: [process.execPath, join(stage.agents, "agent.mjs"), mode, stage.agents], output_format: "claude-stream-json" }],
    verifiers: [{ name: "tests", command_argv: ["sh", "test.sh"] }],
    local_forge: join(stage.dir, "forge"), poll_seconds: 0.2, max_iterations: 12, ...more,
  });
  writeFileSync(join(stage.repo, "PROMPT.md"), `# ${title}\n\nWrite the three parts.\n`);
  stage.git("add", "-A");
  stage.git("commit", "-q", "-m", title);
}

async function run(mode: string, title: string, more: Record<string, unknown> = {}): Promise<void> {
  prepare(mode, title, more);
  const ended = stage.runInTerminal("--worktree");
  await new Promise((done) => ended.once("exit", done));
}

test.beforeAll(async () => {
  test.setTimeout(400_000);
  writeFileSync(join(stage.agents, "agent.mjs"), AGENT);
  writeFileSync(join(stage.repo, "test.sh"), TEST);
  writeFileSync(join(stage.repo, "parts.txt"), "");
  await run("steps", "Write a story in steps");
  await run("cheat", "Write a story and bend its test");
  await run("stuck", "Write a story, again and again");
  await run("steps", "Write a story that ends too soon", { max_iterations: 2 });
  prepare("wait", "Search the archive");
  stage.runInTerminal("--worktree");
  await stage.at(1);
  await stage.serve();
});
test.afterAll(async () => {
  test.setTimeout(100_000);
  await stage.close();
});

/** Counts what a user does. */
class Hand {
  steps = 0;
  constructor(readonly page: Page) {}
  async click(what: Locator): Promise<void> {
    this.steps++;
    await what.click();
  }
  async press(key: string): Promise<void> {
    this.steps++;
    await this.page.keyboard.press(key);
  }
}

const row = (page: Page, title: string) => page.locator(".run-row").filter({ hasText: title });

async function at(page: Page, title: string): Promise<Hand> {
  await login(page, stage);
  await row(page, title).first().waitFor();
  return new Hand(page);
}

async function open(page: Page, title: string): Promise<Hand> {
  const hand = await at(page, title);
  await row(page, title).getByRole("link", { name: new RegExp(title) }).click();
  await expect(page.getByRole("heading", { level: 1 })).toContainText(title);
  return hand;
}

test("whether a run is alive, gets closer, needs me and costs: no step", async ({ page }) => {
  await at(page, "Search the archive");
  const working = row(page, "Search the archive");
  await expect(working).toContainText("working");
  await expect(working.locator(".c-age")).toContainText(/^\d+ (s|min)$/);
  await expect(working.locator(".c-now")).toContainText("claude");
  await expect(row(page, "in steps").locator(".c-tests")).toContainText("3/3");
  await expect(row(page, "again and again").locator(".c-tests")).toContainText("1/3");
  await expect(row(page, "in steps").locator(".c-cost")).toContainText("$0.75");
  await expect(page.locator(".run-group").first()).toContainText("Needs you 2");
  await expect(page).toHaveTitle("(2) Runs · ralph");
});

test("start a run: 3 steps", async ({ page }) => {
  const hand = await at(page, "in steps");
  await hand.press("c");
  const task = page.getByRole("textbox", { name: "Task" });
  await expect(task).toBeFocused();
  await task.fill("Write the three parts of the story");
  await expect(page.getByRole("combobox", { name: /^Repo/ })).toHaveValue(stage.repo);
  await hand.press("Control+Enter");
  await expect(page).toHaveURL(/\/runs\/(?!new)/);
  expect(hand.steps).toBeLessThanOrEqual(3);
  await page.getByRole("button", { name: "More actions" }).click();
  await page.getByRole("menuitem", { name: /Cancel now/ }).click();
  await page.getByRole("button", { name: "Cancel the run" }).click();
});

test("read what the agent did in iteration 2: 2 steps", async ({ page }) => {
  const hand = await at(page, "in steps");
  await hand.click(row(page, "in steps").getByRole("link", { name: /in steps/ }));
  await hand.click(page.getByRole("link", { name: "Output of iteration 2" }));
  const log = page.getByRole("log");
  await expect(log).toContainText("I read the parts in session 2.");
  await expect(log).toContainText("▸ Bash sh test.sh");
  await expect(log).toContainText("not ok - part 3");
  await expect(log).not.toContainText("tool_use");
  expect(hand.steps).toBeLessThanOrEqual(2);
});

test("why a check failed: 1 step", async ({ page }) => {
  const hand = await at(page, "too soon");
  await hand.click(row(page, "too soon").getByRole("link", { name: "See why" }));
  await expect(page.locator(".check-body")).toContainText("part three");
  expect(hand.steps).toBeLessThanOrEqual(1);
});

test("compare two iterations: 4 steps", async ({ page }) => {
  const hand = await open(page, "in steps");
  await hand.click(page.getByRole("link", { name: "Timeline", exact: true }));
  await hand.click(page.getByRole("checkbox", { name: "Compare iteration 1" }));
  await hand.click(page.getByRole("checkbox", { name: "Compare iteration 3" }));
  await hand.click(page.getByRole("link", { name: "Compare iterations 1 and 3" }));
  await expect(page.getByText("tests fixed")).toContainText("part two");
  await expect(page.locator(".diff-added .diff-text")).toHaveText(["two", "three"]);
  expect(hand.steps).toBeLessThanOrEqual(4);
});

test("find an old run: 2 steps", async ({ page }) => {
  const hand = await at(page, "Search the archive");
  await hand.press("Control+k");
  await page.getByRole("combobox", { name: "Search and commands" }).fill("steps story");
  await expect(page.getByRole("listbox", { name: "Results" }).getByRole("option").first()).toContainText("Write a story in steps");
  await hand.press("Enter");
  await expect(page.getByRole("heading", { level: 1 })).toContainText("in steps");
  expect(hand.steps).toBeLessThanOrEqual(2);
});

test("find words anywhere in a long log: 2 steps", async ({ page }) => {
  const hand = await open(page, "Search the archive");
  const { runs } = await stage.api<{ runs: { id: string; task: string }[] }>("/runs");
  await page.goto(`${stage.url}/runs/${runs.find((one) => one.task === "Search the archive")?.id}/logs?iteration=1`);
  await expect(page.getByRole("log")).toContainText("looked at file 0");
  await hand.press("/");
  await page.getByRole("searchbox", { name: "Search the log" }).fill("needle");
  await expect(page.getByText("1/1")).toBeVisible();
  await hand.press("Enter");
  await expect(page.locator(".log-target")).toContainText("the needle is here");
  await expect(page.getByRole("button", { name: "Load earlier" })).toBeVisible();
  expect(hand.steps).toBeLessThanOrEqual(2);
});

test("take the result: 2 steps", async ({ page }) => {
  const hand = await at(page, "in steps");
  await hand.click(row(page, "in steps").getByRole("link", { name: "Take the result" }));
  await hand.click(page.getByRole("dialog").getByRole("button", { name: "Apply" }));
  await expect(page.getByText(/Applied 1 file to|Already there/)).toBeVisible();
  expect(hand.steps).toBeLessThanOrEqual(2);
  expect(stage.git("status", "--porcelain")).toContain("parts.txt");
  stage.git("checkout", "-q", "--", ".");
});

test("publish later: 3 steps", async ({ page }) => {
  const hand = await at(page, "in steps");
  await hand.click(row(page, "in steps").getByRole("link", { name: "Take the result" }));
  const dialog = page.getByRole("dialog");
  await hand.click(dialog.getByRole("radio", { name: /pull request/ }));
  await hand.click(dialog.getByRole("button", { name: "Open the pull request" }));
  await expect(page.getByText("PR #1").first()).toBeVisible({ timeout: 60_000 });
  expect(hand.steps).toBeLessThanOrEqual(3);
});

test("answer a run that needs you: 1 step after reading", async ({ page }) => {
  const hand = await open(page, "bend its test");
  const banner = page.getByRole("region", { name: "This run needs you" });
  await expect(banner.locator(".diff-removed")).toContainText("for part in one two three");
  await hand.click(banner.getByRole("button", { name: "Approve" }));
  await expect(page.locator(".run-facts").getByText("done")).toBeVisible({ timeout: 60_000 });
  expect(hand.steps).toBeLessThanOrEqual(1);
});

test("give a hint: 2 steps", async ({ page }) => {
  const hand = await at(page, "again and again");
  await hand.click(row(page, "again and again").getByRole("link", { name: "Give a hint" }));
  await expect(page.getByRole("textbox", { name: /Hint for the next session/ })).toBeFocused();
  writeFileSync(join(stage.agents, "hinted"), "");
  await page.keyboard.type("Write all three lines.");
  await hand.press("Enter");
  await expect(page.locator(".run-facts").getByText("done")).toBeVisible({ timeout: 60_000 });
  expect(hand.steps).toBeLessThanOrEqual(2);
});

test("comment on a line of a diff: the next session gets it, and its change resolves it", async ({ page }) => {
  await open(page, "Search the archive");
  stage.go(1);
  await stage.at(2);
  await page.getByRole("link", { name: "Diff", exact: true }).click();
  const line = page.locator(".diff-added").filter({ hasText: "wrong line" });
  await line.hover();
  await line.getByRole("button", { name: "Comment on line 2 of parts.txt" }).click();
  await page.getByRole("textbox", { name: "Comment" }).fill("The second part is `two`.");
  await page.getByRole("button", { name: "Comment", exact: true }).click();
  await expect(page.locator(".diff-said")).toContainText("The second part is `two`.");
  await expect(page.locator(".comments summary")).toHaveText("1 comment · 1 open");
  const { runs } = await stage.api<{ runs: { id: string; task: string }[] }>("/runs");
  const id = runs.find((one) => one.task === "Search the archive")?.id ?? "";
  const { notes } = await stage.api<{ notes: string }>(`/runs/${id}/guardrails`);
  expect(notes).toContain("Review comment on `parts.txt`, line 2, after iteration 1:\n> wrong line\nThe second part is `two`.");
  stage.go(2);
  await expect(page.locator(".run-facts").getByText("done")).toBeVisible({ timeout: 60_000 });
  await expect(page.locator(".comments summary")).toHaveText("1 comment · 0 open");
  await page.locator(".comments summary").click();
  await expect(page.locator(".comments")).toContainText("resolved: the line has changed");
});
