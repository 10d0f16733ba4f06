// One run from a sentence to its pull request, on the page alone, against the real program.
import { expect, test } from "@playwright/test";
import { join } from "node:path";
import { accessible } from "./axe";
import { login, Stage } from "./stage";

test("create, watch, pause, edit the task, resume, diagnose, apply, success, pull request", async ({ page }) => {
  test.setTimeout(400_000);
  const stage = new Stage();
  stage.configure({ local_forge: join(stage.dir, "forge"), publish: "pr", poll_seconds: 0.2 });
  await stage.serve();
  try {
    await login(page, stage);
    await expect(page.getByRole("heading", { name: "No runs yet" })).toBeVisible();

    // Create: a sentence is enough.
    await page.getByRole("button", { name: "New run" }).first().click();
    await page.getByRole("textbox", { name: "Task" }).fill("Write the three parts of the story");
    await expect(page.getByRole("combobox", { name: /^Repo/ })).toHaveValue(stage.repo);
    await page.getByRole("button", { name: "Start the run" }).click();
    await expect(page).toHaveURL(/\/runs\/(?!new)/);
    await expect(page.getByRole("heading", { level: 1 })).toContainText("Write the three parts");
    const id = decodeURIComponent(new URL(page.url()).pathname.split("/")[2] ?? "");

    // Watch.
    await stage.at(1);
    await expect(page.getByText("working").first()).toBeVisible();
    await page.getByRole("link", { name: "Logs", exact: true }).click();
    await expect(page.getByRole("log")).toContainText("still at part 1");
    await accessible(page, "the log of a run at work");

    // Pause: accepted at once, takes effect after the session.
    await page.getByRole("button", { name: "Pause" }).click();
    await expect(page.getByText("pauses after this session").first()).toBeVisible();
    stage.go(1);
    await expect(page.locator(".run-facts").getByText("paused")).toBeVisible();

    // Edit the task, with a look at the difference first.
    await page.getByRole("link", { name: "Task", exact: true }).click();
    const editor = page.getByRole("textbox", { name: "Task" });
    await expect(editor).toHaveValue(/three parts/);
    await editor.fill(`${await editor.inputValue()}\n\nKeep each part short.\n`);
    await page.getByRole("button", { name: "Save …" }).click();
    const dialog = page.getByRole("dialog", { name: "Save the task" });
    await expect(dialog.locator(".diff-added")).toContainText(["Keep each part short."]);
    await dialog.getByRole("button", { name: "Save", exact: true }).click();
    await expect(dialog).toBeHidden();
    await expect(page.getByText("Accepted, applies from the next iteration.").first()).toBeVisible();

    // Resume, and diagnose during the session.
    await page.getByRole("button", { name: "Resume" }).click();
    await stage.at(2);
    expect(stage.kinds(id)).toContain("spec_changed");
    await page.getByRole("link", { name: "Diagnostics", exact: true }).click();
    await page.getByRole("button", { name: "Diagnose" }).click();
    stage.go(2);
    await stage.at(3);
    await expect(page.getByRole("heading", { name: "Guardrails" })).toBeVisible();
    await page.getByRole("button", { name: "Apply …" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Apply" }).click();
    await expect(page.getByRole("button", { name: "✓ Applied" })).toBeVisible();
    await expect.poll(() => stage.controls(id)).toContain("guardrail");

    // Success, proven and handed over.
    stage.go(3, true);
    await page.getByRole("link", { name: "Overview", exact: true }).click();
    await expect(page.locator(".run-facts").getByText("done")).toBeVisible({ timeout: 90_000 });
    await expect(page.getByText("PR #1").first()).toBeVisible();
    await expect(page.locator(".run-side").getByText(/proven|done, unverified/)).toBeVisible();
    await page.getByRole("link", { name: "Diff", exact: true }).click();
    await expect(page.getByText("part3.txt").first()).toBeVisible();
    await page.getByRole("link", { name: "Timeline", exact: true }).click();
    await expect(page.locator(".t-row")).toHaveCount(3);
    await page.goto(`${stage.url}/`);
    await expect(page.locator(".run-row").getByText("proven, independent", { exact: true })).toBeVisible();
  } finally {
    await stage.close();
  }
});
