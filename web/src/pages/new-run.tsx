import { useEffect, useMemo, useRef, useState, type FormEvent } from "react";
import { api } from "../api/calls";
import { asProblem, Problem } from "../api/client";
import type { Finding, LintAnswer, NewRun as Body, Repo, Suggestions } from "../api/types";
import { count } from "../lib/format";
import { useLoad, useSettled, useTitle } from "../lib/hooks";
import { remembered } from "../lib/storage";
import { go, guard, racePath, runPath } from "../router";
import { useMe } from "../session";
import { Button, cx, Field, ProblemNote, Section } from "../ui/basics";
import { Dialog } from "../ui/dialog";
import { Editor, Findings } from "../ui/editor";

const MAX_FILE = 512 * 1024;

interface Form {
  repo: string;
  text: string;
  verify: string;
  base_branch: string;
  place: string;
  publish: string;
  provider: string;
  isolation: string;
  image: string;
  cpus: string;
  memory_mb: string;
  disk_gb: string;
  agents: string;
  race: string;
  best: string;
  model: string;
  fallback: string;
  mode: string;
  auth: string;
  labels: string;
  max_iterations: string;
  max_minutes: string;
  max_cost_usd: string;
}

const EMPTY: Form = {
  repo: "", text: "", verify: "", base_branch: "", place: "", publish: "", provider: "", isolation: "", image: "", cpus: "", memory_mb: "",
  disk_gb: "", agents: "", race: "", best: "", model: "", fallback: "", mode: "", auth: "", labels: "", max_iterations: "", max_minutes: "", max_cost_usd: "",
};

const words = (text: string) => text.split(/[\s,]+/).filter(Boolean);
const lines = (text: string) => text.split("\n").map((line) => line.trim()).filter(Boolean);
const number = (text: string) => (text.trim() !== "" && Number.isFinite(Number(text)) ? Number(text) : undefined);

/** A repo to clone, which fleet workers can take. */
const isAddress = (repo: string) => /^(https:\/\/|ssh:\/\/|git@)/.test(repo.trim());

/** Leaves out empty fields, so that the task, the configuration and the defaults apply. */
export function bodyOf(form: Form): Body {
  const limits = { max_iterations: number(form.max_iterations), max_minutes: number(form.max_minutes), max_cost_usd: number(form.max_cost_usd) };
  const resources = { cpus: number(form.cpus), memory_mb: number(form.memory_mb), disk_gb: number(form.disk_gb) };
  const set = <T extends object>(value: T) => Object.fromEntries(Object.entries(value).filter(([, v]) => v !== undefined && v !== "" && !(Array.isArray(v) && v.length === 0)));
  const some = (value: object) => (Object.keys(set(value)).length > 0 ? set(value) : undefined);
  return set({
    repo: form.repo.trim(), text: form.text, verify: lines(form.verify), base_branch: form.base_branch.trim(), place: form.place, publish: form.publish,
    provider: form.provider, isolation: form.isolation, image: form.image.trim(), resources: some(resources), agents: words(form.agents),
    race: words(form.race), best: words(form.race).length > 0 ? form.best : "",
    labels: isAddress(form.repo) && words(form.race).length === 0 ? words(form.labels) : [],
    model: form.model.trim(), mode: form.mode, auth: form.auth, profiles: some({ fallback: form.fallback.trim() }), limits: some(limits),
  }) as unknown as Body;
}

