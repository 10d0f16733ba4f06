import { describe, expect, it } from "vitest";
import { apply, awaited, costSoFar, EMPTY, LIVE_KEPT, prepend, type RunState, workedSeconds } from "./run-state";
import type { Frame, RunView } from "../api/types";
import { waitFor } from "./socket";

const event = (seq: number, more: Record<string, unknown> = {}): Frame => ({
  type: "event", seq, event: { seq, at: "2026-01-01T00:00:00Z", kind: "notice", ...more },
});
const output = (n: number): Frame => ({ type: "output", n, at: "2026-01-01T00:00:00Z", after: 1, iteration: 1, kind: "text", text: "x" });

describe("the time and cost of a run", () => {
  const view = {
    status: "working", driven: true, working_seconds: 60, history: [] as RunView["history"], current: { agent: "one", started_at: "2026-01-01T00:10:00Z" },
    spent: { cost_usd: 1, cost_basis: "reported", sessions: 2 },
  } as RunView;
  const now = Date.parse("2026-01-01T00:10:30Z");
  const used = (at: string, cost_usd?: number) =>
    apply(EMPTY, [{ type: "output", n: 1, at, after: 1, iteration: 1, kind: "tokens", ...(cost_usd === undefined ? {} : { cost_usd }) }]).sessionCost;
  it("keep counting while a session works, the cost as an estimate", () => {
    expect(workedSeconds(view, now)).toBe(90);
    expect(costSoFar(view, used("2026-01-01T00:10:20Z", 0.5), now)).toEqual({ cost_usd: 1.5, cost_basis: "estimated" });
    const first = { ...view, spent: { ...view.spent, cost_usd: null, cost_basis: "unknown", sessions: 0 } } as RunView;
    expect(costSoFar(first, used("2026-01-01T00:10:20Z", 0.5), now)).toEqual({ cost_usd: 0.5, cost_basis: "estimated" });
    const partly = { ...view, spent: { ...view.spent, cost_basis: "unknown" } } as RunView;
    expect(costSoFar(partly, used("2026-01-01T00:10:20Z", 0.5), now).cost_basis).toBe("unknown");
  });
  it("don't change otherwise", () => {
    expect(workedSeconds({ ...view, status: "verifying" }, now)).toBe(60);
    expect(costSoFar({ ...view, status: "verifying" }, used("2026-01-01T00:10:20Z", 0.5), now)).toBe(view.spent);
  });
  it("estimate a session without prices by the agent's earlier ones, and never as nothing", () => {
    const early = used("2026-01-01T00:09:59Z", 0.5);
    expect(costSoFar(view, early, now)).toEqual({ cost_usd: 1, cost_basis: "unknown" });
    const history = [{ agent: "one", duration_ms: 60_000, cost_usd: 0.4, cost_basis: "reported" }, { agent: "two", duration_ms: 1, cost_usd: 9 }];
    const known = { ...view, history } as RunView;
    expect(costSoFar(known, early, now)).toEqual({ cost_usd: 1.2, cost_basis: "estimated" });
    const free = { ...view, history: [{ ...history[0], cost_usd: null }] } as RunView;
    expect(costSoFar(free, null, now).cost_basis).toBe("unknown");
    const first = { ...view, spent: { ...view.spent, cost_usd: 0, cost_basis: "unknown", sessions: 0 } } as RunView;
    expect(costSoFar(first, null, now)).toEqual({ cost_usd: null, cost_basis: "unknown" });
  });
});

describe("the frames of a run", () => {
  it("are taken once each, however often they come", () => {
    let state: RunState = EMPTY;
    state = apply(state, [event(1), event(2), event(2), event(1)]);
    state = apply(state, [event(2), event(3)]);
    expect(state.events.map((e) => e.seq)).toEqual([1, 2, 3]);
  });
  it("with a gap ask to be read again from the last one", () => {
    const state = apply(apply(EMPTY, [event(1)]), [event(3), event(4)]);
    expect([state.gap, state.seq]).toEqual([true, 1]);
    const fixed = apply({ ...state, gap: false }, [event(2), event(3), event(4)]);
    expect([fixed.gap, fixed.events.length]).toEqual([false, 4]);
  });
  it("of 1,000 random reconnects give every event exactly once", () => {
    let seed = 3;
    const random = (n: number) => (seed = (seed * 1103515245 + 12345) % 2147483648) % n;
    let state: RunState = EMPTY;
    const total = 3000;
    for (let round = 0; state.seq < total && round < 100000; round++) {
      const from = Math.max(1, state.seq + 1 - random(4));
      const frames = Array.from({ length: random(9) }, (_, i) => event(from + i)).filter((f) => f.type === "event" && f.seq <= total);
      if (random(5) === 0 && frames.length > 3) frames.splice(1, 1);
      state = { ...apply(state, frames), gap: false };
    }
    expect(state.events.map((e) => e.seq)).toEqual(Array.from({ length: total }, (_, i) => i + 1));
  });
  it("keep output bounded, and each record once", () => {
    let state: RunState = EMPTY;
    state = apply(state, Array.from({ length: LIVE_KEPT * 2 }, (_, i) => output(i + 1)));
    state = apply(state, [output(5)]);
    expect(state.live.length).toBeLessThanOrEqual(LIVE_KEPT * 1.2);
    expect(state.live.at(-1)?.n).toBe(LIVE_KEPT * 2);
  });
  it("report the outcome of an intervention", () => {
    const sent = { key: 1, control: { control: "pause" } as const, at: 0, state: "sent" as const, letter: "L1", why: null };
    let state: RunState = { ...EMPTY, sent: [sent] };
    expect(awaited(state, "pause")).not.toBeNull();
    state = apply(state, [event(1, { kind: "control_refused", id: "L1", reason: "no other agent is free" })]);
    expect(state.sent[0]).toMatchObject({ state: "refused", why: "no other agent is free" });
    expect(awaited(state, "pause")).toBeNull();
  });
  it("may be preceded by older events of the record", () => {
    const state = prepend(apply({ ...EMPTY, seq: 10 }, [event(11)]), [
      { seq: 9, at: "", kind: "notice" }, { seq: 10, at: "", kind: "notice" }, { seq: 11, at: "", kind: "notice" },
    ]);
    expect(state.events.map((e) => e.seq)).toEqual([9, 10, 11]);
  });
});

describe("reconnecting", () => {
  it("waits longer each time, within bounds", () => {
    expect(waitFor(0, () => 0.5)).toBe(300);
    expect(waitFor(99, () => 1)).toBeLessThanOrEqual(19500);
  });
});
