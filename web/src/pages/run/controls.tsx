import { api } from "../../api/calls";
import type { Control } from "../../api/types";
import { money } from "../../lib/format";
import { isOver } from "../../lib/status";
import { awaited } from "../../live/run-state";
import { go, runPath, setQuery } from "../../router";
import { Button } from "../../ui/basics";
import type { Ask } from "../../ui/dialog";
import { Menu, type MenuItem } from "../../ui/menu";
import { toast } from "../../ui/toast";
import { useRunHere, type RunHere } from "./context";
import { withCode } from "./now-line";

type Asks = Record<"rotate" | "stop" | "cancel" | "note" | "nudge" | "guardrail" | "skip" | "cooldown" | "model" | "budget" | "remove", Ask>;

/** Controls that ask first, with their consequences. */
export function asksFor(here: RunHere): Asks {
  const { view, id } = here;
  // A refusal shows in the dialog, so it stays open.
  const send: RunHere["store"]["send"] = (control) => here.store.send(control);
  const agent = view.current?.agent;
  const cost = view.budgets.find((b) => b.budget === "cost");
  const iterations = view.budgets.find((b) => b.budget === "iterations");
  return {
    rotate: {
      title: "Start a fresh session",
      consequence: <p>{agent ? `Ends ${agent}'s session now; its changes stay and are checked. ` : ""}The next session starts with a fresh context.</p>,
      confirm: "Fresh session",
      run: () => send({ control: "rotate" }),
    },
    stop: {
      title: "Stop after this session",
      consequence: <p>The current session finishes and is checked. Then the run ends as <strong>stopped</strong>. Its commits stay{view.branch ? <> on <code>{view.branch}</code></> : null}.</p>,
      confirm: "Stop the run",
      danger: true,
      run: () => send({ control: "stop" }),
    },
    cancel: {
      title: "Cancel now",
      consequence: <p>Ends the session now; its unsaved work is lost. The run ends as <strong>stopped</strong> and cannot be resumed. Commits of finished iterations stay.</p>,
      confirm: "Cancel the run",
      danger: true,
      run: () => send({ control: "cancel" }),
    },
    note: {
      title: "Add a note",
      consequence: <p>Every later session of this run gets this fact.</p>,
      confirm: "Add the note",
      input: { label: "Note", lines: 4, placeholder: "The staging database has no users table yet." },
      run: (text) => send({ control: "note", text }),
    },
    nudge: {
      title: "Give a hint",
      consequence: <p>Only the next session gets it.</p>,
      confirm: "Send the hint",
      input: { label: "Hint", lines: 4, placeholder: "Look at the drain path before the retry logic." },
      run: (text) => send({ control: "nudge", text }),
    },
    guardrail: {
      title: "Add a guardrail",
      consequence: <p>Every session of this and later runs in this repo gets this rule.</p>,
      confirm: "Add the guardrail",
      input: { label: "Rule", lines: 3, placeholder: "Never edit generated files; run `make gen`." },
      run: (text) => send({ control: "guardrail", text }),
    },
    skip: {
      title: `Skip ${agent ?? "the agent"}`,
      consequence: <p>{agent ? `Ends ${agent}'s session now; it doesn't count as an iteration. ` : ""}Another agent takes the next turn.</p>,
      confirm: "Skip",
      run: () => send({ control: "skip", ...(agent ? { agent } : {}) }),
    },
    cooldown: {
      title: "Cool down an agent",
      consequence: <p>{agent ?? view.agents[0]?.name ?? "The agent"} is skipped for this long. 0 ends a cooldown.</p>,
      confirm: "Cool down",
      input: { label: "Minutes", value: "30" },
      run: (text) => {
        const minutes = Number(text);
        const name = agent ?? view.agents[0]?.name;
        if (!Number.isFinite(minutes) || minutes < 0 || !name) return Promise.reject(new Error("minutes must be a number"));
        return send({ control: "cooldown", agent: name, seconds: Math.round(minutes * 60) });
      },
    },
    model: {
      title: "Model for the next iteration",
      consequence: <p>For the next session only. Leave empty for the configured model.</p>,
      confirm: "Set the model",
      input: { label: "Model or profile", placeholder: "zai/glm-4.7", optional: true },
      run: (text) => send({ control: "model", ...(text ? { model: text } : {}) }),
    },
    budget: {
      title: "Change the budget",
      consequence: <p>Limits for the whole run, including what it has used. Now: {iterations ? `${iterations.limit} iterations` : "no iteration limit"}, {cost ? money(cost.limit) : "no cost limit"}. Example: <code>40 iterations, $20, 3 h</code>.</p>,
      confirm: "Change",
      input: { label: "New limits", placeholder: "40 iterations, $20, 3 h" },
      run: (text) => {
        const change = parseBudget(text);
        if (!change) return Promise.reject(new Error("write numbers with units: 40 iterations, $20, 3 h, 2M tokens"));
        return send({ control: "budget", ...change });
      },
    },
    remove: {
      title: "Delete the run",
      consequence: <p>Removes its record, logs and receipts from this machine. Commits, branches and the pull request stay.</p>,
      confirm: "Delete",
      danger: true,
      run: async () => {
        await api.remove(id);
        toast("Deleted.");
        go("/");
      },
    },
  };
}