/** The form for a new run; a sentence is enough. */
export default function NewRun() {
  useTitle("New run · ralph");
  const me = useMe();
  const [form, setForm] = useState<Form>({ ...EMPTY, repo: remembered.get("repo") ?? "" });
  const [problem, setProblem] = useState<Problem | null>(null);
  const [busy, setBusy] = useState(false);
  const [prompt, setPrompt] = useState<string | null>(null);
  const [looking, setLooking] = useState(false);
  const [asFile, setAsFile] = useState(false);
  const key = useRef(crypto.randomUUID());
  const done = useRef(false);
  const sentence = useRef<HTMLTextAreaElement>(null);
  useEffect(() => sentence.current?.focus(), []);
  const repos = useLoad(() => api.repos(), []);
  const offered = useSuggestions(form.repo, repos.data);
  const templates = useLoad(() => api.templates(), []);
  const fleet = useLoad((signal) => api.workers(signal), []);
  const set = (name: keyof Form) => (value: string) => setForm((old) => ({ ...old, [name]: value }));
  const lint = useTaskLint(form);
  const file = asFile || form.text.includes("\n");
  // If the form names checks, the server judges the rest.
  const errors = form.verify.trim() === "" ? lint.findings.filter((f) => f.severity === "error") : [];

  useEffect(() => {
    const wanted = new URLSearchParams(location.search).get("template");
    const found = templates.data?.find((one) => one.name === wanted);
    if (found) setForm((old) => (old.text === "" ? { ...old, text: found.text } : old));
  }, [templates.data]);
  useEffect(() => {
    const first = repos.data?.[0];
    if (first) setForm((old) => (old.repo === "" ? { ...old, repo: first.path } : old));
  }, [repos.data]);
  const dirty = form.text.trim() !== "";
  useEffect(() => {
    if (!dirty) return;
    return guard(() => done.current || confirm("The run hasn't started. Leave?"));
  }, [dirty]);

  const upload = async (list: FileList | null) => {
    const one = list?.[0];
    if (!one) return;
    if (one.size > MAX_FILE) return setProblem(new Problem(-1, "The file is too large", `${one.name} has more than 512 kB.`, "Tasks have a few pages of text."));
    set("text")(await one.text());
    setAsFile(true);
  };
  const start = async (event?: FormEvent) => {
    event?.preventDefault();
    if (busy || form.text.trim() === "" || form.repo.trim() === "") return;
    setBusy(true);
    setProblem(null);
    try {
      const row = await api.create(bodyOf(form), key.current);
      remembered.set("repo", form.repo);
      done.current = true;
      go(form.race.trim() === "" ? runPath(row.id) : racePath(row.id));
    } catch (error) {
      const said = asProblem(error);
      setProblem(said);
      // Repeat the key only if the answer was lost.
      if (!said.offline) key.current = crypto.randomUUID();
      setBusy(false);
    }
  };
  const look = async () => {
    setLooking(true);
    try {
      setPrompt((await api.preview(bodyOf(form))).prompt);
    } catch (error) {
      setProblem(asProblem(error));
    } finally {
      setLooking(false);
    }
  };
  return (
    <main className="page page-form" id="main">
      <h1>New run</h1>
      {me.role === "viewer" && <p className="note note-attention">Viewers can't start runs.</p>}
      <form onSubmit={start} className="new-run">
        <Section title="What should be true when it is done?" aside={<Uploads onFile={(files) => void upload(files)} />}>
          {file ? (
            <Editor value={form.text} onChange={set("text")} findings={lint.findings} label="Task" rows={16} />
          ) : (
            <>
              <textarea
                className="sentence"
                aria-label="Task"
                rows={3}
                ref={sentence}
                value={form.text}
                placeholder="Make the router keep the order of messages under load."
                onChange={(e) => set("text")(e.target.value)}
                onKeyDown={(e) => e.key === "Enter" && (e.ctrlKey || e.metaKey) && void start()}
              />
              <Findings findings={lint.findings} />
            </>
          )}
          {(lint.task?.criteria?.length ?? 0) > 0 && (
            <details className="small"><summary>{lint.dialect ? `Read as ${lint.dialect}: ` : ""}{lint.task?.criteria?.length} criteria</summary><ul className="plain-list">{lint.task?.criteria?.map((c) => <li key={c.id}><span className="mono muted">{c.id}</span> {c.text}</li>)}</ul></details>
          )}
          <div className="chips" role="group" aria-label="Templates">
            {(templates.data ?? []).slice(0, 8).map((one) => (
              <button key={one.name} type="button" className="chip" title={one.description ?? undefined} onClick={() => (set("text")(one.text), setAsFile(one.text.includes("\n")))}>{one.title}</button>
            ))}
          </div>
        </Section>
        <div className="form-grid">
          <Field label="Repo" hint="A folder on this machine, or a URL to clone.">
            <input list="repos" required value={form.repo} placeholder="/home/you/project or https://…" onChange={(e) => set("repo")(e.target.value)} spellCheck={false} />
            <datalist id="repos">{repos.data?.map((one) => <option key={one.path} value={one.path}>{one.name}</option>)}</datalist>
          </Field>
          <Field label="Checks" hint="Commands that must pass, one per line. Leave empty to detect them.">
            <textarea rows={2} className="mono" value={form.verify} placeholder="cargo test" onChange={(e) => set("verify")(e.target.value)} spellCheck={false} />
          </Field>
        </div>
        <fieldset className="form-grid form-three">
          <legend>Budgets</legend>
          <Num label="Iterations" value={form.max_iterations} onChange={set("max_iterations")} />
          <Num label="Minutes of agent time" value={form.max_minutes} onChange={set("max_minutes")} />
          <Num label="Cost in USD" value={form.max_cost_usd} onChange={set("max_cost_usd")} step="0.01" />
        </fieldset>
        <details className="more">
          <summary>Advanced: branch, agents, sandbox, PR</summary>
          <div className="form-grid">
            <Field label="Base branch" hint={offered.branch ? `Leave empty for ${offered.branch}, the current branch.` : "Leave empty for the current branch."}>
              <input list="branches" value={form.base_branch} onChange={(e) => set("base_branch")(e.target.value)} spellCheck={false} />
              <Names id="branches" all={offered.branches} />
            </Field>
            <Pick label="Workspace" value={form.place} onChange={set("place")} options={["in_place", "worktree", "clone"]} />
            <Pick label="When done" value={form.publish} onChange={set("publish")} options={["none", "push", "pr"]} />
            <Pick label="Steering" value={form.mode} onChange={set("mode")} options={["autonomous", "guided", "debug"]} />
            <Field label="Agents" hint={offered.agents.length > 0 ? `In this order; configured: ${offered.agents.join(" ")}` : "In this order, for example: claude codex"}>
              <input list="agents" value={form.agents} onChange={(e) => set("agents")(e.target.value)} spellCheck={false} />
              <Names id="agents" all={nextAgents(form.agents, offered.agents)} />
            </Field>
            <Field label="Race" hint="Agents or models, or a number of identical runs. They share the budget.">
              <input list="racers" value={form.race} placeholder="one run" onChange={(e) => set("race")(e.target.value)} spellCheck={false} />
              <Names id="racers" all={nextAgents(form.race, offered.agents)} />
            </Field>
            <Field label="Winner">
              <select value={form.best} disabled={form.race.trim() === ""} onChange={(e) => set("best")(e.target.value)}>
                <option value="">the first that is proven</option>
                <option value="metric">the best number</option>
                <option value="diff">the smallest diff</option>
                <option value="cost">the lowest cost</option>
              </select>
            </Field>
            <Field label="Model or profile">
              <input list="profiles" value={form.model} onChange={(e) => set("model")(e.target.value)} spellCheck={false} />
              <Names id="profiles" all={offered.profiles} />
            </Field>
            <Pick label="Sandbox" value={form.provider} onChange={set("provider")} options={["local", "docker", "sbx", "daytona", "e2b", "vercel"]} />
            <Pick label="Isolation" value={form.isolation} onChange={set("isolation")} options={["auto", "bwrap", "landlock", "none"]} />
            <Field label="Image"><input value={form.image} onChange={(e) => set("image")(e.target.value)} spellCheck={false} /></Field>
            <Pick label="Code host account" value={form.auth} onChange={set("auth")} options={["pat", "app", "none"]} />
            {fleet.data?.fleet && (
              <Field label="Worker labels" hint="Only for a repo URL: a worker with all of these labels takes the run, for example: gpu eu">
                <input value={form.labels} disabled={!isAddress(form.repo)} onChange={(e) => set("labels")(e.target.value)} spellCheck={false} />
              </Field>
            )}
            <Field label="Fallback profile" hint="Used if the run gets stuck."><input list="profiles" value={form.fallback} onChange={(e) => set("fallback")(e.target.value)} spellCheck={false} /></Field>
          </div>
          <fieldset className="form-grid form-three">
            <legend>Sandbox resources</legend>
            <Num label="CPUs" value={form.cpus} onChange={set("cpus")} step="0.5" />
            <Num label="Memory in MB" value={form.memory_mb} onChange={set("memory_mb")} />
            <Num label="Disk in GB" value={form.disk_gb} onChange={set("disk_gb")} />
          </fieldset>
        </details>
        {problem && <ProblemNote problem={problem} />}
        {problem && Array.isArray(problem.body.findings) && <Findings findings={problem.body.findings as Finding[]} />}
        <footer className="form-foot">
          <Button type="submit" look="primary" disabled={busy || me.role === "viewer" || form.text.trim() === "" || form.repo.trim() === "" || errors.length > 0} title={errors.length > 0 ? "Fix the task first" : "Ctrl Enter"}>{busy ? "Starting …" : form.race.trim() === "" ? "Start the run" : "Start the race"}</Button>
          <Button disabled={looking || form.text.trim() === ""} onClick={() => void look()}>{looking ? "Building …" : "Preview the prompt"}</Button>
          <span className={cx("small", errors.length > 0 ? "tone-bad" : "muted")} role="status">{form.text.trim() === "" ? "" : errors.length > 0 ? `Fix ${count(errors.length, "problem")} to start` : lint.known ? "✓ no problems" : ""}</span>
        </footer>
      </form>
      {prompt !== null && (
        <Dialog wide title="First prompt" onClose={() => setPrompt(null)}>
          <p className="dialog-text muted small">The first session's exact prompt. Nothing has started.</p>
          <pre className="evidence evidence-file" tabIndex={0}>{prompt}</pre>
        </Dialog>
      )}
    </main>
  );
}

function Uploads({ onFile }: { onFile: (files: FileList | null) => void }) {
  const input = useRef<HTMLInputElement>(null);
  return (
    <>
      <input ref={input} type="file" className="sr-only" tabIndex={-1} aria-label="Task file" accept=".md,.json,.txt,.yaml,.yml" onChange={(e) => (onFile(e.target.files), (e.target.value = ""))} />
      <Button small look="quiet" onClick={() => input.current?.click()}>Open a task file …</Button>
    </>
  );
}

function Names({ id, all }: { id: string; all: string[] }) {
  return <datalist id={id}>{all.map((one) => <option key={one} value={one} />)}</datalist>;
}

/** Completions for the field: the chosen agents plus one more. */
export function nextAgents(text: string, all: string[]): string[] {
  const chosen = words(text).filter((name) => all.includes(name));
  return all.filter((name) => !chosen.includes(name)).map((name) => [...chosen, name].join(" "));
}

const NOTHING: Suggestions = { branches: [], branch: null, agents: [], profiles: [], task_files: [] };

/** Branches, agents and profiles of a repo on this machine. */
function useSuggestions(repo: string, repos: Repo[] | null): Suggestions {
  const wanted = useSettled(repo.trim(), 300);
  const known = repos?.some((one) => one.path === wanted) ?? false;
  const found = useLoad((signal) => (known ? api.suggestions(wanted, signal) : Promise.resolve(NOTHING)), [wanted, known]);
  return (known && found.data) || NOTHING;
}

function Num({ label, value, onChange, step = "1" }: { label: string; value: string; onChange: (v: string) => void; step?: string }) {
  return <Field label={label}><input type="number" min="0" step={step} value={value} placeholder="as configured" onChange={(e) => onChange(e.target.value)} /></Field>;
}

function Pick({ label, value, onChange, options }: { label: string; value: string; onChange: (v: string) => void; options: string[] }) {
  return (
    <Field label={label}>
      <select value={value} onChange={(e) => onChange(e.target.value)}>
        <option value="">as configured</option>
        {options.map((one) => <option key={one} value={one}>{one.replaceAll("_", " ")}</option>)}
      </select>
    </Field>
  );
}

/** The linter's findings for the text as it is typed. */
function useTaskLint(form: Form): LintAnswer & { known: boolean } {
  const text = useSettled(form.text, 400);
  const repo = useSettled(form.repo, 400);
  const [answer, setAnswer] = useState<LintAnswer & { known: boolean }>({ findings: [], known: false });
  useEffect(() => {
    if (text.trim() === "") return setAnswer({ findings: [], known: false });
    const stop = new AbortController();
    api.lint({ text, ...(repo.trim() ? { repo: repo.trim() } : {}) }, stop.signal).then(
      (said) => setAnswer({ ...said, known: true }),
      // Findings of an earlier text don't apply.
      () => !stop.signal.aborted && setAnswer({ findings: [], known: false }),
    );
    return () => stop.abort();
  }, [text, repo]);
  return useMemo(() => answer, [answer]);
}
