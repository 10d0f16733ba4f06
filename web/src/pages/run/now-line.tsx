import { ago, span, until } from "../../lib/format";
import { useNow } from "../../lib/hooks";
import { short } from "../../lib/clean";
import { AgentTag } from "../../ui/signs";
import { useRunHere } from "./context";

/** One sentence that is always true. While a session works the page counts the seconds itself. */
export function NowLine() {
  const { view, run } = useRunHere();
  const now = useNow();
  const current = view.current;
  if (view.status === "working" && current && view.driven) {
    const heard = run.lastOutputAt && run.lastOutputAt >= current.started_at ? `last output ${ago(run.lastOutputAt, now)}` : "no output yet";
    const quiet = run.lastOutputAt !== null && now - Date.parse(run.lastOutputAt) > 180_000;
    return (
      <p className="now" aria-live="off">
        <AgentTag name={current.agent} /> is working for {span((now - Date.parse(current.started_at)) / 1000)} ·{" "}
        <span className={quiet ? "tone-attention" : undefined}>{heard}</span>
        {run.activity && <> · <span className="mono small">{short(run.activity, 120)}</span></>}
      </p>
    );
  }
  const { wait } = view;
  if (view.status === "waiting" && wait?.until && view.agents.some((agent) => agent.standing === "resting")) return <p className="now">rate limited until {until(wait.until, now)}</p>;
  return <p className="now" title={view.now}>{withCode(view.now)}</p>;
}

/** Words between backticks as code; everything stays text. */
export function withCode(text: string) {
  return text.split("`").map((part, at) => (at % 2 === 1 ? <code key={at}>{part}</code> : <span key={at}>{part}</span>));
}
