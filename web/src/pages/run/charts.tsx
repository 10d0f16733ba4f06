import { useState } from "react";
import { api } from "../../api/calls";
import type { EventLine, IterationLine } from "../../api/types";
import { money, tokens } from "../../lib/format";
import { useLoad } from "../../lib/hooks";
import { cx, Empty, ProblemNote } from "../../ui/basics";
import { Chart } from "../../ui/chart";
import { useRunHere } from "./context";

function tokenSum(one: IterationLine): number | null {
  const t = one.tokens;
  if (t === null || t === undefined) return null;
  return typeof t === "number" ? t : t.input + t.output + (t.cached ?? 0) + (t.cache_write ?? 0);
}

const STEPS: Record<string, string> = { nudge: "hint by ralph", rotate: "fresh session", fallback: "fallback model", doctor: "diagnosis", pause: "asked you" };
const CONTROLS: Record<string, string> = { nudge: "hint", note: "note", guardrail: "guardrail", edit: "task edited", model: "model changed" };

/** What may explain a turn of the curve: other agents, recovery steps, your interventions. Each belongs to the iteration that it reached first. */
export function markersOf(rows: Pick<IterationLine, "iteration" | "agent">[], events: EventLine[]): { at: number; label: string }[] {
  const found: { at: number; label: string }[] = [];
  const add = (iteration: number, label: string | undefined) => {
    const at = rows.findIndex((one) => one.iteration >= iteration);
    if (label && at >= 0 && !found.some((one) => one.at === at && one.label === label)) found.push({ at, label });
  };
  rows.forEach((one, at) => at > 0 && one.agent !== rows[at - 1]?.agent && found.push({ at, label: one.agent }));
  let iteration = rows[0]?.iteration ?? 1;
  for (const event of events) {
    if (event.kind === "iteration_started") iteration = Number(event.iteration ?? iteration);
    else if (event.kind === "mitigated") add(iteration + 1, STEPS[String(event.rung)]);
    else if (event.kind === "control_received") add(iteration + 1, CONTROLS[String(event.control)]);
  }
  return found.sort((a, b) => a.at - b.at);
}

/** The course of the run in numbers: first whether it gets closer. */
export default function Charts() {
  const { id, view, run } = useRunHere();
  const all = useLoad((signal) => api.iterations(id, signal), [id, view.iterations]);
  const [byCost, setByCost] = useState(false);
  const rows: IterationLine[] = all.data ?? view.history;
  if (rows.length === 0) {
    return all.problem ? <ProblemNote problem={all.problem} retry={all.reload} /> : <Empty title="No data yet"><p className="muted">Charts appear after the first session.</p></Empty>;
  }
  const labels = rows.map((one) => String(one.iteration));
  let sum = 0;
  // A sum with an unknown part is unknown.
  let whole = true;
  const total = rows.map((one) => {
    sum += one.cost_usd ?? 0;
    whole &&= one.cost_usd !== null && one.cost_usd !== undefined && one.cost_basis !== "unknown";
    return whole ? sum : null;
  });
  const spent = total.filter((usd): usd is number => usd !== null);
  const costs = spent.length === rows.length && sum > 0;
  const places = byCost && costs ? { labels: spent.map(money), places: spent } : { labels };
  const events = markersOf(rows, run.events);
  const tested = rows.some((one) => one.tests);
  const cap = view.budgets.find((one) => one.budget === "cost")?.limit;
  const near = cap !== undefined && sum > cap / 2;
  const metric = rows.map((one) => one.metric ?? null);
  const measured = metric.some((value) => value !== null);
  const Metric = measured && <Chart title={rows.find((one) => one.metric_label)?.metric_label ?? "The task's metric"} {...places} events={tested ? [] : events} series={[{ name: "metric", tone: "good", values: metric }]} format={(v) => String(Number(v.toPrecision(4)))} />;
  return (
    <div className="pane charts">
      <div className="chart-first">
        <div className="pane-bar">
          <h2>Getting closer?</h2>
          <span className="grow" />
          {costs && (
            <div className="chips" role="group" aria-label="Over">
              {[["iteration", false], ["cost", true]].map(([name, on]) => <button key={String(name)} type="button" className={cx("chip", byCost === on && "chip-on")} aria-pressed={byCost === on} onClick={() => setByCost(on === true)}>by {name}</button>)}
            </div>
          )}
        </div>
        {tested ? (
          <Chart title="Tests" kind="area" {...places} events={events} series={[{ name: "passing", tone: "good", values: rows.map((one) => one.tests?.passed ?? null) }, { name: "failing", tone: "bad", values: rows.map((one) => one.tests?.failed ?? null) }]} format={(v) => String(Math.round(v))} />
        ) : (
          Metric || <p className="muted">The checks report no tests.</p>
        )}
        {events.length > 0 && <ul className="chart-events small muted" aria-label="What happened">{events.map((one) => <li key={`${one.at}${one.label}`}>{rows[one.at]?.iteration}: {one.label}</li>)}</ul>}
      </div>
      <Chart title="Stuck score" labels={labels} max={1} mark={{ value: 0.7, label: "stuck" }} series={[{ name: "stuck score", tone: "attention", values: rows.map((one) => one.loop_score) }]} format={(v) => v.toFixed(2).replace(/\.?0+$/, "") || "0"} />
      <Chart title="Cost so far" labels={labels} {...(near ? { mark: { value: cap, label: "limit" } } : {})} series={[{ name: "cost so far", tone: "accent", values: total }]} format={money} />
      <details className="chart-more">
        <summary>More charts</summary>
        <div className="charts">
          {tested && Metric}
          <Chart title="Cost per iteration" kind="bar" labels={labels} series={[{ name: "cost", tone: "accent", values: rows.map((one) => (one.cost_basis === "unknown" ? null : (one.cost_usd ?? null))) }]} format={money} />
          <Chart title="Tokens" kind="bar" labels={labels} series={[{ name: "tokens", tone: "muted", values: rows.map(tokenSum) }]} format={tokens} />
          <Chart title="Minutes per session" kind="bar" labels={labels} series={[{ name: "minutes", tone: "muted", values: rows.map((one) => one.duration_ms / 60000) }]} format={(v) => `${Number(v.toPrecision(2))} min`} />
        </div>
      </details>
    </div>
  );
}
