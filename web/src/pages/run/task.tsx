import { useCallback, useEffect, useMemo, useState } from "react";
import { api } from "../../api/calls";
import { asProblem, type Problem } from "../../api/client";
import type { Finding, TaskText } from "../../api/types";
import { around, lineDiff } from "../../lib/diff";
import { useSettled } from "../../lib/hooks";
import { isOver } from "../../lib/status";
import { guard } from "../../router";
import { Button, ProblemNote, Skeleton } from "../../ui/basics";
import { Dialog } from "../../ui/dialog";
import { DiffRows } from "../../ui/diff-view";
import { Editor } from "../../ui/editor";
import { toast } from "../../ui/toast";
import { useRunHere } from "./context";

interface Loaded {
  task: TaskText;
  etag: string;
}

/** The text to edit: a pending edit comes first, because the next one builds on it. */
function shownOf(task: TaskText, etag: string | null): Loaded {
  return { task: { ...task, text: task.pending ?? task.text }, etag: etag ?? "" };
}

/** The task editor: linted, shown as a diff before saving, never overwriting another user's edit. */
export default function TaskTab() {
  const { id, view, barred } = useRunHere();
  const [base, setBase] = useState<Loaded | null>(null);
  const [text, setText] = useState("");
  const [problem, setProblem] = useState<Problem | null>(null);
  const [saving, setSaving] = useState<"no" | "look" | "busy">("no");
  /** A version that another user saved. */
  const [theirs, setTheirs] = useState<Loaded | null>(null);
  const changed = base !== null && text !== base.task.text;
  const findings = useLint(text, view.origin, changed);

  const load = useCallback(async () => {
    try {
      const answer = await api.task(id);
      const loaded = shownOf(answer.body, answer.etag);
      setBase(loaded);
      setText(loaded.task.text);
      setProblem(null);
    } catch (error) {
      setProblem(asProblem(error));
    }
  }, [id]);
  useEffect(() => void load(), [load]);
  useEffect(() => {
    if (!changed) return;
    const leave = (event: BeforeUnloadEvent) => event.preventDefault();
    window.addEventListener("beforeunload", leave);
    const drop = guard(() => confirm("Your edit isn't saved. Leave?"));
    return () => {
      window.removeEventListener("beforeunload", leave);
      drop();
    };
  }, [changed]);

  const save = async () => {
    if (!base) return;
    setSaving("busy");
    try {
      const answer = await api.saveTask(id, text, base.etag);
      const fresh = await api.task(id);
      const loaded = shownOf(fresh.body, fresh.etag ?? answer.etag);
      setBase(loaded);
      setText(loaded.task.text);
      setProblem(null);
      toast("Accepted, applies from the next iteration.", "good");
      setSaving("no");
    } catch (error) {
      const said = asProblem(error);
      setSaving("no");
      if (said.status !== 412) return setProblem(said);
      const now = await api.task(id).catch(() => null);
      if (now) setTheirs(shownOf(now.body, now.etag));
    }
  };

  if (!base) return problem ? <ProblemNote problem={problem} retry={() => void load()} /> : <Skeleton lines={12} />;
  const over = isOver(view.status);
  const locked = over ? "The run has ended; its task is read-only." : barred;
  const errors = findings.filter((f) => f.severity === "error").length;
  return (
    <div className="pane">
      <div className="pane-bar">
        <span className="muted small">
          {base.task.source ? <code>{base.task.source}</code> : "task"} · {base.task.dialect ?? "text"}{base.task.version ? ` · version ${base.task.version}` : ""}
        </span>
        {base.task.pending && <span className="tag tone-attention">an edit applies from the next iteration</span>}
        <span className="grow" />
        {locked && <span className="muted small">{locked}</span>}
        {changed && <Button small onClick={() => setText(base.task.text)}>Undo all</Button>}
        <Button small look="primary" disabled={!changed || locked !== null || errors > 0} title={errors > 0 ? "Fix the errors first" : undefined} onClick={() => setSaving("look")}>Save …</Button>
      </div>
      {problem && <ProblemNote problem={problem} />}
      {theirs && <Conflict theirs={theirs} mine={text} onMine={() => (setBase(theirs), setTheirs(null))} onTheirs={() => (setBase(theirs), setText(theirs.task.text), setTheirs(null))} />}
      <Editor value={text} onChange={setText} findings={findings} readOnly={locked !== null} label="Task" />
      {changed && findings.length === 0 && <p className="small tone-good" role="status">✓ no problems</p>}
      {saving !== "no" && (
        <Dialog wide title="Save the task" onClose={() => setSaving("no")}>
          <div className="dialog-body">
            <p>The new text applies from the next iteration. Claims and proofs for the old text no longer count.</p>
            <Changes before={base.task.text} after={text} />
            <footer className="dialog-foot">
              <Button onClick={() => setSaving("no")}>Back to the editor</Button>
              <Button look="primary" disabled={saving === "busy"} onClick={() => void save()}>{saving === "busy" ? "Saving …" : "Save"}</Button>
            </footer>
          </div>
        </Dialog>
      )}
    </div>
  );
}

function Conflict({ theirs, mine, onMine, onTheirs }: { theirs: Loaded; mine: string; onMine: () => void; onTheirs: () => void }) {
  return (
    <div className="note note-attention" role="alert">
      <strong>Another user saved this task while you were editing</strong>
      <p>Nothing was overwritten. Your text would change theirs like this:</p>
      <Changes before={theirs.task.text} after={mine} />
      <div className="row">
        <Button look="primary" onClick={onMine}>Keep mine, on top of theirs</Button>
        <Button onClick={onTheirs}>Use their version</Button>
      </div>
    </div>
  );
}

function Changes({ before, after }: { before: string; after: string }) {
  const rows = useMemo(() => around(lineDiff(before, after), 3), [before, after]);
  return <DiffRows rows={rows} label="What changes" />;
}

/** The linter's findings once typing pauses. */
export function useLint(text: string, repo: string | undefined, on: boolean): Finding[] {
  const still = useSettled(text, 400);
  const [findings, setFindings] = useState<Finding[]>([]);
  useEffect(() => {
    if (!on || still.trim() === "") return setFindings([]);
    const stop = new AbortController();
    api.lint({ text: still, ...(repo ? { repo } : {}) }, stop.signal).then(
      (answer) => setFindings(answer.findings),
      () => null,
    );
    return () => stop.abort();
  }, [still, repo, on]);
  return findings;
}
