import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useMemo, useRef, useState } from "react";
import type { RunsQuery } from "../api/calls";
import type { RunRow } from "../api/types";
import { api } from "../api/calls";
import { basename, cost, count, digits, money } from "../lib/format";
import { useLoad, useSettled, useTitle, useWide } from "../lib/hooks";
import { useKeys } from "../lib/keys";
import { byAttention, GROUPS, isActive, isOver, proofWords, prWords } from "../lib/status";
import { useRunsList } from "../live/runs-list";
import { go, runPath, setQuery } from "../router";
import { A, Ago, Button, cx, Empty, Out, ProblemNote, Skeleton } from "../ui/basics";
import { AgentTag, Bar, LoopBar, StatusMark } from "../ui/signs";
import { SearchIcon } from "../ui/shell";
import { FirstUse } from "./first-use";

const SORTS: [string, string][] = [
  ["updated", "last activity"], ["created", "newest"], ["cost", "cost"], ["iteration", "iterations"], ["score", "stuck score"],
];

export function Runs({ query }: { query: URLSearchParams }) {
  useTitle("Runs · ralph");
  const [text, setText] = useState(query.get("q") ?? "");
  const settled = useSettled(text, 200);
  const group = GROUPS.find((g) => g.id === query.get("status"));
  const sort = query.get("sort") ?? "updated";
  const order = query.get("order") ?? "desc";
  const repo = query.get("repo") ?? "";
  useEffect(() => setQuery({ q: settled || null }), [settled]);

  const filters: RunsQuery = useMemo(
    () => ({
      sort, order,
      ...(settled ? { q: settled } : {}),
      ...(repo ? { repo } : {}),
      ...(group ? { status: group.statuses.join(",") } : {}),
    }),
    [settled, repo, group, sort, order],
  );
  const list = useRunsList(filters);
  const repos = useLoad(() => api.repos(), []);
  const search = useRef<HTMLInputElement>(null);
  const plain = !settled && !group && !repo;

  const rows = useMemo(() => (group || sort !== "updated" || order !== "desc" ? list.rows : byAttention(list.rows)), [list.rows, group, sort, order]);

  const [at, setAt] = useState(-1);
  useKeys(
    [
      { keys: "/", what: "Search", group: "runs" },
      { keys: "j", what: "Next run", group: "runs" },
      { keys: "k", what: "Previous run", group: "runs" },
      { keys: "Enter", what: "Open the run", group: "runs" },
    ],
    (keys) => {
      if (keys === "/") search.current?.focus();
      else if (keys === "j") setAt((n) => Math.min(rows.length - 1, n + 1));
      else if (keys === "k") setAt((n) => Math.max(0, n - 1));
      else if (rows[at]) go(runPath(rows[at].id));
    },
  );

  return (
    <main className="page page-runs" id="main">
      <h1 className="sr-only">Runs</h1>
      <div className="toolbar">
        <div className="search">
          <SearchIcon />
          <input
            ref={search}
            type="search"
            value={text}
            onChange={(e) => setText(e.target.value)}
            onKeyDown={(e) => e.key === "Escape" && (setText(""), e.currentTarget.blur())}
            placeholder="Search tasks, repos, branches"
            aria-label="Search runs"
          />
          <kbd aria-hidden>/</kbd>
        </div>
        <div className="chips" role="group" aria-label="Filter by status">
          {GROUPS.map((g) => {
            const n = list.counts ? g.statuses.reduce((sum, s) => sum + (list.counts?.[s] ?? 0), 0) : null;
            const on = group?.id === g.id;
            return (
              <button key={g.id} type="button" className={cx("chip", on && "chip-on", g.id === "needs" && (n ?? 0) > 0 && "tone-attention")} aria-pressed={on} onClick={() => setQuery({ status: on ? null : g.id })}>
                {g.label} {n !== null && <span className="num">{digits(n)}</span>}
              </button>
            );
          })}
        </div>
        <div className="toolbar-right">
          {(repos.data?.length ?? 0) > 1 && (
            <select aria-label="Repo" value={repo} onChange={(e) => setQuery({ repo: e.target.value || null })}>
              <option value="">all repos</option>
              {repos.data?.map((r) => (
                <option key={r.path} value={r.path}>{r.name}</option>
              ))}
            </select>
          )}
          <select aria-label="Sort by" value={sort} onChange={(e) => setQuery({ sort: e.target.value === "updated" ? null : e.target.value })}>
            {SORTS.map(([id, label]) => (
              <option key={id} value={id}>by {label}</option>
            ))}
          </select>
          <button type="button" className="icon" aria-label={order === "desc" ? "Descending, reverse order" : "Ascending, reverse order"} title="Reverse order" onClick={() => setQuery({ order: order === "desc" ? "asc" : null })}>
            {order === "desc" ? "↓" : "↑"}
          </button>
        </div>
      </div>
      {list.problem && <ProblemNote problem={list.problem} retry={list.reload} />}
      {list.loading && rows.length === 0 && !list.problem ? (
        <Skeleton lines={9} label="Reading the runs" />
      ) : rows.length === 0 && !list.problem ? (
        plain ? <FirstUse /> : (
          <Empty title="No run matches">
            <Button onClick={() => (setText(""), setQuery({ status: null, repo: null, q: null }))}>Show all runs</Button>
          </Empty>
        )
      ) : (
        <>
          <Rows rows={rows} at={at} more={list.more} hasMore={list.hasMore} />
          <p className="list-foot muted" role="status">
            {count(list.total, "run")}{plain ? "" : " match"}
          </p>
        </>
      )}
    </main>
  );
}

