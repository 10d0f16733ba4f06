import { api } from "../../api/calls";
import type { IterationLine } from "../../api/types";
import { money, tokens } from "../../lib/format";
import { useLoad } from "../../lib/hooks";
import { Empty, ProblemNote } from "../../ui/basics";
import { Chart } from "../../ui/chart";
import { useRunHere } from "./context";

function tokenSum(one: IterationLine): number | null {
  const t = one.tokens;
  if (t === null || t === undefined) return null;
  return typeof t === "number" ? t : t.input + t.output + (t.cached ?? 0) + (t.cache_write ?? 0);
}

/** The course of the run in numbers, per iteration. */
export default function Charts() {
  const { id, view } = useRunHere();
  const all = useLoad((signal) => api.iterations(id, signal), [id, view.iterations]);
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
  const metric = rows.map((one) => one.metric ?? null);
  return (
    <div className="pane charts">
      <Chart title="Tests" labels={labels} series={[{ name: "passing", tone: "good", values: rows.map((one) => one.tests?.passed ?? null) }, { name: "failing", tone: "bad", values: rows.map((one) => one.tests?.failed ?? null) }]} format={(v) => String(Math.round(v))} />
      <Chart title="Stuck score" labels={labels} max={1} mark={{ value: 0.7, label: "stuck" }} series={[{ name: "stuck score", tone: "attention", values: rows.map((one) => one.loop_score) }]} format={(v) => v.toFixed(2).replace(/\.?0+$/, "") || "0"} />
      <Chart title="Cost per iteration" kind="bar" labels={labels} series={[{ name: "cost", tone: "accent", values: rows.map((one) => (one.cost_basis === "unknown" ? null : (one.cost_usd ?? null))) }]} format={money} />
      <Chart title="Cost so far" labels={labels} series={[{ name: "cost so far", tone: "accent", values: total }]} format={money} />
      <Chart title="Tokens" kind="bar" labels={labels} series={[{ name: "tokens", tone: "muted", values: rows.map(tokenSum) }]} format={tokens} />
      {metric.some((v) => v !== null) && <Chart title={rows.find((one) => one.metric_label)?.metric_label ?? "The task's metric"} labels={labels} series={[{ name: "metric", tone: "good", values: metric }]} format={(v) => String(Number(v.toPrecision(4)))} />}
      <Chart title="Minutes per session" kind="bar" labels={labels} series={[{ name: "minutes", tone: "muted", values: rows.map((one) => one.duration_ms / 60000) }]} format={(v) => `${Number(v.toPrecision(2))} min`} />
    </div>
  );
}
