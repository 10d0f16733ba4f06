import { useState, type FormEvent } from "react";
import { api } from "../../api/calls";
import { asProblem, type Problem } from "../../api/client";
import type { ResultAnswer, Taken, Way } from "../../api/types";
import { count } from "../../lib/format";
import { useLoad } from "../../lib/hooks";
import { Button, cx, Field, Out, ProblemNote, Skeleton } from "../../ui/basics";
import { Dialog } from "../../ui/dialog";
import { toast } from "../../ui/toast";

const NAMES: Record<Way["kind"], { label: string; confirm: string }> = {
  apply: { label: "Apply to my checkout", confirm: "Apply" },
  branch: { label: "As a branch", confirm: "Create the branch" },
  push: { label: "Push a branch", confirm: "Push" },
  pr: { label: "Open a pull request", confirm: "Open the pull request" },
};

/** What taking a result has done. */
export function takenWords(kind: Way["kind"], taken: Taken, target: string): string {
  if (taken.outcome === "already_there") return `Already there: ${target}.`;
  if (taken.outcome === "started") return kind === "pr" ? "Opening the pull request. The run's events show it." : "Pushing. The run's events show it.";
  return kind === "branch" ? `Branch ${target} is ready.` : `Applied ${count(taken.files.length, "file")} to ${target}.`;
}

/** The ways to take the result of a run; the first possible one is chosen. */
export function TakeDialog({ id, onClose }: { id: string; onClose: () => void }) {
  const result = useLoad((signal) => api.result(id, signal), [id]);
  return (
    <Dialog title="Take the result" onClose={onClose}>
      {result.problem && <div className="dialog-body"><ProblemNote problem={result.problem} retry={result.reload} /></div>}
      {!result.data && !result.problem && <div className="dialog-body"><Skeleton lines={5} label="Reading the result" /></div>}
      {result.data && <Ways id={id} result={result.data} onClose={onClose} />}
    </Dialog>
  );
}

function Ways({ id, result, onClose }: { id: string; result: ResultAnswer; onClose: () => void }) {
  const [kind, setKind] = useState<Way["kind"] | null>(result.ways.find((way) => way.possible)?.kind ?? null);
  const [branch, setBranch] = useState(result.ways.find((way) => way.kind === "branch")?.target ?? "");
  const [title, setTitle] = useState(result.pr_draft.title);
  const [body, setBody] = useState(result.pr_draft.body);
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Problem | null>(null);
  const way = result.ways.find((one) => one.kind === kind);
  const take = async (event: FormEvent) => {
    event.preventDefault();
    if (!way || busy) return;
    setBusy(true);
    setProblem(null);
    try {
      const taken = await api.take(id, {
        kind: way.kind,
        ...(way.kind === "apply" ? {} : { branch: branch.trim() }),
        // A text that wasn't edited stays the run's own, with its evidence.
        ...(way.kind === "pr" && title !== result.pr_draft.title ? { title } : {}),
        ...(way.kind === "pr" && body !== result.pr_draft.body ? { body } : {}),
      });
      toast(takenWords(way.kind, taken, way.kind === "branch" ? branch : way.target), "good");
      onClose();
    } catch (error) {
      setProblem(asProblem(error));
      setBusy(false);
    }
  };
  return (
    <form className="dialog-body" onSubmit={(event) => void take(event)}>
      <p className="muted small">{count(result.files.length, "file")} changed{result.pr_url && <> · <Out href={result.pr_url}>pull request</Out></>}</p>
      <fieldset className="ways">
        <legend className="sr-only">How</legend>
        {result.ways.map((one) => (
          <label key={one.kind} className={cx("way", !one.possible && "muted")}>
            <input type="radio" name="way" checked={one.kind === kind} disabled={!one.possible} onChange={() => setKind(one.kind)} />
            <span>{NAMES[one.kind].label}<span className="muted small block mono">{one.possible ? one.target : one.why}</span></span>
          </label>
        ))}
      </fieldset>
      {way?.kind === "apply" && way.conflicts.length > 0 && (
        <div className="note note-attention small"><strong>Your own changes conflict in {count(way.conflicts.length, "file")}</strong><p className="mono">{way.conflicts.slice(0, 8).join(", ")}</p><p>Commit them or take the result as a branch.</p></div>
      )}
      {way && way.kind !== "apply" && <Field label="Branch"><input value={branch} required spellCheck={false} onChange={(event) => setBranch(event.target.value)} /></Field>}
      {way?.kind === "pr" && (
        <>
          <Field label="Title"><input value={title} required onChange={(event) => setTitle(event.target.value)} /></Field>
          <Field label="Text"><textarea rows={6} value={body} onChange={(event) => setBody(event.target.value)} /></Field>
        </>
      )}
      {problem && <ProblemNote problem={problem} />}
      <footer className="dialog-foot">
        <Button onClick={onClose}>Cancel</Button>
        <Button type="submit" look="primary" disabled={!way || busy || (way.kind === "apply" && way.conflicts.length > 0)}>{busy ? "Working …" : way ? NAMES[way.kind].confirm : "Nothing to take"}</Button>
      </footer>
    </form>
  );
}
