import type { BudgetView, RunView } from "../../api/types";
import { basename, cost, type Cost, costAlone, costShare, count, money, span, tokens, until } from "../../lib/format";
import { useNow } from "../../lib/hooks";
import { isOver, type Tone } from "../../lib/status";
import { costSoFar, workedSeconds } from "../../live/run-state";
import { Ago, Copy, Out, Section } from "../../ui/basics";
import { AgentTag, Bar, Clock } from "../../ui/signs";
import { useRunHere } from "./context";
import { withCode } from "./now-line";

const LABELS = { iterations: "iterations", time: "time", cost: "cost", tokens: "tokens" } as const;

/** How much of a budget is used now, as text and as a share; null if that isn't known. */
export function budgetUse(budget: BudgetView, spent: Cost, worked: number): { words: string; share: number | null } {
  const { limit, used } = budget;
  switch (budget.budget) {
    case "iterations":
      return { words: `${used ?? 0} of ${limit}`, share: budget.share };
    case "time":
      return { words: `${span(worked)} of ${span(limit)}`, share: limit > 0 ? worked / limit : budget.share };
    case "cost":
      return { words: `${cost(spent)} of ${money(limit)}`, share: costShare(spent, limit) };
    case "tokens":
      return { words: `${used === null || used === undefined ? "unknown" : tokens(used)} of ${tokens(limit)}`, share: used === null || used === undefined ? null : budget.share };
  }
}

/** Green only for a result whose original tests hold. */
function proofTone(proof: NonNullable<RunView["proof"]>): Tone {
  if (!proof.over) return "accent";
  if (!proof.passed) return "bad";
  const changed = proof.level === "own_tests" && (proof.harness?.length ?? 0) > 0;
  return proof.level === "unverified" || changed ? "attention" : "good";
}

/** The reasons of a result; those after the second are folded. */
function Reasons({ all }: { all: string[] }) {
  const line = (why: string) => <p key={why} className="small">{withCode(why)}</p>;
  return (
    <>
      {all.slice(0, 2).map(line)}
      {all.length > 2 && <details className="small"><summary>{all.length - 2} more</summary>{all.slice(2).map(line)}</details>}
    </>
  );
}

/** The usual cost of a session, if the next one can exceed the cost limit. */
export function capRisk(view: Pick<RunView, "budgets" | "history">, total: Cost): number | null {
  const limit = view.budgets.find((one) => one.budget === "cost")?.limit;
  const known = view.history.flatMap((one) => (one.cost_usd && one.cost_basis !== "unknown" ? [one.cost_usd] : []));
  if (!limit || known.length === 0) return null;
  const usual = known.reduce((sum, usd) => sum + usd, 0) / known.length;
  return (total.cost_usd ?? 0) + usual > limit ? usual : null;
}

/** The right column: budgets, result, agents, workspace. */
export function Side() {
  const { view, mode, run, id } = useRunHere();
  const now = useNow();
  const proof = view.proof;
  const { spent } = view;
  const over = isOver(view.status);
  const total = costSoFar(view, run.sessionCost, now);
  const nearCap = over ? null : capRisk(view, total);
  return (
    <>
      <Section title={over ? "Used" : "Budgets"}>
        {!over && (
          <dl className="budgets">
            {view.budgets.map((budget) => {
              const { words, share } = budgetUse(budget, total, workedSeconds(view, now));
              const estimated = budget.budget === "cost" && share !== null ? share - (costShare(spent, budget.limit) ?? 0) : 0;
              return (
                <div key={budget.budget} className="budget">
                  <dt>{LABELS[budget.budget]}</dt>
                  <dd className="num">{words}</dd>
                  {share !== null && <dd className="budget-bar"><Bar share={share} estimated={estimated} label={LABELS[budget.budget]} /></dd>}
                </div>
              );
            })}
          </dl>
        )}
        {nearCap !== null && <p className="small tone-attention">One more session, about {money(nearCap)}, can exceed the cost limit.</p>}
        {!over && view.deadline && <p className="small muted">deadline {until(view.deadline, now)}</p>}
        <p className="small muted num">
          {spent.tokens ? `${tokens(spent.tokens.input + spent.tokens.output)} tokens` : "tokens unknown"} · {count(spent.sessions, "session")}
          {spent.saved_usd > 0 && <> · caches saved {money(spent.saved_usd)}</>}
          {spent.compute_usd ? <> · sandboxes about {money(spent.compute_usd)}</> : null}
        </p>
      </Section>
      <Section title="Result">
        {view.pr ? (
          <p><Out href={view.pr.url}>PR{view.pr.number ? ` #${view.pr.number}` : ""}{view.pr.draft ? " draft" : ""}</Out></p>
        ) : (
          <p className="muted">No pull request yet</p>
        )}
        {view.branch && <p className="small"><span className="mono ellipsis">{view.branch}</span> <Copy text={view.branch} label="the branch" /></p>}
        {proof ? (
          <div>
            <p className={`tone-${proofTone(proof)}`}>
              {proof.over ? (proof.passed ? `✓ ${proof.headline}` : "✗ final check failed") : "◑ final check running"}
            </p>
            <p className="small muted">
              {proof.clean ? "in a clean checkout" : "in the workspace"} · {proof.watched === "watched" ? "watched" : "not watched"} · <span className="mono">{proof.commit.slice(0, 8)}</span>
            </p>
            {/* The question above says the same while the run waits for an answer. */}
            {!view.needs && <Reasons all={[...(proof.difference ?? []), ...(proof.level_reason ? [proof.level_reason] : []), ...(proof.failed ?? []), ...(proof.harness ?? [])]} />}
          </div>
        ) : (
          <p className="small muted">Not proven yet</p>
        )}
      </Section>
      <Section title="Agents">
        <ul className="agents">
          {view.agents.map((agent) => (
            <li key={agent.name}>
              <span><AgentTag name={agent.name} /> <span className="small muted">{agent.model ?? ""}</span></span>
              <span className="small num">
                {agent.standing === "working" && <span className="tone-accent">● working</span>}
                {agent.standing === "resting" && <span className="tone-attention"><Clock /> {agent.until ? until(agent.until, now) : "cooling down"}</span>}
                {agent.standing === "dropped" && <span className="tone-bad">disabled for this run</span>}
                {agent.standing === "free" && !over && <span className="muted">idle</span>}
              </span>
              <span className="small muted num">{count(agent.sessions, "session")}{agent.sessions > 0 && <> · {costAlone(agent)}</>}</span>
              {agent.reason && <span className="small muted wide-cell">{agent.reason}</span>}
            </li>
          ))}
        </ul>
      </Section>
      <Section title="Workspace">
        <p className="small">mode <strong>{mode}</strong></p>
        <p className="small" title={view.workspace}><span className="mono ellipsis">{basename(view.workspace)}</span> <Copy text={view.workspace} label="the folder" /></p>
        {(spent.sandboxes ?? []).map((box) => <p key={box.id} className="small">{box.provider} <span className="mono muted ellipsis">{box.id}</span> {box.rests && <span className="muted">stopped</span>}</p>)}
        <p className="small muted">started <Ago at={view.created_at} />, {span(workedSeconds(view, now))} of agent time</p>
        <p className="small"><span className="mono ellipsis muted">{id}</span> <Copy text={id} label="the run's id" /></p>
      </Section>
    </>
  );
}
