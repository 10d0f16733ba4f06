import { api } from "../api/calls";
import { useLoad } from "../lib/hooks";
import { go } from "../router";
import { useMe } from "../session";
import { Button } from "../ui/basics";

/** Empty list: what a task is, and three templates. */
export function FirstUse() {
  const me = useMe();
  const templates = useLoad(() => api.templates(), []);
  const few = templates.data?.slice(0, 3) ?? [];
  return (
    <div className="first-use">
      <h2>No runs yet</h2>
      <p>
        A <strong>task</strong> says what to do and how to check it. Each agent session starts fresh and works in a sandbox. Your checks decide,
        not the agent. When they pass in a clean checkout, the result is <strong>proven</strong>.
      </p>
      <ol className="steps">
        <li><strong>Say what should be true</strong> in a sentence, or paste a task file.</li>
        <li><strong>Name the check</strong>: a command that fails now and passes when it is done.</li>
        <li><strong>Leave it.</strong> ralph asks you only when it needs a decision.</li>
      </ol>
      <div className="first-cards">
        {few.map((one) => (
          <button key={one.name} type="button" className="card" disabled={me.role === "viewer"} onClick={() => go(`/new?template=${encodeURIComponent(one.name)}`)}>
            <strong>{one.title}</strong>
            <span className="muted">{one.description ?? one.text.split("\n").find((l) => l.trim() && !l.startsWith("#") && !l.startsWith("---")) ?? ""}</span>
          </button>
        ))}
      </div>
      <p>
        <Button look="primary" onClick={() => go("/new")} disabled={me.role === "viewer"}>New run</Button>
      </p>
      <p className="muted">In a terminal: <code>ralph run "Fix the flaky test in tests/router.rs"</code>. Those runs appear here.</p>
    </div>
  );
}
