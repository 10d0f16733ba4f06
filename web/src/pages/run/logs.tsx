import { useVirtualizer } from "@tanstack/react-virtual";
import { memo, useCallback, useEffect, useMemo, useRef, useState } from "react";
import { api } from "../../api/calls";
import { asProblem, type Problem } from "../../api/client";
import { bytes, count } from "../../lib/format";
import { useThrottled } from "../../lib/hooks";
import { useKeys } from "../../lib/keys";
import { fold, logLines, passes, rawLines, type LogFilter, type LogLine } from "../../lib/log-lines";
import { isOver } from "../../lib/status";
import { setQuery } from "../../router";
import { Ansi } from "../../ui/ansi";
import { Button, cx, ProblemNote } from "../../ui/basics";
import { SearchIcon } from "../../ui/shell";
import { useRunHere } from "./context";

const FILTERS: [LogFilter, string][] = [["all", "All"], ["agent", "Agent"], ["tools", "Tools"], ["checks", "Checks"], ["errors", "Errors"]];

/** The live transcript, or the output of one iteration. */
export default function Logs({ query }: { query: URLSearchParams }) {
  const { view, run, id } = useRunHere();
  const iteration = Number(query.get("iteration")) || null;
  const [filter, setFilter] = useState<LogFilter>("all");
  const [search, setSearch] = useState("");
  const [follow, setFollow] = useState(true);
  const [at, setAt] = useState(0);
  const [unfolded, setUnfolded] = useState(false);
  const past = useOutput(id, iteration);
  const box = useRef<HTMLInputElement>(null);
  const shown = useThrottled(run, run.live.length > 3000 ? 500 : 150);
  const live = useMemo(() => logLines(shown.live, shown.events), [shown.live, shown.events]);
  const all = iteration === null ? live : past.lines;
  const lines = useMemo(() => all.filter((line) => passes(line, filter)), [all, filter]);
  const wanted = search.trim().toLowerCase();
  const matches = useMemo(
    () => (wanted ? lines.flatMap((line, n) => (`${line.name ?? ""} ${line.text}`.toLowerCase().includes(wanted) ? [n] : [])) : []),
    [lines, wanted],
  );
  const next = (step: number) => {
    if (matches.length === 0) return;
    setFollow(false);
    setAt((now) => (now + step + matches.length) % matches.length);
  };
  useKeys(
    [
      { keys: "/", what: "Search in the log", group: "logs" },
      { keys: "f", what: "Follow the end", group: "logs" },
      { keys: "G", what: "To the end", group: "logs" },
      { keys: "E", what: "Unfold all results", group: "logs" },
    ],
    (keys) => {
      if (keys === "/") box.current?.focus();
      else if (keys === "E") setUnfolded((now) => !now);
      else setFollow((now) => (keys === "G" ? true : !now));
    },
  );
  const numbers = Array.from({ length: view.iterations }, (_, n) => view.iterations - n).slice(0, 500);
  return (
    <div className="pane pane-log">
      <div className="pane-bar">
        <select aria-label="Which session" value={iteration ?? ""} onChange={(e) => setQuery({ iteration: e.target.value || null })}>
          <option value="">{isOver(view.status) ? "last output" : "live"}</option>
          {numbers.map((n) => <option key={n} value={n}>iteration {n}</option>)}
        </select>
        <div className="chips" role="group" aria-label="What is shown">
          {FILTERS.map(([key, label]) => (
            <button key={key} type="button" className={cx("chip", filter === key && "chip-on")} aria-pressed={filter === key} onClick={() => setFilter(key)}>{label}</button>
          ))}
        </div>
        <div className="search">
          <SearchIcon />
          <input
            ref={box}
            type="search"
            value={search}
            placeholder="Search the log"
            aria-label="Search the log"
            onChange={(e) => (setSearch(e.target.value), setAt(0))}
            onKeyDown={(e) => {
              if (e.key === "Enter") next(e.shiftKey ? -1 : 1);
              if (e.key === "Escape") (setSearch(""), e.currentTarget.blur());
            }}
          />
          {wanted && <span className="num small muted" role="status">{matches.length === 0 ? "none" : `${Math.min(at + 1, matches.length)}/${matches.length}`}</span>}
        </div>
        {iteration === null && (
          <Button small aria-pressed={follow} onClick={() => setFollow(!follow)} title="Follow the end (f)">{follow ? "✓ Following" : "Follow"}</Button>
        )}
        {iteration !== null && past.size > 0 && <span className="muted small num">{bytes(past.size)}</span>}
      </div>
      {past.problem && <ProblemNote problem={past.problem} />}
      <Lines lines={lines} mark={wanted} unfolded={unfolded || wanted !== ""} follow={follow && iteration === null} onScrollUp={() => setFollow(false)} target={wanted && !follow ? (matches[Math.min(at, matches.length - 1)] ?? null) : null} />
      {iteration !== null && past.more && <Button small onClick={past.next}>Load more</Button>}
    </div>
  );
}