function Rows({ rows, at, more, hasMore }: { rows: RunRow[]; at: number; more: () => void; hasMore: boolean }) {
  const box = useRef<HTMLDivElement>(null);
  const wide = useWide(1200);
  const middle = useWide(700);
  const height = wide ? 40 : middle ? 58 : 92;
  const virtual = useVirtualizer({ count: rows.length, getScrollElement: () => box.current, estimateSize: () => height, overscan: 3, initialRect: { width: innerWidth, height: innerHeight }, getItemKey: (i) => rows[i]?.id ?? i });
  useEffect(() => virtual.measure(), [height, virtual]);
  const items = virtual.getVirtualItems();
  const last = items[items.length - 1]?.index ?? 0;
  useEffect(() => {
    if (hasMore && last >= rows.length - 30) more();
  }, [last, rows.length, hasMore, more]);
  useEffect(() => {
    if (at >= 0) virtual.scrollToIndex(at, { align: "auto" });
  }, [at, virtual]);
  return (
    <div className="runs" ref={box} tabIndex={-1}>
      {wide && (
        <div className="run-head" aria-hidden>
          <span>status</span><span>repo</span><span>task</span><span className="right">iteration</span><span>stuck score</span><span>cost</span><span className="right">active</span><span>pull request</span><span>now</span>
        </div>
      )}
      <ul className="run-list" style={{ height: virtual.getTotalSize() }}>
        {items.map((item) => {
          const row = rows[item.index];
          return row && (
            <li key={item.key} className={cx("run-row", item.index === at && "run-row-at")} style={{ transform: `translateY(${item.start}px)`, height }}>
              <Row row={row} />
            </li>
          );
        })}
      </ul>
    </div>
  );
}

/** Unfinished, without a process. */
function notRunning(row: RunRow): boolean {
  return row.driven === false && isActive(row.status) && row.status !== "needs you" && row.status !== "queued";
}

function Row({ row }: { row: RunRow }) {
  const over = isOver(row.status);
  const proof = row.status === "done" ? proofWords(row.proof_level) : null;
  const now = row.problem ?? (row.queued ? `position ${row.queued} in the queue` : row.now);
  const share = row.budget_usd && row.cost_usd ? row.cost_usd / row.budget_usd : 0;
  return (
    <>
      <A href={runPath(row.id)} className="run-link" aria-label={`${row.task}, ${row.status}`} />
      <span className="c-status"><StatusMark status={row.status} />{notRunning(row) && <span className="tag tone-attention" title="No process works on it; resume it to continue">not running</span>}</span>
      <span className="c-repo muted" title={row.folder ?? row.repo}>{basename(row.repo)}</span>
      <span className="c-task" title={row.task}>{row.task}</span>
      <span className="c-iter num right">{row.iteration}{row.max_iterations && !over ? <span className="muted">/{row.max_iterations}</span> : null}</span>
      <span className="c-loop">{proof ? <span className="tone-good small">{proof}</span> : row.loop_score === null ? <span className="muted">–</span> : <LoopBar score={row.loop_score} />}</span>
      <span className="c-cost num">
        <span>{cost(row)}</span>
        {row.budget_usd && !over ? <><Bar share={share} label="cost" /><span className="muted">{money(row.budget_usd)}</span></> : null}
      </span>
      <span className="c-age right muted"><Ago at={row.updated_at} narrow /></span>
      <span className="c-pr">{row.pr_url ? <Out href={row.pr_url}>{prWords(row)}</Out> : <span className="muted">–</span>}</span>
      <span className={cx("c-now", row.status === "needs you" ? "tone-attention" : "muted")} title={now ?? undefined}>
        {row.agent && !over && row.status !== "needs you" && !now?.includes(row.agent) && <AgentTag name={row.agent} />} {now}
      </span>
    </>
  );
}
