import { useVirtualizer } from "@tanstack/react-virtual";
import { memo, useCallback, useEffect, useMemo, useRef, useState } from "react";
import { api } from "../../api/calls";
import { asProblem, type Problem } from "../../api/client";
import { bytes, count } from "../../lib/format";
import { shortPaths } from "../../lib/clean";
import { useSettled, useThrottled } from "../../lib/hooks";
import { useKeys } from "../../lib/keys";
import { cut, fold, hasWords, logLines, passes, rawLines, type LogFilter, type LogLine } from "../../lib/log-lines";
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
  const place = query.get("at");
  const past = useOutput(id, iteration, place !== null && /^\d+$/.test(place) ? Number(place) : 0);
  const box = useRef<HTMLInputElement>(null);
  const shown = useThrottled(run, run.live.length > 3000 ? 500 : 150);
  const live = useMemo(() => logLines(shown.live, shown.events), [shown.live, shown.events]);
  const all = iteration === null ? live : past.lines;
  const lines = useMemo(() => all.filter((line) => passes(line, filter)), [all, filter]);
  const wanted = useSettled(search.trim().toLowerCase(), 150);
  const whole = useHits(id, past.part ? iteration : null, wanted, filter);
  const loaded = useMemo(() => (wanted ? lines.flatMap((line, n) => (hasWords(line, wanted) ? [n] : [])) : []), [lines, wanted]);
  const matches = past.part ? whole.hits.length : loaded.length;
  const match = Math.min(at, matches - 1);
  const hit = past.part ? whole.hits[match] : undefined;
  const { show } = past;
  useEffect(() => {
    if (hit !== undefined && !follow) show(hit);
  }, [hit, follow, show]);
  const target = !wanted || follow ? (place === null ? -1 : lines.findIndex((line) => line.offset === Number(place))) : hit !== undefined ? lines.findIndex((line) => line.offset === hit && hasWords(line, wanted)) : (loaded[match] ?? -1);
  const next = (step: number) => {
    setFollow(false);
    // The first step shows the first match, which may still be searched.
    setAt((now) => (follow || matches === 0 ? 0 : (now + step + matches) % matches));
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
            onChange={(e) => (setSearch(e.target.value), setAt(0), iteration !== null && setFollow(true))}
            onKeyDown={(e) => {
              if (e.key === "Enter") next(e.shiftKey ? -1 : 1);
              if (e.key === "Escape") (setSearch(""), e.currentTarget.blur());
            }}
          />
          {wanted && <span className="num small muted" role="status">{matches === 0 ? (past.part && whole.searching ? "searching …" : "none") : `${match + 1}/${matches}${past.part && (whole.searching || whole.more) ? "+" : ""}`}</span>}
        </div>
        {iteration === null && (
          <Button small aria-pressed={follow} onClick={() => setFollow(!follow)} title="Follow the end (f)">{follow ? "✓ Following" : "Follow"}</Button>
        )}
        {iteration !== null && past.size > 0 && <span className="muted small num">{bytes(past.size)}</span>}
      </div>
      {past.problem && <ProblemNote problem={past.problem} />}
      {iteration !== null && past.from > 0 && <Button small onClick={past.earlier}>Load earlier</Button>}
      <Lines lines={lines} mark={wanted} unfolded={unfolded} workspace={view.workspace} follow={follow && iteration === null} onScrollUp={() => setFollow(false)} target={target < 0 ? null : target} />
      {iteration !== null && past.more && <Button small onClick={past.next}>Load more</Button>}
    </div>
  );
}

/** Bytes that are read at a time, and the most for one long line. */
const PART = 256 * 1024;
const LINE_MAX = 2 * 1024 * 1024;

interface Output {
  /** The first byte of the text, and the one after it. */
  from: number;
  next: number;
  text: string;
  size: number;
  problem: Problem | null;
}

const NO_OUTPUT: Output = { from: 0, next: 0, text: "", size: 0, problem: null };

/** A part of the output of a finished iteration, from `start` on. */
function useOutput(id: string, iteration: number | null, start: number) {
  const [state, setState] = useState<Output>(NO_OUTPUT);
  const read = useCallback(
    async (from: number, how: "new" | "after" | "before", limit: number, signal?: AbortSignal) => {
      if (iteration === null) return;
      try {
        const part = await api.output(id, iteration, from, limit, signal);
        // A line of many megabytes comes in parts.
        while (how !== "before" && !part.text.includes("\n") && part.next < part.size && part.next - from < LINE_MAX) {
          const more = await api.output(id, iteration, part.next, LINE_MAX, signal);
          if (more.next <= part.next) break;
          [part.text, part.next] = [part.text + more.text, more.next];
        }
        setState((old) => {
          if (how === "after") return { ...old, text: old.text + part.text, next: part.next, size: part.size, problem: null };
          // Begins with a whole line, if there is one.
          const skip = how === "before" && from > 0 ? part.text.indexOf("\n") + 1 : 0;
          const begin = from + new TextEncoder().encode(part.text.slice(0, skip)).length;
          const text = part.text.slice(skip);
          return how === "before" ? { ...old, text: text + old.text, from: begin, problem: null } : { text, from: begin, next: part.next, size: part.size, problem: null };
        });
      } catch (error) {
        if (!signal?.aborted) setState((old) => ({ ...old, problem: asProblem(error) }));
      }
    },
    [id, iteration],
  );
  useEffect(() => {
    setState(NO_OUTPUT);
    const stop = new AbortController();
    void read(start, "new", PART, stop.signal);
    return () => stop.abort();
  }, [read, start]);
  const { from, next, size } = state;
  const show = useCallback(
    (offset: number) => {
      if (offset < from || offset >= next) void read(offset, "new", PART);
    },
    [from, next, read],
  );
  const lines = useMemo(() => (iteration === null ? [] : rawLines(state.text, iteration, next >= size, from)), [state.text, iteration, next, size, from]);
  return {
    lines, from, size, show, problem: state.problem,
    more: next < size,
    /** Whether the log has more than is loaded. */
    part: iteration !== null && (from > 0 || next < size),
    next: () => void read(next, "after", PART),
    earlier: () => void read(Math.max(0, from - PART), "before", Math.min(PART, from)),
  };
}

