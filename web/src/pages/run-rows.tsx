// The lines of the runs list. Only those on the screen are drawn.

import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useMemo, useRef } from "react";
import { api } from "../api/calls";
import { asProblem } from "../api/client";
import type { RunRow } from "../api/types";
import { cost, type Cost, costShare, count, digits, money } from "../lib/format";
import { useWide } from "../lib/hooks";
import { mostUrgent, notRunning, repoNames, rowAction, rowNow, type ListItem } from "../lib/list";
import { isOver, prWords } from "../lib/status";
import { racePath, runPath } from "../router";
import { useMaySteer } from "../session";
import { A, Ago, Button, cx, Out } from "../ui/basics";
import { AgentTag, Bar, LoopBar, Spark, StatusMark } from "../ui/signs";
import { toast } from "../ui/toast";

interface RowsProps {
  items: ListItem[];
  rows: RunRow[];
  /** The line under the keyboard's cursor. */
  at: number;
  more: () => void;
  hasMore: boolean;
  onRace: (id: string) => void;
}

export function Rows({ items, rows, at, more, hasMore, onRace }: RowsProps) {
  const box = useRef<HTMLDivElement>(null);
  const wide = useWide(1200);
  const middle = useWide(700);
  const height = wide ? 40 : middle ? 58 : 96;
  const sizeOf = (n: number) => (items[n]?.what === "group" ? 36 : height);
  const virtual = useVirtualizer({ count: items.length, getScrollElement: () => box.current, estimateSize: sizeOf, overscan: 3, initialRect: { width: innerWidth, height: innerHeight }, getItemKey: (n) => items[n]?.key ?? n });
  // Measured again when the lines change: a group has another height than a run.
  const kinds = items.map((item) => item.what[0]).join("");
  useEffect(() => virtual.measure(), [height, kinds, virtual]);
  const shown = virtual.getVirtualItems();
  const last = shown[shown.length - 1]?.index ?? 0;
  useEffect(() => {
    if (hasMore && last >= items.length - 30) more();
  }, [last, items.length, hasMore, more]);
  useEffect(() => {
    if (at >= 0) virtual.scrollToIndex(at, { align: "auto" });
  }, [at, virtual]);
  const repo = useMemo(() => repoNames(rows), [rows]);
  return (
    <div className="runs" ref={box} tabIndex={-1}>
      {wide && (
        <div className="run-head" aria-hidden>
          <span>status</span><span>repo</span><span>task</span><span>tests</span><span className="right">iteration</span><span>stuck score</span><span>cost</span><span className="right">active</span><span>now</span><span />
        </div>
      )}
      <ul className="run-list" style={{ height: virtual.getTotalSize() }}>
        {shown.map((line) => {
          const item = items[line.index];
          if (!item) return null;
          const style = { transform: `translateY(${line.start}px)`, height: line.size };
          if (item.what === "group") return <li key={line.key} className="run-group" style={style}><h2>{item.label} <span className="num muted">{item.count}</span></h2></li>;
          return (
            <li key={line.key} className={cx("run-row", line.index === at && "run-row-at", item.what === "run" && item.racer !== undefined && "run-racer")} style={style}>
              {item.what === "race" ? <RaceRow item={item} repo={repo} onOpen={() => onRace(item.race.id)} /> : <Row row={item.row} repo={repo} {...(item.racer === undefined ? {} : { racer: item.racer })} />}
            </li>
          );
        })}
      </ul>
    </div>
  );
}

/** A cost; outside of the column named "cost" an unknown one says what it is. */
function Spent({ of }: { of: Cost }) {
  const words = cost(of);
  return <span className={words === "unknown" ? "muted" : undefined}>{words === "unknown" && <span className="narrow-only">cost </span>}{words}</span>;
}

const LINKS = { answer: "Answer", take: "Take the result", why: "See why" } as const;

/** What a question asks for, in two words. */
const QUESTIONS: Partial<Record<NonNullable<RunRow["needs"]>, string>> = { stuck: "Give a hint", tests_changed: "Review tests", setup: "Fix the setup", agent_asks: "Answer" };

/** Passing tests of all, with their course. */
function Tests({ of }: { of: NonNullable<RunRow["tests"]> }) {
  return (
    <>
      <span>{digits(of.passed)}<span className="muted">/{digits(of.passed + of.failed)}</span></span>
      {of.series.length > 1 && <Spark values={of.series} label="tests passing" max={of.passed + of.failed} tone="good" width={40} />}
    </>
  );
}

