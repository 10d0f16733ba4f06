import { useEffect, useId, useMemo, useRef, useState, type FormEvent } from "react";
import { api } from "../../api/calls";
import { asProblem } from "../../api/client";
import type { Control } from "../../api/types";
import { block, shortPaths } from "../../lib/clean";
import { parsePatch, type Row } from "../../lib/diff";
import { useLoad, useWide } from "../../lib/hooks";
import { runPath } from "../../router";
import { A, Button, cx } from "../../ui/basics";
import { DiffRows } from "../../ui/diff-view";
import { toast } from "../../ui/toast";
import { answersFor, partsOf, type Answer } from "./answers";
import { useRunHere } from "./context";
import { withCode } from "./now-line";

/** Changed lines of a file that the banner shows. */
const LINES = 8;
const FILES = 3;

/** The question for the user, the evidence and the answers. */
export function NeedsBanner({ compact }: { compact: boolean }) {
  const { view, barred, id } = useRunHere();
  const wide = useWide(700);
  const needs = view.needs;
  if (!needs || view.status !== "needs you") return null;
  const answers = answersFor(needs.reason, needs.message);
  const { headline, facts } = partsOf(needs.message);
  const details = needs.details ?? [];
  if (compact && !wide) {
    return (
      <section className="needs needs-line" aria-label="This run needs you">
        <p className="needs-message"><span className="sign tone-attention" aria-hidden>▲</span> {withCode(headline)}</p>
        <A className="button button-small button-primary" href={runPath(id, "overview", { answer: "1" })}>Answer</A>
      </section>
    );
  }
  return (
    <section className="needs" aria-label="This run needs you">
      <div className="needs-what">
        <p className="needs-message"><span className="sign tone-attention" aria-hidden>▲</span> {withCode(headline)}</p>
        <Facts all={facts} shown={compact ? 1 : 2} />
      </div>
      {!compact && needs.reason === "tests_changed" && <ChangedTests details={[...details, needs.message]} />}
      {!compact && details.length > 0 && <pre className="evidence" tabIndex={0} aria-label="Evidence">{shortPaths(details.join("\n"), view.workspace)}</pre>}
      <Answers answers={answers} compact={compact} />
      {barred && <p className="muted small">{barred}. An operator can answer.</p>}
    </section>
  );
}

/** The facts of a question; those after the first ones are folded. */
function Facts({ all, shown }: { all: string[]; shown: number }) {
  const line = (fact: string, at: number) => <p key={at} className="small">{withCode(fact)}</p>;
  return (
    <>
      {all.slice(0, shown).map(line)}
      {all.length > shown && <details className="small"><summary>why: {all.length - shown} more</summary>{all.slice(shown).map(line)}</details>}
    </>
  );
}

function Answers({ answers, compact }: { answers: Answer[]; compact: boolean }) {
  const here = useRunHere();
  const { id, barred, store, ask } = here;
  const [busy, setBusy] = useState<string | null>(null);
  const sendAll = async (controls: Control[]) => {
    for (const control of controls) {
      // The first control starts a run without a process; it needs no second one.
      if ((await store.send(control)).outcome === "started") return;
    }
  };
  const carry = async (label: string, controls: Control[], done: string): Promise<boolean> => {
    setBusy(label);
    try {
      await sendAll(controls);
      toast(done, "good");
      return true;
    } catch (error) {
      const said = asProblem(error);
      toast([said.title, said.detail, said.hint].filter(Boolean).join(". "), "bad");
      return false;
    } finally {
      setBusy(null);
    }
  };
  const press = (answer: Answer) => {
    const controls = answer.controls ?? [];
    if (answer.look === "danger") ask({ title: answer.label, consequence: <p>{answer.then}. Commits of finished iterations stay.</p>, confirm: answer.label, danger: true, run: () => sendAll(controls) });
    else void carry(answer.label, controls, `${answer.label}: accepted.`);
  };
  // In autonomous mode sessions don't take hints, but they do get notes.
  const kind = here.mode === "autonomous" ? "note" : "nudge";
  const hints = (primary: boolean) => answers.filter((answer) => answer.hint && (answer.look === "primary") === primary).map((answer) => (
    <Hint key={answer.label} answer={answer} busy={busy === answer.label} onSend={(text) => carry(answer.label, [{ control: kind, text }, { control: "resume" }], "Sent. The next session starts now.")} />
  ));
  const buttons = answers.filter((answer) => !answer.hint);
  const wordy = !compact && buttons.length < 4;
  return (
    <>
      {hints(true)}
      <ul className={cx("answers", !wordy && "answers-short")}>
        {buttons.map((answer) => (
          <li key={answer.label}>
            {answer.tab ? (
              <A className={`button button-${answer.look}`} href={runPath(id, answer.tab)} title={answer.then}>{answer.label}</A>
            ) : (
              <Button look={answer.look === "danger" ? "plain" : answer.look} disabled={barred !== null || busy !== null} title={barred ?? answer.then} onClick={() => press(answer)}>
                {busy === answer.label ? "Sending …" : answer.label}
              </Button>
            )}
            {wordy && <span className="muted small">{answer.then}</span>}
          </li>
        ))}
      </ul>
      {hints(false)}
    </>
  );
}

