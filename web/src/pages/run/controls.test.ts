import { describe, expect, it } from "vitest";
import { parseBudget } from "./controls";

describe("typed budgets", () => {
  it("are read with their units", () => {
    expect(parseBudget("40 iterations, $20, 3 h")).toEqual({ max_iterations: 40, max_cost_usd: 20, max_seconds: 10800 });
    expect(parseBudget("90 min")).toEqual({ max_seconds: 5400 });
    expect(parseBudget("2m tokens, 12.50 usd")).toEqual({ max_tokens: 2_000_000, max_cost_usd: 12.5 });
  });
  it("are refused as a whole where a part is not understood", () => {
    expect([parseBudget("40"), parseBudget("$-3"), parseBudget("lots"), parseBudget(""), parseBudget("3 h, blue")]).toEqual([null, null, null, null, null]);
  });
});
