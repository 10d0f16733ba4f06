// Invented runs for dev/mock.mjs.
const now = Date.now();
const ago = (seconds) => new Date(now - seconds * 1000).toISOString();
const row = (id, task, repo, status, more = {}) => ({
  id, task, repo, folder: `/home/ana/${repo}`, branch: `ralph/${id}`, status, iteration: 3, max_iterations: 30, loop_score: 0.1, cost_usd: 0.62, cost_basis: "estimated", budget_usd: 10,
  criteria_met: 1, criteria_total: 4, agent: "codex", model: null, provider: "local", mode: "autonomous", pr_url: null, needs_you: false, now: null, driven: true,
  orphaned: false, created_at: ago(4000), updated_at: ago(4), ended_at: null, person: "ana", ...more,
});
const titles = ["Fix flaky router test", "Port the importer to async", "Remove the old session store", "Add retries to the mailer", "Speed up the search index", "Type the settings module", "Split the billing crate", "Cache avatar thumbnails"];
export const rows = [
  row("keep-order-7f3a", "Keep router order under load", "acme/api", "needs you", { needs: "tests_changed", tests: { passed: 43, failed: 1, series: [33, 34, null, 36, 37, 38, 39, 40, 41, 42, 43, 43] }, iteration: 12, loop_score: 0.8, cost_usd: 4.1, pr_url: "https://example.com/acme/api/pull/41", pr_number: 41, pr_draft: true, needs_you: true, now: "codex changed 2 original tests. With the originals, 1 of 44 tests fails: test_drain", updated_at: ago(130) }),
  row("migrate-sessions-19bc", "Migrate sessions to the new store", "acme/api", "working", { tests: { passed: 12, failed: 8, series: [4, 9, 12] }, now: "codex is working · editing src/db.rs" }),
  row("image-pipeline-c2d1", "Image pipeline keeps EXIF orientation", "me/site", "waiting", { agent: "gemini", iteration: 5, max_iterations: 20, loop_score: 0.2, cost_usd: 1.02, budget_usd: 5, pr_url: "https://example.com/me/site/pull/7", updated_at: ago(360), now: "rate limited until 19:06 (in 12 min)" }),
  row("budget-run-aa01", "Rewrite the CSV importer without the global lock", "acme/api", "verifying", { agent: "claude", iteration: 26, loop_score: 0.55, cost_usd: 8.4, now: "checking what claude did in iteration 26" }),
  row("paused-one-bb02", "Add a health endpoint", "acme/edge", "paused", { agent: "claude", iteration: 2, cost_usd: 0.2, now: "paused by ana 5 min ago", updated_at: ago(300) }),
  row("fix-flaky-4e10", "Fix flaky test in tests/router.rs", "acme/api", "done", { iteration: 2, cost_usd: 0.31, pr_url: "https://example.com/acme/api/pull/40", proof_level: "independent", updated_at: ago(3600), now: "proven" }),
  row("race-a", "Make the parser twice as fast", "acme/parser", "done", { iteration: 2, cost_usd: 0.57, proof_level: "independent", updated_at: ago(5000), now: "proven" }),
  row("race-b", "Make the parser twice as fast", "acme/parser", "stopped", { agent: "claude", iteration: 1, cost_usd: null, cost_basis: "unknown", updated_at: ago(5000), now: "Lost to codex" }),
  row("too-dear-99aa", "Upgrade to the new ORM", "acme/api", "failed", { iteration: 30, loop_score: 0.75, cost_usd: 10, updated_at: ago(7200), now: "ended: the cost limit of $10 is used up" }),
  ...Array.from({ length: 10_000 }, (_, i) => row(`old-${i}`, `${titles[i % 8]} (${i})`, ["acme/api", "me/site", "acme/edge"][i % 3], ["done", "done", "failed", "stopped"][i % 4], { tests: { passed: 44 - (i % 4 === 2 ? 5 : 0), failed: i % 4 === 2 ? 5 : 0, series: [30, 34, 33, 39, 41, i % 4 === 2 ? 39 : 44] }, iteration: (i * 7) % 29 + 1, cost_usd: ((i * 37) % 900) / 100, loop_score: ((i * 13) % 10) / 10, proof_level: i % 2 ? "independent" : "own_tests", updated_at: ago(9000 + i * 600), created_at: ago(10000 + i * 600) })),
];
const check = (name, passed, more = {}) => ({ name, tree: "t", passed, duration_ms: 2300, log: "l", log_digest: "d", ...more });
const iteration = (n, verdict, more = {}) => ({
  iteration: n, agent: n % 2 ? "claude" : "codex", verdict, end: { how: "completed" }, message: "Narrowed the race to the drain path; added a test that shows it.", files: 4, added: 41, removed: 12, cost_usd: 0.21 + (n % 5) / 20,
  duration_ms: 178000 - n * 4000, loop_score: [0.1, 0.2, 0.35, 0.3, 0.5, 0.6, 0.4, 0.3, 0.5, 0.7, 0.75, 0.8][n - 1] ?? 0.3, tests: { passed: 32 + n, failed: Math.max(0, 12 - n) }, commit: "0123456789abcdef", ended_at: ago((13 - n) * 400), tokens: 41000 + n * 900, model: "gpt-5-codex", ...more,
});
const history = Array.from({ length: 12 }, (_, i) => iteration(i + 1, i === 11 ? "protected_changed" : i === 5 ? "not_promised" : "checks_fail", i === 2 ? { files: 0, added: 0, removed: 0, end: { how: "timed_out" } } : {}));
const failing = check("tests", false, { why: "exit code 1: 1 of 44 tests fails", tests: { passed: 43, failed: 1 }, failing: ["test_drain"], last_lines: ["\u001b[31mFAIL\u001b[0m tests/router.rs", "test_drain: expected [1, 2, 3], got [1, 3, 2]", "  at tests/router.rs:88", "43 passed; \u001b[31m1 failed\u001b[0m"] });

