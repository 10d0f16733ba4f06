import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import type { Race, RunRow } from "../api/types";
import { score } from "../lib/fuzzy";
import { worthTelling } from "../lib/notify";
import { agentColor, bestWords, budgetTone, byAttention, lookOf, loopSteps, prWords } from "../lib/status";
import { belongs } from "../live/runs-list";
import { LOOKS } from "../types/looks";
import { niceTop } from "../ui/chart";
import { columnsOf } from "./board";
import { everyDay } from "./costs";
import { bodyOf, nextAgents } from "./new-run";
import { verdict } from "./race";
import { notesOf, ruleOf } from "./run/rules";
import { waitsFor } from "./run/run";
import { standing } from "./settings/workers";

const ROW: RunRow = {
  id: "r1", task: "Keep router order", repo: "/home/ana/api", status: "working", iteration: 1, loop_score: null, criteria_met: 0, criteria_total: 1,
  cost_usd: null, cost_basis: "unknown", created_at: "2026-01-01T00:00:00Z", updated_at: "2026-01-01T00:00:00Z",
};
const RACER = { begun: true, status: "working", detail: "", iteration: 1, max_iterations: 5, cost_usd: null, cost_basis: "unknown" as const, proven: false };
const RACE: Race = {
  id: "a", title: "Do it", by: "first", budget_usd: 10, cost_usd: null, cost_basis: "unknown", over: false, looked_after: true,
  runs: [{ ...RACER, name: "claude", run_id: "a" }, { ...RACER, name: "codex", run_id: "b" }],
};
const FORM = {
  repo: " /repo ", text: "Do it", verify: "cargo test\n\n npm test ", base_branch: "", place: "", publish: "pr", provider: "", isolation: "", image: "", cpus: "2", memory_mb: "",
  disk_gb: "", agents: "claude, codex", race: "", best: "cost", model: "", fallback: "", mode: "", auth: "", labels: "gpu, eu", max_iterations: "5", max_minutes: "x", max_cost_usd: "",
};

describe("a new run", () => {
  it("asks only for what was filled in", () => {
    expect(bodyOf(FORM)).toEqual({
      repo: "/repo", text: "Do it", verify: ["cargo test", "npm test"], publish: "pr", resources: { cpus: 2 }, agents: ["claude", "codex"], limits: { max_iterations: 5 },
    });
  });
  it("names labels only where a worker takes it", () => {
    expect(bodyOf({ ...FORM, repo: "https://host/o/r.git" })).toMatchObject({ labels: ["gpu", "eu"] });
    expect(bodyOf({ ...FORM, repo: "https://host/o/r.git", race: "2" })).not.toHaveProperty("labels");
  });
  it("says why it waits", () => {
    expect(waitsFor({ ...ROW, status: "queued" })).toContain("when a running run ends");
    expect(waitsFor({ ...ROW, status: "queued", now: "waits for a worker: none has `gpu`" })).toContain("It waits for a worker");
    expect(waitsFor({ ...ROW, status: "preparing" })).toContain("has taken it");
    expect(waitsFor({ ...ROW, status: "failed", ended_at: "2026-01-01T00:00:00Z" })).toContain("isn't retried");
  });
  it("may be a race, by the first or by the best", () => {
    expect(bodyOf({ ...FORM, race: "claude codex" })).toMatchObject({ race: ["claude", "codex"], best: "cost" });
    expect(bodyOf({ ...FORM, race: " 3 ", best: "" })).toMatchObject({ race: ["3"] });
  });
});

describe("a number that is to get better", () => {
  it("has its noise, its target and its iteration", () => {
    expect(bestWords({ name: "bench", value: 61, noise: 0.8, target: 50, rises: false, iteration: 3 })).toBe("bench 61 ±0.8, target at most 50 (iteration 3)");
    expect(bestWords({ name: "score", value: 0.5, rises: true, iteration: 0 })).toBe("score 0.5 (at the start)");
  });
});

describe("a race", () => {
  it("says who won, or what they race for", () => {
    expect(verdict(RACE)).toBe("The first proven result wins.");
    const proven = RACE.runs.map((run) => ({ ...run, proven: true }));
    expect(verdict({ ...RACE, winner: "b", runs: proven })).toBe("codex wins.");
    expect(verdict({ ...RACE, winner: "b" })).toBe("codex wins: done, unverified.");
    expect(verdict({ ...RACE, over: true })).toBe("No winner: nothing is proven.");
    expect(verdict({ ...RACE, looked_after: false })).toContain("no longer supervised");
    expect(verdict({ ...RACE, by: "cost", over: true, runs: proven })).toContain("the cost of no proven result is fully known");
  });
});

describe("a worker", () => {
  const well = { id: "w", labels: [], capacity: 4, runs: 0, version: "0.1.0", load: 0, health: "ok", silent: 1, draining: false, revoked: false };
  it("has a state", () => {
    expect(standing(well)).toBe("ok");
    expect(standing({ ...well, silent: 60 })).toBe("silent");
    expect(standing({ ...well, silent: null })).toBe("silent");
    expect(standing({ ...well, draining: true })).toBe("draining");
    expect(standing({ ...well, revoked: true, silent: 60 })).toBe("revoked");
    expect(standing({ ...well, health: "the disk is nearly full" })).toBe("the disk is nearly full");
  });
});

describe("suggested agents", () => {
  it("continue from the chosen ones", () => {
    expect(nextAgents("", ["claude", "codex"])).toEqual(["claude", "codex"]);
    expect(nextAgents("codex, cl", ["claude", "codex"])).toEqual(["codex claude"]);
    expect(nextAgents("claude codex", ["claude", "codex"])).toEqual([]);
  });
});

