// Several runs of one task side by side, started on the page: a live table, who won, who cost what.
import { expect, test } from "@playwright/test";
import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { accessible } from "./axe";
import { login, Stage } from "./stage";

/** An agent that does all of the work once the file `win` exists. */
const QUICK = `#!/bin/sh
here=$(dirname "$0")
while [ ! -e "$here/win" ]; do sleep 0.1; done
echo 3 > part3.txt
echo '<promise>COMPLETE</promise>'
`;

test("a race is started, watched to its end, and names its winner", async ({ page }) => {
  test.setTimeout(240_000);
  const stage = new Stage();
  const agents = ["slow", "quick"].map((name) => ({ name, command_argv: [join(stage.agents, `${name}.sh`)] }));
  writeFileSync(join(stage.agents, "slow.sh"), "#!/bin/sh\nsleep 600\n");
  writeFileSync(join(stage.agents, "quick.sh"), QUICK);
  for (const { command_argv: [path] } of agents) chmodSync(path ?? "", 0o755);
  stage.configure({ agents });
  await stage.serve();
  try {
    await login(page, stage);
    await page.getByRole("button", { name: "New run" }).first().click();
    await page.getByRole("textbox", { name: "Task" }).fill("Write the third part");
    await page.getByText("Advanced: branch, agents, sandbox, PR").click();
    const winner = page.getByLabel("Winner");
    await expect(winner).toBeDisabled();
    await page.getByLabel("Race", { exact: false }).first().fill("slow quick");
    await expect(winner).toBeEnabled();
    await page.getByRole("button", { name: "Start the race" }).click();
    await expect(page).toHaveURL(/\/races\//);
    await expect(page.getByRole("heading", { level: 1 })).toContainText("Write the third part");
    await expect(page.getByRole("status").first()).toContainText("The first proven result wins.");
    const row = (name: string) => page.locator(".race-table tbody tr").filter({ has: page.getByRole("rowheader", { name }) });
    await expect(row("slow")).toContainText("working");
    await expect(row("quick")).toContainText("working");
    await expect(page.locator(".race-table tfoot")).toContainText("total of $10");
    await accessible(page, "a race");
    await page.screenshot({ path: test.info().outputPath("race.png") });

    writeFileSync(join(stage.agents, "win"), "");
    await expect(page.getByRole("status").first()).toContainText("quick wins.", { timeout: 90_000 });
    await expect(row("quick")).toContainText("wins");
    await expect(row("slow")).toContainText("stopped");
    await expect(page.getByText("quick was proven first")).toBeVisible();
    await page.screenshot({ path: test.info().outputPath("race-won.png") });
    // Each of them is a run like any other, and says that it raced.
    await row("slow").getByRole("link").click();
    await expect(page.getByText("One of 2 in a race: slow, quick. Another run won.")).toBeVisible();
    await page.getByRole("link", { name: "See the race" }).click();
    await page.getByRole("button", { name: "See its diff" }).click();
    await expect(page.getByText("part3.txt").first()).toBeVisible();
  } finally {
    await stage.close();
  }
});
