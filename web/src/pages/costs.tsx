import { api } from "../api/calls";
import { basename, cost, count, money, tokens } from "../lib/format";
import { useLoad, useTitle } from "../lib/hooks";
import { setQuery } from "../router";
import { cx, Empty, ProblemNote, Skeleton } from "../ui/basics";
import { Chart } from "../ui/chart";

const BY: [string, string][] = [["day", "Day"], ["agent", "Agent"], ["model", "Model"], ["repo", "Repo"]];
const SPANS: [string, string][] = [["7d", "7 days"], ["30d", "30 days"], ["90d", "90 days"]];

/** A sum of the costs of sessions; some of them may be unknown. */
function sum(usd: number | null | undefined, unknown: number): string {
  return cost({ cost_usd: usd, cost_basis: unknown > 0 ? "unknown" : "reported" });
}

/** Every day of the span, those without a session as nothing. */
export function everyDay(rows: { name: string; cost_usd: number | null; unknown_sessions?: number }[], days: number, now: Date): { name: string; cost_usd: number | null }[] {
  // A day whose sessions all have an unknown cost has no bar, not one of $0.
  const known = new Map(rows.map((row) => [row.name, row.cost_usd || !row.unknown_sessions ? row.cost_usd : null]));
  return Array.from({ length: days }, (_, at) => {
    const day = new Date(now.getTime() - (days - 1 - at) * 86_400_000).toISOString().slice(0, 10);
    return { name: day, cost_usd: known.has(day) ? (known.get(day) ?? null) : 0 };
  });
}

/** What the runs have cost: by day, agent, model, repo. */
export default function Costs({ query }: { query: URLSearchParams }) {
  useTitle("Costs · ralph");
  const by = BY.find(([id]) => id === query.get("by"))?.[0] ?? "day";
  const since = SPANS.find(([id]) => id === query.get("since"))?.[0] ?? "30d";
  const costs = useLoad((signal) => api.costs(by, since, signal), [by, since]);
  const days = useLoad((signal) => api.costs("day", since, signal), [since]);
  const rows = costs.data?.rows ?? [];
  const unknown = rows.reduce((sum, row) => sum + row.unknown_sessions, 0);
  const drawn = everyDay(days.data?.rows ?? [], parseInt(since, 10), new Date());
  return (
    <main className="page" id="main">
      <h1>Costs</h1>
      <div className="toolbar">
        <div className="chips" role="group" aria-label="Added up by">
          {BY.map(([id, label]) => <button key={id} type="button" className={cx("chip", by === id && "chip-on")} aria-pressed={by === id} onClick={() => setQuery({ by: id === "day" ? null : id })}>{label}</button>)}
        </div>
        <div className="chips" role="group" aria-label="Since">
          {SPANS.map(([id, label]) => <button key={id} type="button" className={cx("chip", since === id && "chip-on")} aria-pressed={since === id} onClick={() => setQuery({ since: id === "30d" ? null : id })}>{label}</button>)}
        </div>
      </div>
      {costs.problem && <ProblemNote problem={costs.problem} retry={costs.reload} />}
      {!costs.data && !costs.problem ? <Skeleton lines={8} /> : rows.length === 0 && !costs.problem ? (
        <Empty title="No session in this time"><p className="muted">Costs are counted from the receipts of sessions.</p></Empty>
      ) : (
        <>
          <p className="lead num">{sum(costs.data?.cost_usd, unknown)} <span className="muted small">in {SPANS.find(([id]) => id === since)?.[1]}{unknown > 0 && `, ${count(unknown, "session")} with unknown cost`}</span></p>
          {days.data && <Chart title="Cost per day" kind="bar" labels={drawn.map((d) => d.name.slice(5))} series={[{ name: "cost", tone: "accent", values: drawn.map((d) => d.cost_usd) }]} format={money} />}
          <div className="table-box" tabIndex={0} role="region" aria-label="Costs as a table">
            <table className="table">
              <thead><tr><th scope="col">{BY.find(([id]) => id === by)?.[1]}</th><th scope="col" className="right">cost</th><th scope="col" className="right">runs</th><th scope="col" className="right">sessions</th><th scope="col" className="right">tokens</th></tr></thead>
              <tbody>
                {rows.map((row) => (
                  <tr key={row.name}>
                    <th scope="row" title={row.name}>{by === "repo" ? basename(row.name) : row.name}</th>
                    <td className="right num"><span title={row.unknown_sessions > 0 ? `${count(row.unknown_sessions, "session")} with unknown cost` : undefined}>{sum(row.cost_usd, row.unknown_sessions)}</span></td>
                    <td className="right num">{row.runs}</td>
                    <td className="right num">{row.sessions}</td>
                    <td className="right num">{tokens(row.tokens)}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        </>
      )}
    </main>
  );
}
