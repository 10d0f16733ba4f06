import { lazy, Suspense, useCallback, useEffect, useMemo, useRef, useState, type ReactElement } from "react";
import { asProblem } from "../../api/client";
import type { RunRow } from "../../api/types";
import { costAlone, count, money, span } from "../../lib/format";
import { useNow, useTimeWords, useTitle, useWide } from "../../lib/hooks";
import { useKeys } from "../../lib/keys";
import { isOver, lookOf } from "../../lib/status";
import { remembered } from "../../lib/storage";
import { useRunsLive } from "../../live/list-store";
import { costSoFar, workedSeconds } from "../../live/run-state";
import { useRun } from "../../live/run-store";
import { go, racePath, runPath, setQuery, TABS, type Tab } from "../../router";
import { useMaySteer } from "../../session";
import { A, Button, cx, Empty, ProblemNote, Skeleton } from "../../ui/basics";
import { Boundary } from "../../ui/boundary";
import { AskDialog, Dialog, type Ask } from "../../ui/dialog";
import { StatusMark } from "../../ui/signs";
import { toast } from "../../ui/toast";
import { asksFor, Controls, pauseKey } from "./controls";
import { RunContext, useRunHere, type RunHere } from "./context";
import { NeedsBanner } from "./needs";
import { NowLine } from "./now-line";
import { Overview } from "./overview";
import { Rail } from "./rail";
import { Side } from "./side";
import { TakeDialog } from "./take";

const PANES: Record<Exclude<Tab, "overview">, React.LazyExoticComponent<(props: { query: URLSearchParams }) => ReactElement>> = {
  timeline: lazy(() => import("./timeline")),
  logs: lazy(() => import("./logs")),
  task: lazy(() => import("./task")),
  rules: lazy(() => import("./rules")),
  diff: lazy(() => import("./diff-tab")),
  diagnostics: lazy(() => import("./diagnostics")),
  sandbox: lazy(() => import("./sandbox")),
  charts: lazy(() => import("./charts")),
};

export function RunPage({ id, tab, query }: { id: string; tab: Tab; query: URLSearchParams }) {
  const live = useRun(id);
  const { rows, gone } = useRunsLive();
  const may = useMaySteer();
  const barred = gone.has(id) ? "The run was deleted" : may;
  const row = rows.get(id);
  const [asking, setAsking] = useState<Ask | null>(null);
  const view = live?.run.view ?? null;
  useTitle(view ? `${isOver(view.status) || view.status === "needs you" ? `${lookOf(view.status).sign} ` : ""}${view.title} · ralph` : "ralph");
  const store = live?.store ?? null;
  const send = useCallback<RunHere["send"]>(
    async (control) => {
      try {
        await store?.send(control);
      } catch (error) {
        const said = asProblem(error);
        toast([said.title, said.detail, said.hint].filter(Boolean).join(". "), "bad");
      }
    },
    [store],
  );
  const mode = live?.run.mode ?? row?.mode ?? "autonomous";
  const here = useMemo<RunHere | null>(
    () => (live && view ? { id, store: live.store, run: live.run, view, ask: setAsking, send, barred, mode } : null),
    [id, live, view, send, barred, mode],
  );
  if (!here) {
    const problem = live?.run.problem ?? null;
    return (
      <div className="run-page">
        <Rail current={id} />
        <main className="run-main" id="main">
          {problem?.status === 404 ? (
            <Empty title="Run not found">
              <p className="muted">It may have been deleted, or its folder is gone. <A href="/">All runs</A></p>
            </Empty>
          ) : problem ? (
            <ProblemNote problem={problem} retry={() => live?.store.retry()} />
          ) : live?.run.row ? (
            <Queued row={live.run.row} onCancel={() => void send({ control: "cancel" })} barred={barred} />
          ) : (
            <Skeleton lines={10} label="Reading the run" />
          )}
        </main>
      </div>
    );
  }
  return (
    <RunContext.Provider value={here}>
      <Inside tab={tab} query={query} />
      {asking && <AskDialog ask={asking} onClose={() => setAsking(null)} />}
    </RunContext.Provider>
  );
}

/** Why a queued run waits. */
export function waitsFor(row: RunRow): string {
  if (row.ended_at) return "Could not start. It isn't retried.";
  if (row.status === "preparing") return "A worker has taken it.";
  return row.now ? `It ${row.now}.` : "Starts when a running run ends.";
}

