//! Attacks on a server, each with its honest twin: the same honest request works, and after all attacks the server still answers.
//! `ATTACKS.md` lists them.

use super::client::{Reply, Socket, request};
use super::machine::{Served, detached, machine, waiting_script};
use ralph_loop_testkit::env::until;
use ralph_loop_testkit::{TestEnv, TestRepo};
use serde_json::{Value, json};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::symlink;

const SECRET: &str = "sk-secret-of-the-user-1234567890";

/// A server with an active run, and its owner's browser.
struct Ground<'a> {
    server: &'a Served,
    repo: &'a TestRepo<'a>,
    run: String,
    cookie: String,
    csrf: String,
    viewer: String,
    operator: String,
}

impl<'a> Ground<'a> {
    fn new(server: &'a Served, repo: &'a TestRepo<'a>, run: String) -> Self {
        let login = json!({ "token": server.token });
        let reply = request(server.port, "POST", "/api/v1/login", &[], Some(&login)).is(204);
        let cookie = reply.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
        let me = request(server.port, "GET", "/api/v1/me", &[("Cookie", &cookie)], None).is(200).json();
        let csrf = me["csrf"].as_str().unwrap().to_owned();
        let (viewer, operator) = (server.person("vera", "viewer"), server.person("otto", "operator"));
        Self { server, repo, run, cookie, csrf, viewer, operator }
    }

    /// Sends a request without a token.
    fn without_token(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&Value>,
    ) -> Reply {
        request(self.server.port, method, path, headers, body)
    }

    /// Sends a request as the owner's browser, with these headers.
    fn browser(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &Value) -> Reply {
        let headers: Vec<_> = headers.iter().copied().chain([("Cookie", self.cookie.as_str())]).collect();
        request(self.server.port, method, &format!("/api/v1{path}"), &headers, Some(body))
    }

    fn own(&self) -> String {
        format!("http://127.0.0.1:{}", self.server.port)
    }

    fn control(&self) -> String {
        format!("/runs/{}/control", self.run)
    }

    fn create(&self, token: &str, more: Value) -> Reply {
        let mut body = json!({ "repo": self.repo.dir, "text": "Do it", "verify": ["true"] });
        for (key, value) in more.as_object().unwrap() {
            body[key] = value.clone();
        }
        self.server.send(token, "POST", "/runs", &[], Some(&body))
    }

    /// Sends raw bytes; returns the response status, or 0 without a response.
    fn raw(&self, bytes: &[u8]) -> u16 {
        let mut stream = TcpStream::connect(("127.0.0.1", self.server.port)).unwrap();
        stream.set_read_timeout(Some(std::time::Duration::from_secs(60))).unwrap();
        // The peer may stop reading.
        let _ = stream.write_all(bytes);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let text = String::from_utf8_lossy(&answer).into_owned();
        text.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0)
    }

    fn upload(&self, path: &str, kind: &str, body: &[u8]) -> u16 {
        let head = format!(
            "POST /api/v1{path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\nConnection: close\r\n\
             Content-Type: {kind}\r\nContent-Length: {}\r\n\r\n",
            self.server.token,
            body.len()
        );
        self.raw(&[head.as_bytes(), body].concat())
    }
}