/** The primary action of a run. */
export function RowAction({ row }: { row: RunRow }) {
  const barred = useMaySteer();
  const action = rowAction(row);
  if (action === null) return null;
  if (action !== "resume") return <A className={cx("button button-small", action === "answer" ? "button-primary" : "button-plain")} href={runPath(row.id, "overview", action === "take" ? { take: "1" } : action === "answer" ? { answer: "1" } : undefined)}>{(action === "answer" && row.needs && QUESTIONS[row.needs]) || LINKS[action]}</A>;
  const resume = () =>
    api.control(row.id, { control: "resume" }).then(
      () => toast("Resumed.", "good"),
      (error: unknown) => toast([asProblem(error).title, asProblem(error).detail, asProblem(error).hint].filter(Boolean).join(". "), "bad"),
    );
  return <Button small disabled={barred !== null} title={barred ?? undefined} onClick={() => void resume()}>Resume</Button>;
}

function Row({ row, repo, racer }: { row: RunRow; repo: (path: string) => string; racer?: string }) {
  const over = isOver(row.status);
  const now = rowNow(row);
  const share = costShare(row, row.budget_usd);
  const tone = row.status === "needs you" || (row.status === "done" && row.proof_level === "unverified") ? "tone-attention" : "muted";
  return (
    <>
      <A href={runPath(row.id)} className="run-link" aria-label={`${row.task}, ${row.status}`} />
      <span className="c-status"><StatusMark status={row.status} />{notRunning(row) && <span className="tag tone-attention" title="No process works on it; resume it to continue">not running</span>}</span>
      <span className="c-repo muted" title={row.folder ?? row.repo}>{repo(row.repo)}</span>
      <span className="c-task" title={row.task}>
        {racer === undefined ? <span className="c-title">{row.task}</span> : <AgentTag name={racer} />}
        {row.pr_url && <span className="c-pr"><Out href={row.pr_url}>{prWords(row)}</Out></span>}
      </span>
      <span className="c-tests num" title="tests passing">{row.tests ? <Tests of={row.tests} /> : <span className="muted">–</span>}</span>
      <span className="c-iter num right">{row.iteration}{row.max_iterations && !over ? <span className="muted">/{row.max_iterations}</span> : null}</span>
      <span className="c-loop">{row.loop_score === null || over ? <span className="muted">–</span> : <LoopBar score={row.loop_score} />}</span>
      <span className="c-cost num">
        <Spent of={row} />
        {share !== null && !over && row.budget_usd ? <><Bar share={share} label="cost" /><span className="muted">{money(row.budget_usd)}</span></> : null}
      </span>
      <span className="c-age right muted"><Ago at={row.updated_at} narrow /></span>
      <span className={cx("c-now", tone)} title={now}>
        {row.agent && !over && row.status !== "needs you" && !now.includes(row.agent) && <AgentTag name={row.agent} />} {now}
      </span>
      <span className="c-act"><RowAction row={row} /></span>
    </>
  );
}

function RaceRow({ item, repo, onOpen }: { item: Extract<ListItem, { what: "race" }>; repo: (path: string) => string; onOpen: () => void }) {
  const { race, rows, open } = item;
  const first = mostUrgent(rows) as RunRow;
  const winner = race.runs.find((run) => run.run_id === race.winner);
  const updated = rows.reduce((latest, row) => (row.updated_at > latest ? row.updated_at : latest), "");
  const share = race.over ? null : costShare(race, race.budget_usd);
  return (
    <>
      <A href={racePath(race.id)} className="run-link" aria-label={`Race: ${race.title}`} />
      <span className="c-status"><StatusMark status={winner ? "done" : first.status} /></span>
      <span className="c-repo muted" title={first.repo}>{repo(first.repo)}</span>
      <span className="c-task" title={race.title}>
        <button type="button" className="icon c-open" aria-expanded={open} aria-label={open ? "Hide the runs of the race" : "Show the runs of the race"} onClick={onOpen}>{open ? "▾" : "▸"}</button>
        <span className="c-title">{race.title}</span> <span className="tag">race · {count(race.runs.length, "run")}</span>
      </span>
      <span className="c-tests muted">–</span>
      <span className="c-iter num right">{Math.max(...rows.map((row) => row.iteration))}</span>
      <span className="c-loop muted">–</span>
      <span className="c-cost num">
        <Spent of={race} />
        {share !== null ? <><Bar share={share} label="cost" /><span className="muted">{money(race.budget_usd)}</span></> : null}
      </span>
      <span className="c-age right muted"><Ago at={updated} narrow /></span>
      <span className="c-now muted">{winner ? <><AgentTag name={winner.name} /> {winner.proven ? "wins" : "wins, unverified"}</> : race.over ? "no winner" : race.runs.map((run) => <AgentTag key={run.run_id} name={run.name} />)}</span>
      <span className="c-act">{first.status === "needs you" && <RowAction row={first} />}{winner && <A className="button button-small button-plain" href={runPath(winner.run_id, "overview", { take: "1" })}>{LINKS.take}</A>}</span>
    </>
  );
}
