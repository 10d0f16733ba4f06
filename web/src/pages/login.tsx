import { useState, type FormEvent } from "react";
import { api } from "../api/calls";
import { asProblem, type Problem } from "../api/client";
import { useTitle } from "../lib/hooks";
import { Button, Field, ProblemNote } from "../ui/basics";

/** Asks for the token that `ralph serve` printed. */
export function Login({ problem: first, onDone }: { problem: Problem | null; onDone: () => void }) {
  useTitle("Log in · ralph");
  const [token, setToken] = useState("");
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Problem | null>(first);
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    if (token.trim() === "" || busy) return;
    setBusy(true);
    setProblem(null);
    try {
      await api.login({ token: token.trim() });
      setToken("");
      onDone();
    } catch (error) {
      setProblem(asProblem(error));
    } finally {
      setBusy(false);
    }
  };
  return (
    <main className="login">
      <h1>ralph</h1>
      <p className="muted">Coding tasks, run until proven.</p>
      <form onSubmit={submit}>
        <Field label="Token" hint={<>The terminal that runs <code>ralph serve</code> printed one. Admins create tokens under Settings &gt; Users.</>}>
          <input type="password" autoComplete="current-password" autoFocus value={token} onChange={(e) => setToken(e.target.value)} spellCheck={false} />
        </Field>
        {problem && <ProblemNote problem={problem} />}
        <Button type="submit" look="primary" disabled={busy || token.trim() === ""}>
          {busy ? "Logging in …" : "Log in"}
        </Button>
      </form>
    </main>
  );
}