function view(r) {
  const needs = r.status === "needs you";
  return {
    run_id: r.id, title: r.task, status: r.status, now: needs ? r.now : (r.now ?? ""), next: "`ralph resume`", driven: r.driven && !["done", "failed"].includes(r.status), orphaned: false, seq: 60,
    created_at: r.created_at, last_event_at: r.updated_at, elapsed_seconds: 4100, working_seconds: 2520,
    ...(r.status === "working" ? { current: { iteration: 13, attempt: 1, agent: "codex", model: "gpt-5-codex", started_at: ago(192) } } : {}),
    ...(needs ? { needs: { reason: "tests_changed", message: "codex changed 2 original tests: tests/router.rs, tests/drain.rs. With the originals, 1 of 44 tests fails: test_drain", next: "`ralph approve`", details: ["tests/router.rs: changed", "tests/drain.rs: an assertion was removed", "tests with the originals: exit code 1", "  test_drain: expected [1, 2, 3], got [1, 3, 2]"] } } : {}),
    criteria: [
      { id: "M1.1", milestone: "Order", text: "The router keeps the order of messages per key", check: "`cargo test router_order`", claimed: true, met: true, last: check("M1.1", true, { duration_ms: 120 }) },
      { id: "M1.2", milestone: "Order", text: "No flake in 200 runs", check: "`scripts/stress 200`", claimed: true, met: false, last: check("M1.2", false, { duration_ms: 41000, why: "exit code 1", failing: ["test_drain"] }) },
      { id: "M2.1", milestone: "Quality", text: "`clippy` reports nothing", check: "`cargo clippy -- -D warnings`", claimed: false, met: false },
      { id: "M2.2", milestone: "Quality", text: "The changelog says what changed", check: "manual", claimed: true, met: false },
    ],
    checks: [{ name: "tests", command: "cargo test --workspace", required: true, last: failing, current_tree: true }, { name: "lint", command: "cargo clippy --workspace -- -D warnings", required: true, last: check("lint", true), current_tree: true }, { name: "docs", command: "mdbook test docs", required: false, current_tree: false }],
    budgets: [{ budget: "iterations", used: r.iteration, limit: 30, share: r.iteration / 30 }, { budget: "time", used: 2520, limit: 7200, share: 0.35 }, { budget: "cost", used: r.cost_usd, limit: 10, share: r.cost_usd / 10 }, { budget: "tokens", used: 512000, limit: 600000, share: 0.853 }],
    spent: { cost_usd: r.cost_usd, cost_basis: "estimated", saved_usd: 0.4, tokens: { input: 480000, output: 32000, cached: 900000 }, sessions: 13, sandboxes: [] },
    agents: [{ name: "codex", model: "gpt-5-codex", standing: r.status === "working" ? "working" : "free", sessions: 6, cost_usd: 2.1, cost_basis: "estimated", tokens: { input: 1, output: 1 } }, { name: "claude", standing: "free", sessions: 6, cost_usd: 2, cost_basis: "reported", tokens: { input: 1, output: 1 } }, { name: "gemini", standing: "resting", until: new Date(now + 723000).toISOString(), reason: "rate limited by the provider", sessions: 1, cost_usd: 0, cost_basis: "unknown", tokens: { input: 0, output: 0 } }],
    iterations: 12, history: history.slice(-12), loop_score: r.loop_score, branch: r.branch, pr: r.pr_url ? { number: r.pr_number ?? 7, url: r.pr_url, draft: Boolean(r.pr_draft) } : undefined,
    proof: r.status === "done" ? { commit: "0123456789abcdef", over: true, passed: true, clean: true, headline: "proven, independent", weakened: 0, level: "independent", watched: "watched" } : undefined,
    finished: r.status === "done" ? { reason: "completed", summary: "Proven in a clean checkout; handed over as PR #40.", at: ago(3600) } : r.status === "failed" ? { reason: "max_cost", summary: "The cost limit of $10 is used up.", at: ago(7200) } : undefined,
    workspace: `/home/ana/${r.repo}`, origin: `/home/ana/${r.repo}`,
  };
}
// Two comments on lines of the diff; the line of the first one has changed since.
const NOTES = "\nReview comment on `src/router.rs`, line 41, after iteration 10:\n> let mut out = Vec::new();\nReserve the room.\n<!-- n1 ben via web -->\n\nReview comment on `src/router.rs`, line 44, after iteration 12:\n> out.push(message);\nWhy not `extend`?\n<!-- n2 ana via web -->\n";
const CHANGED_SINCE = "diff --git a/src/router.rs b/src/router.rs\n--- a/src/router.rs\n+++ b/src/router.rs\n@@ -40,2 +40,2 @@\n     pub fn drain(&mut self) -> Vec<Message> {\n-        let mut out = Vec::new();\n+        let mut out = Vec::with_capacity(self.queue.len());\n";
const BIG_PATCH = Array.from({ length: 5000 }, (_, n) => `diff --git a/src/part${n}.rs b/src/part${n}.rs\n--- a/src/part${n}.rs\n+++ b/src/part${n}.rs\n@@ -1,2 +1,3 @@\n fn part() {\n+    let it = ${n};\n }\n`).join("");
/** Iteration 4 has printed 100,000 lines, the third of them of one megabyte; the others are short. */
let long = null;
function output(path, query) {
  const [, , number, search] = path.split("/");
  if (number !== "4") return { text: TRANSCRIPT, offset: 0, next: TRANSCRIPT.length, size: TRANSCRIPT.length };
  long ??= Array.from({ length: 100_000 }, (_, n) => (n === 2 ? "x".repeat(1_000_000) : n === 70_000 ? "the needle" : `line ${n} \u001b[32mof many\u001b[0m`)).join("\n");
  if (search) {
    const at = long.indexOf(query.get("q"));
    return { hits: at < 0 ? [] : [{ offset: long.lastIndexOf("\n", at) + 1, line: long.slice(long.lastIndexOf("\n", at) + 1, long.indexOf("\n", at)) }], next: long.length, size: long.length };
  }
  const offset = Number(query.get("offset") ?? 0);
  const next = Math.min(long.length, offset + Math.min(Number(query.get("limit") ?? 262_144), 2_097_152));
  return { text: long.slice(offset, next), offset, next, size: long.length };
}
const PATCH = `diff --git a/src/router.rs b/src/router.rs
--- a/src/router.rs
+++ b/src/router.rs
@@ -40,9 +40,12 @@ impl Router {
     pub fn drain(&mut self) -> Vec<Message> {
-        let mut out: Vec<_> = self.queue.drain(..).collect();
-        out.sort_by_key(|m| m.id);
-        out
+        let mut out = Vec::with_capacity(self.queue.len());
+        while let Some(message) = self.queue.pop_front() {
+            // The order of arrival is the order of delivery.
+            out.push(message);
+        }
+        out
     }
 
     /// How many wait.
diff --git a/tests/router.rs b/tests/router.rs
--- a/tests/router.rs
+++ b/tests/router.rs
@@ -84,7 +84,7 @@
 #[test]
 fn test_drain() {
     let mut router = Router::new();
-    assert_eq!(router.drain_ids(), [1, 2, 3]);
+    assert_eq!(router.drain_ids().len(), 3);
 }
diff --git a/docs/new.md b/docs/new.md
new file mode 100644
--- /dev/null
+++ b/docs/new.md
@@ -0,0 +1,2 @@
+# Order
+Messages keep their order.
`;
const racer = (run_id, name, more = {}) => ({ run_id, name, begun: true, status: "working", detail: "", iteration: 2, max_iterations: 10, cost_usd: 0.4, cost_basis: "reported", proven: false, ...more });
const RACES = [{ id: "race-a", title: "Make the parser twice as fast", by: "cost", budget_usd: 10, cost_usd: 0.97, cost_basis: "unknown", winner: "race-a", over: true, looked_after: false, ended: "codex was proven first", runs: [racer("race-a", "codex", { status: "done", proven: true, cost_usd: 0.57 }), racer("race-b", "claude", { status: "stopped", cost_usd: null, cost_basis: "unknown" })] }];
const said = (type, content) => JSON.stringify({ type, message: { content } });
const TRANSCRIPT = [
  '{"type":"system","subtype":"init"}',
  said("assistant", [{ type: "text", text: "The queue is drained from two threads.\nI take the lock first." }, { type: "tool_use", name: "Bash", input: { command: "cargo test router_order" } }]),
  said("user", [{ type: "tool_result", is_error: true, content: Array.from({ length: 41 }, (_, n) => `line ${n}`).join("\n") + "\ntest_drain: expected [1, 2, 3], got [1, 3, 2]" }]),
  said("assistant", [{ type: "tool_use", name: "Edit", input: { file_path: "src/router.rs", old_string: "a", new_string: "b" } }]),
].join("\n");
const TASK = "---\ntest_command: cargo test --workspace\nmax_iterations: 30\nmax_wall_time: 2h\nmax_cost_usd: 10\n---\n# Keep router order under load\n\n## Context\nThe router loses the order of messages when it drains.\n\n## Success criteria\n### M1 Order\n- [ ] The router keeps the order of messages per key (verify: `cargo test router_order`)\n- [ ] No flake in 200 runs (verify: `scripts/stress 200`)\n";
const TOOLS = [["edit", "src/router.rs"], ["bash", "cargo test router_order -- --nocapture"], ["read", "src/queue.rs"], ["grep", "drain\\("]];
export const liveStep = (n, seq) => {
  const base = { type: "output", n, at: new Date().toISOString(), after: seq, iteration: 13 };
  const [name, what] = TOOLS[n % 4];
  if (n % 4 === 0) return { ...base, kind: "text", text: "The drain path pops in the order of ids, not of arrival.\n```rust\nwhile let Some(message) = self.queue.pop_front() {\n```\n" };
  if (n % 4 === 3) return { ...base, kind: "tool_result", ok: n % 8 !== 7, text: n % 8 !== 7 ? "43 passed, 1 failed" : "no such file" };
  return { ...base, kind: "tool_call", name, what };
};
const events = Array.from({ length: 60 }, (_, i) => ({ type: "event", seq: i + 1, event: { seq: i + 1, at: ago((60 - i) * 60), kind: i % 12 === 11 ? "iteration_ended" : "check_finished", iteration: Math.floor(i / 5) + 1 }, text: i % 5 === 0 ? `iteration ${i / 5 + 1}: ${i % 2 ? "claude" : "codex"} starts` : i % 5 === 4 ? "`tests` fails: 1 of 44 tests, test_drain" : "recorded 4 files (+41 −12)", tone: i % 5 === 4 ? "bad" : i % 5 === 0 ? "plain" : "muted" }));

