// A run that a terminal started, a server that is killed in the middle of a session, and a page that misses nothing.
import { expect, test } from "@playwright/test";
import { login, Stage } from "./stage";

test("the server is killed in a session: the run, the page and every event are whole afterwards", async ({ page }) => {
  test.setTimeout(400_000);
  const stage = new Stage();
  await stage.serve();
  const run = stage.runInTerminal("Write the three parts of the story");
  try {
    await stage.at(1);
    await login(page, stage);
    await page.getByRole("link", { name: /Write the three parts/ }).first().click();
    await expect(page.getByRole("heading", { level: 1 })).toContainText("Write the three parts");
    const id = decodeURIComponent(new URL(page.url()).pathname.split("/")[2] ?? "");
    await page.getByRole("link", { name: "Timeline", exact: true }).click();
    await page.getByRole("button", { name: "Every event" }).click();
    await expect(page.locator(".story-row").first()).toBeVisible();

    await stage.killServer();
    await expect(page.getByText("Not live").or(page.getByText("Connection lost")).first()).toBeVisible();
    // The run continues without the server and the page.
    stage.go(1);
    await stage.at(2);
    await stage.serve();
    await expect(page.getByText("Not live")).toBeHidden({ timeout: 60_000 });
    stage.go(2);
    stage.go(3, true);
    await expect(page.locator(".run-facts").getByText("done")).toBeVisible({ timeout: 90_000 });

    const journal = stage.journal(id);
    expect(journal).toEqual(journal.map((_, at) => at + 1));
    const expected = stage.milestones(id);
    await expect.poll(async () => (await page.locator(".story-row > .num:first-child").allTextContents()).map(Number).sort((a, b) => a - b), { timeout: 30_000 }).toEqual(expect.arrayContaining(expected.slice(-20)));
    const shown = (await page.locator(".story-row > .num:first-child").allTextContents()).map(Number);
    expect(new Set(shown).size, "each event once").toBe(shown.length);
    await expect.poll(() => run.exitCode, { timeout: 30_000 }).toBe(0);
  } finally {
    await stage.close();
  }
});
