import { useState, type ReactNode } from "react";
import type { Control, NeedsView } from "../../api/types";
import { asProblem } from "../../api/client";
import { runPath, type Tab } from "../../router";
import { A, Button } from "../../ui/basics";
import { toast } from "../../ui/toast";
import { useRunHere } from "./context";
import { withCode } from "./now-line";

interface Answer {
  label: string;
  /** Its consequence. */
  then: string;
  look: "primary" | "plain" | "danger";
  controls?: Control[];
  /** Asks for a text first. */
  asks?: { label: string; value: string; kind: "nudge" };
  tab?: Tab;
}

const KEEP = "Keep the original tests. Change the product code until they pass.";

/** The answers to each question, with their consequences. */
export function answersFor(reason: NeedsView["reason"], message: string): Answer[] {
  const resume = (label: string, then: string): Answer => ({ label, then, look: "primary", controls: [{ control: "resume" }] });
  const hint: Answer = { label: "Give a hint …", then: "Sent to the next session; the run resumes", look: "plain", asks: { label: "Hint for the next session", value: "", kind: "nudge" } };
  const edit: Answer = { label: "Edit the task", then: "Opens the editor", look: "plain", tab: "task" };
  switch (reason) {
    case "tests_changed":
      return [
        { label: "Approve", then: "Ends the run as done (own tests)", look: "primary", controls: [{ control: "approve" }, { control: "resume" }] },
        { label: "Reject …", then: "The next session must keep the original tests", look: "plain", asks: { label: "Instruction for the next session", value: KEEP, kind: "nudge" } },
        edit,
      ];
    case "refs_moved":
    case "tampered":
      return [
        { label: "Accept the current state", then: "Continues from it", look: "primary", controls: [{ control: "approve" }, { control: "resume" }] },
        { label: "Cancel the run", then: "Ends the run as stopped", look: "danger", controls: [{ control: "cancel" }] },
      ];
    case "publish":
      return [resume("Try again", "Pushes and updates the pull request again")];
    case "checks":
    case "review":
      return [resume("Check again", "Asks the code host again")];
    case "overlap":
      return [resume("Resume", "The other pull requests stay unchanged")];
    case "setup":
      return message.includes("start a new run") ? [edit] : [resume("Check again", "Runs the checks first, at no cost"), edit];
    default:
      return [hint, resume("Resume", "Resumes without a hint"), edit, { label: "Diagnose", then: "Finds out why it is stuck", look: "plain", tab: "diagnostics" }];
  }
}

/** The question for the user, the evidence and the answers. */
export function NeedsBanner({ compact }: { compact: boolean }) {
  const here = useRunHere();
  const { view, id, barred, store, ask } = here;
  // In the mode `autonomous` a hint for one session is not taken; a note is.
  const nudges = here.mode !== "autonomous";
  const [busy, setBusy] = useState<string | null>(null);
  const needs = view.needs;
  if (!needs || view.status !== "needs you") return null;
  const answers = answersFor(needs.reason, needs.message);
  const sendAll = async (controls: Control[]) => {
    for (const control of controls) {
      // The first control starts a run without a process; it needs no second one.
      if ((await store.send(control)).outcome === "started") return;
    }
  };
  const carry = async (answer: Answer, controls: Control[]) => {
    setBusy(answer.label);
    try {
      await sendAll(controls);
    } catch (error) {
      const said = asProblem(error);
      toast([said.title, said.detail, said.hint].filter(Boolean).join(". "), "bad");
    } finally {
      setBusy(null);
    }
  };
  const press = (answer: Answer) => {
    if (answer.asks) {
      const { label, value, kind } = answer.asks;
      ask({
        title: answer.label.replace(" …", ""),
        consequence: <p>{answer.then}.</p>,
        confirm: "Send and resume",
        input: { label, value, lines: 4 },
        run: async (text) => {
          await sendAll([{ control: nudges ? kind : "note", text }, { control: "resume" }]);
        },
      });
    } else if (answer.look === "danger") {
      ask({ title: answer.label, consequence: <p>{answer.then}. Commits of finished iterations stay.</p>, confirm: answer.label, danger: true, run: () => sendAll(answer.controls ?? []) });
    } else if (answer.controls) {
      void carry(answer, answer.controls);
    }
  };
  const links: ReactNode[] = [
    <A key="diff" href={runPath(id, "diff")}>see the diff</A>,
    <A key="checks" href={`${runPath(id)}#checks`}>see the checks</A>,
  ];
  return (
    <section className="needs" aria-label="This run needs you">
      <div className="needs-what">
        <p className="needs-message"><span className="sign tone-attention" aria-hidden>▲</span> {withCode(needs.message)}</p>
        <span className="needs-links small">{links}</span>
      </div>
      {!compact && needs.details && needs.details.length > 0 && <pre className="evidence" tabIndex={0} aria-label="Evidence">{needs.details.join("\n")}</pre>}
      <ul className="answers">
        {answers.map((answer) => (
          <li key={answer.label}>
            {answer.tab ? (
              <A className="button button-plain" href={runPath(id, answer.tab)}>{answer.label}</A>
            ) : (
              <Button look={answer.look === "danger" ? "plain" : answer.look} disabled={barred !== null || busy !== null} title={barred ?? undefined} onClick={() => press(answer)}>
                {busy === answer.label ? "Sending …" : answer.label}
              </Button>
            )}
            <span className="muted small">{answer.then}</span>
          </li>
        ))}
      </ul>
      {barred && <p className="muted small">{barred}. An operator can answer.</p>}
    </section>
  );
}
