import { useCallback, useEffect, useMemo, useState } from "react";
import { api } from "../api/calls";
import type { Race, RaceRun } from "../api/types";
import { cost, costShare, count, money } from "../lib/format";
import { useLoad, useThrottled, useTitle } from "../lib/hooks";
import { isOver } from "../lib/status";
import { useRunsLive } from "../live/list-store";
import { go, runPath } from "../router";
import { useMaySteer } from "../session";
import { A, Button, cx, Empty, ProblemNote, Section, Skeleton } from "../ui/basics";
import { AskDialog, type Ask } from "../ui/dialog";
import { AgentTag, Bar, StatusMark } from "../ui/signs";

const WINS: Record<Race["by"], string> = {
  first: "The first proven result wins.",
  metric: "The best number of all proven results wins.",
  diff: "The smallest diff of all proven results wins.",
  cost: "The cheapest of all proven results wins.",
};

/** The winner, or the rule. */
export function verdict(race: Race): string {
  const winner = race.runs.find((run) => run.run_id === race.winner);
  if (winner) return winner.proven ? `${winner.name} wins.` : `${winner.name} wins: done, unverified.`;
  if (race.over && race.by === "cost" && race.runs.some((run) => run.proven)) return "No winner: the cost of no proven result is fully known.";
  if (race.over) return "No winner: nothing is proven.";
  return race.looked_after ? WINS[race.by] : "The race is no longer supervised; its runs continue.";
}

/** Reads a race again whenever something happens to one of its runs, at most once a second. */
function useRace(id: string) {
  const live = useRunsLive();
  const [race, setRace] = useState<Race | null>(null);
  const members = race?.runs.map((run) => live.rows.get(run.run_id)?.updated_at ?? "").join(" ") ?? "";
  const waiting = race === null ? live.rows.get(id)?.updated_at ?? "" : "";
  const changed = useThrottled(`${members}${waiting}${live.generation}`, 1000);
  const found = useLoad((signal) => api.race(id, signal), [id, changed]);
  useEffect(() => {
    if (found.data) setRace(found.data);
  }, [found.data]);
  // The supervising process writes the end of the race a moment after the last run's.
  const { reload } = found;
  const unsettled = race !== null && !race.over && race.looked_after && race.runs.some((run) => isOver(run.status));
  useEffect(() => {
    if (!unsettled) return;
    const timer = setInterval(reload, 1000);
    return () => clearInterval(timer);
  }, [unsettled, reload]);
  return { race, problem: found.problem, reload, queued: live.rows.get(id) };
}

/** A race: status and cost of each run, and the winner. */
export default function RacePage({ id }: { id: string }) {
  const { race, problem, reload, queued } = useRace(id);
  const [asking, setAsking] = useState<Ask | null>(null);
  const barred = useMaySteer();
  useTitle(race ? `Race: ${race.title} · ralph` : "Race · ralph");
  const working = useMemo(() => race?.runs.filter((run) => run.begun && !isOver(run.status)) ?? [], [race]);
  const stopAll = useCallback(async () => {
    const all = await Promise.allSettled(working.map((run) => api.control(run.run_id, { control: "cancel" })));
    reload();
    const failed = all.find((one) => one.status === "rejected");
    if (failed) throw failed.reason;
  }, [working, reload]);
  if (!race) {
    return (
      <main className="page" id="main">
        {problem?.status === 404 && queued?.status === "queued" ? (
          <Empty title={queued.task}>
            <p><StatusMark status="queued" /> <span className="muted">{queued.now ?? ""}</span></p>
            <p className="muted">Starts when there is room for all of its runs.</p>
          </Empty>
        ) : problem?.status === 404 ? (
          <Empty title="Race not found">
            <p className="muted">This run isn't part of a race. <A href={runPath(id)}>Open the run</A></p>
          </Empty>
        ) : problem ? (
          <ProblemNote problem={problem} retry={reload} />
        ) : (
          <Skeleton lines={6} label="Reading the race" />
        )}
      </main>
    );
  }
  const winner = race.runs.find((run) => run.run_id === race.winner);
  return (
    <main className="page page-race" id="main">
      <h1>{race.title || "Race"}</h1>
      <p className={cx("race-verdict", winner ? (winner.proven ? "tone-good" : "tone-attention") : race.over && "tone-bad")} role="status">{verdict(race)}</p>
      {race.ended && <p className="muted small">The other runs ended: {race.ended}.</p>}
      <Section title={count(race.runs.length, "run")}>
        <div className="table-box" tabIndex={0} role="region" aria-label="Runs of the race">
          <table className="table race-table">
            <thead>
              <tr><th scope="col">agent</th><th scope="col">status</th><th scope="col" className="right">iteration</th><th scope="col" className="right">cost</th>{race.by === "metric" && <th scope="col" className="right">best</th>}<th scope="col">now</th></tr>
            </thead>
            <tbody>{race.runs.map((run) => <Line key={run.run_id} race={race} run={run} />)}</tbody>
            <tfoot>
              <tr>
                <th scope="row" colSpan={3}>total of {money(race.budget_usd)}</th>
                <td className="right num">{cost(race)}</td>
                <td colSpan={race.by === "metric" ? 2 : 1}><Bar share={costShare(race, race.budget_usd)} label="shared budget" /></td>
              </tr>
            </tfoot>
          </table>
        </div>
      </Section>
      <footer className="form-foot">
        {winner && <Button look="primary" onClick={() => go(runPath(winner.run_id, "overview", { take: "1" }))}>Take the winner</Button>}
        {winner && <Button onClick={() => go(runPath(winner.run_id, "diff"))}>See its diff</Button>}
        {working.length > 0 && (
          <Button disabled={barred !== null} title={barred ?? undefined} onClick={() => setAsking({ title: "Stop the race?", consequence: `Ends ${count(working.length, "run")} now. Their commits stay.`, confirm: "Stop all", danger: true, run: stopAll })}>Stop all</Button>
        )}
      </footer>
      {asking && <AskDialog ask={asking} onClose={() => setAsking(null)} />}
    </main>
  );
}

function Line({ race, run }: { race: Race; run: RaceRun }) {
  const won = race.winner === run.run_id;
  const name = <AgentTag name={run.name} />;
  return (
    <tr>
      <th scope="row">{run.begun ? <A href={runPath(run.run_id)}>{name}</A> : name} {won && <span className={cx("tag", run.proven ? "tone-good" : "tone-attention")}>{run.proven ? "wins" : "wins · unverified"}</span>}</th>
      <td><StatusMark status={run.status} /></td>
      <td className="right num">{run.iteration}{run.max_iterations > 0 && <span className="muted">/{run.max_iterations}</span>}</td>
      <td className="right num">{cost(run)}</td>
      {race.by === "metric" && <td className="right num">{run.best ?? "–"}</td>}
      <td className="muted">{run.detail}</td>
    </tr>
  );
}
