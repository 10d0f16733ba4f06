import { useState, type FormEvent } from "react";
import { api } from "../../api/calls";
import { asProblem } from "../../api/client";
import { useLoad } from "../../lib/hooks";
import { isOver } from "../../lib/status";
import { Button, Empty, ProblemNote, Section, Skeleton } from "../../ui/basics";
import { toast } from "../../ui/toast";
import { useRunHere } from "./context";
import { withCode } from "./now-line";

/** Rules and facts that every session gets in addition to the task. They only grow. */
export default function RulesTab() {
  const { id, view, run } = useRunHere();
  const added = run.events.filter((e) => e.kind === "control_received" && (e.control === "note" || e.control === "guardrail")).length;
  const rules = useLoad((signal) => api.rules(id, signal), [id, view.iterations, added]);
  const over = isOver(view.status);
  if (rules.problem && !rules.data) return <ProblemNote problem={rules.problem} retry={rules.reload} />;
  if (!rules.data) return <Skeleton lines={8} />;
  const list = rules.data.rules;
  const notes = notesOf(rules.data.notes);
  return (
    <div className="pane two">
      <Section title="Guardrails" aside={<span className="muted small">kept across runs of this repo</span>}>
        {list.length === 0 ? (
          <Empty title="No guardrails yet"><p className="muted">Rules every session gets, like “never edit generated files”. A diagnosis may propose some.</p></Empty>
        ) : (
          <ol className="rules">{list.map((rule, at) => <RuleLine key={at} rule={ruleOf(rule.text)} />)}</ol>
        )}
        <Add kind="guardrail" label="New guardrail" placeholder="When a test is flaky, find the race; do not add a retry." over={over} onAdded={rules.reload} />
      </Section>
      <Section title="Notes" aside={<span className="muted small">facts for later sessions of this run</span>}>
        {notes === "" ? (
          <Empty title="No notes yet"><p className="muted">A note is a fact that agents can't know: where a service runs, what was decided.</p></Empty>
        ) : (
          <pre className="evidence evidence-tall" tabIndex={0}>{notes}</pre>
        )}
        <Add kind="note" label="New note" placeholder="The staging database is reset every night at 02:00." over={over} onAdded={rules.reload} />
      </Section>
    </div>
  );
}

interface Rule {
  title: string;
  fields: [string, string][];
}

/** A rule of the file: a title, then fields as a list. */
export function ruleOf(text: string): Rule {
  const [first = "", ...rest] = text.split("\n").map((line) => line.trim()).filter(Boolean);
  const rule: Rule = { title: first.replace(/^#+\s*/, "").replace(/^guardrail:\s*/i, ""), fields: [] };
  for (const line of rest) {
    const found = /^[-*]\s+(\w[\w ]*):\s*(.*)$/.exec(line);
    if (found) rule.fields.push([found[1] ?? "", found[2] ?? ""]);
    else rule.fields.push(["", line.replace(/^[-*]\s+/, "")]);
  }
  return rule;
}

function RuleLine({ rule }: { rule: Rule }) {
  const main = rule.fields.find(([name]) => name === "instruction")?.[1];
  return (
    <li>
      <strong>{withCode(rule.title)}</strong>
      {main && <span className="block">{withCode(main)}</span>}
      {rule.fields.filter(([name]) => name !== "instruction" && name !== "added_after").map(([name, text], at) => <span key={at} className="muted small block">{name && `${name}: `}{withCode(text)}</span>)}
    </li>
  );
}

/** Notes without the template of an untouched file: headings, comments, and the text before `(none)`. */
export function notesOf(text: string): string {
  return text.replace(/^[\s\S]*^\(none\)$/m, "").replace(/<!--[\s\S]*?-->/g, "").split("\n").filter((line) => line.trim() !== "" && !/^#+\s/.test(line)).join("\n").trim();
}

function Add({ kind, label, placeholder, over, onAdded }: { kind: "note" | "guardrail"; label: string; placeholder: string; over: boolean; onAdded: () => void }) {
  const { store, barred } = useRunHere();
  const [text, setText] = useState("");
  const [busy, setBusy] = useState(false);
  if (over) return null;
  const add = async (event: FormEvent) => {
    event.preventDefault();
    if (text.trim() === "" || busy) return;
    setBusy(true);
    try {
      await store.send({ control: kind, text: text.trim() });
      setText("");
      toast("Accepted, applies from the next iteration.", "good");
      setTimeout(onAdded, 600);
    } catch (error) {
      const said = asProblem(error);
      toast([said.title, said.detail, said.hint].filter(Boolean).join(". "), "bad");
    } finally {
      setBusy(false);
    }
  };
  return (
    <form className="add" onSubmit={add}>
      <label className="field">
        <span className="field-label">{label}</span>
        <textarea rows={2} value={text} placeholder={placeholder} disabled={barred !== null} onChange={(e) => setText(e.target.value)} />
      </label>
      <Button type="submit" small disabled={barred !== null || busy || text.trim() === ""} title={barred ?? undefined}>{busy ? "Sending …" : "Add"}</Button>
    </form>
  );
}