/** A queued run: only its position is known. */
function Queued({ row, onCancel, barred }: { row: RunRow; onCancel: () => void; barred: string | null }) {
  return (
    <Empty title={row.task}>
      <p><StatusMark status={row.status} /> {row.queued ? <span className="muted">position {row.queued} in the queue</span> : null}</p>
      {row.problem && <p className="tone-bad">{row.problem}</p>}
      <p className="muted">{waitsFor(row)}</p>
      {row.status !== "preparing" && <Button disabled={barred !== null} title={barred ?? undefined} onClick={onCancel}>Remove from the queue</Button>}
    </Empty>
  );
}

function Inside({ tab, query }: { tab: Tab; query: URLSearchParams }) {
  const here = useRunHere();
  const { view, id } = here;
  const wide = useWide(1024);
  const [side, setSide] = useState(remembered.get("side") !== "closed");
  const [sheet, setSheet] = useState(false);
  const asks = asksFor(here);
  useKeys(
    [
      ...TABS.map((t, at) => ({ keys: String(at + 1), what: `Tab ${t.label}`, group: "run" as const })),
      { keys: ".", what: "Primary action", group: "run" },
      { keys: "p", what: "Pause or resume", group: "run" },
      { keys: "r", what: "Fresh session", group: "run" },
      { keys: "n", what: "Note", group: "run" },
      { keys: "u", what: "Give a hint", group: "run" },
      { keys: "d", what: "Diagnose", group: "run" },
      { keys: "b", what: "Show or hide the right column", group: "run" },
      { keys: "[", what: "Back to the runs", group: "run" },
    ],
    (keys) => {
      const at = Number(keys);
      if (at > 0 && TABS[at - 1]) go(runPath(id, TABS[at - 1]?.id));
      else if (keys === "[") go("/");
      else if (keys === "b") toggle();
      else if (here.barred) toast(here.barred, "attention");
      else if (keys === ".") pressPrimary();
      else if (keys === "u" && focusHint()) return;
      else if (isOver(view.status)) toast("The run has ended.", "muted");
      else if (keys === "p") pauseKey(here);
      else if (keys === "r") here.ask(asks.rotate);
      else if (keys === "n") here.ask(asks.note);
      else if (keys === "u") here.mode === "autonomous" ? toast("Hints are available in guided and debug mode.", "attention") : here.ask(asks.nudge);
      else if (keys === "d") void here.send({ control: "diagnose" });
    },
  );
  const toggle = () => {
    if (!wide) return setSheet(!sheet);
    remembered.set("side", side ? "closed" : null);
    setSide(!side);
  };
  // Scrolls the tab bar, not the page, to the open tab.
  const bar = useRef<HTMLElement>(null);
  useEffect(() => {
    const open = bar.current?.querySelector<HTMLElement>('[aria-current="page"]');
    if (bar.current && open) bar.current.scrollLeft = open.offsetLeft - bar.current.offsetLeft - 24;
  }, [tab]);
  const Pane = tab === "overview" ? null : PANES[tab];
  return (
    <div className={cx("run-page", side && wide && "with-side")}>
      <Rail current={id} />
      <main className="run-main" id="main">
        <Head onSide={toggle} sideOpen={wide ? side : sheet} overview={tab === "overview"} />
        <p className="sr-only" role="status">{`${view.title}: ${view.status}`}</p>
        <LinkLine />
        <Deleted />
        <NeedsBanner compact={tab !== "overview"} />
        <nav className="tabs" aria-label="Parts of the run" ref={bar}>
          {TABS.map((t) => (
            <A key={t.id} href={runPath(id, t.id)} aria-current={t.id === tab ? "page" : undefined} className="tab">
              {t.label}
            </A>
          ))}
        </nav>
        <Boundary key={tab}>
          <Suspense fallback={<Skeleton lines={8} />}>{Pane ? <Pane query={query} /> : <Overview />}</Suspense>
        </Boundary>
      </main>
      {side && wide && (
        <aside className="run-side" aria-label="Budgets, proof, agents, sandbox">
          <Side />
        </aside>
      )}
      {query.has("take") && isOver(view.status) && !here.barred && <TakeDialog id={id} onClose={() => setQuery({ take: null })} />}
      {sheet && !wide && (
        <Dialog title="Budgets, proof, agents" onClose={() => setSheet(false)} className="sheet">
          <Side />
        </Dialog>
      )}
    </div>
  );
}

