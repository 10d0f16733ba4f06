import { useEffect, useMemo, useRef, useState } from "react";
import type { RunsQuery } from "../api/calls";
import { api } from "../api/calls";
import { count, digits } from "../lib/format";
import { useLoad, useSettled, useThrottled, useTitle } from "../lib/hooks";
import { useKeys } from "../lib/keys";
import { listItems, type ListItem } from "../lib/list";
import { GROUPS } from "../lib/status";
import { useRunsLive } from "../live/list-store";
import { useRunsList, useUnfinishedToo } from "../live/runs-list";
import { go, racePath, runPath, setQuery } from "../router";
import { Button, cx, Empty, ProblemNote, Skeleton } from "../ui/basics";
import { SearchIcon } from "../ui/shell";
import { FirstUse } from "./first-use";
import { Rows } from "./run-rows";

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

  const grouped = !group && sort === "updated" && order === "desc";
  const rows = useUnfinishedToo(list.rows, filters, grouped);
  const [open, setOpen] = useState<ReadonlySet<string>>(new Set());
  const races = useRaces();
  const items = useMemo(() => listItems(rows, races, open, grouped), [rows, races, open, grouped]);
  const unfold = (race: string) =>
    setOpen((old) => {
      const next = new Set(old);
      if (!next.delete(race)) next.add(race);
      return next;
    });

  // The cursor stays on its line when others move.
  const [cursor, setCursor] = useState<string | null>(null);
  const at = items.findIndex((item) => item.key === cursor);
  const step = (by: 1 | -1) => {
    let next = at + by;
    while (items[next]?.what === "group") next += by;
    if (items[next]) setCursor(items[next]?.key ?? null);
  };
  const openItem = (item: ListItem | undefined) => {
    if (item?.what === "run") go(runPath(item.row.id));
    else if (item?.what === "race") go(racePath(item.race.id));
  };
  useKeys(
    [
      { keys: "/", what: "Search", group: "runs" },
      { keys: "j", what: "Next run", group: "runs" },
      { keys: "k", what: "Previous run", group: "runs" },
      { keys: "Enter", what: "Open the run", group: "runs" },
      { keys: "x", what: "Show or hide the runs of a race", group: "runs" },
    ],
    (keys) => {
      if (keys === "/") search.current?.focus();
      else if (keys === "j") step(1);
      else if (keys === "k") step(-1);
      else if (keys === "x") items[at]?.what === "race" && unfold(items[at].race.id);
      else openItem(items[at]);
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
          <Rows items={items} rows={rows} at={at} more={list.more} hasMore={list.hasMore} onRace={unfold} />
          <p className="list-foot muted" role="status">
            {count(list.total, "run")}{plain ? "" : " match"}
          </p>
        </>
      )}
    </main>
  );
}

/** The latest races, read again when the status of one of their runs changes. */
function useRaces() {
  const live = useRunsLive();
  const [ids, setIds] = useState<string[]>([]);
  const statuses = useThrottled(`${live.generation} ${ids.map((id) => live.rows.get(id)?.status ?? "").join(" ")}`, 1000);
  const races = useLoad((signal) => api.races(signal), [statuses]);
  useEffect(() => {
    if (races.data) setIds(races.data.flatMap((race) => race.runs.map((run) => run.run_id)));
  }, [races.data]);
  return useMemo(() => races.data ?? [], [races.data]);
}
