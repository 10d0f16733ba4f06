import { useState } from "react";
import { api } from "../../api/calls";
import { asProblem } from "../../api/client";
import type { CheckResult, CheckView, CriterionView } from "../../api/types";
import { shortPaths } from "../../lib/clean";
import { count, millis } from "../../lib/format";
import { bestWords, CLAIM_RULE, isOver } from "../../lib/status";
import { runPath } from "../../router";
import { A, Ago, Button, cx, Section } from "../../ui/basics";
import { Ansi } from "../../ui/ansi";
import { Check, Spark } from "../../ui/signs";
import { partsOf } from "./answers";
import { useRunHere } from "./context";
import { IterationCard } from "./iteration-card";
import { withCode } from "./now-line";

/** Criteria, checks, the session under way and the last iterations. */
export function Overview() {
  const { view, id } = useRunHere();
  const met = view.criteria.filter((c) => c.met).length;
  const latest = [...view.history].reverse().slice(0, 8);
  return (
    <div className="overview">
      <div className="overview-main">
        {view.finished && <Ended />}
        <NotClaimed />
        {view.setup_failed && (
          <div className="note note-attention">
            <strong>The setup failed before the first session</strong>
            <p><code>{view.setup_failed.command}</code></p>
            <pre className="evidence" tabIndex={0}>{(view.setup_failed.last_lines ?? []).join("\n")}</pre>
          </div>
        )}
        {view.criteria.length > 0 && (
          <Section title="Criteria" aside={<span className="num">{met} of {view.criteria.length} met</span>}><Criteria /></Section>
        )}
        <Section title={<span id="checks">Checks</span>}>
          {view.best && <p className="num">best so far: {bestWords(view.best)}</p>}
          <ul className="checks">
            {view.checks.map((check) => <CheckRow key={check.name} check={check} />)}
            {view.checks.length === 0 && <li className="muted">No checks yet</li>}
          </ul>
        </Section>
        <DebugCommands />
      </div>
      <div className="overview-side">
        <Doing />
        <Section title="Last iterations" aside={<A href={runPath(id, "timeline")}>all {view.iterations}</A>}>
          {latest.length === 0 ? (
            <p className="muted">{isOver(view.status) ? "No session finished." : "The first session has not finished yet."}</p>
          ) : (
            <ol className="cards">{latest.map((one, at) => <IterationCard key={one.iteration} one={one} before={latest[at + 1] ?? null} />)}</ol>
          )}
        </Section>
        <Progress />
      </div>
    </div>
  );
}

function Ended() {
  const { view } = useRunHere();
  const end = view.finished;
  if (!end) return null;
  const good = end.reason === "completed";
  const { headline, facts } = partsOf(end.summary);
  return (
    <div className={cx("note", good ? "note-good" : "note-bad")}>
      <strong><span aria-hidden>{good ? "✓" : "✗"}</span> {withCode(headline)}</strong>
      {facts.map((fact) => <p key={fact} className="small">{withCode(fact)}</p>)}
      <p className="muted small"><Ago at={end.at} /></p>
    </div>
  );
}

/** Passing checks that don't count yet, and the rule. */
function NotClaimed() {
  const { view } = useRunHere();
  if (view.history[view.history.length - 1]?.verdict !== "not_promised" || view.finished) return null;
  return (
    <div className="note note-attention">
      <strong>Checks pass, not claimed</strong>
      <p>{CLAIM_RULE}</p>
    </div>
  );
}

function Criteria() {
  const { view } = useRunHere();
  let milestone: string | undefined;
  return (
    <ul className="criteria">
      {view.criteria.map((one) => {
        const head = one.milestone !== milestone ? one.milestone : undefined;
        milestone = one.milestone;
        return <CriterionRow key={one.id} one={one} milestone={head} />;
      })}
    </ul>
  );
}

function CriterionRow({ one, milestone }: { one: CriterionView; milestone: string | undefined }) {
  const failing = one.last && !one.last.passed;
  const state = one.met ? "met" : failing ? "failing" : one.claimed ? "claimed" : "open";
  return (
    <>
      {milestone && <li className="milestone muted">{milestone}</li>}
      <li className="criterion">
        <Check state={state} />
        <span className="mono small muted">{one.id}</span>
        <span className="criterion-text">
          <span>{withCode(one.text)}</span>
          <span className="criterion-check muted small">{withCode(one.check)}{state === "claimed" && " · claimed, not yet checked"}</span>
          {failing && one.last && <Evidence result={one.last} />}
        </span>
        <span className="num muted small">{one.last ? millis(one.last.duration_ms) : ""}</span>
      </li>
    </>
  );
}

function Evidence({ result }: { result: CheckResult }) {
  const names = result.failing ?? [];
  return (
    <span className="criterion-evidence">
      {result.why && <span className="tone-bad small">{result.why}</span>}
      {names.length > 0 && <span className="small mono">failing: {names.slice(0, 6).join(", ")}{names.length > 6 ? ` and ${names.length - 6} more` : ""}</span>}
    </span>
  );
}

