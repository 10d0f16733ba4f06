import { useCallback, useMemo, useRef, useState } from "react";
import { api } from "../../api/calls";
import { asProblem } from "../../api/client";
import { block } from "../../lib/clean";
import { commentsOf, lineNow, noteOf, type Comment, type DiffLine } from "../../lib/comments";
import { between } from "../../lib/compare";
import { parsePatch, type FileDiff } from "../../lib/diff";
import { costAlone, count, span } from "../../lib/format";
import { useLoad, useWide } from "../../lib/hooks";
import { useKeys } from "../../lib/keys";
import { isOver } from "../../lib/status";
import { remembered } from "../../lib/storage";
import { setQuery } from "../../router";
import { Button, cx, Empty, ProblemNote, Skeleton } from "../../ui/basics";
import { DiffView, type Commenting } from "../../ui/diff-view";
import { Check } from "../../ui/signs";
import { toast } from "../../ui/toast";
import { useRunHere } from "./context";

/** Files that are listed next to the diff. */
const LISTED = 300;

/** All changes, those of one iteration, or those between two. */
export default function DiffTab({ query }: { query: URLSearchParams }) {
  const { id, view } = useRunHere();
  const iteration = Number(query.get("iteration")) || null;
  const wished = query.get("against");
  const against = wished !== null && /^\d+$/.test(wished) && Number(wished) < (iteration ?? view.iterations + 1) ? Number(wished) : null;
  const diff = useLoad((signal) => api.diff(id, iteration, against, signal), [id, iteration, against, iteration === null ? view.iterations : 0]);
  const wide = useWide(1024);
  const [split, setSplit] = useState(remembered.get("diff") === "split");
  const [closed, setClosed] = useState<ReadonlySet<string>>(new Set());
  const files = useMemo(() => parsePatch(diff.data?.patch ?? ""), [diff.data]);
  const comments = useComments(iteration);
  const jumper = useRef<(path: string, place?: DiffLine) => void>(() => {});
  const keepJump = useCallback((call: (path: string, place?: DiffLine) => void) => {
    jumper.current = call;
  }, []);
  const added = files.reduce((sum, f) => sum + f.added, 0);
  const removed = files.reduce((sum, f) => sum + f.removed, 0);
  const toggle = (path: string) =>
    setClosed((old) => {
      const next = new Set(old);
      if (!next.delete(path)) next.add(path);
      return next;
    });
  const file = useRef(-1);
  useKeys(
    [
      { keys: "j", what: "Next file", group: "diff" },
      { keys: "k", what: "Previous file", group: "diff" },
    ],
    (keys) => {
      file.current = Math.max(0, Math.min(files.length - 1, file.current + (keys === "j" ? 1 : -1)));
      jumper.current(files[file.current]?.path ?? "");
    },
  );
  const numbers = Array.from({ length: view.iterations }, (_, n) => view.iterations - n).slice(0, 500);
  return (
    <div className="pane pane-diff">
      <div className="pane-bar">
        <select aria-label="Which changes" value={iteration ?? ""} onChange={(e) => setQuery({ iteration: e.target.value || null })}>
          <option value="">{against === null ? "All changes" : "now"}</option>
          {numbers.map((n) => <option key={n} value={n}>{against !== null ? `end of iteration ${n}` : n === view.iterations ? `last patch (iteration ${n})` : `iteration ${n}`}</option>)}
        </select>
        {view.iterations > 1 && (
          <select aria-label="Compared with" value={against ?? ""} onChange={(e) => setQuery({ against: e.target.value || null })}>
            <option value="">{iteration ? "compared with the iteration before" : "compared with the original"}</option>
            {iteration !== null && <option value="0">compared with the original</option>}
            {numbers.filter((n) => n < (iteration ?? view.iterations)).map((n) => <option key={n} value={n}>compared with iteration {n}</option>)}
          </select>
        )}
        {files.length > 0 && <span className="num small">{count(files.length, "file")} <span className="tone-good">+{added}</span> <span className="tone-bad">−{removed}</span></span>}
        <span className="grow" />
        <Button small onClick={diff.reload} disabled={diff.loading}>Refresh</Button>
        {wide && (
          <Button small aria-pressed={split} onClick={() => (setSplit(!split), remembered.set("diff", split ? null : "split"))}>Side by side</Button>
        )}
      </div>
      {iteration !== null && against !== null && against > 0 && <BetweenLine from={against} to={iteration} />}
      <Comments all={comments.all} onJump={(one) => jumper.current(one.path, one.now === null ? undefined : { ...one, line: one.now })} />
      {diff.problem && <ProblemNote problem={diff.problem} retry={diff.reload} />}
      {diff.data?.cut && <p className="note note-attention small">The diff is too long for this page; <code>ralph diff {id}</code> prints it all.</p>}
      {diff.loading && !diff.data ? (
        <Skeleton lines={12} />
      ) : files.length === 0 && !diff.problem ? (
        <Empty title={against !== null ? "No differences" : iteration ? "No changes in this iteration" : "No changes yet"} />
      ) : (
        <div className="diff-layout">
          {wide && files.length > 1 && (
            <ul className="diff-files small mono" aria-label="Changed files">
              {files.slice(0, LISTED).map((file) => (
                <li key={file.path}>
                  <button type="button" className={cx("link", closed.has(file.path) && "muted")} title={block(file.path)} onClick={() => jumper.current(file.path)}>
                    <span className="diff-files-name">{block(file.path)}</span> <span className="tone-good">+{file.added}</span> <span className="tone-bad">−{file.removed}</span>
                  </button>
                </li>
              ))}
              {files.length > LISTED && <li className="muted">{count(files.length - LISTED, "more file")}</li>}
            </ul>
          )}
          <DiffView files={files} split={split && wide} closed={closed} onToggle={toggle} jump={keepJump} commenting={comments.commenting} />
        </div>
      )}
    </div>
  );
}