/** A text for the next session; Enter sends it. */
function Hint({ answer, busy, onSend }: { answer: Answer; busy: boolean; onSend: (text: string) => Promise<boolean> }) {
  const { barred } = useRunHere();
  const [text, setText] = useState(answer.hint?.value ?? "");
  const name = useId();
  const area = useRef<HTMLTextAreaElement>(null);
  const wanted = answer.look === "primary" && new URLSearchParams(location.search).has("answer");
  useEffect(() => {
    if (wanted) area.current?.focus();
  }, [wanted]);
  useEffect(() => {
    const box = area.current;
    if (!box) return;
    box.style.height = "auto";
    box.style.height = `${Math.min(160, box.scrollHeight + 2)}px`;
  }, [text]);
  const send = async (event: FormEvent) => {
    event.preventDefault();
    if (text.trim() !== "" && !busy && (await onSend(text.trim()))) setText("");
  };
  return (
    <form className="hint" onSubmit={(event) => void send(event)}>
      <label htmlFor={name} className="small">{answer.hint?.label} <span className="muted">· {answer.then}</span></label>
      <div className="hint-row">
        <textarea
          id={name} ref={area} rows={1} value={text} placeholder={answer.hint?.placeholder} disabled={barred !== null} data-hint
          onChange={(event) => setText(event.target.value)}
          onKeyDown={(event) => {
            if (event.key === "Escape") event.currentTarget.blur();
            if (event.key !== "Enter" || event.shiftKey || event.nativeEvent.isComposing) return;
            event.preventDefault();
            event.currentTarget.form?.requestSubmit();
          }}
        />
        <Button type="submit" look={answer.look === "primary" ? "primary" : "plain"} disabled={barred !== null || busy || text.trim() === ""} title={barred ?? "Enter"}>{busy ? "Sending …" : answer.label}</Button>
      </div>
    </form>
  );
}

/** The changed lines of the files that some text names. */
export function changedRows(patch: string, named: string[]): { path: string; rows: Row[] }[] {
  const words = new Set(named.flatMap((text) => text.split(/[\s:,`]+/)));
  const files = parsePatch(patch).filter((file) => words.has(file.path) || words.has(`${file.path}.`));
  return files.slice(0, FILES).map((file) => ({ path: file.path, rows: file.hunks.flatMap((hunk) => hunk.rows.filter((row) => row.kind !== "context")).slice(0, LINES) }));
}

/** What the agent changed in the tests: the thing to decide about. */
function ChangedTests({ details }: { details: string[] }) {
  const { id, view } = useRunHere();
  const diff = useLoad((signal) => api.diff(id, null, null, signal), [id, view.iterations]);
  const named = details.join("\n");
  const files = useMemo(() => changedRows(diff.data?.patch ?? "", [named]), [diff.data, named]);
  return (
    <>
      {files.map((file) => (
        <div key={file.path} className="needs-file">
          <p className="small"><A href={runPath(id, "diff")} className="mono">{block(file.path)}</A></p>
          <DiffRows rows={file.rows} label={`Changes of ${file.path}`} />
        </div>
      ))}
    </>
  );
}
