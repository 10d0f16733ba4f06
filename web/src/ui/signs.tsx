// Recurring shapes: status, stuck score, budgets, agents, sparklines. A color always comes with a word or a sign.

import { line } from "../lib/clean";
import { percent } from "../lib/format";
import { agentColor, budgetTone, lookOf, loopSteps, type Tone } from "../lib/status";
import { cx } from "./basics";

export function StatusMark({ status, wordless }: { status: string; wordless?: boolean }) {
  const look = lookOf(status);
  return (
    <span className={cx("status", `tone-${look.tone}`)} title={wordless ? look.word : undefined}>
      <span className="sign" aria-hidden>
        {status === "waiting" ? <Clock /> : look.sign}
      </span>
      <span className={wordless ? "sr-only" : undefined}>{look.word}</span>
    </span>
  );
}

/** Few fonts have an hourglass that is not an emoji, so this one is drawn. */
export function Clock() {
  return (
    <svg className="clock" viewBox="0 0 16 16" width="12" height="12" aria-hidden fill="none" stroke="currentColor" strokeWidth="1.75" strokeLinecap="round">
      <circle cx="8" cy="8" r="6" />
      <path d="M8 4.750V8l2.250 1.500" />
    </svg>
  );
}

/** The stuck score as five steps. */
export function LoopBar({ score }: { score: number }) {
  const steps = loopSteps(score);
  const tone: Tone = score >= 0.7 ? "bad" : score >= 0.5 ? "attention" : "plain";
  return (
    <span className={cx("loop", `tone-${tone}`)} title={`stuck score ${score.toFixed(2)}: 0 is getting closer, 0.7 counts as stuck`}>
      <span className="loop-bar" aria-hidden>
        {[1, 2, 3, 4, 5].map((step) => (
          <i key={step} className={step <= steps ? "on" : undefined} />
        ))}
      </span>
      <span className="num">
        <span className="sr-only">stuck score </span>
        {score.toFixed(1)}
      </span>
    </span>
  );
}

/** A budget; its estimated part is hatched. An unknown share draws nothing. */
export function Bar({ share, estimated = 0, label }: { share: number | null; estimated?: number; label: string }) {
  if (share === null) return null;
  const width = (part: number) => `${Math.max(0, Math.min(1, part)) * 100}%`;
  const words = `${percent(share)} used${estimated > 0 ? ", partly estimated" : ""}`;
  return (
    <span className={cx("bar", `bar-${budgetTone(share)}`)} role="img" aria-label={`${label}: ${words}`} title={words}>
      <i style={{ width: width(share - estimated) }} />
      {estimated > 0 && <i className="bar-estimate" style={{ width: width(estimated) }} />}
    </span>
  );
}

export function AgentTag({ name }: { name: string }) {
  return <span className={`agent agent-${agentColor(name)}`}>{line(name)}</span>;
}

export function Check({ state }: { state: "met" | "failing" | "open" | "claimed" }) {
  const [sign, word, tone] = {
    met: ["✓", "met", "good"],
    failing: ["✗", "failing", "bad"],
    claimed: ["◐", "claimed, not yet checked", "accent"],
    open: ["○", "open", "muted"],
  }[state] as [string, string, Tone];
  return (
    <span className={`sign tone-${tone}`}>
      <span aria-hidden title={word}>{sign}</span>
      <span className="sr-only">{word}</span>
    </span>
  );
}

/** A line without axes. */
export function Spark({ values, label, max, tone = "accent", width: w = 96 }: { values: (number | null)[]; label: string; max?: number; tone?: Tone; width?: number }) {
  const known = values.filter((v): v is number => v !== null);
  if (known.length === 0) return <span className="muted">–</span>;
  const top = max ?? Math.max(...known, 1);
  const h = 20;
  const step = values.length > 1 ? w / (values.length - 1) : 0;
  const points = values
    .map((v, at) => (v === null ? null : `${(at * step).toFixed(1)},${(h - 2 - (v / (top || 1)) * (h - 4)).toFixed(1)}`))
    .filter(Boolean)
    .join(" ");
  const last = known[known.length - 1] ?? 0;
  return (
    <svg className={`spark tone-${tone}`} viewBox={`-2 0 ${w + 4} ${h}`} width={w} height={h} role="img" aria-label={`${label}: now ${last}, ${values.length} iterations`}>
      <polyline points={points} fill="none" stroke="currentColor" strokeWidth="1.5" strokeLinejoin="round" />
      <circle cx={(values.length - 1) * step} cy={h - 2 - (last / (top || 1)) * (h - 4)} r="2" fill="currentColor" />
    </svg>
  );
}
