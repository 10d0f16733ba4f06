// Who may do what, and two at once.
import { expect, test } from "@playwright/test";
import { login, Stage } from "./stage";

let stage: Stage;
let id: string;

test.beforeAll(async () => {
  stage = new Stage();
  await stage.serve();
  const row = await stage.api<{ id: string }>("/runs", stage.serving.token, { method: "POST", body: JSON.stringify({ repo: stage.repo, text: "Write the three parts of the story" }) });
  id = row.id;
  await stage.at(1);
});
test.afterAll(() => stage.close());

test("a wrong token is refused with an error", async ({ page }) => {
  await page.goto(stage.url);
  await page.getByLabel("Token").fill("not-the-token");
  await page.getByRole("button", { name: "Log in" }).click();
  await expect(page.getByRole("alert")).toBeVisible();
  await expect(page.getByLabel("Token")).toBeVisible();
  await expect(page.getByRole("navigation", { name: "Pages" })).toBeHidden();
});

test("the address that the command line opens logs in once", async ({ page, context }) => {
  const address = stage.serving.login_url ?? "";
  test.skip(address === "", "the server gave no such address");
  await page.goto(address);
  await expect(page.getByRole("navigation", { name: "Pages" })).toBeVisible();
  expect(page.url()).not.toContain("code=");
  await context.clearCookies();
  const other = await context.newPage();
  await other.goto(address);
  await expect(other.getByLabel("Token")).toBeVisible();
});

test("a viewer may look, not steer, on the page and behind it", async ({ page }) => {
  const made = await stage.api<{ token: string }>("/people", stage.serving.token, { method: "POST", body: JSON.stringify({ name: "vera", role: "viewer" }) });
  await login(page, stage, `/runs/${id}`, made.token);
  await expect(page.getByRole("button", { name: "Pause" })).toBeDisabled();
  await expect(page.getByRole("button", { name: "New run" })).toBeDisabled();
  await page.getByRole("link", { name: "Task", exact: true }).click();
  await expect(page.getByRole("textbox", { name: "Task" })).toHaveAttribute("readonly", "");
  const status = await page.evaluate(async (run) => {
    const me = (await (await fetch("/api/v1/me")).json()) as { csrf: string };
    const answer = await fetch(`/api/v1/runs/${run}/control`, { method: "POST", headers: { "content-type": "application/json", "x-ralph-csrf": me.csrf }, body: JSON.stringify({ kind: "pause" }) });
    return answer.status;
  }, id);
  expect(status).toBe(403);
});

test("two tabs that edit the task do not overwrite each other", async ({ page, context }) => {
  await login(page, stage, `/runs/${id}/task`);
  const other = await context.newPage();
  await other.goto(`${stage.url}/runs/${id}/task`);
  const save = async (tab: typeof page, words: string) => {
    const editor = tab.getByRole("textbox", { name: "Task" });
    await expect(editor).toHaveValue(/three parts/);
    await tab.bringToFront();
    await editor.fill(`${await editor.inputValue()}\n\n${words}\n`);
    await tab.getByRole("button", { name: "Save …" }).click();
    await tab.getByRole("dialog").getByRole("button", { name: "Save", exact: true }).click();
  };
  await expect(page.getByRole("textbox", { name: "Task" })).toHaveValue(/three parts/);
  await expect(other.getByRole("textbox", { name: "Task" })).toHaveValue(/three parts/);
  await save(page, "From the first tab.");
  await expect(page.getByText("Accepted, applies from the next iteration.").first()).toBeVisible();
  await save(other, "From the second tab.");
  await expect(other.getByRole("alert")).toContainText("Another user saved this task while you were editing");
  await other.getByRole("button", { name: "Use their version" }).click();
  await expect(other.getByRole("textbox", { name: "Task" })).toHaveValue(/From the first tab/);
});
