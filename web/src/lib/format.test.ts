import { describe, expect, it } from "vitest";
import { age, ago, basename, bytes, clock, cost, costAlone, costShare, count, millis, money, span, tokens } from "./format";

describe("numbers and times", () => {
  it("have units", () => {
    expect([money(1.34), money(10), money(0.0012)]).toEqual(["$1.34", "$10", "$0.0012"]);
    expect([tokens(912), tokens(41234), tokens(3_100_000)]).toEqual(["912", "41.2k", "3.1M"]);
    expect([bytes(912), bytes(41_000)]).toEqual(["912 B", "41 kB"]);
    expect([count(1, "file"), count(2, "story"), count(1234567, "run")]).toEqual(["1 file", "2 stories", "1,234,567 runs"]);
  });
  it("say how far a cost is known; unknown is never a zero", () => {
    const bases = ["reported", "estimated", "unknown"] as const;
    expect(bases.map((cost_basis) => cost({ cost_usd: 1.5, cost_basis }))).toEqual(["$1.50", "≈ $1.50", "at least $1.50"]);
    expect(bases.map((cost_basis) => cost({ cost_usd: 0, cost_basis }))).toEqual(["$0", "$0", "unknown"]);
    expect([cost({}), cost({ cost_usd: null, cost_basis: "unknown" }), costAlone({ cost_usd: null })]).toEqual(["unknown", "unknown", "cost unknown"]);
    expect([costShare({ cost_usd: 5 }, 10), costShare({ cost_usd: null }, 10), costShare({ cost_usd: 0, cost_basis: "unknown" }, 10)]).toEqual([0.5, null, null]);
  });
  it("tell how long", () => {
    expect([span(4), span(125), span(7800), span(400_000)]).toEqual(["4 s", "2 min", "2 h 10 min", "4 days"]);
    expect([clock(42), clock(3849)]).toEqual(["0:42", "1:04:09"]);
    expect([millis(120), millis(2400)]).toEqual(["120 ms", "2.4 s"]);
  });
  it("tell how long ago, and in how long", () => {
    const now = Date.parse("2026-01-01T12:00:00Z");
    expect(ago("2026-01-01T11:59:56Z", now)).toBe("4 s ago");
    expect(ago("2026-01-01T12:12:00Z", now)).toBe("in 12 min");
    expect(age("2026-01-01T11:00:00Z", now)).toBe("1 h");
    expect(ago("nonsense", now)).toBe("–");
  });
  it("name a folder by its last part", () => {
    expect([basename("/home/ana/api/"), basename("/")]).toEqual(["api", "/"]);
  });
});