export function details(id) {
  const r = rows.find((one) => one.id === id);
  if (!r) return null;
  const seq = events.length;
  const live = Array.from({ length: 40 }, (_, i) => ({ ...liveStep(i + 1, seq), at: ago(40 - i) }));
  live.push({ type: "output", n: 41, at: ago(1), after: seq, iteration: 13, kind: "check_output", check: "tests", text: "running 44 tests\n\u001b[32mok\u001b[0m router_order\n\u001b[1;31mFAILED\u001b[0m test_drain\n" });
  return {
    answer: { row: r, view: view(r), mode: r.mode, spec_version: 2, actions: [] },
    task: { text: TASK, source: "ralph_task.md", dialect: "ralph_task.md", version: 2, pending: null }, events, live,
    parts: (path, url) => {
      if (path === "/iterations") return { iterations: history.map((one) => ({ ...one, receipt: { checks: [check("tests", one.tests.failed === 0, { tests: one.tests, failing: Array.from({ length: one.tests.failed }, (_, n) => `test_${n}`) })] } })) };
      if (path.startsWith("/iterations/")) return { receipt: { version: 1, run_id: id, iteration: 12, attempt: 1, agent: "codex", model: "gpt-5-codex", session_ms: 178000, exit_code: 0, promised: true, message: "done", tokens: { input: 41000, output: 3100, cached: 88000 }, cost_usd: 0.4, cost_basis: "estimated", total_cost_usd: 4.1, commit: "0123456789abcdef", checks: [failing, check("lint", true)], files_changed: 2 }, files: [{ path: "src/router.rs", status: "M", added: 6, removed: 3 }, { path: "tests/router.rs", status: "M", added: 1, removed: 1 }], prompt: "# Task\nKeep router order under load\n", artifacts: [{ name: "iterations/12/prompt.md", size: 4100, kind: "text" }] };
      if (path.startsWith("/output/")) return output(path, url.searchParams);
      if (path === "/diff") return { patch: url.searchParams.get("iteration") === "3" ? "" : url.searchParams.get("iteration") === "4" ? BIG_PATCH : url.searchParams.has("against") && !url.searchParams.has("iteration") ? CHANGED_SINCE : PATCH, cut: false };
      if (path === "/guardrails") return { text: "", rules: [{ text: "Never edit generated files; run `make gen`." }, { text: "When a test is flaky, find the race; do not add a retry." }], notes: "The staging database is reset every night.\n<!-- n0 ana via web -->\n" + NOTES };
      if (path === "/diagnosis") return { by: "strong-doctor", at: 8, markdown: "", controls: ["guardrail", "edit", "model"], report: { summary: "Four sessions tried to sort on drain; the order is lost earlier, when two producers share a queue.", failure_patterns: [{ pattern: "The same test fails the same way since iteration 6", evidence: "test_drain: expected [1, 2, 3], got [1, 3, 2]" }], root_causes: ["`Queue::push` takes the lock after it has read the sequence number"], guardrails: [{ trigger: "Before changing drain", instruction: "Show with a test that push keeps the order." }, { trigger: "", instruction: "Do not change assertions of tests/router.rs." }], task_edits: [{ find: "No flake in 200 runs", replace: "No flake in 200 runs with 8 producers", why: "One producer never shows the race." }], model_suggestion: { model: "strong-doctor", why: "The cheap model repeats itself." } } };
      if (path === "/result") return { commit: "0123456789abcdef", base: "fedcba", files: [{ path: "src/router.rs" }, { path: "tests/router.rs" }], pr_url: null, pr_draft: { title: r.task, body: "Closes #40." }, ways: [{ kind: "apply", possible: true, why: null, target: "/home/ana/acme/api", conflicts: [] }, { kind: "branch", possible: true, why: null, target: `ralph/${id}`, conflicts: [] }, { kind: "push", possible: true, why: null, target: "https://example.com/acme/api", conflicts: [] }, { kind: "pr", possible: false, why: "no code host is known for this repo", target: "", conflicts: [] }] };
      if (path === "/sandbox") return { provider: "local", isolation: "bwrap", network: "allowlist", place: "worktree", workspace: "/home/ana/.local/state/ralph/worktrees/keep-order", resources: null, sandboxes: [], previews: [{ port: 3000, url: "http://127.0.0.1:3000/" }], screenshots: [], driver: { pid: 4711, since: ago(4000) }, refused: ["registry.example.com"] };
      if (path === "/files") return { path: "", entries: [{ name: "src", kind: "folder" }, { name: "Cargo.toml", kind: "file", size: 812 }, { name: "README.md", kind: "file", size: 4100 }] };
      if (path.startsWith("/files/")) return { path: path.slice(7), text: "[package]\nname = \"api\"\n", size: 30, cut: false };
      if (path === "/artifacts") return { artifacts: [] };
      if (path.startsWith("/checks/")) return { text: failing.last_lines.join("\n").repeat(3) };
      return null;
    },
  };
}

