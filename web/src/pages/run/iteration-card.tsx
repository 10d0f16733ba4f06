import type { IterationLine } from "../../api/types";
import { clock, count, costAlone } from "../../lib/format";
import { endWords, finalCheckOf, verdictLook } from "../../lib/status";
import { runPath } from "../../router";
import { A, Ago } from "../../ui/basics";
import { AgentTag } from "../../ui/signs";
import { useRunHere } from "./context";

/** `41→44 ✓ / 3 ✗`. */
export function testWords(one: IterationLine, before: IterationLine | null): string | null {
  if (!one.tests) return null;
  const from = before?.tests && before.tests.passed !== one.tests.passed ? `${before.tests.passed}→` : "";
  return `${from}${one.tests.passed} ✓${one.tests.failed > 0 ? ` / ${one.tests.failed} ✗` : ""}`;
}

/** The verdict of an iteration with its sign. */
export function VerdictMark({ one }: { one: IterationLine }) {
  const { view } = useRunHere();
  const look = verdictLook(one.verdict, finalCheckOf(one, view));
  return <span className={`tone-${look.tone}`} title={look.rule}>{look.sign} {look.words}</span>;
}

/** Number, agent, duration, files and lines, tests, cost, a sentence, the verdict. */
export function IterationCard({ one, before }: { one: IterationLine; before: IterationLine | null }) {
  const { id } = useRunHere();
  const tests = testWords(one, before);
  return (
    <li className="card-iteration">
      <A href={runPath(id, "timeline", { iteration: String(one.iteration) })} className="card-link" aria-label={`Iteration ${one.iteration}`} />
      <span className="num card-number">{one.iteration}</span>
      <div className="card-body">
        <div className="card-line">
          <AgentTag name={one.agent} />
          <VerdictMark one={one} />
          {one.end.how !== "completed" && <span className="tone-attention small">{endWords(one.end.how)}</span>}
        </div>
        {one.message && <p className="card-message small" title={one.message}>{one.message}</p>}
        <div className="card-facts num small muted">
          {tests && <span>tests {tests}</span>}
          <span>{one.files > 0 ? <>{count(one.files, "file")} <span className="tone-good">+{one.added}</span> <span className="tone-bad">−{one.removed}</span></> : "no change"}</span>
          <span>{costAlone(one)}</span>
          <span>{clock(one.duration_ms / 1000)}</span>
          <span><Ago at={one.ended_at} narrow /></span>
          <A className="card-part" href={runPath(id, "logs", { iteration: String(one.iteration) })} aria-label={`Output of iteration ${one.iteration}`}>output</A>
          <A className="card-part" href={runPath(id, "diff", { iteration: String(one.iteration) })} aria-label={`Diff of iteration ${one.iteration}`}>diff</A>
        </div>
      </div>
    </li>
  );
}
