import { expect, type Page } from "@playwright/test";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const source = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

interface Found {
  id: string;
  impact: string | null;
  nodes: { html: string; failureSummary?: string }[];
}

/** Fails on any serious finding of axe. */
export async function accessible(page: Page, where: string): Promise<void> {
  expect(await findings(page), `${where} is accessible`).toEqual([]);
}

/** Serious findings of axe, one text each. */
export async function findings(page: Page): Promise<string[]> {
  // The page's own policy allows no foreign script; the check is given to the browser itself.
  await page.evaluate(source);
  const found = await page.evaluate(async () => {
    const axe = (window as unknown as { axe: { run: (context: Document, options: object) => Promise<{ violations: Found[] }> } }).axe;
    return (await axe.run(document, { resultTypes: ["violations"] })).violations;
  });
  const serious = found.filter((one) => one.impact === "serious" || one.impact === "critical");
  return serious.map((one) => `${one.id}: ${one.nodes.slice(0, 4).map((node) => `${node.html}\n    ${node.failureSummary ?? ""}`).join("\n  ")}`);
}
