import { describe, expect, it } from "vitest";
import { logLines, passes } from "./log-lines";
import type { EventLine, LiveRecord } from "../api/types";

const record = (n: number, kind: string, more: Partial<LiveRecord> = {}): LiveRecord => ({ n, at: "t", after: 1, iteration: 1, kind, ...more });
const event = (seq: number, text: string | null, tone: EventLine["tone"] = "plain"): EventLine => ({ seq, at: "t", kind: "notice", text, tone });

describe("the live log", () => {
  it("joins the pieces of a text and cuts it into lines", () => {
    const lines = logLines([record(1, "text", { text: "hel" }), record(2, "text", { text: "lo\nworld\n" })], []);
    expect(lines.map((l) => l.text)).toEqual(["hello", "world"]);
  });
  it("appears between its events", () => {
    const lines = logLines([record(1, "text", { text: "a", after: 5 }), record(2, "text", { text: "b", after: 6 })], [event(5, "five"), event(6, "six"), event(7, "seven")]);
    expect(lines.map((l) => l.text)).toEqual(["five", "a", "six", "b", "seven"]);
  });
  it("knows code, tools, checks and errors", () => {
    const lines = logLines(
      [
        record(1, "text", { text: "see\n```rust\nfn x() {}\n```\nend" }),
        record(2, "tool_call", { name: "edit", what: "src/a.rs" }),
        record(3, "tool_result", { ok: false, text: "no such file" }),
        record(4, "check_output", { check: "tests", text: "1 failed\n" }),
      ],
      [],
    );
    expect(lines.map((l) => Boolean(l.code))).toEqual([false, true, true, true, false, false, false, false]);
    expect(lines.filter((l) => passes(l, "tools")).map((l) => l.name)).toEqual(["edit"]);
    expect(lines.filter((l) => passes(l, "errors")).map((l) => l.text)).toEqual(["no such file"]);
    expect(lines.filter((l) => passes(l, "checks")).map((l) => l.name)).toEqual(["tests"]);
  });
  it("leaves out events that only the engine needs", () => {
    expect(logLines([], [event(1, null), event(2, "two")])).toHaveLength(1);
  });
});