/** `40 iterations, $20, 3 h, 2M tokens`; null if a part isn't understood. */
export function parseBudget(text: string): { max_iterations?: number; max_seconds?: number; max_cost_usd?: number; max_tokens?: number } | null {
  const out: { max_iterations?: number; max_seconds?: number; max_cost_usd?: number; max_tokens?: number } = {};
  for (const part of text.split(",").map((p) => p.trim().toLowerCase()).filter(Boolean)) {
    const found = /^(\$)?\s*([\d.]+)\s*([a-z]*)(?:\s+([a-z]+))?$/.exec(part);
    const n = Number(found?.[2]);
    if (!found || !Number.isFinite(n) || n <= 0) return null;
    const unit = found[3] ?? "";
    if (found[1] === "$" || unit === "usd") out.max_cost_usd = n;
    else if (/^iterations?$/.test(unit)) out.max_iterations = Math.round(n);
    else if (/^(h|hours?)$/.test(unit)) out.max_seconds = Math.round(n * 3600);
    else if (/^(m|min|minutes?)$/.test(unit) && found[4] !== "tokens") out.max_seconds = Math.round(n * 60);
    else if (/^(s|seconds?)$/.test(unit)) out.max_seconds = Math.round(n);
    else if (unit === "tokens") out.max_tokens = Math.round(n);
    else if (unit === "k" && found[4] === "tokens") out.max_tokens = Math.round(n * 1000);
    else if (unit === "m" && found[4] === "tokens") out.max_tokens = Math.round(n * 1_000_000);
    else return null;
  }
  return Object.keys(out).length > 0 ? out : null;
}

/** Whether the run pauses after this session. */
export function pausePending(here: RunHere): boolean {
  const { view, run } = here;
  if (view.status === "paused" || view.status === "interrupted" || view.status === "needs you" || isOver(view.status)) return false;
  for (let at = run.events.length - 1; at >= 0; at--) {
    const event = run.events[at];
    if (event?.kind === "wait_started" || event?.kind === "wait_ended" || event?.kind === "driver_started") return false;
    if (event?.kind === "control_received" && (event.control === "pause" || event.control === "resume")) return event.control === "pause";
  }
  return false;
}

interface Primary {
  label: string;
  run: (() => void) | null;
  why?: string;
}

/** Pauses, or takes a pause back. */
function pause(here: RunHere): Primary {
  const { view, run, send } = here;
  if (awaited(run, "resume")) return { label: "Resuming …", run: null };
  if (view.status === "paused" || view.status === "needs you" || view.orphaned || !view.driven) {
    return { label: "Resume", run: () => void send({ control: "resume" }) };
  }
  if (awaited(run, "pause")) return { label: "Pausing …", run: null };
  if (pausePending(here)) return { label: "Don’t pause", run: () => void send({ control: "resume" }), why: "pauses after this session" };
  return { label: "Pause", run: () => void send({ control: "pause" }) };
}

export function pauseKey(here: RunHere): void {
  pause(here).run?.();
}

/** Budgets whose end can be taken back by a higher limit. */
const BUDGET_ENDS = ["max_iterations", "max_cost", "max_tokens", "timeout"];

/** The one thing to do next; null if the banner has it, or if there is nothing. */
function primary(here: RunHere): Primary | null {
  const { view, id, send, ask } = here;
  if (view.status === "needs you") return null;
  if (BUDGET_ENDS.includes(view.finished?.reason ?? "")) return { label: "Raise the budget", run: () => ask(asksFor(here).budget) };
  if (view.status === "done") return { label: "Take the result", run: () => setQuery({ take: "1" }) };
  if (isOver(view.status)) return view.iterations > 0 ? { label: "See the diff", run: () => go(runPath(id, "diff")) } : null;
  const resting = view.agents.filter((agent) => agent.standing === "resting").sort((a, b) => ((a.until ?? "") < (b.until ?? "") ? -1 : 1))[0];
  if (view.status === "waiting" && view.driven && resting) return { label: "Try now", run: () => void send({ control: "cooldown", agent: resting.name, seconds: 0 }) };
  return pause(here);
}