/** Presses the primary button of the banner, else that of the header. */
function pressPrimary(): void {
  const button = document.querySelector<HTMLElement>(".needs .button-primary:not(:disabled), .run-controls > .button-primary:not(:disabled)");
  if (button) button.click();
  else focusHint();
}

/** Puts the cursor into the hint field of the banner, if there is one. */
function focusHint(): boolean {
  const field = document.querySelector<HTMLElement>("[data-hint]");
  field?.focus();
  return field !== null;
}

/** The race that the run belongs to. */
function RaceLine() {
  const { run, id } = useRunHere();
  const { race } = run;
  if (!race) return null;
  const won = race.winner === id ? " It won." : race.winner ? " Another run won." : "";
  return (
    <p className="small muted">
      One of {race.runs.length} in a race: {race.runs.map((one) => one.name).join(", ")}.{won} <A href={racePath(race.id)}>See the race</A>
    </p>
  );
}

function Head({ onSide, sideOpen, overview }: { onSide: () => void; sideOpen: boolean; overview: boolean }) {
  const { view } = useRunHere();
  const iterations = view.budgets.find((b) => b.budget === "iterations");
  const number = view.current?.iteration ?? view.iterations;
  const over = isOver(view.status);
  return (
    <header className="run-header">
      <div className="run-title">
        <A href="/" className="back" aria-label="Back to the runs">←</A>
        <h1 title={view.title}>{view.title}</h1>
      </div>
      <div className="run-facts">
        <StatusMark status={view.status} />
        <span className="num">{over ? count(view.iterations, "iteration") : `iteration ${number}${iterations ? ` of ${iterations.limit}` : ""}`}</span>
        <Worked />
        <Spent />
      </div>
      <RaceLine />
      {/* The overview of a run that has ended begins with the same sentence. */}
      {view.status !== "needs you" && !(over && overview) && <NowLine />}
      <div className="run-controls">
        <Controls />
        <button type="button" className="icon side-toggle" onClick={onSide} aria-expanded={sideOpen} aria-label="Budgets, proof, agents" title="Right column (b)">
          <svg viewBox="0 0 16 16" width="15" height="15" aria-hidden fill="none" stroke="currentColor" strokeWidth="1.4"><rect x="1.5" y="2.5" width="13" height="11" rx="2" /><path d="M10.5 2.500v11" /></svg>
        </button>
      </div>
    </header>
  );
}

/** Agent time, counting while a session works. */
function Worked() {
  const { view } = useRunHere();
  const words = useTimeWords((now) => span(workedSeconds(view, now)));
  const limit = view.budgets.find((b) => b.budget === "time")?.limit;
  return <span className="num" title="Agent time, of its budget">{words}{limit && !isOver(view.status) ? ` of ${span(limit)}` : ""}</span>;
}

/** Cost, with the estimate of the session under way. */
function Spent() {
  const { view, run } = useRunHere();
  const limit = view.budgets.find((b) => b.budget === "cost")?.limit;
  const words = useTimeWords((now) => costAlone(costSoFar(view, run.sessionCost, now)));
  return <span className="num">{words}{limit && words !== "cost unknown" && !isOver(view.status) ? ` of ${money(limit)}` : ""}</span>;
}

/** A run that was deleted while its page is open; what was read stays. */
function Deleted() {
  const { id } = useRunHere();
  if (!useRunsLive().gone.has(id)) return null;
  return <p className="note note-attention" role="status"><strong>This run was deleted.</strong> The page shows what it had read. <A href="/">All runs</A></p>;
}

/** A warning while the stream of this run is down. */
function LinkLine() {
  const { run, store } = useRunHere();
  const now = useNow();
  if (run.link !== "offline" || run.retryAt === null) return null;
  return (
    <p className="link-line tone-attention" role="status">
      Not live. {run.retryAt > now ? `Trying again in ${span((run.retryAt - now) / 1000)}. ` : ""}
      <Button small look="quiet" onClick={store.retry}>Try now</Button>
    </p>
  );
}
