import { describe, expect, it } from "vitest";
import { answersFor, partsOf } from "./answers";
import { changedRows } from "./needs";

describe("answers to a question", () => {
  it("exist for every reason, and one of them is the first choice", () => {
    for (const reason of ["stuck", "refs_moved", "tampered", "agent_asks", "publish", "overlap", "checks", "review", "setup", "tests_changed"] as const) {
      const answers = answersFor(reason, "");
      expect(answers.length, reason).toBeGreaterThan(0);
      expect(answers.filter((a) => a.look === "primary").length, reason).toBe(1);
    }
  });
  it("to changed tests approve first and then resume", () => {
    expect(answersFor("tests_changed", "")[0]?.controls).toEqual([{ control: "approve" }, { control: "resume" }]);
    expect(answersFor("tests_changed", "")[1]?.hint?.value).toContain("Keep the original tests");
  });
  it("name the level that an approval gives", () => {
    expect(answersFor("tests_changed", "claude changed a test. With the originals, 1 of 5 tests fails")[0]?.then).toContain("own tests");
    expect(answersFor("tests_changed", "no check failed before the work")[0]?.then).toContain("unverified");
  });
  it("to a stuck run ask for a hint", () => {
    expect(answersFor("stuck", "").find((a) => a.look === "primary")?.hint).toBeDefined();
  });
});

describe("a question", () => {
  it("has a headline and facts", () => {
    expect(partsOf("stuck: the same 5 tests failed; a.py flips; no new file")).toEqual({ headline: "stuck: the same 5 tests failed", facts: ["a.py flips", "no new file"] });
    expect(partsOf("claude changed tests/a.py. With the originals, 1 of 5 fails").facts).toEqual(["With the originals, 1 of 5 fails"]);
    expect(partsOf("one thing")).toEqual({ headline: "one thing", facts: [] });
  });
  it("shows the changed lines of the files that it names", () => {
    const patch = ["a/tests/a.py", "src/b.py"].map((path) => `diff --git a/${path} b/${path}\n--- a/${path}\n+++ b/${path}\n@@ -1,2 +1,2 @@\n same\n-old ${path}\n+new ${path}\n`).join("");
    expect(changedRows(patch, ["a/tests/a.py: a test, changed next to x/src/b.py"]).map((file) => [file.path, file.rows.map((row) => row.text)])).toEqual([["a/tests/a.py", ["old a/tests/a.py", "new a/tests/a.py"]]]);
    expect(changedRows(patch, ["nothing of these"])).toEqual([]);
  });
});
