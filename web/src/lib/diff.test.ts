import { describe, expect, it } from "vitest";
import { around, lineDiff, parsePatch, sideBySide } from "./diff";

const PATCH = `diff --git a/src/a.rs b/src/a.rs
index 1..2 100644
--- a/src/a.rs
+++ b/src/a.rs
@@ -1,3 +1,4 @@ fn main()
 one
-two
+TWO
+++ not a header
 three
diff --git a/gone.txt b/gone.txt
deleted file mode 100644
--- a/gone.txt
+++ /dev/null
@@ -1 +0,0 @@
-x
\\ No newline at end of file
diff --git a/old.md b/new.md
similarity index 90%
rename from old.md
rename to new.md
diff --git a/p.png b/p.png
new file mode 100644
Binary files /dev/null and b/p.png differ
diff --git "a/\\303\\244.txt" "b/\\303\\244.txt"
--- "a/\\303\\244.txt"
+++ "b/\\303\\244.txt"
@@ -1 +1 @@
-a
+b
`;

describe("a patch", () => {
  const files = parsePatch(PATCH);
  it("is read file by file", () => {
    expect(files.map((f) => [f.path, f.status, f.added, f.removed, f.binary])).toEqual([
      ["src/a.rs", "modified", 2, 1, false],
      ["gone.txt", "removed", 0, 1, false],
      ["new.md", "renamed", 0, 0, false],
      ["p.png", "added", 0, 0, true],
      ["ä.txt", "modified", 1, 1, false],
    ]);
  });
  it("counts lines, and lines that look like headers are lines", () => {
    const rows = files[0]?.hunks[0]?.rows ?? [];
    expect(rows.map((r) => [r.kind, r.old, r.new, r.text])).toEqual([
      ["context", 1, 1, "one"],
      ["removed", 2, null, "two"],
      ["added", null, 2, "TWO"],
      ["added", null, 3, "++ not a header"],
      ["context", 3, 4, "three"],
    ]);
    expect(sideBySide(rows)).toHaveLength(4);
  });
  it("that isn't a patch is empty", () => {
    expect(parsePatch("hello\n@@ -1 +1 @@\n-x")).toEqual([]);
  });
});

describe("two texts", () => {
  const rebuilt = (rows: ReturnType<typeof lineDiff>, kind: "old" | "new") =>
    rows.filter((r) => r[kind] !== null).map((r) => r.text).join("\n");
  it("differ by the fewest lines", () => {
    const rows = lineDiff("a\nb\nc\nd", "a\nc\nx\nd");
    expect(rows.filter((r) => r.kind !== "context").map((r) => r.kind + r.text)).toEqual(["removedb", "addedx"]);
  });
  it("can always be made again from their difference", () => {
    let seed = 7;
    const random = (n: number) => (seed = (seed * 1103515245 + 12345) % 2147483648) % n;
    for (let round = 0; round < 200; round++) {
      const text = () => Array.from({ length: random(12) }, () => "abc"[random(3)]).join("\n");
      const [before, after] = [text(), text()];
      const rows = lineDiff(before, after);
      expect([rebuilt(rows, "old"), rebuilt(rows, "new")]).toEqual([before, after]);
    }
  });
  it("are shown around their changes", () => {
    const before = Array.from({ length: 40 }, (_, i) => `line ${i}`).join("\n");
    const shown = around(lineDiff(before, before.replace("line 20", "twenty")), 2);
    expect(shown).toHaveLength(1 + 2 + 2 + 2 + 1);
  });
});
