// The answers to each question of a run.

import type { Control, NeedsView } from "../../api/types";
import type { Tab } from "../../router";

export interface Answer {
  label: string;
  /** Its consequence. */
  then: string;
  look: "primary" | "plain" | "danger";
  controls?: Control[];
  /** A text for the next session, typed in the banner. */
  hint?: { label: string; value: string; placeholder: string };
  tab?: Tab;
}

const KEEP = "Keep the original tests. Change the product code until they pass.";

const resume = (label: string, then: string, look: Answer["look"] = "primary"): Answer => ({ label, then, look, controls: [{ control: "resume" }] });
const hint = (look: Answer["look"]): Answer => ({
  label: "Send and resume", then: "Sent to the next session; the run resumes", look, hint: { label: "Hint for the next session", value: "", placeholder: "Look at the drain path before the retry logic." },
});
const EDIT: Answer = { label: "Edit the task", then: "Opens the editor", look: "plain", tab: "task" };
const CANCEL: Answer = { label: "Cancel the run", then: "Ends the run as stopped", look: "danger", controls: [{ control: "cancel" }] };
const APPROVE: Control[] = [{ control: "approve" }, { control: "resume" }];

/** The answers to a question, the primary one first among the buttons. */
export function answersFor(reason: NeedsView["reason"], message: string): Answer[] {
  switch (reason) {
    case "tests_changed":
      return [
        { label: "Approve", then: `Ends the run as done (${/with the original/i.test(message) ? "own tests" : "unverified"})`, look: "primary", controls: APPROVE },
        { label: "Reject", then: "The next session must keep the original tests", look: "plain", hint: { label: "Instruction for the next session", value: KEEP, placeholder: KEEP } },
        EDIT,
      ];
    case "refs_moved":
    case "tampered":
      return [{ label: "Accept the current state", then: "Continues from it", look: "primary", controls: APPROVE }, CANCEL];
    case "publish":
      return [resume("Try again", "Pushes and updates the pull request again")];
    case "checks":
    case "review":
      return [resume("Check again", "Asks the code host again")];
    case "overlap":
      return [resume("Resume", "The other pull requests stay unchanged")];
    case "setup":
      return message.includes("start a new run") ? [{ ...EDIT, look: "primary" }] : [resume("Check again", "Runs the checks first, at no cost"), hint("plain"), EDIT];
    default:
      return [hint("primary"), resume("Resume", "Resumes without a hint", "plain"), { label: "Diagnose", then: "Finds out why it is stuck", look: "plain", tab: "diagnostics" }, EDIT, CANCEL];
  }
}

/** A question as a headline and its facts. */
export function partsOf(message: string): { headline: string; facts: string[] } {
  const parts = message.split(/;\s+|(?<=\.)\s+(?=[A-Z`])/).map((part) => part.trim()).filter(Boolean);
  const [headline = message, ...facts] = parts;
  return { headline, facts };
}
