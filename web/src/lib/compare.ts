// What lies between two iterations: tests that changed state, cost and time.

import type { IterationLine } from "../api/types";
import type { Cost } from "./format";

export interface Between {
  /** Tests that failed at the first one and don't at the second; null if one of them reported no tests. */
  fixed: string[] | null;
  broken: string[] | null;
  spent: Cost;
  seconds: number;
}

/** Names of failing tests of an iteration; null if its checks reported none, or not all of them. */
function failing(one: IterationLine): Set<string> | null {
  const reporting = one.receipt?.checks.filter((check) => check.tests) ?? [];
  const names = reporting.flatMap((check) => check.failing ?? []);
  const counted = reporting.reduce((sum, check) => sum + (check.tests?.failed ?? 0), 0);
  return reporting.length === 0 || names.length < counted ? null : new Set(names);
}

/** Compares the ends of two iterations. */
export function between(all: IterationLine[], from: number, to: number): Between | null {
  const [a, b] = [all.find((one) => one.iteration === from), all.find((one) => one.iteration === to)];
  if (!a || !b) return null;
  const [before, after] = [failing(a), failing(b)];
  const steps = all.filter((one) => one.iteration > from && one.iteration <= to);
  const known = steps.flatMap((one) => (one.cost_usd == null ? [] : [one.cost_usd]));
  const basis = steps.some((one) => one.cost_usd == null || one.cost_basis === "unknown") ? "unknown" : steps.some((one) => one.cost_basis === "estimated") ? "estimated" : "reported";
  return {
    fixed: before && after && [...before].filter((name) => !after.has(name)),
    broken: before && after && [...after].filter((name) => !before.has(name)),
    spent: { cost_usd: known.length === 0 ? null : known.reduce((sum, usd) => sum + usd, 0), cost_basis: basis },
    seconds: (Date.parse(b.ended_at) - Date.parse(a.ended_at)) / 1000,
  };
}