function CheckRow({ check }: { check: CheckView }) {
  const { id, view } = useRunHere();
  const last = check.last;
  const [log, setLog] = useState<string | null>(null);
  const [open, setOpen] = useState(Boolean(last && !last.passed));
  const refused = check.refused;
  const passed = last?.passed && !refused;
  const tests = (refused?.result ?? last)?.tests;
  const state = !last ? "open" : passed ? "met" : "failing";
  const readLog = async () => {
    const name = (refused?.result ?? last)?.log;
    if (!name) return;
    setLog("…");
    try {
      setLog(await api.artifactText(id, name));
    } catch (error) {
      setLog(`The log could not be read: ${asProblem(error).title}`);
    }
  };
  const lines = (refused?.result ?? last)?.last_lines ?? [];
  return (
    <li className="check">
      <button type="button" className="check-head" aria-expanded={open} onClick={() => setOpen(!open)}>
        <Check state={state} />
        <span className="check-name">{check.name}</span>
        <code className="check-command">{check.command}</code>
        {!check.required && <span className="tag">optional</span>}
        {refused && <span className="tone-bad small">final check failed</span>}
        {tests && !(refused && !refused.result) && <span className="num small">{tests.passed} ✓{tests.failed > 0 && <span className="tone-bad"> {tests.failed} ✗</span>}</span>}
        <span className="num muted small">{last ? millis(last.duration_ms) : "not yet run"}{last && !check.current_tree && " · from an earlier iteration"}</span>
      </button>
      {open && (
        <div className="check-body">
          {last?.why && !passed && <p className="tone-bad small">{last.why}</p>}
          {refused && refused.reasons?.map((why) => <p key={why} className="tone-bad small">final check: {why}</p>)}
          {(last?.failing?.length ?? 0) > 0 && <p className="small mono">failing: {last?.failing?.join(", ")}</p>}
          {log === null && lines.length > 0 && <pre className="evidence" tabIndex={0}><Ansi text={shortPaths(lines.join("\n"), view.workspace)} /></pre>}
          {log !== null && <pre className="evidence evidence-tall" tabIndex={0}><Ansi text={shortPaths(log, view.workspace)} /></pre>}
          {last && log === null && <Button small look="quiet" onClick={() => void readLog()}>Whole log</Button>}
          {!last && <p className="muted small">Runs after each session and in the final check.</p>}
        </div>
      )}
    </li>
  );
}

/** The last tool calls of the session under way. */
function Doing() {
  const { view, run, id } = useRunHere();
  if (!view.current || isOver(view.status)) return null;
  const number = view.current.iteration;
  const calls = run.live.filter((r) => r.kind === "tool_call" && r.iteration === number).slice(-5);
  const words = [...run.live].reverse().find((r) => r.kind === "text" && r.iteration === number)?.text;
  return (
    <Section title={`Iteration ${number}, now`} aside={<A href={runPath(id, "logs")}>live log</A>}>
      {calls.length === 0 && !words && <p className="muted">No output yet</p>}
      <ol className="doing">
        {calls.map((call) => (
          <li key={call.n}>
            <span className="mono small">{call.name}</span> <span className="mono small muted doing-what">{call.what}</span>
            <span className="muted small"><Ago at={call.at} narrow /></span>
          </li>
        ))}
      </ol>
      {words && <p className="doing-words small">{words.trim().split("\n").filter(Boolean).slice(-2).join(" ").slice(-240)}</p>}
    </Section>
  );
}

function Progress() {
  const { view } = useRunHere();
  if (view.history.length < 2) return null;
  const tests = view.history.map((one) => one.tests?.passed ?? null);
  return (
    <Section title="Getting closer" aside={<span className="muted small">last {count(view.history.length, "iteration")}</span>}>
      <div className="sparks">
        {tests.some((passed) => passed !== null) && <span className="spark-line"><span className="muted small">tests passing</span><Spark values={tests} label="tests passing" tone="good" /><span className="num">{tests[tests.length - 1] ?? "–"}</span></span>}
        <span className="spark-line"><span className="muted small">stuck score</span><Spark values={view.history.map((one) => one.loop_score)} label="stuck score" max={1} tone="attention" /><span className="num">{view.loop_score.toFixed(2)}</span></span>
      </div>
    </Section>
  );
}

const COMMANDS: [string, string][] = [["rerun_tests", "Rerun the tests"], ["lint", "Lint"], ["typecheck", "Type check"], ["logs", "Print logs"]];

/** The commands that debug mode allows; there is no shell. */
function DebugCommands() {
  const { id, mode, barred } = useRunHere();
  const [busy, setBusy] = useState<string | null>(null);
  const [said, setSaid] = useState<{ command: string; output: string; exit_code: number | null }[]>([]);
  if (mode !== "debug") return null;
  const start = async (command: string) => {
    setBusy(command);
    try {
      setSaid(await api.debug(id, command));
    } catch (error) {
      const problem = asProblem(error);
      setSaid([{ command, exit_code: 1, output: [problem.title, problem.detail, problem.hint].filter(Boolean).join("\n") }]);
    } finally {
      setBusy(null);
    }
  };
  return (
    <Section title="Debug commands" aside={<span className="muted small">mode: debug</span>}>
      <div className="row">
        {COMMANDS.map(([command, label]) => (
          <Button key={command} small disabled={barred !== null || busy !== null} title={barred ?? undefined} onClick={() => void start(command)}>{busy === command ? "Running …" : label}</Button>
        ))}
      </div>
      {said.map((one) => {
        const ok = (one.exit_code ?? 0) === 0;
        return <pre key={one.command} className="evidence evidence-tall" tabIndex={0}><span className={ok ? "tone-good" : "tone-bad"}>{ok ? "✓" : "✗"} {one.command}</span>{"\n"}<Ansi text={one.output} /></pre>;
      })}
    </Section>
  );
}