export function tables(path, url, body) {
  const by = url.searchParams.get("by");
  const names = { agent: ["claude", "codex", "gemini"], model: ["gpt-5-codex", "sonnet", "not known"], repo: ["/home/ana/acme/api", "/home/ana/me/site"] }[by] ?? Array.from({ length: 20 }, (_, i) => ago(i * 86400).slice(0, 10));
  switch (path) {
    case "/costs":
      return { by, since: "30d", cost_usd: 148.2, rows: names.map((name, i) => ({ name, runs: 12 - (i % 9), sessions: 90 - i * 3, cost_usd: Math.abs(Math.sin(i + 1)) * 14, tokens: 4_100_000 - i * 90000, unknown_sessions: i % 7 === 6 ? 2 : 0 })) };
    case "/races":
      return RACES;
    case "/races/race-a":
      return RACES[0];
    case "/repos":
      return [{ path: "/home/ana/acme/api", name: "acme/api" }, { path: "/home/ana/me/site", name: "me/site" }];
    case "/templates":
      return [{ name: "fix-test", title: "Fix a failing test", text: "Make `cargo test router_order` pass without changing the test.", description: "One test is red; it must be green." }, { name: "feature", title: "A small feature", text: TASK, description: "Criteria with a check each." }, { name: "metric", title: "Make a number better", text: "Make `scripts/bench` print less than 120 ms.", description: "A metric that must fall below a limit." }];
    case "/lint":
      return { ok: !body.text?.includes("test_command:") || true, dialect: body.text?.startsWith("---") ? "ralph_task.md" : "sentence", findings: body.text?.includes("TODO") ? [{ severity: "error", line: 1, message: "a placeholder is left: TODO", fix: "Say what is to be done." }] : body.text?.startsWith("---") ? [{ severity: "warning", line: 15, message: "the check of this criterion takes long", fix: "Give it a time-out." }] : [], task: { title: "x", criteria: [{ id: "C1", text: String(body.text).slice(0, 60) }] } };
    case "/preview":
      return { prompt: `You work in a fresh session.\n\n# Task\n${body.text}\n\n# Checks\ncargo test\n` };
    case "/people":
      return body.name ? { name: body.name, role: body.role, token: "rt_0123456789abcdef" } : { people: [{ name: "ana", role: "admin", created_at: ago(900000), last_used: ago(2) }, { name: "ben", role: "viewer", created_at: ago(90000), last_used: null }] };
    case "/fleet/workers":
      return {
        fleet: true, synchronous_standby: false,
        workers: [
          { id: "eu-1", labels: ["agent:claude", "eu", "gpu"], capacity: 4, runs: 2, version: "0.1.0", load: 0.6, health: "ok", silent: 1.2, draining: false, revoked: false },
          { id: "eu-2", labels: ["agent:codex"], capacity: 4, runs: 0, version: "0.1.0", load: 0.1, health: "the disk is nearly full: 300 MB are free", silent: 2.5, draining: false, revoked: false },
          { id: "us-1", labels: [], capacity: 2, runs: 0, version: "0.1.0", load: 0, health: "ok", silent: 4000, draining: true, revoked: false },
        ],
      };
    case "/secrets":
      return { secrets: [{ name: "ANTHROPIC_API_KEY", set: true }, { name: "GITHUB_PAT", set: false }] };
    case "/audit":
      return { entries: [{ at: ago(60), who: "ana", action: "pause", run: "keep-order-7f3a", detail: "" }, { at: ago(400), who: "ben", action: "login", detail: "" }] };
    default:
      return path.startsWith("/secrets/") || path.startsWith("/people/") ? {} : undefined;
  }
}