describe("a row that is new to a list", () => {
  it("matches by status, repo and every word", () => {
    expect(belongs(ROW, {})).toBe(true);
    expect(belongs(ROW, { status: "done,failed" })).toBe(false);
    expect(belongs(ROW, { status: "queued,working" })).toBe(true);
    expect(belongs(ROW, { q: "ROUTER api" })).toBe(true);
    expect(belongs(ROW, { q: "router nothing" })).toBe(false);
    expect(belongs(ROW, { repo: "/home/ana/other" })).toBe(false);
  });
});

describe("the board", () => {
  it("has a column for each thing that runs wait for, and forgets finished ones after a day", () => {
    const now = Date.parse("2026-01-03T00:00:00Z");
    const rows = (["needs you", "working", "paused", "done", "failed"] as const).map((status) => ({ ...ROW, id: status, status, driven: true, updated_at: status === "failed" ? "2026-01-01T00:00:00Z" : "2026-01-02T23:00:00Z" }));
    expect(columnsOf(rows, now).map((cards) => cards.map((row) => row.id))).toEqual([["needs you"], ["working"], ["paused"], ["done"]]);
    expect(columnsOf([{ ...ROW, driven: false }], now)[2]).toHaveLength(1);
  });
});

describe("guardrails and notes", () => {
  it("are read into a title and fields", () => {
    expect(ruleOf("### guardrail: small changes\n- trigger: before a change\n- instruction: keep it small\n- evidence: starter rule")).toEqual({
      title: "small changes", fields: [["trigger", "before a change"], ["instruction", "keep it small"], ["evidence", "starter rule"]],
    });
    expect(ruleOf("Never edit `gen/`.")).toEqual({ title: "Never edit `gen/`.", fields: [] });
  });
  it("leave out the template of an untouched file", () => {
    expect(notesOf("# Notes\n\n<!-- facts\nfor agents -->\n")).toBe("");
    expect(notesOf("# Notes\n\nShort facts for later sessions.\n\n(none)\n")).toBe("");
    expect(notesOf("# Notes\n\nThe port is 5433.\n")).toBe("The port is 5433.");
  });
});

describe("notifications", () => {
  it("report each change once", () => {
    expect(worthTelling({ ...ROW, status: "needs you", now: "changed tests" }, ROW)).toBe("Needs you: changed tests");
    expect(worthTelling({ ...ROW, status: "done" }, ROW)).toBe("Done.");
    expect(worthTelling(ROW, ROW)).toBeNull();
    expect(worthTelling({ ...ROW, status: "done" }, undefined)).toBeNull();
    expect(worthTelling({ ...ROW, status: "verifying" }, ROW)).toBeNull();
  });
});

describe("shapes", () => {
  it("of costs have every day, those without a session too", () => {
    const days = everyDay([{ name: "2026-01-02", cost_usd: 3 }, { name: "2026-01-03", cost_usd: 0, unknown_sessions: 2 }], 3, new Date("2026-01-03T12:00:00Z"));
    expect(days.map((day) => day.cost_usd)).toEqual([0, 3, null]);
  });
  it("of axes end at round numbers", () => {
    expect([niceTop(0), niceTop(0.37), niceTop(41), niceTop(100)]).toEqual([1, 0.5, 50, 100]);
  });
  it("of budgets turn amber at 80 % and red at 100 %", () => {
    expect([budgetTone(0.79), budgetTone(0.8), budgetTone(1)]).toEqual(["plain", "attention", "bad"]);
    expect([loopSteps(0), loopSteps(0.5), loopSteps(7)]).toEqual([0, 3, 5]);
  });
  it("of agents keep their color", () => {
    expect(["claude", "claude-opus", "codex"].map(agentColor)).toEqual([0, 0, 1]);
    // The numbers that the terminal UI gives them (`crates/protocol/src/display/look.rs`).
    expect(["claudette", "my-agent", "ägent"].map(agentColor)).toEqual([4, 3, 1]);
  });
  it("of agents have the colors of the terminal", () => {
    const tokens = readFileSync(new URL("../styles/tokens.css", import.meta.url), "utf8");
    const colors = [...tokens.matchAll(/--agent-(\d): (#[0-9a-f]{6});/g)].map(([, at, color]) => [Number(at), color]);
    const themes = [LOOKS.colors.map((c) => c.light), LOOKS.colors.map((c) => c.dark), LOOKS.colors.map((c) => c.dark)];
    expect(colors).toEqual(themes.flatMap((theme) => theme.map((color, at) => [at, color])));
  });
  it("of lists put what needs you first, then what works", () => {
    const rows = (["done", "working", "waiting", "needs you"] as const).map((status) => ({ ...ROW, id: status, status }));
    expect(byAttention(rows).map((row) => row.id)).toEqual(["needs you", "working", "waiting", "done"]);
    expect([lookOf("needs you").sign, lookOf("paused").sign, lookOf("later").sign]).toEqual(["▲", "‖", "·"]);
  });
  it("of pull requests have their number", () => {
    expect(prWords({ pr_url: "https://x.example/o/r/pull/41", pr_draft: true })).toBe("PR #41 draft");
    expect(prWords({ pr_url: "file:///forge", pr_number: 3 })).toBe("PR #3");
  });
});

describe("finding by name", () => {
  it("takes letters in order and prefers the beginnings of words", () => {
    expect(score("nr", "New run")).toBeGreaterThan(score("nr", "inner"));
    expect(score("xyz", "New run")).toBe(0);
    expect(score("rout", "Keep the router's order")).toBeGreaterThan(score("rout", "Fix rounding in totals"));
    expect(score("order router", "Keep the router's order")).toBeGreaterThan(score("order router", "order of routes"));
    expect(score("new run", "New run")).toBeGreaterThan(score("new run", "New runs"));
  });
});
