import { useState } from "react";
import { api } from "../../api/calls";
import { useLoad } from "../../lib/hooks";
import { count } from "../../lib/format";
import { isOver } from "../../lib/status";
import { awaited } from "../../live/run-state";
import { Button, Empty, ProblemNote, Section, Skeleton } from "../../ui/basics";
import { toast } from "../../ui/toast";
import { useRunHere } from "./context";
import { withCode } from "./now-line";

/** The last diagnosis, and a button that applies it. */
export default function Diagnostics() {
  const { id, view, run, send, ask, store, barred } = useRunHere();
  const spoken = run.events.filter((event) => event.kind === "diagnosed").length;
  const answer = useLoad((signal) => api.diagnosis(id, signal), [id, spoken]);
  const [applied, setApplied] = useState<string | null>(null);
  const over = isOver(view.status);
  const asked = awaited(run, "diagnose") !== null;
  const report = answer.data?.report ?? null;
  const key = `${answer.data?.at ?? ""}${report?.summary ?? ""}`;
  const diagnose = () => void send({ control: "diagnose" }).then(() => toast("Diagnosing after this session."));
  const apply = () => {
    if (!report) return;
    ask({
      title: "Apply the diagnosis",
      consequence: (
        <ul className="plain-list">
          <li>{count(report.guardrails.length, "guardrail")} added</li>
          {(report.task_edits?.length ?? 0) > 0 && <li>{count(report.task_edits?.length ?? 0, "edit")} of the task, as its next version</li>}
          {report.model_suggestion && <li>model for the next iterations: <code>{report.model_suggestion.model}</code></li>}
          <li className="muted">It applies from the next iteration.</li>
        </ul>
      ),
      confirm: "Apply",
      run: async () => {
        await store.send({ control: "apply" });
        setApplied(key);
        toast("Accepted, applies from the next iteration.", "good");
      },
    });
  };
  if (answer.problem && !answer.data) return <ProblemNote problem={answer.problem} retry={answer.reload} />;
  if (!answer.data) return <Skeleton lines={8} />;
  return (
    <div className="pane">
      <div className="pane-bar">
        {report && <span className="muted small">by {answer.data.by ?? "a diagnosis"}{answer.data.at ? `, after ${count(answer.data.at, "iteration")}` : ""}</span>}
        <span className="grow" />
        <Button small disabled={barred !== null || over || asked} title={barred ?? (over ? "The run is over" : "d")} onClick={diagnose}>{asked ? "Diagnosing …" : report ? "Diagnose again" : "Diagnose"}</Button>
        {report && <Button small look="primary" disabled={barred !== null || over || applied === key} title={barred ?? undefined} onClick={apply}>{applied === key ? "✓ Applied" : "Apply …"}</Button>}
      </div>
      {!report ? (
        <Empty title="No diagnosis yet">
          <p className="muted">A diagnosis reads the whole run and proposes guardrails, task edits or another model.</p>
          {answer.data.markdown && <pre className="evidence evidence-tall" tabIndex={0}>{answer.data.markdown}</pre>}
        </Empty>
      ) : (
        <>
          <p className="lead">{withCode(report.summary)}</p>
          {(report.failure_patterns?.length ?? 0) > 0 && (
            <Section title="Observed">
              <ul className="plain-list">{report.failure_patterns?.map((one, at) => <li key={at}>{withCode(one.pattern)}{one.evidence && <span className="muted small block">{one.evidence}</span>}</li>)}</ul>
            </Section>
          )}
          {(report.root_causes?.length ?? 0) > 0 && (
            <Section title="Likely cause"><ul className="plain-list">{report.root_causes?.map((one, at) => <li key={at}>{withCode(one)}</li>)}</ul></Section>
          )}
          <Section title="Guardrails">
            <ol className="rules">
              {report.guardrails.map((rule, at) => (
                <li key={at}>{rule.trigger && <span className="muted">{rule.trigger}: </span>}{withCode(rule.instruction)}</li>
              ))}
            </ol>
          </Section>
          {(report.task_edits?.length ?? 0) > 0 && (
            <Section title="Task edits">
              <ul className="plain-list">
                {report.task_edits?.map((edit, at) => (
                  <li key={at}>
                    <div className="diff-rows mono"><div className="diff-row diff-removed"><span className="diff-sign">−</span><span className="diff-text">{edit.find}</span></div><div className="diff-row diff-added"><span className="diff-sign">+</span><span className="diff-text">{edit.replace}</span></div></div>
                    <span className="muted small">{edit.why}</span>
                  </li>
                ))}
              </ul>
            </Section>
          )}
          {report.model_suggestion && <Section title="Another model"><p><code>{report.model_suggestion.model}</code>{report.model_suggestion.agent ? ` for ${report.model_suggestion.agent}` : ""}: {report.model_suggestion.why}</p></Section>}
        </>
      )}
    </div>
  );
}