/** One primary button; the menu has the rest. */
export function Controls() {
  const here = useRunHere();
  const { view, run, barred, send, ask } = here;
  const asks = asksFor(here);
  const over = isOver(view.status);
  const main = primary(here);
  const stop = pause(here);
  const working = view.status === "working";
  const gate = (item: MenuItem): MenuItem => ({ ...item, disabled: barred ?? false });
  const copyId: MenuItem = { label: "Copy the run’s id", run: () => void navigator.clipboard.writeText(here.id).then(() => toast("Copied."), () => toast(here.id)) };
  const items: (MenuItem | "line")[] = over
    ? [
        ...(view.status !== "done" && view.iterations > 0 ? [gate({ label: "Take the files anyway …", run: () => setQuery({ take: "1" }) })] : []),
        copyId,
        "line",
        gate({ label: "Delete the run …", danger: true, run: () => ask(asks.remove) }),
      ]
    : [
        ...(main?.label === stop.label || view.status === "needs you" ? [] : [gate({ label: stop.label, hint: "p", run: () => stop.run?.() })]),
        gate({ label: "Note …", hint: "n", run: () => ask(asks.note) }),
        ...(here.mode === "autonomous" ? [] : [gate({ label: "Give a hint …", hint: "u", run: () => ask(asks.nudge) })]),
        gate({ label: "Guardrail …", run: () => ask(asks.guardrail) }),
        gate({ label: "Diagnose", hint: "d", run: () => void send({ control: "diagnose" }).then(() => toast("Diagnosing after this session.")) }),
        "line",
        ...(working ? [gate({ label: "Fresh session …", hint: "r", run: () => ask(asks.rotate) })] : []),
        ...(view.agents.length > 1 ? [gate({ label: "Skip this agent …", run: () => ask(asks.skip) })] : []),
        gate({ label: "Cool down this agent …", run: () => ask(asks.cooldown) }),
        gate({ label: "Model for the next iteration …", run: () => ask(asks.model) }),
        gate({ label: "Change the budget …", run: () => ask(asks.budget) }),
        copyId,
        "line",
        gate({ label: "Stop after this session …", danger: true, run: () => ask(asks.stop) }),
        gate({ label: "Cancel now …", danger: true, run: () => ask(asks.cancel) }),
      ];
  return (
    <>
      <LastWord />
      {main?.why && <span className="small tone-attention">{main.why}</span>}
      {main && (
        <Button look="primary" disabled={main.run === null || (barred !== null && main.label !== "See the diff")} title={barred ?? "."} onClick={() => main.run?.()}>
          {main.label}
        </Button>
      )}
      {!over && working && run.link !== "offline" && (
        <Button disabled={barred !== null} title={barred ?? "r"} onClick={() => ask(asks.rotate)}>
          Fresh session
        </Button>
      )}
      <Menu name="More actions" label={<span aria-hidden>⋯</span>} items={items} />
    </>
  );
}

const ACCEPTED: Record<Control["control"], string> = {
  pause: "Pause accepted", resume: "Resumed", rotate: "Session ended", stop: "Stops after this session", cancel: "Canceled", approve: "Approved", diagnose: "Diagnosis requested",
  apply: "Diagnosis applied", skip: "Skipped", cooldown: "Cooldown set", model: "Model set", budget: "Budget changed", note: "Note added", guardrail: "Guardrail added", nudge: "Hint sent",
};

/** The outcome of the last control. */
function LastWord() {
  const { run } = useRunHere();
  const last = run.sent[run.sent.length - 1];
  if (!last || (last.state === "accepted" && Date.now() - last.at > 20000)) return <span role="status" />;
  const name = last.control.control;
  const words = {
    sending: `Sending ${name} …`,
    sent: `${name}: in the run's inbox`,
    accepted: ACCEPTED[name],
    refused: `${name} was refused: ${last.why ?? ""}`,
  }[last.state];
  return (
    <span className={`small last-word ${last.state === "refused" ? "tone-bad" : "muted"}`} role="status" title={words}>
      {withCode(words)}
    </span>
  );
}