/** Matches in a log that are kept. */
const HITS_MAX = 2000;

/** First bytes of the lines with some words, in the whole log of an iteration. Only what a line shows counts. */
function useHits(id: string, iteration: number | null, words: string, filter: LogFilter) {
  const [state, setState] = useState<{ hits: number[]; searching: boolean; more: boolean }>({ hits: [], searching: false, more: false });
  useEffect(() => {
    setState({ hits: [], searching: iteration !== null && words !== "", more: false });
    if (iteration === null || words === "") return;
    const stop = new AbortController();
    const search = async () => {
      const hits: number[] = [];
      let more = true;
      for (let from = 0; more && hits.length < HITS_MAX; ) {
        const found = await api.outputHits(id, iteration, words, from, stop.signal);
        for (const { offset, line } of found.hits) {
          if (rawLines(line, iteration, true, offset).some((one) => passes(one, filter) && hasWords(one, words))) hits.push(offset);
        }
        more = found.next < found.size && found.next > from;
        from = found.next;
        if (!stop.signal.aborted) setState({ hits: [...hits], searching: more && hits.length < HITS_MAX, more });
      }
    };
    search().catch(() => !stop.signal.aborted && setState((old) => ({ ...old, searching: false })));
    return () => stop.abort();
  }, [id, iteration, words, filter]);
  return state;
}

interface LinesProps {
  lines: LogLine[];
  mark: string;
  unfolded: boolean;
  workspace: string;
  follow: boolean;
  onScrollUp: () => void;
  target: number | null;
}

function Lines({ lines, mark, unfolded, workspace, follow, onScrollUp, target }: LinesProps) {
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
              <Line line={line} mark={mark} unfolded={unfolded || open.has(line.key)} workspace={workspace} onOpen={toggle} />
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

const Line = memo(function Line({ line, mark, unfolded, workspace, onOpen }: { line: LogLine; mark: string; unfolded: boolean; workspace: string; onOpen: (key: string) => void }) {
  const { offset } = line;
  const text = line.kind === "tool" ? shortPaths(line.text, workspace) : line.text;
  // What a tool returned has many lines; everything else is one, however long.
  const result = line.kind === "result" || line.kind === "error";
  const lines = result ? fold(text, line.kind === "result") : { shown: text, hidden: 0 };
  const found = mark !== "" && lines.hidden > 0 && hasWords(line, mark);
  const long = cut(found ? text : lines.shown);
  const folded = long.hidden > 0 ? `… ${count(long.hidden, "more character")}` : lines.hidden > 0 && !found ? `… ${count(lines.hidden, "more line")}` : "";
  return (
    <>
      {line.at ? <time className="log-time num" dateTime={line.at} >{localTime(line.at)}</time> : offset !== undefined ? <button type="button" className="link log-time log-place" tabIndex={-1} aria-label="Link to this line" title="Link to this line" onClick={() => setQuery({ at: String(offset) })}>#</button> : <span />}
      <span className="log-text">
        {line.kind === "tool" && <span className="log-name">▸ {line.name} </span>}
        {line.kind === "result" && <span className="muted">└ </span>}
        {line.kind === "check" && line.name && <span className="log-source">{line.name} │ </span>}
        {line.kind === "event" && <span aria-hidden className="muted">— </span>}
        {line.kind === "error" && <span className="tone-bad">✗ </span>}
        {line.kind === "say" && !line.code && mark === "" ? <Said text={unfolded ? text : long.shown} /> : <Ansi text={unfolded ? text : long.shown} mark={mark} />}
        {folded !== "" && <button type="button" className="link log-more" onClick={() => onOpen(line.key)}>{unfolded ? "fold" : folded}</button>}
      </span>
    </>
  );
});

/** What an agent says, with the marks of Markdown for headings, strong words and code. */
function Said({ text }: { text: string }) {
  const head = /^#{1,6} +(.*)$/.exec(text);
  if (head) return <strong><Ansi text={head[1] ?? ""} /></strong>;
  return <>{text.split(/(\*\*[^*\s][^*]*\*\*|`[^`]+`)/).map((part, at) => (at % 2 === 0 ? part && <Ansi key={at} text={part} /> : part.startsWith("`") ? <code key={at}>{part.slice(1, -1)}</code> : <strong key={at}>{part.slice(2, -2)}</strong>))}</>;
}
