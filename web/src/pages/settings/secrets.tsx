import { useState, type FormEvent } from "react";
import { api } from "../../api/calls";
import { asProblem, type Problem } from "../../api/client";
import { useLoad } from "../../lib/hooks";
import { Button, Empty, Field, ProblemNote, Section, Skeleton } from "../../ui/basics";
import { AskDialog, type Ask } from "../../ui/dialog";
import { toast } from "../../ui/toast";

/** Keys that runs may use; the server never shows them. */
export function Secrets() {
  const secrets = useLoad(() => api.secrets(), []);
  const [name, setName] = useState("");
  const [value, setValue] = useState("");
  const [problem, setProblem] = useState<Problem | null>(null);
  const [asking, setAsking] = useState<Ask | null>(null);
  const save = async (event: FormEvent) => {
    event.preventDefault();
    try {
      await api.setSecret(name.trim(), value);
      toast(`${name.trim()} is set.`, "good");
      setName("");
      setProblem(null);
      secrets.reload();
    } catch (error) {
      setProblem(asProblem(error));
    } finally {
      setValue("");
    }
  };
  return (
    <div className="pane">
      <Section title="Secrets" aside={<span className="muted small">encrypted on disk, never shown</span>}>
        {secrets.problem && <ProblemNote problem={secrets.problem} retry={secrets.reload} />}
        {!secrets.data && !secrets.problem && <Skeleton lines={3} />}
        {secrets.data?.length === 0 && <Empty title="No secrets"><p className="muted">Runs use the server's environment.</p></Empty>}
        {(secrets.data?.length ?? 0) > 0 && (
          <div className="table-box" tabIndex={0} role="region" aria-label="Secrets">
            <table className="table">
              <thead><tr><th scope="col">name</th><th scope="col">state</th><th scope="col"><span className="sr-only">actions</span></th></tr></thead>
              <tbody>
                {secrets.data?.map((one) => (
                  <tr key={one.name}>
                    <th scope="row" className="mono">{one.name}</th>
                    <td>{one.set ? <span className="tone-good">✓ set</span> : <span className="muted">○ not set</span>}{one.source && <span className="muted small"> {one.source}</span>}</td>
                    <td className="right">
                      <Button small look="quiet" onClick={() => setName(one.name)}>{one.set ? "Replace" : "Set"}</Button>
                      {one.set && <Button small look="quiet" onClick={() => setAsking({ title: `Remove ${one.name}`, consequence: <p>New runs don't get it. Running ones keep it.</p>, confirm: "Remove", danger: true, run: async () => { await api.dropSecret(one.name); secrets.reload(); } })}>Remove …</Button>}
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        )}
      </Section>
      <Section title="Set a secret">
        <form className="row form-row" onSubmit={save} autoComplete="off">
          <Field label="Name"><input required value={name} onChange={(e) => setName(e.target.value)} placeholder="ANTHROPIC_API_KEY" spellCheck={false} /></Field>
          <Field label="Value"><input required type="password" value={value} onChange={(e) => setValue(e.target.value)} autoComplete="new-password" spellCheck={false} /></Field>
          <Button type="submit" look="primary" disabled={name.trim() === "" || value === ""}>Set</Button>
        </form>
        {problem && <ProblemNote problem={problem} />}
      </Section>
      {asking && <AskDialog ask={asking} onClose={() => setAsking(null)} />}
    </div>
  );
}