/** What happened between two iterations: tests fixed and broken, cost and time. */
function BetweenLine({ from, to }: { from: number; to: number }) {
  const { id, view } = useRunHere();
  const all = useLoad((signal) => api.iterations(id, signal), [id, view.iterations]);
  const found = useMemo(() => between(all.data ?? [], from, to), [all.data, from, to]);
  if (!found) return null;
  const names = (list: string[]) => `${list.slice(0, 5).join(", ")}${list.length > 5 ? ` and ${list.length - 5} more` : ""}` || "none";
  return (
    <p className="small num">
      {found.fixed && found.broken ? (
        <>tests fixed: <span className={found.fixed.length > 0 ? "tone-good" : "muted"}>{names(found.fixed)}</span> · broken: <span className={found.broken.length > 0 ? "tone-bad" : "muted"}>{names(found.broken)}</span> · </>
      ) : <span className="muted">tests not reported · </span>}
      {costAlone(found.spent)} · {span(found.seconds)}
    </p>
  );
}

/** A comment with the line where it is now; null once that line has changed. */
type Standing = Comment & { now: number | null };

/** The comments of the run, and how a line of the shown diff gets one. `iteration` is its end, or null for the newest. */
function useComments(iteration: number | null): { all: Standing[]; commenting: Commenting } {
  const { id, view, run, store, barred } = useRunHere();
  const notes = run.events.filter((event) => event.kind === "control_received" && event.control === "note").length;
  const rules = useLoad((signal) => api.rules(id, signal), [id, notes]);
  const found = useMemo(() => commentsOf(rules.data?.notes ?? ""), [rules.data]);
  const earlier = [...new Set(found.map((one) => one.iteration))].filter((n) => n < view.iterations).join(" ");
  const since = useLoad(
    async (signal) => {
      const numbers = earlier.split(" ").filter(Boolean).map(Number);
      const patches = await Promise.all(numbers.map((n) => api.diff(id, null, n, signal)));
      return new Map<number, FileDiff[]>(numbers.map((n, at) => [n, parsePatch(patches[at]?.patch ?? "")]));
    },
    [id, earlier, view.iterations],
  );
  const all = useMemo(() => found.map((one): Standing => ({ ...one, now: lineNow(one, since.data?.get(one.iteration) ?? []) })), [found, since.data]);
  const { reload } = rules;
  const shown = iteration ?? view.iterations;
  const commenting = useMemo((): Commenting => {
    const send = async (place: DiffLine, code: string, text: string): Promise<boolean> => {
      try {
        await store.send({ control: "note", text: noteOf(place, shown, code, text) });
        toast("Comment sent. The next session gets it.", "good");
        reload();
        return true;
      } catch (error) {
        const said = asProblem(error);
        toast([said.title, said.detail, said.hint].filter(Boolean).join(". "), "bad");
        return false;
      }
    };
    const here = (one: Standing) => (one.iteration === shown ? one.line : iteration === null ? one.now : null);
    return {
      at: (place) => all.filter((one) => one.path === place.path && one.removed === place.removed && here(one) === place.line),
      send: barred !== null || isOver(view.status) ? null : send,
    };
  }, [all, barred, iteration, reload, shown, store, view.status]);
  return { all, commenting };
}

function Comments({ all, onJump }: { all: Standing[]; onJump: (one: Standing) => void }) {
  if (all.length === 0) return null;
  const open = all.filter((one) => one.now !== null).length;
  return (
    <details className="comments small" open={open > 0}>
      <summary>{count(all.length, "comment")} · {open} open</summary>
      <ul>
        {all.map((one) => (
          <li key={one.id}>
            <Check state={one.now === null ? "met" : "open"} />
            <button type="button" className="link mono" onClick={() => onJump(one)}>{block(one.path)}:{one.now ?? one.line}</button>
            <code className="ellipsis">{one.code}</code>
            <span className="comments-text">{one.text}</span>
            <span className="muted">{one.now === null ? "resolved: the line has changed" : one.from}</span>
          </li>
        ))}
      </ul>
    </details>
  );
}
