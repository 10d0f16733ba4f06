// The rows of one filtered list: pages of the server's index, with what the stream tells laid over them. Nothing moves
// under the reader's hand: known rows change in place, new ones come on top.

import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { api, type RunsQuery } from "../api/calls";
import { asProblem, type Problem } from "../api/client";
import type { RunRow, RunsPage } from "../api/types";
import { isActive } from "../lib/status";
import { runsLive, useRunsLive } from "./list-store";
import { takeRows } from "./start";

const PAGE = 100;

export interface RunsList {
  rows: RunRow[];
  total: number;
  counts: Record<string, number> | null;
  loading: boolean;
  problem: Problem | null;
  more: () => void;
  hasMore: boolean;
  reload: () => void;
}

/** Whether a new row matches the filters of the list. */
export function belongs(row: RunRow, q: RunsQuery): boolean {
  if (q.status && !q.status.split(",").includes(row.status)) return false;
  if (q.repo && row.repo !== q.repo && row.folder !== q.repo) return false;
  if (q.person && row.person !== q.person) return false;
  if (q.q) {
    const words = `${row.task} ${row.repo} ${row.branch ?? ""} ${row.id} ${row.agent ?? ""}`.toLowerCase();
    return q.q.toLowerCase().split(/\s+/).every((word) => words.includes(word));
  }
  return true;
}

/** The rows of a list, and every unfinished run that a later page would show. */
export function useUnfinishedToo(rows: RunRow[], filters: RunsQuery, on: boolean): RunRow[] {
  const live = useRunsLive();
  return useMemo(() => {
    if (!on) return rows;
    const listed = new Set(rows.map((row) => row.id));
    const missing = [...live.rows.values()].filter((row) => isActive(row.status) && !listed.has(row.id) && !live.gone.has(row.id) && belongs(row, filters));
    return missing.length === 0 ? rows : [...rows, ...missing.sort((a, b) => (a.updated_at < b.updated_at ? 1 : -1))];
  }, [rows, filters, on, live.rows, live.gone]);
}

interface Pages {
  ids: string[];
  rows: Map<string, RunRow>;
  cursor: string | null;
  total: number;
  counts: Record<string, number> | null;
}

function pagesOf(page: RunsPage): Pages {
  const rows = new Map(page.runs.map((row) => [row.id, row]));
  return { ids: [...rows.keys()], rows, cursor: page.next_cursor ?? null, total: page.total, counts: page.counts ?? null };
}

const NONE: Pages = { ids: [], rows: new Map(), cursor: null, total: 0, counts: null };

export function useRunsList(q: RunsQuery): RunsList {
  const key = JSON.stringify(q);
  const { rows: told, gone, generation } = useRunsLive();
  // The rows that came before the page was drawn.
  const [begun] = useState(() => takeRows());
  const [pages, setPages] = useState<Pages>(() => (begun ? pagesOf(begun) : NONE));
  const [state, setState] = useState<{ loading: boolean; problem: Problem | null }>({ loading: begun === null, problem: null });
  const [again, setAgain] = useState(0);
  const busy = useRef(false);
  const unread = useRef(begun === null);

  useEffect(() => {
    if (!unread.current) {
      // The list loads again once the stream is connected.
      unread.current = true;
      return;
    }
    const stop = new AbortController();
    setState((old) => ({ ...old, loading: true }));
    api.runs({ ...(JSON.parse(key) as RunsQuery), limit: PAGE }, stop.signal).then(
      (page) => {
        if (stop.signal.aborted) return;
        runsLive.learn(page.runs);
        setPages(pagesOf(page));
        setState({ loading: false, problem: null });
      },
      (error: unknown) => !stop.signal.aborted && setState({ loading: false, problem: asProblem(error) }),
    );
    return () => stop.abort();
  }, [key, generation, again]);

  // A run that begins while the list is shown.
  useEffect(
    () =>
      runsLive.watch((row, before) => {
        if (before || !belongs(row, JSON.parse(key) as RunsQuery)) return;
        setPages((old) => (old.rows.has(row.id) ? old : { ...old, ids: [row.id, ...old.ids], rows: new Map(old.rows).set(row.id, row), total: old.total + 1 }));
      }),
    [key],
  );

  const more = useCallback(() => {
    if (busy.current || pages.cursor === null) return;
    busy.current = true;
    api.runs({ ...(JSON.parse(key) as RunsQuery), limit: PAGE, cursor: pages.cursor }).then(
      (page) => {
        busy.current = false;
        runsLive.learn(page.runs);
        setPages((old) => {
          const rows = new Map(old.rows);
          const fresh = page.runs.filter((row) => !rows.has(row.id));
          fresh.forEach((row) => rows.set(row.id, row));
          return { ...old, rows, ids: [...old.ids, ...fresh.map((row) => row.id)], cursor: page.next_cursor ?? null };
        });
      },
      () => {
        busy.current = false;
      },
    );
  }, [key, pages.cursor]);

  const rows = useMemo(
    () => pages.ids.filter((id) => !gone.has(id)).map((id) => told.get(id) ?? pages.rows.get(id)).filter((row): row is RunRow => row !== undefined),
    [pages, told, gone],
  );
  return { rows, total: pages.total, counts: pages.counts, ...state, more, hasMore: pages.cursor !== null, reload: useCallback(() => setAgain((n) => n + 1), []) };
}
