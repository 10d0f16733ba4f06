// Every call of the server that the page makes, by name.

import { get, plainText, query, request } from "./client";
import type {
  Artifact, AuditEntry, Control, Costs, DiagnosisAnswer, DiffAnswer, EventFrame, FileEntry, FileText, IterationDetail,
  IterationLine, LintAnswer, Me, NewRun, OutputHits, OutputPart, Person, Race, Repo, Rules, RunAnswer, RunRow, ResultAnswer, RunsPage, SandboxAnswer,
  Secret, Suggestions, TakeBody, Taken, TaskText, Template, Worker,
} from "./types";

const run = (id: string) => `/runs/${encodeURIComponent(id)}`;
/** A path below a run's workspace, part by part. */
const below = (path: string) => path.split("/").map(encodeURIComponent).join("/");

/** Entries of the audit log that are read at a time. */
export const AUDIT_PAGE = 100;

export interface RunsQuery {
  status?: string;
  repo?: string;
  q?: string;
  person?: string;
  sort?: string;
  order?: string;
  limit?: number;
  cursor?: string | null;
}

export const api = {
  workers: (signal?: AbortSignal) => get<{ fleet: boolean; workers: Worker[]; synchronous_standby?: boolean }>("/fleet/workers", signal),
  workerToken: async () => (await request<{ token: string }>("/fleet/tokens", { method: "POST" })).body,
  steerWorker: (id: string, what: "revoke" | "drain") => request(`/fleet/workers/${encodeURIComponent(id)}/${what}`, { method: "POST" }),
  me: () => get<Me>("/me"),
  login: (body: { token: string } | { code: string }) => request("/login", { method: "POST", body }),
  logout: () => request("/logout", { method: "POST" }),

  runs: (q: RunsQuery, signal?: AbortSignal) => get<RunsPage>(`/runs${query({ ...q })}`, signal),
  create: async (body: NewRun, key: string) =>
    (await request<RunRow>("/runs", { method: "POST", body, headers: { "idempotency-key": key } })).body,
  remove: (id: string) => request(run(id), { method: "DELETE" }),
  demo: async (scenario: "bug" | "stuck" | "feature") => (await request<{ id: string }>("/demo", { method: "POST", body: { scenario } })).body,
  lint: async (body: { repo?: string; text?: string; task?: string }, signal?: AbortSignal) =>
    (await request<LintAnswer>("/lint", { method: "POST", body, ...(signal ? { signal } : {}) })).body,
  preview: async (body: NewRun) => (await request<{ prompt: string }>("/preview", { method: "POST", body })).body,
  templates: () => get<Template[]>("/templates"),
  repos: () => get<Repo[]>("/repos"),
  suggestions: (repo: string, signal?: AbortSignal) => get<Suggestions>(`/suggestions${query({ repo })}`, signal),

  races: (signal?: AbortSignal) => get<Race[]>("/races", signal),
  race: (id: string, signal?: AbortSignal) => get<Race>(`/races/${encodeURIComponent(id)}`, signal),

  view: (id: string, signal?: AbortSignal) => get<RunAnswer>(run(id), signal),
  events: (id: string, from: number, limit = 500) =>
    get<{ events: EventFrame[]; head?: number; next?: number | null }>(`${run(id)}/events${query({ from, limit })}`),
  iterations: (id: string, signal?: AbortSignal) => get<{ iterations: IterationLine[] }>(`${run(id)}/iterations`, signal).then((answer) => answer.iterations),
  iteration: (id: string, n: number, signal?: AbortSignal) => get<IterationDetail>(`${run(id)}/iterations/${n}`, signal),
  output: (id: string, n: number, offset: number, limit: number, signal?: AbortSignal) =>
    get<OutputPart>(`${run(id)}/output/${n}${query({ offset, limit })}`, signal, true),
  outputHits: (id: string, n: number, q: string, offset: number, signal?: AbortSignal) =>
    get<OutputHits>(`${run(id)}/output/${n}/search${query({ q, offset })}`, signal, true),
  /** A text of the record, for example the log of a check. */
  artifactText: (id: string, name: string) => plainText(`${run(id)}/artifacts/${below(name)}`),
  control: async (id: string, { control: kind, ...rest }: Control) =>
    (await request<{ letter?: string | null; outcome?: string; reason?: string | null }>(`${run(id)}/control`, { method: "POST", body: { kind, ...rest } })).body,

  task: (id: string) => request<TaskText>(`${run(id)}/task`, { raw: true }),
  saveTask: (id: string, text: string, etag: string) =>
    request<{ outcome?: string; version?: number } | null>(`${run(id)}/task`, { method: "PUT", body: { text }, headers: { "if-match": etag } }),
  files: (id: string, path: string) => get<{ path: string; entries: FileEntry[] }>(`${run(id)}/files${query({ path })}`),
  file: (id: string, path: string, signal?: AbortSignal) => get<FileText>(`${run(id)}/files/${below(path)}`, signal),
  rules: (id: string, signal?: AbortSignal) => get<Rules>(`${run(id)}/guardrails`, signal),
  /** All changes, those of one iteration, or those from the end of `against` on (0 is the start). */
  diff: (id: string, iteration: number | null, against: number | null, signal?: AbortSignal) =>
    get<DiffAnswer>(`${run(id)}/diff${query({ iteration, against })}`, signal, true),
  result: (id: string, signal?: AbortSignal) => get<ResultAnswer>(`${run(id)}/result`, signal),
  take: async (id: string, body: TakeBody) => (await request<Taken>(`${run(id)}/result`, { method: "POST", body })).body,
  diagnosis: (id: string, signal?: AbortSignal) => get<DiagnosisAnswer>(`${run(id)}/diagnosis`, signal),
  debug: async (id: string, command: string) =>
    (await request<{ results: { command: string; exit_code: number | null; output: string }[] }>(`${run(id)}/debug`, { method: "POST", body: { command }, raw: true })).body.results,
  sandbox: (id: string, signal?: AbortSignal) => get<SandboxAnswer>(`${run(id)}/sandbox`, signal),
  artifacts: (id: string, signal?: AbortSignal) => get<{ artifacts: Artifact[] }>(`${run(id)}/artifacts`, signal).then((answer) => answer.artifacts),
  artifactUrl: (id: string, name: string) => `/api/v1${run(id)}/artifacts/${below(name)}`,

  costs: (by: string, since: string, signal?: AbortSignal) => get<Costs>(`/costs${query({ by, since })}`, signal),
  audit: (before: string | null) => get<{ entries: AuditEntry[] }>(`/audit${query({ limit: AUDIT_PAGE, before })}`).then((answer) => answer.entries),
  secrets: () => get<{ secrets: Secret[] }>("/secrets").then((answer) => answer.secrets),
  setSecret: (name: string, value: string) => request(`/secrets/${encodeURIComponent(name)}`, { method: "PUT", body: { value } }),
  dropSecret: (name: string) => request(`/secrets/${encodeURIComponent(name)}`, { method: "DELETE" }),
  people: () => get<{ people: Person[] }>("/people").then((answer) => answer.people),
  addPerson: async (name: string, role: string) =>
    (await request<{ name: string; role: string; token: string }>("/people", { method: "POST", body: { name, role } })).body,
  dropPerson: (name: string) => request(`/people/${encodeURIComponent(name)}`, { method: "DELETE" }),
};
