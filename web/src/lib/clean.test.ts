import { describe, expect, it } from "vitest";
import { block, cleanDeep, colored, line, short, webAddress, shortPaths } from "./clean";

describe("text of others", () => {
  it("loses what steers a terminal or turns the direction", () => {
    expect(block("a\u001b[31mb\u001b[0m\u001b]8;;http://x\u0007c")).toBe("abc");
    expect(block("user\u202egnp.exe")).toBe("usergnp.exe");
    expect(block("in\u200bvis\u2060ible\ufeff")).toBe("invisible");
    expect(block("a\rb\r\nc\u2028d")).toBe("a\nb\nc\nd");
    expect(block("tag\u{e0041}\u{e0042}")).toBe("tag");
  });
  it("keeps letters of every script and joined emoji", () => {
    expect(block("naïve 日本語 עברית 👩‍👩‍👧")).toBe("naïve 日本語 עברית 👩‍👩‍👧");
    expect(block("\u200djoiner")).toBe("joiner");
  });
  it("keeps colors only where they are drawn", () => {
    expect(colored("\u001b[31mred\u001b[2J\u001b[0m")).toBe("\u001b[31mred\u001b[0m");
  });
  it("shows a sequence without an end as text", () => {
    expect(block("\u001b]0;title")).toContain("0;title");
  });
  it("becomes one short line", () => {
    expect(line(" a\n\tb ")).toBe("a b");
    expect(short("abcdef", 4)).toBe("abc…");
    expect(short("日本語日本語", 4)).toBe("日本語…");
  });
  it("has paths relative to the workspace", () => {
    expect(shortPaths('File "/home/ana/api/tests/a.py", line 3', "/home/ana/api")).toBe('File "tests/a.py", line 3');
    expect(shortPaths('File "/home/ana/.local/state/ralph/proofs/run-1/0-3/api/tests/a.py"', "/home/ana/api")).toBe('File "tests/a.py"');
  });
  it("takes web addresses as links only", () => {
    expect(webAddress("javascript:alert(1)")).toBeNull();
    expect(webAddress("data:text/html,x")).toBeNull();
    expect(webAddress("/tmp/forge/prs/1.json")).toBeNull();
    expect(webAddress("https://example.com/pull/1")).toBe("https://example.com/pull/1");
  });
  it("is cleaned in whole answers, and the rest of them stays", () => {
    const answer = { title: "a\u202eb", list: ["x\u001b[1m", 3, null], ok: true, plain: "naïve\n\t日本語" };
    expect(cleanDeep(answer)).toEqual({ title: "ab", list: ["x", 3, null], ok: true, plain: "naïve\n\t日本語" });
  });
});
