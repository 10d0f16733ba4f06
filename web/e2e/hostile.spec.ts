// A repo and an agent that write what a page must not believe: everything of theirs is shown as text, and nothing of it runs.
import { expect, test } from "@playwright/test";
import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { login, Stage } from "./stage";

const EVIL = "<img src=x onerror=window.owned=1><script>window.owned=2</script>";
const AGENT = `#!/bin/sh
printf '%s \\033]0;owned\\007\\033[31mred\\033[0m\\342\\200\\256turned\\n' '${EVIL}'
echo '[click](javascript:window.owned=3)'
echo '${EVIL}' > '<b>name.txt'
echo part > part3.txt
echo '<promise>COMPLETE</promise>'
`;

test("what a repo and its agent write is text on every tab", async ({ page }) => {
  test.setTimeout(300_000);
  const stage = new Stage();
  try {
    writeFileSync(join(stage.agents, "one.sh"), AGENT);
    chmodSync(join(stage.agents, "one.sh"), 0o755);
    writeFileSync(join(stage.repo, "PROMPT.md"), `# Hostile ${EVIL}\n\nWrite \`part3.txt\`. ${"A very long word of no sense ".repeat(200)}\n`);
    stage.git("add", "-A");
    stage.git("commit", "-q", "-m", `task ${EVIL}`);
    stage.git("checkout", "-q", "-b", "x-<img-src=x-onerror=window.owned=4>");
    stage.ralph("run", "--json");
    await stage.serve();
    const refused: string[] = [];
    page.on("console", (message) => /Content.Security.Policy/i.test(message.text()) && refused.push(message.text()));
    page.on("dialog", (dialog) => void dialog.dismiss());
    await login(page, stage);
    await expect(page.locator(".run-row").first()).toContainText("Hostile <img src=x");
    const { runs } = await stage.api<{ runs: { id: string }[] }>("/runs");
    const id = runs[0]?.id ?? "";
    for (const tab of ["", "/timeline?iteration=1", "/timeline?show=events", "/logs", "/task", "/rules", "/diff", "/diagnostics", "/sandbox", "/charts"]) {
      await page.goto(`${stage.url}/runs/${id}${tab}`);
      await expect(page.getByRole("heading", { level: 1 })).toContainText("Hostile <img src=x");
      await page.waitForLoadState("networkidle").catch(() => null);
      expect(await page.evaluate(() => (window as { owned?: number }).owned), tab).toBeUndefined();
      expect(await page.locator("img[src=x], a[href^=javascript]").count(), tab).toBe(0);
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
      expect(wide, `${tab} is as wide as the window`).toBeLessThanOrEqual(0);
    }
    await page.goto(`${stage.url}/new`);
    await expect(page.getByRole("heading", { name: "New run" })).toBeVisible();
    expect(refused, "nothing was even tried").toEqual([]);
  } finally {
    await stage.close();
  }
});
