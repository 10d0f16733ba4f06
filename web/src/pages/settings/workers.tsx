import { useEffect, useState } from "react";
import { api } from "../../api/calls";
import { asProblem, type Problem } from "../../api/client";
import type { Worker } from "../../api/types";
import { line } from "../../lib/clean";
import { useLoad } from "../../lib/hooks";
import { useIsAdmin } from "../../session";
import { Button, Copy, Empty, ProblemNote, Section, Skeleton } from "../../ui/basics";
import { AskDialog, type Ask } from "../../ui/dialog";

/** Seconds without a word after which a worker counts as silent. */
const SILENT = 15;

/** How a worker stands, in a word or two. */
export function standing(worker: Worker): string {
  if (worker.revoked) return "revoked";
  if (worker.silent === null || worker.silent > SILENT) return "silent";
  return worker.draining ? "hands over its runs" : worker.health;
}

/** The machines of the fleet: how busy each is, and whether it takes runs. */
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
  const letIn = () => api.workerToken().then((made) => setToken(made.token), (error: unknown) => setProblem(asProblem(error)));
  const ask = (worker: Worker, what: "revoke" | "drain") => setAsking({
    title: what === "revoke" ? `Revoke ${worker.id}` : `Let ${worker.id} hand over`,
    consequence: what === "revoke"
      ? <p>Its login and its holds end at once; other workers take its runs. A session that is under way is lost.</p>
      : <p>It takes no further run. Each of its runs goes to another worker after its iteration.</p>,
    confirm: what === "revoke" ? "Revoke" : "Hand over",
    danger: what === "revoke",
    run: async () => { await api.steerWorker(worker.id, what); reload(); },
  });
  return (
    <div className="pane">
      <Section title="Workers" aside={admin && fleet.data?.fleet ? <Button small onClick={letIn}>Let one in …</Button> : undefined}>
        {fleet.problem && <ProblemNote problem={fleet.problem} retry={reload} />}
        {problem && <ProblemNote problem={problem} />}
        {!fleet.data && !fleet.problem && <Skeleton lines={3} />}
        {token && (
          <div className="note note-good" role="status">
            <p className="mono">{token} <Copy text={token} label="the token" /></p>
            <p className="muted">It lets one worker in, within an hour: <code>ralph worker --enrol {location.origin} --token TOKEN</code></p>
          </div>
        )}
        {fleet.data && !fleet.data.fleet && <Empty title="This server works alone"><p className="muted">With a Postgres and an artifact store other machines can drive its runs: docs/SCALE.md tells how.</p></Empty>}
        {fleet.data?.fleet && !fleet.data.synchronous_standby && <p className="note note-attention">The database has no synchronous standby: what was sealed last may be lost with its machine.</p>}
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
                      {admin && !worker.revoked && <><Button small look="quiet" onClick={() => ask(worker, "drain")}>Hand over …</Button> <Button small look="quiet" onClick={() => ask(worker, "revoke")}>Revoke …</Button></>}
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