struct Attack {
    name: &'static str,
    try_it: fn(&Ground<'_>) -> Vec<u16>,
    /// The statuses that refuse it.
    refused: &'static [u16],
}

fn attack(name: &'static str, refused: &'static [u16], try_it: fn(&Ground<'_>) -> Vec<u16>) -> Attack {
    Attack { name, try_it, refused }
}

fn play(attacks: Vec<Attack>) {
    let env = machine();
    let repo = TestRepo::with_task(&env);
    repo.stub(&waiting_script(&repo), "grep -q work part.txt");
    let run = detached(&repo, &[]);
    let server = Served::start(&env, &repo.dir, &[]);
    let ground = Ground::new(&server, &repo, run.clone());
    let before = repo.events_of(&run).iter().filter(|event| event["kind"] == "control_received").count();
    for Attack { name, try_it, refused } in attacks {
        for status in try_it(&ground) {
            assert!(refused.contains(&status), "{name}: {status}");
        }
    }
    let controls = || repo.events_of(&run).iter().filter(|e| e["kind"] == "control_received").count();
    assert_eq!(controls(), before, "nothing reached the run");
    until("no run was made", || (server.get("/runs").is(200).json()["total"] == 1).then_some(()));
    assert_eq!(
        server.get("/people").is(200).json()["people"].as_array().unwrap().len(),
        3,
        "no user was added"
    );
    // The honest twins.
    ground.without_token("GET", "/healthz", &[], None).is(200);
    server.send(&ground.viewer, "GET", &format!("/runs/{run}"), &[], None).is(200);
    let own = ground.own();
    let headers = [("x-ralph-csrf", ground.csrf.as_str()), ("Origin", own.as_str())];
    ground.browser("POST", &ground.control(), &headers, &json!({ "kind": "note", "text": "honest" })).is(202);
    server.send(&ground.operator, "POST", &ground.control(), &[], Some(&json!({ "kind": "pause" }))).is(202);
    repo.ralph(&["cancel", &run]).exits(0);
}

fn statuses(replies: Vec<Reply>) -> Vec<u16> {
    replies.iter().map(|reply| reply.status).collect()
}

#[test]
fn requests_without_a_token_get_nothing() {
    play(vec![
        attack("routes without a token", &[401], |g| {
            let run = &g.run;
            let reads =
                ["", "/events", "/sse", "/iterations", "/task", "/files", "/diff", "/artifacts", "/ws"];
            let reads =
                reads.map(|path| g.without_token("GET", &format!("/api/v1/runs/{run}{path}"), &[], None));
            let pause = json!({ "kind": "pause" });
            let write = g.without_token("POST", &format!("/api/v1/runs/{run}/control"), &[], Some(&pause));
            statuses(reads.into_iter().chain([write]).collect())
        }),
        attack("a token in the URL", &[401], |g| {
            let token = &g.server.token;
            let words = ["token", "access_token", "bearer", "code"];
            statuses(
                words.map(|w| g.without_token("GET", &format!("/api/v1/me?{w}={token}"), &[], None)).into(),
            )
        }),
        attack("a forged cookie", &[401], |g| {
            let forged = |cookie: String| g.without_token("GET", "/api/v1/me", &[("Cookie", &cookie)], None);
            let (head, tail) = g.cookie.split_at(g.cookie.len() - 2);
            let other = if tail == "aa" { "bb" } else { "aa" };
            statuses(vec![
                forged(format!("{head}{other}")),
                forged(head.to_owned()),
                forged("ralph_session=".into()),
                forged("ralph_session=dGVzdGVy.AAAA".into()),
                forged(format!("{}.x", g.cookie)),
            ])
        }),
        attack("an endless token", &[401, 431, 0], |g| {
            let long = "a".repeat(200_000);
            vec![g.raw(format!("GET /api/v1/me HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {long}\r\nConnection: close\r\n\r\n").as_bytes())]
        }),
        attack("malformed requests", &[400, 0], |g| {
            vec![
                g.raw(b"GET / HTTP/9.9\r\n\r\n"),
                g.raw(b"\0\0\0\0\r\n\r\n"),
                g.raw(b"POST /api/v1/login HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked, x\r\n\r\n"),
            ]
        }),
        attack("a used login code", &[401], |g| {
            let code = g.server.login_url.split("#code=").nth(1).unwrap();
            let body = json!({ "code": code });
            let first = g.without_token("POST", "/api/v1/login", &[], Some(&body)).is(204);
            assert!(first.header("set-cookie").is_some());
            vec![g.without_token("POST", "/api/v1/login", &[], Some(&body)).status]
        }),
    ]);
}

#[test]
fn cross_site_requests_are_refused() {
    play(vec![
        attack("a cross-site form", &[403], |g| {
            let body = json!({ "kind": "cancel" });
            let from = |origin: &str| g.browser("POST", &g.control(), &[("Origin", origin)], &body).status;
            vec![from("http://evil.example"), from("null"), from(&format!("{}.evil.example", g.own()))]
        }),
        attack("a cross-site form that knows the CSRF token", &[403], |g| {
            let headers = [("x-ralph-csrf", g.csrf.as_str()), ("Origin", "http://evil.example")];
            vec![g.browser("POST", &g.control(), &headers, &json!({ "kind": "cancel" })).status]
        }),
        attack("a same-site request without the CSRF token", &[403], |g| {
            let own = g.own();
            let send = |headers: &[(&str, &str)]| {
                g.browser("POST", &g.control(), headers, &json!({ "kind": "cancel" })).status
            };
            vec![send(&[("Origin", &own)]), send(&[("Origin", &own), ("x-ralph-csrf", "0")]), send(&[])]
        }),
        attack("the name of a missing proxy", &[403], |g| {
            let headers = [
                ("x-ralph-csrf", g.csrf.as_str()),
                ("Origin", "http://evil.example"),
                ("X-Forwarded-Host", "good.example"),
            ];
            vec![g.browser("POST", &g.control(), &headers, &json!({ "kind": "cancel" })).status]
        }),
        attack("a login from another site", &[403], |g| {
            let body = json!({ "token": g.server.token });
            let evil = [("Origin", "http://evil.example")];
            let hidden = [("Sec-Fetch-Site", "cross-site")];
            statuses(vec![
                g.without_token("POST", "/api/v1/login", &evil, Some(&body)),
                g.without_token("POST", "/api/v1/login", &hidden, Some(&body)),
            ])
        }),
        attack("a WebSocket from another site", &[403], |g| {
            let open = |path: String, origin: &str| {
                let headers = [("cookie", g.cookie.as_str()), ("origin", origin)];
                Socket::open(g.server.port, &path, &headers).map_or(403, |_| 101)
            };
            let run = format!("/api/v1/runs/{}/ws?from=1", g.run);
            vec![open("/api/v1/ws".into(), "http://evil.example"), open(run, "null")]
        }),
        attack("the dashboard in another site's frame", &[403], |g| {
            let page = g.without_token("GET", "/", &[], None).is(200);
            let policy = page.header("content-security-policy").unwrap_or_default();
            let kept =
                policy.contains("frame-ancestors 'none'") && page.header("x-frame-options") == Some("DENY");
            vec![if kept { 403 } else { 200 }]
        }),
        attack("responses readable by another site", &[403], |g| {
            let reply =
                g.without_token("OPTIONS", "/api/v1/runs", &[("Origin", "http://evil.example")], None);
            vec![if reply.header("access-control-allow-origin").is_none() { 403 } else { 200 }]
        }),
    ]);
}

#[test]
fn roles_limit_every_request() {
    play(vec![
        attack("a viewer who sends controls", &[403], |g| {
            let send = |method: &str, path: String, body: Value| {
                g.server.send(&g.viewer, method, &path, &[("If-Match", "x")], Some(&body)).status
            };
            let run = format!("/runs/{}", g.run);
            let kinds =
                ["pause", "stop", "cancel", "note", "guardrail", "edit", "budget", "approve", "diagnose"];
            let mut all: Vec<u16> =
                kinds.iter().map(|k| send("POST", g.control(), json!({ "kind": k, "text": "x" }))).collect();
            all.push(send("PUT", format!("{run}/task"), json!({ "text": "x" })));
            all.push(send("PUT", format!("{run}/files/.ralph/notes.md"), json!({ "text": "x" })));
            all.push(send("POST", format!("{run}/debug"), json!({ "command": "logs" })));
            all.push(send("POST", "/runs".into(), json!({ "repo": g.repo.dir, "text": "x" })));
            all.push(send("POST", "/preview".into(), json!({ "repo": g.repo.dir, "text": "x" })));
            all.push(send("DELETE", run, json!({})));
            all
        }),
        attack("a viewer or operator who manages users and secrets", &[403], |g| {
            let mut all = Vec::new();
            for token in [&g.viewer, &g.operator] {
                let send = |method: &str, path: &str, body: Value| {
                    g.server.send(token, method, path, &[], Some(&body)).status
                };
                all.push(send("GET", "/people", Value::Null));
                all.push(send("POST", "/people", json!({ "name": "me", "role": "admin" })));
                all.push(send("DELETE", "/people/vera", json!({})));
                all.push(send("GET", "/secrets", Value::Null));
                all.push(send("PUT", "/secrets/OPENAI_API_KEY", json!({ "value": "x" })));
                all.push(send("GET", "/audit", Value::Null));
            }
            all
        }),
        attack("an operator who disables the sandbox", &[403], |g| {
            vec![g.create(&g.operator, json!({ "isolation": "none" })).status]
        }),
        attack("a debug command without debug mode", &[403, 409], |g| {
            let run = format!("/runs/{}/debug", g.run);
            let send = |command: &str| g.server.post(&run, &json!({ "command": command })).status;
            vec![send("rerun_tests"), send("logs")]
        }),
        attack("a debug command that is a shell", &[400, 403, 409, 422], |g| {
            let run = format!("/runs/{}/debug", g.run);
            let words = ["sh", "logs; id", "rerun_tests\n id", "../../bin/sh", ""];
            words.map(|command| g.server.post(&run, &json!({ "command": command })).status).into()
        }),
        attack("an arbitrary folder as a repo", &[400, 403], |g| {
            let place = |repo: &str| g.create(&g.operator, json!({ "repo": repo })).status;
            let inside = g.repo.dir.join("..").display().to_string();
            vec![
                place("/"),
                place("/etc"),
                place(""),
                place(&inside),
                place("file:///etc"),
                place("ext::sh -c id"),
            ]
        }),
        attack("a URL that is an option", &[400, 403, 422], |g| {
            let place = |repo: &str| g.create(&g.operator, json!({ "repo": repo })).status;
            vec![place("--upload-pack=id"), place("-u id"), place("ssh://-oProxyCommand=id/x")]
        }),
        attack("a branch that is an option", &[400, 422], |g| {
            let base = |name: &str| g.create(&g.operator, json!({ "base_branch": name })).status;
            vec![base("--upload-pack=id"), base("-x"), base("a\nb"), base("refs/heads/../../x"), base("@{u}")]
        }),
        attack("a task file outside the repo", &[400, 403, 404, 422], |g| {
            let file = |name: &str| {
                let body = json!({ "repo": g.repo.dir, "task_file": name });
                g.server.send(&g.operator, "POST", "/runs", &[], Some(&body)).status
            };
            vec![file("/etc/passwd"), file("../x.md"), file(".git/config"), file("a/../../b.md")]
        }),
        attack("malformed user names", &[400, 422], |g| {
            let add =
                |name: &str| g.server.post("/people", &json!({ "name": name, "role": "viewer" })).status;
            vec![add(""), add("a\nb"), add(&"x".repeat(5000)), add("../x"), add("\u{1b}[31m"), add("tester")]
        }),
        attack("a secret named like a system variable", &[422], |g| {
            let set = |name: &str| {
                let path = format!("/secrets/{name}");
                g.server.send(&g.server.token, "PUT", &path, &[], Some(&json!({ "value": "/evil" }))).status
            };
            vec![set("PATH"), set("LD_PRELOAD"), set("GIT_SSH_COMMAND"), set("HOME"), set("RALPH_DB_URL")]
        }),
    ]);
}

#[test]
fn malformed_bodies_and_queries_are_refused_with_a_reason() {
    play(vec![
        attack("an endless upload", &[413, 0], |g| {
            let huge = format!("{{\"text\":\"{}\"}}", "x".repeat(3 * 1024 * 1024));
            vec![g.upload("/lint", "application/json", huge.as_bytes())]
        }),
        attack("endless brackets", &[400, 422], |g| {
            let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
            vec![g.upload("/lint", "application/json", deep.as_bytes())]
        }),
        attack("a body that isn't UTF-8", &[400, 422], |g| {
            vec![g.upload("/lint", "application/json", b"{\"text\":\"\xff\xfe\"}")]
        }),
        attack("a form instead of JSON", &[415], |g| {
            vec![
                g.upload(&g.control(), "text/plain", b"{\"kind\":\"cancel\"}"),
                g.upload(&g.control(), "application/x-www-form-urlencoded", b"kind=cancel"),
                g.upload(&g.control(), "multipart/form-data; boundary=x", b"--x--"),
            ]
        }),
        attack("invalid controls", &[400, 422], |g| {
            let send = |body: Value| g.server.post(&g.control(), &body).status;
            vec![
                send(json!({ "kind": "" })),
                send(json!({ "kind": "\u{202e}esuap" })),
                send(json!({ "kind": "note", "text": "" })),
                send(json!({ "kind": "note", "text": "x".repeat(200 * 1024) })),
                send(json!({ "kind": "pause", "wings": 2 })),
                send(json!({ "kind": "skip", "agent": "../../x" })),
                send(json!({ "kind": "budget", "max_cost_usd": -1 })),
                send(json!({ "kind": "budget" })),
                send(json!(["pause"])),
            ]
        }),
        attack("invalid list queries", &[400, 422], |g| {
            let list = |query: &str| g.server.get(&format!("/runs?{query}")).status;
            vec![
                list("limit=x"),
                list("limit=99999999999999999999"),
                list("cursor=%00"),
                list("cursor=AAAA"),
                list("sort=body"),
                list("sort=updated;drop%20table%20runs"),
                list("order=desc,id"),
                list("wings=2"),
            ]
        }),
        attack("run ids that are paths", &[404], |g| {
            let ids = ["..", "%2e%2e", "..%2f..%2fetc", "a%00b", "%2fetc%2fpasswd", "20260101-000000-xxxx"];
            ids.map(|id| g.server.get(&format!("/runs/{id}/events")).status).into()
        }),
        attack("search terms that are patterns", &[200], |g| {
            let found = |q: &str| {
                let reply = g.server.get(&format!("/runs?q={q}"));
                assert_eq!(reply.json()["runs"], json!([]), "{q}");
                reply.status
            };
            vec![
                found("%25"),
                found("_____"),
                found("'%20OR%201%3D1"),
                found("%5C"),
                found(&"zq%20".repeat(300)),
            ]
        }),
        attack("a stream position beyond its end", &[200], |g| {
            let last = u64::MAX.to_string();
            let reply = g.server.get(&format!("/runs/{}/events?from={last}", g.run));
            assert_eq!(reply.json()["events"], json!([]));
            vec![reply.status]
        }),
    ]);
}

/// A repo in which the agent left secrets under harmless names.
fn prepared(env: &TestEnv) -> TestRepo<'_> {
    let repo = TestRepo::with_task(env);
    repo.write(".env", &format!("OPENAI_API_KEY={SECRET}\n"));
    repo.write(".ssh/id_rsa", "private key of the user");
    std::fs::write(env.path("outside.txt"), "private of the user").unwrap();
    symlink(".env", repo.dir.join("settings.txt")).unwrap();
    symlink(".git/config", repo.dir.join("config.txt")).unwrap();
    symlink(".ssh", repo.dir.join("keys")).unwrap();
    symlink(env.path("outside.txt"), repo.dir.join("out.txt")).unwrap();
    symlink("/proc/self/environ", repo.dir.join("environ.txt")).unwrap();
    repo
}

#[test]
fn disguised_names_reveal_no_secret() {
    let env = machine();
    let repo = prepared(&env);
    repo.stub(&waiting_script(&repo), "grep -q work part.txt");
    let run = detached(&repo, &[]);
    let server = Served::start(&env, &repo.dir, &[]);
    for path in ["settings.txt", "config.txt", "keys/id_rsa", "out.txt", "environ.txt", "keys", ".env"] {
        let reply = server.get(&format!("/runs/{run}/files/{path}"));
        assert!(reply.status >= 400, "{path}: {}", reply.text());
        let put = json!({ "text": "x" });
        let path = format!("/runs/{run}/files/{path}");
        server.send(&server.token, "PUT", &path, &[("If-Match", "x")], Some(&put)).is(403);
    }
    let folder = server.get(&format!("/runs/{run}/files?path=keys"));
    assert!(!folder.text().contains("id_rsa"), "{}", folder.text());
    // The honest twin.
    assert_eq!(server.get(&format!("/runs/{run}/files/readme.txt")).is(200).json()["text"], "hello\n");
    repo.ralph(&["cancel", &run]).exits(0);
}

#[test]
fn hostile_run_text_stays_inert() {
    let env = machine();
    let repo = TestRepo::with_task(&env);
    let title = "<script>alert(1)</script> \u{1b}[2J\u{202e}<img src=x onerror=alert(1)>";
    repo.write("PROMPT.md", &format!("# {title}\n\nWrite `part.txt`.\n"));
    let agent = format!(
        "printf '<script>alert(2)</script>\\033]0;owned\\007\\n'; echo work > part.txt; echo '<b>x</b>' > 'a<img src=x>.svg'; \
         echo '<promise>COMPLETE</promise>' # {}",
        "x".repeat(1000)
    );
    repo.stub(&agent, "grep -q work part.txt");
    let run = repo.run(&[]).exits(0).json()["run_id"].as_str().unwrap().to_owned();
    let server = Served::start(&env, &repo.dir, &[]);
    server.row_when(&run, "the run", |row| row["status"] == "done");
    for path in
        ["", "/events?from=1", "/iterations", "/iterations/1", "/output/1", "/diff", "/files", "/task"]
    {
        let reply = server.get(&format!("/runs/{run}{path}")).is(200);
        assert_eq!(reply.header("content-type"), Some("application/json"), "{path}");
        assert_eq!(reply.header("x-content-type-options"), Some("nosniff"), "{path}");
        assert!(!reply.body.contains(&0x1b), "{path}: no raw control characters in JSON");
    }
    for name in ["iterations/1/output.log", "iterations/1/git_diff.patch", "events.jsonl"] {
        let reply = server.get(&format!("/runs/{run}/artifacts/{name}")).is(200);
        assert_eq!(reply.header("content-type"), Some("text/plain; charset=utf-8"), "{name}");
        assert!(reply.header("content-security-policy").unwrap().contains("sandbox"), "{name}");
    }
    let page = request(server.port, "GET", &format!("/runs/{run}"), &[], None).is(200).text();
    assert!(!page.contains("alert("), "the page itself holds nothing of a run");
}

#[test]
fn requests_that_cannot_be_audited_are_refused() {
    let env = machine();
    let repo = TestRepo::with_task(&env);
    repo.stub(&waiting_script(&repo), "grep -q work part.txt");
    let run = detached(&repo, &[]);
    let server = Served::start(&env, &repo.dir, &[]);
    let log = env.path("state/ralph/server/audit.jsonl");
    let kept = env.path("state/ralph/server/kept.jsonl");
    server.control(&run, json!({ "kind": "note", "text": "noted" })).is(202);
    std::fs::rename(&log, &kept).unwrap();
    // As on a full disk: the log can't grow.
    std::fs::create_dir(&log).unwrap();
    let refused = server.control(&run, json!({ "kind": "cancel" })).is(500).json();
    assert!(refused["hint"].as_str().unwrap().contains("nothing was done"), "{refused}");
    server.post("/people", &json!({ "name": "ann", "role": "admin" })).is(500);
    server.row_when(&run, "the run continues", |row| row["driven"] == true);
    std::fs::remove_dir(&log).unwrap();
    std::fs::rename(&kept, &log).unwrap();
    server.control(&run, json!({ "kind": "cancel" })).is(202);
    server.row_when(&run, "the end", |row| row["status"] == "stopped");
    assert_eq!(server.get("/people").json()["people"].as_array().unwrap().len(), 1);
}

#[test]
fn a_data_folder_has_one_server() {
    let env = machine();
    let repo = TestRepo::with_task(&env);
    let first = Served::start(&env, &repo.dir, &[]);
    let refused = env.ralph(&repo.dir, &["serve", "--no-open", "--port", "0"]).exits(4);
    let address = format!("serves http://127.0.0.1:{}", first.port);
    assert!(refused.stderr.contains("another server uses"), "{}", refused.stderr);
    assert!(refused.stderr.contains(&address), "{}", refused.stderr);
    let other = machine();
    let port = first.port.to_string();
    let refused = other.ralph(&repo.dir, &["serve", "--no-open", "--port", &port]).exits(4);
    assert!(refused.stderr.contains("another server is there"), "{}", refused.stderr);
}

#[test]
fn bad_database_url_is_reported_without_its_password() {
    let env = machine();
    let repo = TestRepo::with_task(&env);
    for url in [
        "postgres://me:hush-hush@127.0.0.1:1/none",
        "postgres://me:hush-hush@127.0.0.1:notaport/none",
        "mysql://me:hush-hush@127.0.0.1/none",
    ] {
        let mut command = env.ralph_command(&repo.dir, &["serve", "--no-open", "--port", "0"]);
        let done = TestEnv::finish(command.env("RALPH_DB_URL", url));
        assert_ne!(done.code, Some(0), "{url}");
        assert!(done.stderr.contains("RALPH_DB_URL") && done.stderr.lines().count() <= 4, "{}", done.stderr);
        assert!(!done.stderr.contains("hush-hush") && !done.stdout.contains("hush-hush"), "{}", done.stderr);
    }
}