/** The output of a finished iteration, part by part. */
function useOutput(id: string, iteration: number | null) {
  const [state, setState] = useState<{ text: string; next: number; size: number; problem: Problem | null }>({ text: "", next: 0, size: 0, problem: null });
  const read = useCallback(
    async (from: number, signal?: AbortSignal) => {
      if (iteration === null) return;
      try {
        const part = await api.output(id, iteration, from, signal);
        setState((old) => ({ text: (from === 0 ? "" : old.text) + part.text, next: part.next, size: part.size, problem: null }));
      } catch (error) {
        if (!signal?.aborted) setState((old) => ({ ...old, problem: asProblem(error) }));
      }
    },
    [id, iteration],
  );
  useEffect(() => {
    setState({ text: "", next: 0, size: 0, problem: null });
    const stop = new AbortController();
    void read(0, stop.signal);
    return () => stop.abort();
  }, [read]);
  const whole = state.next >= state.size;
  const lines = useMemo(() => (iteration === null ? [] : rawLines(state.text, iteration, whole)), [state.text, iteration, whole]);
  return { lines, size: state.size, problem: state.problem, more: !whole, next: () => void read(state.next) };
}

function Lines({ lines, mark, unfolded, follow, onScrollUp, target }: { lines: LogLine[]; mark: string; unfolded: boolean; follow: boolean; onScrollUp: () => void; target: number | null }) {
  const box = useRef<HTMLDivElement>(null);
  const virtual = useVirtualizer({ count: lines.length, getScrollElement: () => box.current, estimateSize: () => 20, overscan: 30, getItemKey: (n) => lines[n]?.key ?? n });
  const lastTop = useRef(0);
  const [open, setOpen] = useState<ReadonlySet<string>>(new Set());
  const toggle = useCallback(
    (key: string) =>
      setOpen((old) => {
        const next = new Set(old);
        if (!next.delete(key)) next.add(key);
        return next;
      }),
    [],
  );
  useEffect(() => {
    if (follow && lines.length > 0) virtual.scrollToIndex(lines.length - 1, { align: "end" });
  }, [follow, lines.length, virtual]);
  useEffect(() => {
    if (target !== null) virtual.scrollToIndex(target, { align: "center" });
  }, [target, virtual]);
  return (
    <div
      className="log"
      ref={box}
      tabIndex={0}
      role="log"
      aria-live="off"
      aria-label="Log"
      onScroll={(e) => {
        const top = e.currentTarget.scrollTop;
        if (follow && top < lastTop.current - 30) onScrollUp();
        lastTop.current = top;
      }}
    >
      {lines.length === 0 && <p className="muted log-empty">No output yet</p>}
      <div className="log-inner" style={{ height: virtual.getTotalSize() }}>
        {virtual.getVirtualItems().map((item) => {
          const line = lines[item.index];
          return line && (
            <div key={item.key} data-index={item.index} ref={virtual.measureElement} className={cx("log-line", `log-${line.kind}`, line.code && "log-code", item.index === target && "log-target")} style={{ transform: `translateY(${item.start}px)` }}>
              <Line line={line} mark={mark} unfolded={unfolded || open.has(line.key)} onOpen={toggle} />
            </div>
          );
        })}
      </div>
    </div>
  );
}

const CLOCK = new Intl.DateTimeFormat([], { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false });

function localTime(at: string): string {
  const time = Date.parse(at);
  return Number.isFinite(time) ? CLOCK.format(time) : "";
}

const Line = memo(function Line({ line, mark, unfolded, onOpen }: { line: LogLine; mark: string; unfolded: boolean; onOpen: (key: string) => void }) {
  // Only what a tool returned is long by nature; everything else is one line.
  const folded = line.kind === "result" || line.kind === "error" ? fold(line.text, line.kind === "result") : { shown: line.text, hidden: 0 };
  return (
    <>
      {line.at ? <time className="log-time num" dateTime={line.at} >{localTime(line.at)}</time> : <span />}
      <span className="log-text">
        {line.kind === "tool" && <span className="log-name">▸ {line.name} </span>}
        {line.kind === "result" && <span className="muted">└ </span>}
        {line.kind === "check" && line.name && <span className="log-source">{line.name} │ </span>}
        {line.kind === "event" && <span aria-hidden className="muted">— </span>}
        {line.kind === "error" && <span className="tone-bad">✗ </span>}
        <Ansi text={unfolded ? line.text : folded.shown} mark={mark} />
        {folded.hidden > 0 && <button type="button" className="link log-more" onClick={() => onOpen(line.key)}>{unfolded ? "fold" : `… ${count(folded.hidden, "more line")}`}</button>}
      </span>
    </>
  );
});
