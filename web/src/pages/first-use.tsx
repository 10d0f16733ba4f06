import { useState } from "react";
import { api } from "../api/calls";
import { asProblem, type Problem } from "../api/client";
import { go, runPath } from "../router";
import { useMaySteer } from "../session";
import { Button, ProblemNote } from "../ui/basics";

const DEMOS = [
  ["bug", "Watch a bug get fixed", "An agent bluffs, changes a test, then earns its proof. About two minutes."],
  ["stuck", "See a run get stuck", "The agent repeats itself until ralph asks you for a hint."],
  ["feature", "Watch a feature get its own tests", "New tests count only if they fail without the work. A few seconds."],
] as const;

/** Empty list: what a task is, and scripted runs that start at once. */
export function FirstUse() {
  const barred = useMaySteer();
  const [starting, setStarting] = useState<string | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const start = async (scenario: (typeof DEMOS)[number][0]) => {
    setStarting(scenario);
    setProblem(null);
    try {
      go(runPath((await api.demo(scenario)).id));
    } catch (error) {
      setProblem(asProblem(error));
      setStarting(null);
    }
  };
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
      <p>
        <Button look="primary" onClick={() => go("/new")} disabled={barred !== null}>New run</Button>
      </p>
      <h3>Or start a demo: scripted, offline, no account</h3>
      <div className="first-cards">
        {DEMOS.map(([scenario, title, text]) => (
          <button key={scenario} type="button" className="card" disabled={barred !== null || starting !== null} title={barred ?? undefined} onClick={() => void start(scenario)}>
            <strong>{title}</strong>
            <span className="muted">{starting === scenario ? "Starting …" : text}</span>
          </button>
        ))}
      </div>
      {problem && <ProblemNote problem={problem} />}
      <p className="muted">In a terminal: <code>ralph run "Fix the flaky test in tests/router.rs"</code>. Those runs appear here.</p>
    </div>
  );
}
