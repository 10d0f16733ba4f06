// A separate machine for each test: a home, a repo, agents that wait for a file, and the real server.

import { expect, type Page } from "@playwright/test";
import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";

const built = join(process.env.CARGO_TARGET_DIR ?? join(process.env.XDG_CACHE_HOME ?? join(homedir(), ".cache"), "ralph-build"), "debug/ralph");
export const RALPH = process.env.RALPH_BIN ?? built;

/** Each session writes its part, says what it does, and waits for `go<N>`; the third one promises. */
const AGENT = `#!/bin/sh
here=$(dirname "$0")
echo "I look at the parts that are there."
echo "part $RALPH_ITERATION" > part$RALPH_ITERATION.txt
echo "$RALPH_ITERATION" > "$here/at$RALPH_ITERATION"
n=0
while [ ! -e "$here/go$RALPH_ITERATION" ]; do
  n=$((n + 1))
  echo "still at part $RALPH_ITERATION, line $n"
  sleep 0.2
done
echo "Part $RALPH_ITERATION is written."
if [ -e "$here/done$RALPH_ITERATION" ]; then echo '<promise>COMPLETE</promise>'; fi
`;

export interface Serving {
  url: string;
  token: string;
  login_url?: string;
}

export class Stage {
  readonly dir = realpathSync(mkdtempSync(join(tmpdir(), "ralph-web-")));
  readonly repo = join(this.dir, "repo");
  readonly agents = join(this.dir, "agents");
  private server: ChildProcess | null = null;
  private port = 0;
  serving: Serving = { url: "", token: "" };
  readonly env: NodeJS.ProcessEnv;

  constructor() {
    if (!existsSync(RALPH)) throw new Error(`there is no binary at ${RALPH}: \`cargo build -p ralph-loop-cli\` makes one, or RALPH_BIN names one`);
    this.env = {
      PATH: process.env.PATH ?? "", HOME: join(this.dir, "home"), XDG_STATE_HOME: join(this.dir, "state"), XDG_CONFIG_HOME: join(this.dir, "config"),
      XDG_CACHE_HOME: join(this.dir, "cache"), LC_ALL: "C.UTF-8", TZ: "UTC", USER: "tester",
      GIT_AUTHOR_NAME: "t", GIT_AUTHOR_EMAIL: "t@example.com", GIT_COMMITTER_NAME: "t", GIT_COMMITTER_EMAIL: "t@example.com",
    };
    for (const folder of ["home", "repo", "agents", "config/ralph/server"]) mkdirSync(join(this.dir, folder), { recursive: true });
    writeFileSync(join(this.agents, "one.sh"), AGENT);
    chmodSync(join(this.agents, "one.sh"), 0o755);
    this.configure();
    writeFileSync(join(this.repo, "readme.txt"), "hello\n");
    this.git("init", "-q", "-b", "main");
    this.git("add", "-A");
    this.git("commit", "-q", "-m", "start");
  }

  /** The user's own configuration, and the server's. */
  configure(more: Record<string, unknown> = {}): void {
    const config = {
      agents: [{ name: "one", command_argv: [join(this.agents, "one.sh")] }],
      verifiers: [{ name: "tests", command_argv: ["sh", "-c", "test -f part3.txt"] }],
      isolation: "none", max_iterations: 8, ...more,
    };
    for (const folder of ["config/ralph", "config/ralph/server"]) {
      writeFileSync(join(this.dir, folder, "config.json"), JSON.stringify(config));
    }
  }

  git(...args: string[]): string {
    return execFileSync("git", args, { cwd: this.repo, env: this.env, encoding: "utf8" });
  }

  ralph(...args: string[]): string {
    return execFileSync(RALPH, args, { cwd: this.repo, env: this.env, encoding: "utf8" });
  }

  /** A run in another process, as a terminal starts it. */
  runInTerminal(...args: string[]): ChildProcess {
    return spawn(RALPH, ["run", "--json", ...args], { cwd: this.repo, env: this.env, stdio: "ignore", detached: true });
  }

  /** Lets session `n` end; with `promise` it says that it is done. */
  go(n: number, promise = false): void {
    if (promise) writeFileSync(join(this.agents, `done${n}`), "");
    writeFileSync(join(this.agents, `go${n}`), "");
  }

  async at(n: number): Promise<void> {
    await expect.poll(() => existsSync(join(this.agents, `at${n}`)), { message: `session ${n} works`, timeout: 60_000 }).toBe(true);
  }

