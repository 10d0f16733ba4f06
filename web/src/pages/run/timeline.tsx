import { useEffect, useRef, useState } from "react";
import { api } from "../../api/calls";
import type { EventLine, IterationLine, Receipt } from "../../api/types";
import { bytes, clock, cost, costAlone, count, millis, tokens } from "../../lib/format";
import { useLoad } from "../../lib/hooks";
import { endWords } from "../../lib/status";
import { useKeys } from "../../lib/keys";
import { go, runPath, setQuery } from "../../router";
import { A, Ago, Button, Copy, cx, ProblemNote, Section, Skeleton } from "../../ui/basics";
import { AgentTag, Check, LoopBar } from "../../ui/signs";
import { toast } from "../../ui/toast";
import { useRunHere } from "./context";
import { testWords, VerdictMark } from "./iteration-card";
import { withCode } from "./now-line";

/** All iterations with their receipts, or every event. */
export default function Timeline({ query }: { query: URLSearchParams }) {
  const { id, view } = useRunHere();
  const all = useLoad((signal) => api.iterations(id, signal), [id, view.iterations]);
  const open = Number(query.get("iteration")) || null;
  const what = query.get("show") ?? "iterations";
  const rows = [...(all.data ?? view.history)].reverse();
  const [cursor, setCursor] = useState(open);
  const [marked, setMarked] = useState<number[]>([]);
  // The newest two count.
  const mark = (n: number) => setMarked((old) => (old.includes(n) ? old.filter((one) => one !== n) : [...old, n].slice(-2)));
  const pair = marked.length === 2 ? [Math.min(...marked), Math.max(...marked)] : null;
  const compare = pair === null ? null : runPath(id, "diff", { iteration: String(pair[1]), against: String(pair[0]) });
  useKeys(
    [
      { keys: "j", what: "Next iteration", group: "timeline" },
      { keys: "k", what: "Previous iteration", group: "timeline" },
      { keys: "o", what: "Open or close the iteration", group: "timeline" },
      { keys: "x", what: "Mark for comparing", group: "timeline" },
      { keys: "=", what: "Compare the two marked iterations", group: "timeline" },
    ],
    (keys) => {
      const at = rows.findIndex((one) => one.iteration === cursor);
      if (keys === "j") setCursor(rows[Math.min(rows.length - 1, at + 1)]?.iteration ?? null);
      else if (keys === "k") setCursor(rows[Math.max(0, at - 1)]?.iteration ?? null);
      else if (keys === "=") compare === null ? toast("Mark two iterations with x first.") : go(compare);
      else if (cursor === null) return;
      else if (keys === "o") setQuery({ iteration: open === cursor ? null : String(cursor) });
      else mark(cursor);
    },
  );
  const list = useRef<HTMLOListElement>(null);
  useEffect(() => {
    list.current?.querySelector(".t-at")?.scrollIntoView({ block: "nearest" });
  }, [cursor]);
  return (
    <div className="pane">
      <div className="pane-bar">
        <div className="chips" role="group" aria-label="What is shown">
          {[["iterations", "Iterations"], ["events", "Every event"]].map(([key, label]) => (
            <button key={key} type="button" className={cx("chip", what === key && "chip-on")} aria-pressed={what === key} onClick={() => setQuery({ show: key === "iterations" ? null : (key ?? null) })}>{label}</button>
          ))}
        </div>
        <span className="grow" />
        {what !== "events" && rows.length > 1 && (compare !== null && pair !== null
          ? <A className="button button-small button-primary" href={compare}>Compare iterations {pair[0]} and {pair[1]}</A>
          : <span className="muted small">Mark two iterations to compare them</span>)}
      </div>
      {all.problem && !all.problem.offline && <ProblemNote problem={all.problem} retry={all.reload} />}
      {what === "events" ? (
        <Story />
      ) : (
        <ol className="timeline" ref={list}>
          {view.current && <Current />}
          {rows.map((one, at) => <Row key={one.iteration} one={one} before={rows[at + 1] ?? null} open={open === one.iteration} at={cursor === one.iteration} marked={marked.includes(one.iteration)} onMark={() => mark(one.iteration)} />)}
          {rows.length === 0 && !view.current && <li className="muted">{all.loading ? <Skeleton lines={4} /> : "No finished session yet"}</li>}
        </ol>
      )}
    </div>
  );
}

function Current() {
  const { view, id } = useRunHere();
  const current = view.current;
  if (!current) return null;
  return (
    <li className="t-row t-now">
      <div className="t-head">
        <span className="num t-number">{current.iteration}</span>
        <AgentTag name={current.agent} />
        {current.role && <span className="tag">{current.role}</span>}
        <span className="tone-accent">● working</span>
        <span className="muted small">{current.model ?? ""}</span>
        <span className="t-right small"><Ago at={current.started_at} /> · <A href={runPath(id, "logs")}>live log</A></span>
      </div>
    </li>
  );
}

interface RowProps {
  one: IterationLine;
  before: IterationLine | null;
  open: boolean;
  /** Under the keyboard's cursor. */
  at: boolean;
  marked: boolean;
  onMark: () => void;
}

