import { useState, type FormEvent } from "react";
import { api } from "../../api/calls";
import { asProblem, type Problem } from "../../api/client";
import { useLoad } from "../../lib/hooks";
import { useMe } from "../../session";
import { Ago, Button, Copy, Field, ProblemNote, Section, Skeleton } from "../../ui/basics";
import { AskDialog, type Ask } from "../../ui/dialog";

/** Users with their roles and tokens. */
export function People() {
  const me = useMe();
  const people = useLoad(() => api.people(), []);
  const [name, setName] = useState("");
  const [role, setRole] = useState("operator");
  const [problem, setProblem] = useState<Problem | null>(null);
  const [made, setMade] = useState<{ name: string; token: string } | null>(null);
  const [asking, setAsking] = useState<Ask | null>(null);
  const add = async (event: FormEvent) => {
    event.preventDefault();
    try {
      setMade(await api.addPerson(name.trim(), role));
      setName("");
      setProblem(null);
      people.reload();
    } catch (error) {
      setProblem(asProblem(error));
    }
  };
  return (
    <div className="pane">
      <Section title="Users">
        {people.problem && <ProblemNote problem={people.problem} retry={people.reload} />}
        {!people.data && !people.problem && <Skeleton lines={3} />}
        {people.data && (
          <div className="table-box" tabIndex={0} role="region" aria-label="Users">
            <table className="table">
              <thead><tr><th scope="col">name</th><th scope="col">role</th><th scope="col">since</th><th scope="col">last seen</th><th scope="col"><span className="sr-only">actions</span></th></tr></thead>
              <tbody>
                {people.data.map((one) => (
                  <tr key={one.name}>
                    <th scope="row">{one.name}{one.name === me.name && <span className="muted"> (you)</span>}</th>
                    <td>{one.role}</td>
                    <td><Ago at={one.created_at} /></td>
                    <td>{one.last_used ? <Ago at={one.last_used} /> : <span className="muted">never</span>}</td>
                    <td className="right">
                      <Button small look="quiet" disabled={one.name === me.name} onClick={() => setAsking({
                        title: `Remove ${one.name}`, consequence: <p>Their token and sessions end now. The audit log keeps their actions.</p>, confirm: "Remove", danger: true,
                        run: async () => { await api.dropPerson(one.name); people.reload(); },
                      })}>Remove …</Button>
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        )}
      </Section>
      {made && (
        <div className="note note-good" role="status">
          <strong>The token of {made.name}</strong>
          <p className="mono">{made.token} <Copy text={made.token} label="the token" /></p>
          <p className="muted">Shown only once. Anyone with this token acts as {made.name}.</p>
          <Button small onClick={() => setMade(null)}>Done</Button>
        </div>
      )}
      <Section title="Add user">
        <form className="row form-row" onSubmit={add}>
          <Field label="Name"><input required value={name} onChange={(e) => setName(e.target.value)} spellCheck={false} autoComplete="off" /></Field>
          <Field label="Role">
            <select value={role} onChange={(e) => setRole(e.target.value)}><option value="viewer">viewer: reads</option><option value="operator">operator: starts and controls runs</option><option value="admin">admin: also manages users and secrets</option></select>
          </Field>
          <Button type="submit" look="primary" disabled={name.trim() === ""}>Add</Button>
        </form>
        {problem && <ProblemNote problem={problem} />}
      </Section>
      {asking && <AskDialog ask={asking} onClose={() => setAsking(null)} />}
    </div>
  );
}
