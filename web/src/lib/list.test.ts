import { describe, expect, it } from "vitest";
import type { Race, RunRow } from "../api/types";
import { listItems, repoNames, rowAction, rowNow } from "./list";

const row = (id: string, status: RunRow["status"], more: Partial<RunRow> = {}): RunRow => ({
  id, status, task: id, repo: "/home/ana/api", iteration: 1, loop_score: null, criteria_met: 0, criteria_total: 0, cost_usd: null, cost_basis: "unknown",
  created_at: "2026-01-01T00:00:00Z", updated_at: "2026-01-01T00:00:00Z", driven: true, ...more,
});
const racer = (run_id: string) => ({ run_id, name: `agent-${run_id}`, begun: true, status: "working", detail: "", iteration: 1, max_iterations: 5, cost_usd: null, cost_basis: "unknown" as const, proven: false });
const RACE: Race = { id: "a", title: "Do it", by: "first", budget_usd: 10, cost_usd: null, cost_basis: "unknown", over: false, looked_after: true, runs: [racer("a"), racer("b")] };
const words = (items: ReturnType<typeof listItems>) => items.map((item) => (item.what === "group" ? `${item.label} ${item.count}` : item.what === "race" ? `race ${item.rows.length}` : item.row.id));

describe("the lines of the runs list", () => {
  const rows = [row("x", "done"), row("y", "waiting"), row("z", "needs you"), row("w", "working")];
  it("are grouped by attention, each group in its order", () => {
    expect(words(listItems(rows, [], new Set(), true))).toEqual(["Needs you 1", "z", "Active 2", "y", "w", "Finished 1", "x"]);
    expect(words(listItems(rows, [], new Set(), false))).toEqual(["x", "y", "z", "w"]);
  });
  it("show a race as one line that opens", () => {
    const both = [row("b", "done"), row("x", "done"), row("a", "working")];
    expect(words(listItems(both, [RACE], new Set(), true))).toEqual(["Active 1", "race 2", "Finished 1", "x"]);
    expect(words(listItems(both, [RACE], new Set(["a"]), true))).toEqual(["Active 1", "race 2", "a", "b", "Finished 1", "x"]);
  });
  it("have at most one action", () => {
    const all = [row("1", "needs you"), row("2", "paused"), row("3", "working"), row("4", "working", { driven: false }), row("5", "done"), row("6", "failed"), row("7", "stopped")];
    expect(all.map(rowAction)).toEqual(["answer", "resume", null, "resume", "take", "why", null]);
  });
  it("say the proof of a finished run, else what happens", () => {
    expect(rowNow(row("1", "done", { proof_level: "independent", now: "Proven" }))).toBe("proven, independent");
    expect(rowNow(row("1", "queued", { queued: 2 }))).toBe("position 2 in the queue");
    expect(rowNow(row("1", "done", { problem: "the folder is gone" }))).toBe("the folder is gone");
  });
  it("name a repo by its folder, with the parent if that is ambiguous", () => {
    const name = repoNames([row("1", "done"), row("2", "done", { repo: "/home/ben/api" }), row("3", "done", { repo: "/home/ana/site" })]);
    expect(["/home/ana/api", "/home/ben/api", "/home/ana/site"].map(name)).toEqual(["ana/api", "ben/api", "site"]);
  });
});
