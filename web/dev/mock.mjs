// A server of invented runs, to work on the page without the real one: `node dev/mock.mjs`, then `npm run dev`, or open
// http://127.0.0.1:8000 after `npm run build`. It is no part of the product and knows no more of the interface than the page
// needs. Any token logs in; `viewer` logs in as a viewer.
import { createReadStream, existsSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { WebSocketServer } from "ws";
import { details, liveStep, rows, tables } from "./mock-data.mjs";

const dist = process.env.PAGE ?? join(fileURLToPath(new URL(".", import.meta.url)), "../../crates/server/page");
const port = Number(process.env.PORT ?? 8000);
const TYPES = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml" };
let role = null;

const json = (res, status, body, headers = {}) => {
  res.writeHead(status, { "content-type": status < 400 ? "application/json" : "application/problem+json", ...headers });
  res.end(body === undefined ? "" : JSON.stringify(body));
};
const read = (req) => new Promise((done) => {
  let text = "";
  req.on("data", (part) => (text += part)).on("end", () => done(text ? JSON.parse(text) : {}));
});

function list(url) {
  const q = url.searchParams;
  const statuses = q.get("status")?.split(",");
  const words = (q.get("q") ?? "").toLowerCase();
  let found = rows.filter((row) => (!statuses || statuses.includes(row.status)) && `${row.task} ${row.repo}`.toLowerCase().includes(words));
  const sort = { cost: "cost_usd", iteration: "iteration", score: "loop_score", created: "created_at" }[q.get("sort")] ?? "updated_at";
  found = [...found].sort((a, b) => (a[sort] < b[sort] ? 1 : -1));
  if (q.get("order") === "asc") found.reverse();
  const from = Number(q.get("cursor") ?? 0);
  const limit = Number(q.get("limit") ?? 50);
  const counts = {};
  for (const row of rows) counts[row.status] = (counts[row.status] ?? 0) + 1;
  return { runs: found.slice(from, from + limit), next_cursor: from + limit < found.length ? String(from + limit) : null, total: found.length, counts };
}

let etag = 1;
async function api(req, res, url) {
  const path = url.pathname.replace("/api/v1", "");
  const body = req.method === "GET" ? {} : await read(req);
  if (path === "/login") {
    if (body.token === "wrong") return json(res, 401, { title: "Unknown token", detail: "No user has it.", hint: "`ralph serve` prints the admin token." });
    role = body.token === "viewer" ? "viewer" : "admin";
    return json(res, 204);
  }
  if (!role) return json(res, 401, { title: "Not logged in" });
  if (path === "/me") return json(res, 200, { name: role === "viewer" ? "ben" : "ana", role, csrf: "x", version: "0.9.0", demo: false });
  if (path === "/logout") return ((role = null), json(res, 204));
  if (path === "/suggestions") return json(res, 200, { branches: ["main", "release-2", "ana/router"], branch: "main", agents: ["claude", "codex", "gemini"], profiles: ["default", "cheap"], task_files: ["PROMPT.md"] });
  if (path === "/runs" && req.method === "GET") return json(res, 200, list(url));
  if (path === "/runs") return json(res, 201, rows[1]);
  const run = /^\/runs\/([^/]+)(\/.*)?$/.exec(path);
  if (run) {
    const detail = details(decodeURIComponent(run[1]));
    if (!detail) return json(res, 404, { title: "Run not found" });
    const part = run[2] ?? "";
    if (part === "/control") return json(res, 202, { letter: `l${Date.now()}`, outcome: "received" });
    if (part === "/task" && req.method === "PUT") return req.headers["if-match"] === `"${etag}"` ? (etag++, json(res, 200, { outcome: "received", version: 3 })) : json(res, 412, { title: "Another user saved first" });
    if (part === "/task") return json(res, 200, detail.task, { etag: `"${etag}"` });
    if (part === "/result" && req.method === "POST") return json(res, 200, { outcome: "applied", commits: [], files: ["src/router.rs", "tests/router.rs"], merged: [] });
    const answer = part === "" ? detail.answer : detail.parts(part, url);
    return answer ? json(res, 200, answer) : json(res, 404, { title: "Not found" });
  }
  const table = tables(path, url, body);
  return table === undefined ? json(res, 404, { title: "Not found" }) : json(res, 200, table);
}

const server = createServer((req, res) => {
  const url = new URL(req.url ?? "/", "http://x");
  if (url.pathname.startsWith("/api/")) return void api(req, res, url);
  const file = join(dist, url.pathname);
  const path = extname(url.pathname) && existsSync(file) ? file : join(dist, "index.html");
  res.writeHead(200, { "content-type": TYPES[extname(path)] ?? "text/plain", "content-security-policy": "default-src 'self'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self' data:" });
  createReadStream(path).pipe(res);
});
const sockets = new WebSocketServer({ server });
sockets.on("connection", (socket, req) => {
  const url = new URL(req.url ?? "/", "http://x");
  const run = /\/runs\/([^/]+)\/ws$/.exec(url.pathname);
  const send = (frame) => socket.send(JSON.stringify(frame));
  if (!run) {
    const timer = setInterval(() => send({ type: "row", row: { ...rows[1], updated_at: new Date().toISOString() } }), 2000);
    return socket.on("close", () => clearInterval(timer));
  }
  const detail = details(decodeURIComponent(run[1]));
  if (!detail) return socket.close();
  send({ type: "hello", head: detail.events.length, from: 1, view: detail.answer.view });
  const from = Number(url.searchParams.get("from") ?? 1);
  for (const event of detail.events) if (event.seq >= from) send(event);
  for (const one of detail.live) send(one);
  let n = detail.live.length;
  const timer = setInterval(() => detail.answer.view.status === "working" && send(liveStep(++n, detail.events.length)), 1500);
  socket.on("close", () => clearInterval(timer));
});
server.listen(port, "127.0.0.1", () => console.log(`http://127.0.0.1:${port}`));
