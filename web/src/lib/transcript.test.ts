import { describe, expect, it } from "vitest";
import { fold, rawLines } from "./log-lines";
import { entriesOf } from "./transcript";

describe("recorded output", () => {
  it("of Claude is text, tool calls and results", () => {
    const call = { type: "assistant", message: { content: [{ type: "text", text: "I look." }, { type: "tool_use", name: "Read", input: { file_path: "src/a.rs", limit: 9 } }] } };
    const result = { type: "user", message: { content: [{ type: "tool_result", is_error: true, content: [{ type: "text", text: "no such file" }] }] } };
    expect(entriesOf(JSON.stringify(call))).toEqual([{ kind: "say", text: "I look." }, { kind: "tool", name: "Read", text: "src/a.rs" }]);
    expect(entriesOf(JSON.stringify(result))).toEqual([{ kind: "result", ok: false, text: "no such file" }]);
    expect(entriesOf('{"type":"system","subtype":"init"}')).toEqual([]);
  });
  it("of Codex is the same", () => {
    expect(entriesOf('{"type":"item.completed","item":{"type":"command_execution","command":"cargo test","aggregated_output":"1 failed","exit_code":1}}')).toEqual([
      { kind: "tool", name: "shell", text: "cargo test" }, { kind: "result", ok: false, text: "1 failed" },
    ]);
    expect(entriesOf('{"type":"item.completed","item":{"type":"agent_message","text":"done"}}')).toEqual([{ kind: "say", text: "done" }]);
  });
  it("of another format stays as it is", () => {
    expect([entriesOf("plain text"), entriesOf("{broken"), entriesOf('{"level":"info"}')]).toEqual([null, null, null]);
    expect(rawLines('one\n{"type":"item.completed","item":{"type":"agent_message","text":"two\\nthree"}}\n{"half', 1, false).map((line) => line.text)).toEqual(["one", "two", "three"]);
    expect(rawLines("one\ntwo", 1, true).map((line) => line.text)).toEqual(["one", "two"]);
  });
  it("is folded to five lines: the first of a result, the last of a failure", () => {
    const body = Array.from({ length: 9 }, (_, n) => `line ${n}`).join("\n");
    expect(fold(body, true)).toEqual({ shown: "line 0\nline 1\nline 2\nline 3\nline 4", hidden: 4 });
    expect(fold(body, false)).toEqual({ shown: "line 4\nline 5\nline 6\nline 7\nline 8", hidden: 4 });
    expect(fold("one", true)).toEqual({ shown: "one", hidden: 0 });
  });
});