function Row({ one, before, open, at, marked, onMark }: RowProps) {
  const tests = testWords(one, before);
  return (
    <li className={cx("t-row", open && "t-open", at && "t-at")}>
      <input type="checkbox" className="t-mark" checked={marked} onChange={onMark} aria-label={`Compare iteration ${one.iteration}`} title="Compare (x)" />
      <button type="button" className="t-head" aria-expanded={open} onClick={() => setQuery({ iteration: open ? null : String(one.iteration) })}>
        <span className="num t-number">{one.iteration}</span>
        <AgentTag name={one.agent} />
        <VerdictMark one={one} />
        {one.end.how !== "completed" && <span className="tone-attention small">{endWords(one.end.how)}</span>}
        <span className="num small t-facts">
          {tests && <span>{tests}</span>}
          <span>{one.files > 0 ? <>{count(one.files, "file")} <span className="tone-good">+{one.added}</span> <span className="tone-bad">−{one.removed}</span></> : <span className="muted">no change</span>}</span>
          <span>{costAlone(one)}</span>
          <span>{clock(one.duration_ms / 1000)}</span>
          <LoopBar score={one.loop_score} />
          <span className="muted"><Ago at={one.ended_at} narrow /></span>
        </span>
        {one.message && <span className="t-message muted small">{one.message}</span>}
      </button>
      {open && <Detail number={one.iteration} />}
    </li>
  );
}

function Detail({ number }: { number: number }) {
  const { id } = useRunHere();
  const detail = useLoad((signal) => api.iteration(id, number, signal), [id, number]);
  const [prompt, setPrompt] = useState(false);
  if (detail.problem) return <ProblemNote problem={detail.problem} retry={detail.reload} />;
  if (!detail.data) return <Skeleton lines={4} />;
  const { receipt, files = [], artifacts = [] } = detail.data;
  return (
    <div className="t-detail">
      <div className="row">
        <A className="button button-plain button-small" href={runPath(id, "diff", { iteration: String(number) })}>Diff</A>
        <A className="button button-plain button-small" href={runPath(id, "logs", { iteration: String(number) })}>Output</A>
        {detail.data.prompt && <Button small aria-expanded={prompt} onClick={() => setPrompt(!prompt)}>Prompt</Button>}
      </div>
      {prompt && <pre className="evidence evidence-tall" tabIndex={0}>{detail.data.prompt}</pre>}
      {detail.data.response && <p className="t-response">{detail.data.response}</p>}
      {receipt && <ReceiptTable receipt={receipt} />}
      {receipt && receipt.checks.length > 0 && (
        <Section title="Checks">
          <ul className="checks small">
            {receipt.checks.map((check) => (
              <li key={check.name} className="check-line">
                <Check state={check.passed ? "met" : "failing"} /> <strong>{check.name}</strong>{" "}
                {check.tests && <span className="num">{check.tests.passed} ✓ {check.tests.failed > 0 && <span className="tone-bad">{check.tests.failed} ✗</span>}</span>}{" "}
                <span className="muted num">{millis(check.duration_ms)}</span> {check.why && <span className="tone-bad">{check.why}</span>}
                {!check.passed && (check.last_lines?.length ?? 0) > 0 && <pre className="evidence" tabIndex={0}>{check.last_lines?.join("\n")}</pre>}
              </li>
            ))}
          </ul>
        </Section>
      )}
      {files.length > 0 && (
        <Section title={count(files.length, "file")}>
          <ul className="files small mono">
            {files.map((file) => (
              <li key={file.path}><span className="muted">{file.status}</span> {file.path} <span className="tone-good">+{file.added ?? 0}</span> <span className="tone-bad">−{file.removed ?? 0}</span></li>
            ))}
          </ul>
        </Section>
      )}
      {artifacts.length > 0 && (
        <p className="small muted">
          Record files:{" "}
          {artifacts.map((one, at) => (
            <span key={one.name}>{at > 0 && ", "}<a href={api.artifactUrl(id, one.name)} target="_blank" rel="noopener noreferrer">{one.name}</a>{one.size ? ` (${bytes(one.size)})` : ""}</span>
          ))}
        </p>
      )}
    </div>
  );
}

function ReceiptTable({ receipt }: { receipt: Receipt }) {
  const t = receipt.tokens;
  const facts: [string, React.ReactNode][] = [
    ["session", `${millis(receipt.session_ms)}${receipt.exit_code !== null && receipt.exit_code !== undefined ? `, exit code ${receipt.exit_code}` : ""}`],
    ["model", receipt.model ?? "unknown"],
    ["tokens", t ? `${tokens(t.input)} in, ${tokens(t.output)} out${t.cached ? `, ${tokens(t.cached)} from cache` : ""}` : "unknown"],
    ["cost", cost(receipt)],
    ["claimed", receipt.promised ? "yes" : "no"],
    ["commit", receipt.commit ? <span className="mono">{receipt.commit.slice(0, 10)} <Copy text={receipt.commit} label="the commit" /></span> : "no changes"],
  ];
  return (
    <dl className="facts small">
      {facts.map(([name, value]) => <div key={name}><dt className="muted">{name}</dt><dd className="num">{value}</dd></div>)}
    </dl>
  );
}

/** Every event, newest first. */
function Story() {
  const { run, store } = useRunHere();
  const [busy, setBusy] = useState(false);
  const shown: EventLine[] = run.events.filter((event) => event.text).slice(-600).reverse();
  const first = run.events[0]?.seq ?? 1;
  const older = async () => {
    setBusy(true);
    await store.older().catch(() => null);
    setBusy(false);
  };
  return (
    <>
      <ol className="story">
        {shown.map((event) => (
          <li key={event.seq} className={`story-row tone-${event.tone ?? "plain"}`}>
            <span className="num muted small">{event.seq}</span>
            <span className="muted small"><Ago at={event.at} narrow /></span>
            <span className="story-text">{withCode(event.text ?? "")}</span>
          </li>
        ))}
      </ol>
      {first > 1 && <Button small disabled={busy} onClick={() => void older()}>Older events</Button>}
    </>
  );
}
