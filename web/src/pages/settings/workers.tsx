import { useEffect, useState } from "react";
import { api } from "../../api/calls";
import { asProblem, type Problem } from "../../api/client";
import type { Worker } from "../../api/types";
import { line } from "../../lib/clean";
import { useLoad } from "../../lib/hooks";
import { useIsAdmin } from "../../session";
import { Button, Copy, Empty, ProblemNote, Section, Skeleton } from "../../ui/basics";
import { AskDialog, type Ask } from "../../ui/dialog";

/** Seconds without a heartbeat after which a worker counts as silent. */
const SILENT = 15;

/** The state of a worker. */
export function standing(worker: Worker): string {
  if (worker.revoked) return "revoked";
  if (worker.silent === null || worker.silent > SILENT) return "silent";
  return worker.draining ? "draining" : worker.health;
}

/** The machines of the fleet. */
export function Workers() {
  const admin = useIsAdmin();
  const fleet = useLoad((signal) => api.workers(signal), []);
  const [asking, setAsking] = useState<Ask | null>(null);
  const [token, setToken] = useState<string | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const reload = fleet.reload;
  useEffect(() => {
    const timer = setInterval(reload, 5000);
    return () => clearInterval(timer);
  }, [reload]);
  const addWorker = () => api.workerToken().then((made) => setToken(made.token), (error: unknown) => setProblem(asProblem(error)));
  const ask = (worker: Worker, what: "revoke" | "drain") => setAsking({
    title: what === "revoke" ? `Revoke ${worker.id}` : `Drain ${worker.id}`,
    consequence: what === "revoke"
      ? <p>Its login ends now; other workers take its runs. Sessions under way are lost.</p>
      : <p>Takes no new runs. Its runs move to other workers after their iteration.</p>,
    confirm: what === "revoke" ? "Revoke" : "Drain",
    danger: what === "revoke",
    run: async () => { await api.steerWorker(worker.id, what); reload(); },
  });
  return (
    <div className="pane">
      <Section title="Workers" aside={admin && fleet.data?.fleet ? <Button small onClick={addWorker}>Add worker …</Button> : undefined}>
        {fleet.problem && <ProblemNote problem={fleet.problem} retry={reload} />}
        {problem && <ProblemNote problem={problem} />}
        {!fleet.data && !fleet.problem && <Skeleton lines={3} />}
        {token && (
          <div className="note note-good" role="status">
            <p className="mono">{token} <Copy text={token} label="the token" /></p>
            <p className="muted">Adds one worker, within an hour: <code>ralph worker --enrol {location.origin} --token TOKEN</code></p>
          </div>
        )}
        {fleet.data && !fleet.data.fleet && <Empty title="No fleet"><p className="muted">With Postgres and an artifact store, other machines can run tasks: see docs/SCALE.md.</p></Empty>}
        {fleet.data?.fleet && !fleet.data.synchronous_standby && <p className="note note-attention">The database has no synchronous standby: the last events can be lost with its machine.</p>}
        {fleet.data?.fleet && (
          <div className="table-box" tabIndex={0} role="region" aria-label="Workers">
            <table className="table">
              <thead><tr><th scope="col">worker</th><th scope="col">state</th><th scope="col" className="right">runs</th><th scope="col" className="right">load</th><th scope="col">version</th><th scope="col">labels</th><th scope="col"><span className="sr-only">actions</span></th></tr></thead>
              <tbody>
                {fleet.data.workers.map((worker) => (
                  <tr key={worker.id}>
                    <th scope="row">{line(worker.id)}</th>
                    <td>{line(standing(worker))}</td>
                    <td className="right num">{worker.runs} of {worker.capacity}</td>
                    <td className="right num">{worker.load.toFixed(1)}</td>
                    <td>{line(worker.version)}</td>
                    <td>{line(worker.labels.join(" "))}</td>
                    <td className="right">
                      {admin && !worker.revoked && <><Button small look="quiet" onClick={() => ask(worker, "drain")}>Drain …</Button> <Button small look="quiet" onClick={() => ask(worker, "revoke")}>Revoke …</Button></>}
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        )}
      </Section>
      {asking && <AskDialog ask={asking} onClose={() => setAsking(null)} />}
    </div>
  );
}
