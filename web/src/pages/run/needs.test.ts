import { describe, expect, it } from "vitest";
import { answersFor } from "./needs";

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
    expect(answersFor("tests_changed", "")[1]?.asks?.value).toContain("Keep the original tests");
  });
});
