import { describe, expect, it } from "vitest";
import { commentsOf, lineNow, noteOf, diffLineOf, type Comment } from "./comments";
import { parsePatch } from "./diff";

const head = (path: string) => `diff --git a/${path} b/${path}\n--- a/${path}\n+++ b/${path}\n`;
const comment = (change: Partial<Comment> = {}): Comment => ({ id: "a", from: "ana via web", path: "src/a.ts", line: 10, removed: false, iteration: 2, code: "return 1;", text: "Why 1?", ...change });

describe("comments", () => {
  it("are notes that read back, between other notes", () => {
    const note = noteOf({ path: "src/a.ts", line: 10, removed: false }, 2, "  return 1;", "Why 1?\n\nUse the limit.");
    const gone = noteOf({ path: "b c.py", line: 3, removed: true }, 1, "x = 1", "Keep it.");
    const notes = `a fact\n<!-- n1 ben via cli -->\n\n${note}\n<!-- n2 ana via web -->\n\n${gone}\n<!-- n3 ana via web -->\nlater\n<!-- n4 x -->\n`;
    expect(commentsOf(notes)).toEqual([
      comment({ id: "n2", text: "Why 1?\n\nUse the limit." }),
      comment({ id: "n3", path: "b c.py", line: 3, removed: true, iteration: 1, code: "x = 1", text: "Keep it." }),
    ]);
  });

  it("have the place of their row", () => {
    expect(diffLineOf("a", { kind: "added", text: "", old: null, new: 7 })).toEqual({ path: "a", line: 7, removed: false });
    expect(diffLineOf("a", { kind: "removed", text: "", old: 4, new: null })).toEqual({ path: "a", line: 4, removed: true });
    expect(diffLineOf("a", { kind: "context", text: "", old: 4, new: 9 })).toEqual({ path: "a", line: 9, removed: false });
  });

  it("are resolved once their line has changed, and move with it before", () => {
    const changed = parsePatch(`${head("src/a.ts")}@@ -9,3 +9,3 @@\n a\n-return 1;\n+return limit;\n b\n`);
    expect(lineNow(comment(), changed)).toBeNull();
    const above = parsePatch(`${head("src/a.ts")}@@ -1,3 +1,5 @@\n a\n+one\n+two\n b\n c\n`);
    expect(lineNow(comment(), above)).toBe(12);
    const below = parsePatch(`${head("src/a.ts")}@@ -20,2 +20,3 @@\n a\n+one\n b\n`);
    expect(lineNow(comment(), below)).toBe(10);
    const around = parsePatch(`${head("src/a.ts")}@@ -8,4 +8,4 @@\n x\n-y\n+z\n return 1;\n c\n`);
    expect(lineNow(comment(), around)).toBe(10);
    expect(lineNow(comment(), parsePatch(head("other.ts")))).toBe(10);
    expect(lineNow(comment(), parsePatch("diff --git a/src/a.ts b/src/a.ts\ndeleted file mode 100644\n"))).toBeNull();
  });

  it("on a removed line are resolved once it is back", () => {
    const back = parsePatch(`${head("src/a.ts")}@@ -9,2 +9,3 @@\n a\n+  return 1;\n b\n`);
    expect(lineNow(comment({ removed: true }), back)).toBeNull();
    expect(lineNow(comment({ removed: true }), parsePatch(`${head("src/a.ts")}@@ -9,2 +9,3 @@\n a\n+other\n b\n`))).toBe(10);
  });
});
