import type { BudgetView } from "../../api/types";
import { basename, cost, type Cost, costAlone, count, millis, money, span, tokens, until } from "../../lib/format";
import { useNow } from "../../lib/hooks";
import { costSoFar, workedSeconds } from "../../live/run-state";
import { Ago, Copy, Out, Section } from "../../ui/basics";
import { AgentTag, Bar, Clock } from "../../ui/signs";
import { useRunHere } from "./context";
import { withCode } from "./now-line";

const LABELS = { iterations: "iterations", time: "time", cost: "cost", tokens: "tokens" } as const;

/** How much of a budget is used now, as text and as a share. */
export function budgetUse(budget: BudgetView, spent: Cost, worked: number): { words: string; share: number } {
  const { limit, used } = budget;
  const of = (part: number) => (limit > 0 ? part / limit : budget.share);
  switch (budget.budget) {
    case "iterations":
      return { words: `${used ?? 0} of ${limit}`, share: budget.share };
    case "time":
      return { words: `${span(worked)} of ${span(limit)}`, share: of(worked) };
    case "cost":
      return { words: `${cost(spent)} of ${money(limit)}`, share: of(spent.cost_usd ?? 0) };
    case "tokens":
      return { words: `${used === null || used === undefined ? "unknown" : tokens(used)} of ${tokens(limit)}`, share: budget.share };
  }
}

/** The right column: budgets, result, agents, workspace. */
export function Side() {
  const { view, mode, run } = useRunHere();
  const now = useNow();
  const proof = view.proof;
  const { spent } = view;
  return (
    <>
      <Section title="Budgets">
        <dl className="budgets">
          {view.budgets.map((budget) => {
            const { words, share } = budgetUse(budget, costSoFar(view, run.sessionCost), workedSeconds(view, now));
            return (
              <div key={budget.budget} className="budget">
                <dt>{LABELS[budget.budget]}</dt>
                <dd className="num">{words}</dd>
                <dd className="budget-bar"><Bar share={share} label={LABELS[budget.budget]} /></dd>
              </div>
            );
          })}
        </dl>
        {view.deadline && <p className="small muted">deadline {until(view.deadline, now)}</p>}
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
            <p className={proof.over ? (proof.passed ? (proof.level === "unverified" ? "tone-attention" : "tone-good") : "tone-bad") : "tone-accent"}>
              {proof.over ? (proof.passed ? `✓ ${proof.headline}` : "✗ final check failed") : "◑ final check running"}
            </p>
            <p className="small muted">
              {proof.clean ? "in a clean checkout" : "in the workspace"} · {proof.watched === "watched" ? "watched" : "not watched"} · <span className="mono">{proof.commit.slice(0, 8)}</span>
            </p>
            {[...(proof.difference ?? []), ...(proof.level_reason ? [proof.level_reason] : []), ...(proof.failed ?? []), ...(proof.harness ?? [])].slice(0, 8).map((why) => <p key={why} className="small">{withCode(why)}</p>)}
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
                {agent.standing === "free" && <span className="muted">idle</span>}
              </span>
              <span className="small muted num">{count(agent.sessions, "session")} · {costAlone(agent)}</span>
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
        {view.checks.length > 0 && <p className="small muted">checks took {millis(view.checks.reduce((sum, c) => sum + (c.last?.duration_ms ?? 0), 0))} last time</p>}
      </Section>
    </>
  );
}
