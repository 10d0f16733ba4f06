import { useMemo, useRef, useState } from "react";
import type { RunRow } from "../api/types";
import { costAlone, costShare, money } from "../lib/format";
import { useNow, useTitle } from "../lib/hooks";
import { useKeys } from "../lib/keys";
import { notRunning, repoNames, rowNow } from "../lib/list";
import { isActive, isOver } from "../lib/status";
import { useUnfinishedToo, useRunsList } from "../live/runs-list";
import { go, runPath } from "../router";
import { A, Ago, cx, ProblemNote, Skeleton } from "../ui/basics";
import { AgentTag, Bar, LoopBar, Spark, StatusMark } from "../ui/signs";
import { RowAction } from "./run-rows";

const QUERY = { sort: "updated", order: "desc" };
const DAY = 86_400_000;
/** Cards of a column. */
const MOST = 40;

const COLUMNS = ["Needs you", "Active", "Waiting", "Finished today"] as const;

/** The rows of each column; finished runs for a day. */
export function columnsOf(rows: RunRow[], now: number): RunRow[][] {
  const out: RunRow[][] = COLUMNS.map(() => []);
  for (const row of rows) {
    const waits = row.status === "waiting" || row.status === "paused" || row.status === "queued" || notRunning(row);
    const at = row.status === "needs you" ? 0 : isActive(row.status) ? (waits ? 2 : 1) : isOver(row.status) && now - Date.parse(row.updated_at) < DAY ? 3 : -1;
    out[at]?.push(row);
  }
  return out;
}

/** All runs as cards, in columns by what they wait for. A status is a fact: cards can't be dragged. */
export default function Board() {
  useTitle("Board · ralph");
  const list = useRunsList(QUERY);
  const rows = useUnfinishedToo(list.rows, QUERY, true);
  const minute = Math.floor(useNow() / 60_000);
  const columns = useMemo(() => columnsOf(rows, minute * 60_000), [rows, minute]);
  const repo = useMemo(() => repoNames(rows), [rows]);
  const [cursor, setCursor] = useState<string | null>(null);
  const board = useRef<HTMLDivElement>(null);
  const column = columns.findIndex((cards) => cards.some((row) => row.id === cursor));
  const place = columns[column]?.findIndex((row) => row.id === cursor) ?? -1;
  const to = (row: RunRow | undefined) => {
    if (!row) return;
    setCursor(row.id);
    board.current?.querySelector(`[data-run="${CSS.escape(row.id)}"]`)?.scrollIntoView({ block: "nearest", inline: "nearest" });
  };
  const aside = (by: 1 | -1) => {
    for (let at = column + by; at >= 0 && at < columns.length; at += by) {
      const cards = columns[at] ?? [];
      if (cards.length > 0) return to(cards[Math.max(0, Math.min(place, cards.length - 1))]);
    }
  };
  useKeys(
    [
      { keys: "j", what: "Card below", group: "runs" },
      { keys: "k", what: "Card above", group: "runs" },
      { keys: "h", what: "Column to the left", group: "runs" },
      { keys: "l", what: "Column to the right", group: "runs" },
      { keys: "Enter", what: "Open the run", group: "runs" },
      { keys: ".", what: "Primary action", group: "runs" },
    ],
    (keys) => {
      if (keys === "l") aside(1);
      else if (keys === "h") aside(-1);
      else if (column < 0) to(columns.flat()[0]);
      else if (keys === "j") to(columns[column]?.[place + 1]);
      else if (keys === "k") to(columns[column]?.[place - 1]);
      else if (cursor === null) return;
      else if (keys === "Enter") go(runPath(cursor));
      else board.current?.querySelector<HTMLElement>(`[data-run="${CSS.escape(cursor)}"] .button`)?.click();
    },
  );
  return (
    <main className="page page-runs" id="main">
      <h1 className="sr-only">Board</h1>
      {list.problem && <ProblemNote problem={list.problem} retry={list.reload} />}
      {list.loading && rows.length === 0 && !list.problem ? <Skeleton lines={8} label="Reading the runs" /> : (
        <div className="board" ref={board}>
          {COLUMNS.map((label, at) => (
            <section key={label} className="board-column" aria-label={label}>
              <h2>{label} <span className="num muted">{columns[at]?.length ?? 0}</span></h2>
              <ul>
                {columns[at]?.slice(0, MOST).map((row) => <Card key={row.id} row={row} repo={repo(row.repo)} at={row.id === cursor} />)}
                {columns[at]?.length === 0 && <li className="muted small board-none">None</li>}
              </ul>
              {(columns[at]?.length ?? 0) > MOST && <p className="muted small"><A href="/">{(columns[at]?.length ?? 0) - MOST} more in the list</A></p>}
            </section>
          ))}
        </div>
      )}
    </main>
  );
}

function Card({ row, repo, at }: { row: RunRow; repo: string; at: boolean }) {
  const over = isOver(row.status);
  const share = over ? null : costShare(row, row.budget_usd);
  return (
    <li className={cx("board-card", at && "board-at")} data-run={row.id}>
      <A href={runPath(row.id)} className="run-link" aria-label={`${row.task}, ${row.status}`} />
      <p className="board-title">{row.task}</p>
      <p className="board-line small"><StatusMark status={row.status} /> <span className="muted">{repo}</span> {row.agent && <AgentTag name={row.agent} />} <span className="grow" /><span className="muted"><Ago at={row.updated_at} narrow /></span></p>
      {rowNow(row) && <p className={cx("board-now small", row.status === "needs you" ? "tone-attention" : "muted")}>{rowNow(row)}</p>}
      <p className="board-line small num">
        {row.tests && <span>tests {row.tests.passed}<span className="muted">/{row.tests.passed + row.tests.failed}</span></span>}
        {row.tests && row.tests.series.length > 1 && <Spark values={row.tests.series} label="tests passing" max={row.tests.passed + row.tests.failed} tone="good" width={48} />}
        <span>iteration {row.iteration}{row.max_iterations && !over ? <span className="muted">/{row.max_iterations}</span> : null}</span>
        <span>{costAlone(row)}{share !== null && row.budget_usd ? <span className="muted"> of {money(row.budget_usd)}</span> : null}</span>
        {!over && row.loop_score !== null && <LoopBar score={row.loop_score} />}
      </p>
      {share !== null && <Bar share={share} label="cost" />}
      <div className="board-act"><RowAction row={row} /></div>
    </li>
  );
}
