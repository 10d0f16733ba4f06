// An empty dashboard: one click starts a scripted run, without account or network.
import { expect, test } from "@playwright/test";
import { accessible } from "./axe";
import { login, Stage } from "./stage";

test("a demo starts with one click, and asks for a hint", async ({ page }) => {
  test.setTimeout(240_000);
  const stage = new Stage();
  await stage.serve();
  try {
    await login(page, stage);
    await expect(page.getByRole("heading", { name: "No runs yet" })).toBeVisible();
    await accessible(page, "an empty list");
    await page.getByRole("button", { name: /See a run get stuck/ }).click();
    await expect(page.getByRole("heading", { level: 1 })).toContainText("An agent that repeats itself");
    const banner = page.getByRole("region", { name: "This run needs you" });
    await expect(banner.getByRole("textbox", { name: /Hint for the next session/ })).toBeVisible({ timeout: 120_000 });
    await page.goto(`${stage.url}/`);
    await page.getByRole("link", { name: "Give a hint" }).click();
    await expect(banner.getByRole("textbox", { name: /Hint for the next session/ })).toBeFocused();
  } finally {
    await stage.close();
  }
});
