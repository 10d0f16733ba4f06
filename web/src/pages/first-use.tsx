import { api } from "../api/calls";
import { useLoad } from "../lib/hooks";
import { go } from "../router";
import { useMe } from "../session";
import { Button } from "../ui/basics";

/** The first look: what a task is, and three to start with one click. */
export function FirstUse() {
  const me = useMe();
  const templates = useLoad(() => api.templates(), []);
  const few = templates.data?.slice(0, 3) ?? [];
  return (
    <div className="first-use">
      <h2>No runs yet</h2>
      <p>
        A <strong>task</strong> says what is to be done and how it is checked. Each session of an agent starts fresh, works in a sandbox, and
        is judged by your checks, not by its own word. When everything holds in a clean checkout, the result is <strong>proven</strong> and
        handed over as a pull request.
      </p>
      <ol className="steps">
        <li><strong>Say what should be true</strong> in a sentence, or paste a task file.</li>
        <li><strong>Name the check</strong>: a command that fails now and passes when it is done.</li>
        <li><strong>Leave it.</strong> You are asked only where your word is needed.</li>
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
      <p className="muted">In a terminal: <code>ralph run "Fix the flaky test in tests/router.rs"</code>. Runs that start there appear here, too.</p>
    </div>
  );
}
