import { describe, expect, it } from "vitest";
import type { IterationLine } from "../api/types";
import { between } from "./compare";

const line = (iteration: number, failing: string[] | null, cost_usd: number | null = 0.5): IterationLine => ({
  iteration, ended_at: `2026-01-01T00:0${iteration}:00Z`, cost_usd, cost_basis: cost_usd === null ? "unknown" : "reported",
  receipt: failing ? { checks: [{ name: "tests", failing, tests: { passed: 5, failed: failing.length } }] } : null,
} as unknown as IterationLine);

describe("two iterations", () => {
  it("differ by tests, cost and time", () => {
    expect(between([line(1, ["a", "b"]), line(2, ["b"]), line(3, ["b", "c"])], 1, 3)).toEqual({
      fixed: ["a"], broken: ["c"], spent: { cost_usd: 1, cost_basis: "reported" }, seconds: 120,
    });
  });
  it("say nothing about tests that weren't reported, and never call an unknown cost zero", () => {
    expect(between([line(1, null), line(2, ["b"], null)], 1, 2)).toMatchObject({ fixed: null, broken: null, spent: { cost_usd: null, cost_basis: "unknown" } });
    expect(between([line(1, [])], 1, 2)).toBeNull();
  });
  it("say nothing about tests if the list of failing ones is cut", () => {
    const cut = line(1, ["a"]);
    if (cut.receipt?.checks[0]?.tests) cut.receipt.checks[0].tests.failed = 9;
    expect(between([cut, line(2, [])], 1, 2)?.fixed).toBeNull();
  });
});
