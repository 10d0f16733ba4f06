import { useCallback, useEffect, useState } from "react";
import { api, AUDIT_PAGE } from "../../api/calls";
import { asProblem, type Problem } from "../../api/client";
import type { AuditEntry } from "../../api/types";
import { exact } from "../../lib/format";
import { runPath } from "../../router";
import { A, Ago, Button, Empty, ProblemNote, Skeleton } from "../../ui/basics";

/** Actions of users, newest first. */
export function Audit() {
  const [entries, setEntries] = useState<AuditEntry[] | null>(null);
  const [more, setMore] = useState(false);
  const [problem, setProblem] = useState<Problem | null>(null);
  const read = useCallback(async (before: string | null) => {
    try {
      const page = await api.audit(before);
      setEntries((old) => (before === null ? page : [...(old ?? []), ...page]));
      setMore(page.length === AUDIT_PAGE);
      setProblem(null);
    } catch (error) {
      setProblem(asProblem(error));
    }
  }, []);
  useEffect(() => void read(null), [read]);
  if (problem) return <ProblemNote problem={problem} retry={() => void read(null)} />;
  if (!entries) return <Skeleton lines={8} />;
  if (entries.length === 0) return <Empty title="No entries yet" />;
  return (
    <div className="pane">
      <div className="table-box" tabIndex={0} role="region" aria-label="Audit log">
        <table className="table">
          <thead><tr><th scope="col">when</th><th scope="col">who</th><th scope="col">what</th><th scope="col">run</th><th scope="col">detail</th></tr></thead>
          <tbody>
            {entries.map((one, at) => (
              <tr key={at}>
                <td title={exact(one.at)}><Ago at={one.at} /></td>
                <td>{one.who}</td>
                <td>{one.action}</td>
                <td className="mono">{one.run ? <A href={runPath(one.run)}>{one.run}</A> : ""}</td>
                <td className="muted">{one.detail}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {more && <Button small onClick={() => void read(entries[entries.length - 1]?.at ?? null)}>Older entries</Button>}
    </div>
  );
}
