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
  /** What follows from it. */
  then: string;
  look: "primary" | "plain" | "danger";
  controls?: Control[];
  /** A word for the next session is asked for first. */
  asks?: { label: string; value: string; kind: "nudge" };
  tab?: Tab;
}

const KEEP = "Keep the tests of the start as they were; change the product so that they pass.";

/** The answers to each question, as buttons with what follows. */
export function answersFor(reason: NeedsView["reason"], message: string): Answer[] {
  const resume = (label: string, then: string): Answer => ({ label, then, look: "primary", controls: [{ control: "resume" }] });
  const hint: Answer = { label: "Give a hint …", then: "the next session is told, then goes on", look: "plain", asks: { label: "Hint for the next session", value: "", kind: "nudge" } };
  const edit: Answer = { label: "Edit the task", then: "opens the editor; the new text is the next version", look: "plain", tab: "task" };
  switch (reason) {
    case "tests_changed":
      return [
        { label: "Approve", then: "the run ends as own tests", look: "primary", controls: [{ control: "approve" }, { control: "resume" }] },
        { label: "Reject …", then: "the next session is told to keep them", look: "plain", asks: { label: "Told to the next session", value: KEEP, kind: "nudge" } },
        edit,
      ];
    case "refs_moved":
    case "tampered":
      return [
        { label: "Approve and go on", then: "what is there now counts", look: "primary", controls: [{ control: "approve" }, { control: "resume" }] },
        { label: "Cancel the run", then: "it ends as stopped", look: "danger", controls: [{ control: "cancel" }] },
      ];
    case "publish":
      return [resume("Try again", "pushes and writes the pull request once more")];
    case "checks":
    case "review":
      return [resume("Look again", "asks the code host once more")];
    case "overlap":
      return [resume("Go on", "the other pull requests stay as they are")];
    case "setup":
      return message.includes("start a new run") ? [edit] : [resume("Check again", "runs the checks before anybody is paid"), edit];
    default:
      return [hint, resume("Resume", "goes on without a hint"), edit, { label: "Diagnose", then: "the doctor reads the run first", look: "plain", tab: "diagnostics" }];
  }
}

/** A person is needed: what they are asked, the evidence, and the answers. */
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
      // A run without a process is started by the answer itself; it needs no second word.
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
        consequence: <p>Then the run goes on: {answer.then}.</p>,
        confirm: "Send and go on",
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