  async serve(...args: string[]): Promise<void> {
    const child = spawn(RALPH, ["serve", "--port", String(this.port), "--no-open", "--json", "--repo", this.repo, ...args], { cwd: this.repo, env: this.env, stdio: ["ignore", "pipe", "pipe"] });
    this.server = child;
    let said = "";
    let errors = "";
    child.stderr?.on("data", (part: Buffer) => (errors += part.toString()));
    this.serving = await new Promise<Serving>((done, failed) => {
      child.stdout?.on("data", (part: Buffer) => {
        said += part.toString();
        const line = said.split("\n").find((one) => one.trim().startsWith("{"));
        if (line && said.includes("\n")) done({ ...this.serving, ...(JSON.parse(line) as Serving) });
      });
      child.on("exit", (code) => failed(new Error(`the server ended with ${code}: ${errors}`)));
    });
    this.port = Number(new URL(this.serving.url).port);
  }

  async killServer(): Promise<void> {
    const child = this.server;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const gone = new Promise((done) => child.once("exit", done));
    child.kill("SIGKILL");
    await gone;
  }

  get url(): string {
    return this.serving.url.replace(/\/$/, "");
  }

  async api<T>(path: string, token = this.serving.token, init: RequestInit = {}): Promise<T> {
    const answer = await fetch(`${this.url}/api/v1${path}`, { ...init, headers: { authorization: `Bearer ${token}`, "content-type": "application/json", ...init.headers } });
    if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
    return (await answer.json().catch(() => null)) as T;
  }

  /** The numbers of the events in the journal of a run. */
  journal(run: string): number[] {
    return this.lines(run).map((line) => (JSON.parse(line) as { seq: number }).seq);
  }

  kinds(run: string): string[] {
    return this.lines(run).map((line) => (JSON.parse(line) as { kind: string }).kind);
  }

  /** The controls that the run took. */
  controls(run: string): string[] {
    return this.lines(run).map((line) => JSON.parse(line) as { kind: string; control?: string }).filter((event) => event.kind === "control_received").map((event) => event.control ?? "");
  }

  /** Numbers of the events that every client must get. */
  milestones(run: string): number[] {
    const kinds = ["iteration_started", "session_ended", "check_finished", "iteration_ended", "finished"];
    return this.lines(run).map((line) => JSON.parse(line) as { kind: string; seq: number }).filter((event) => kinds.includes(event.kind)).map((event) => event.seq);
  }

  private lines(run: string): string[] {
    const found = execFileSync("find", [this.dir, "-path", `*${run}*`, "-name", "events.jsonl"], { encoding: "utf8" }).trim().split("\n")[0] ?? "";
    return found ? readFileSync(found, "utf8").trim().split("\n") : [];
  }

  async close(): Promise<void> {
    for (let n = 1; n < 12; n++) this.go(n);
    for (const id of await this.running()) {
      await this.api(`/runs/${id}/control`, this.serving.token, { method: "POST", body: JSON.stringify({ kind: "cancel" }) }).catch(() => null);
    }
    // Runs are separate processes that outlive the server and write until they end.
    await until(async () => (await this.running()).length === 0);
    await this.killServer();
    if (!(await until(() => removed(this.dir)))) throw new Error(`something still writes into ${this.dir}`);
  }

  private async running(): Promise<string[]> {
    const page = await this.api<{ runs: { id: string; ended_at: string | null }[] }>("/runs?limit=100").catch(() => ({ runs: [] }));
    return page.runs.filter((run) => !run.ended_at).map((run) => run.id);
  }
}

/** Polls for at most twenty seconds; returns whether it came true. */
async function until(so: () => boolean | Promise<boolean>): Promise<boolean> {
  for (let tries = 0; tries < 100; tries++) {
    if (await so()) return true;
    await new Promise((done) => setTimeout(done, 200));
  }
  return false;
}

/** Removes a folder; fails while a process still writes into it. */
function removed(dir: string): boolean {
  try {
    rmSync(dir, { recursive: true, force: true });
    return true;
  } catch {
    return false;
  }
}

/** Logs in by typing the token, as a user does. */
export async function login(page: Page, stage: Stage, path = "/", token = stage.serving.token): Promise<void> {
  await page.goto(stage.url + path);
  await page.getByLabel("Token").fill(token);
  await page.getByRole("button", { name: "Log in" }).click();
  await expect(page.getByRole("navigation", { name: "Pages" })).toBeVisible();
}
