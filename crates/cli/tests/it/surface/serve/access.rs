//! Tokens, logins and roles.

use super::client::{Socket, request};
use super::machine::{Served, detached, machine, waiting_script};
use ralph_loop_testkit::TestRepo;
use serde_json::{Value, json};

#[test]
fn server_needs_a_token_and_blocks_guessing() {
    let env = machine();
    let repo = TestRepo::with_task(&env);
    let server = Served::start(&env, &repo.dir, &[]);
    for path in
        ["/runs", "/me", "/audit", "/people", "/secrets", "/costs", "/repos", "/runs/x", "/runs/x/events"]
    {
        let refused = request(server.port, "GET", &format!("/api/v1{path}"), &[], None).is(401);
        assert_eq!(refused.header("content-type"), Some("application/problem+json"));
        assert!(refused.json()["hint"].as_str().is_some_and(|hint| hint.contains("token")), "{path}");
    }
    assert!(Socket::open(server.port, "/api/v1/ws", &[]).is_err());
    for _ in 0..10 {
        request(
            server.port,
            "POST",
            "/api/v1/login",
            &[],
            Some(&json!({ "token": "wrong-wrong-wrong-wrong" })),
        )
        .is(401);
    }
    server.send("wrong", "GET", "/me", &[], None).is(429);
    let login =
        |token: &str| request(server.port, "POST", "/api/v1/login", &[], Some(&json!({ "token": token })));
    login("wrong-wrong-wrong-wrong").is(429);
    login(&server.token).is(204);
    server.get("/me").is(200);
}

#[test]
fn login_code_works_once_and_requests_need_csrf_and_origin() {
    let env = machine();
    let repo = TestRepo::with_task(&env);
    let server = Served::start(&env, &repo.dir, &[]);
    let code = server.login_url.split("#code=").nth(1).unwrap();
    let login =
        |code: &str| request(server.port, "POST", "/api/v1/login", &[], Some(&json!({ "code": code })));
    let first = login(code).is(204);
    let cookie = first.header("set-cookie").unwrap().to_owned();
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"), "{cookie}");
    login(code).is(401);
    let cookie = cookie.split(';').next().unwrap();
    let own = format!("http://127.0.0.1:{}", server.port);
    let ask = |method: &str, path: &str, headers: &[(&str, &str)], body: Option<&Value>| {
        let headers: Vec<(&str, &str)> = headers.iter().copied().chain([("Cookie", cookie)]).collect();
        request(server.port, method, &format!("/api/v1{path}"), &headers, body)
    };
    let me = ask("GET", "/me", &[], None).is(200).json();
    assert_eq!((me["name"].as_str(), me["role"].as_str()), (Some("tester"), Some("admin")));
    let csrf = me["csrf"].as_str().unwrap();
    let person = json!({ "name": "ann", "role": "viewer" });
    ask("POST", "/people", &[], Some(&person)).is(403);
    ask("POST", "/people", &[("x-ralph-csrf", "wrong")], Some(&person)).is(403);
    ask("POST", "/people", &[("x-ralph-csrf", csrf), ("Origin", "http://evil.example")], Some(&person))
        .is(403);
    ask("POST", "/people", &[("x-ralph-csrf", csrf), ("Origin", &own)], Some(&person)).is(201);
    let evil = [("cookie", cookie), ("origin", "http://evil.example")];
    assert!(Socket::open(server.port, "/api/v1/ws", &evil).is_err(), "a socket of another site");
    let good = [("cookie", cookie), ("origin", own.as_str())];
    let mut socket = Socket::open(server.port, "/api/v1/ws", &good).unwrap();
    assert_eq!(socket.next_of("hello")["type"], "hello");
    // A restart ends no session.
    let port = server.port.to_string();
    server.kill();
    let again = Served::start(&env, &repo.dir, &["--port", &port]);
    request(again.port, "GET", "/api/v1/me", &[("Cookie", cookie)], None).is(200);
}

#[test]
fn logout_ends_only_that_session() {
    let env = machine();
    let repo = TestRepo::with_task(&env);
    let server = Served::start(&env, &repo.dir, &[]);
    let login = || {
        let body = json!({ "token": server.token });
        let reply = request(server.port, "POST", "/api/v1/login", &[], Some(&body)).is(204);
        reply.header("set-cookie").unwrap().split(';').next().unwrap().to_owned()
    };
    let (mine, other) = (login(), login());
    let me = |port: u16, cookie: &str| request(port, "GET", "/api/v1/me", &[("Cookie", cookie)], None);
    let csrf = me(server.port, &mine).is(200).json()["csrf"].as_str().unwrap().to_owned();
    let out = |csrf: &str| {
        let headers = [("Cookie", mine.as_str()), ("x-ralph-csrf", csrf)];
        request(server.port, "POST", "/api/v1/logout", &headers, None)
    };
    out("wrong").is(403);
    me(server.port, &mine).is(200);
    let gone = out(&csrf).is(204);
    assert!(gone.header("set-cookie").unwrap().contains("Max-Age=0"));
    // A copy of the cookie no longer works, not even for a WebSocket.
    me(server.port, &mine).is(401);
    out(&csrf).is(401);
    assert!(Socket::open(server.port, "/api/v1/ws", &[("cookie", &mine)]).is_err());
    me(server.port, &other).is(200);
    let port = server.port.to_string();
    server.kill();
    let again = Served::start(&env, &repo.dir, &["--port", &port]);
    me(again.port, &mine).is(401);
    me(again.port, &other).is(200);
    let third = request(again.port, "GET", "/api/v1/audit", &[("Cookie", &other)], None).is(200).text();
    assert!(third.contains("\"logout\""), "{third}");
}

#[test]
fn viewer_is_read_only_and_operator_is_not_admin() {
    let env = machine();
    let repo = TestRepo::with_task(&env);
    repo.stub(&waiting_script(&repo), "grep -q work part.txt");
    let run = detached(&repo, &[]);
    let server = Served::start(&env, &repo.dir, &[]);
    let (viewer, operator) = (server.person("vera", "viewer"), server.person("otto", "operator"));
    let as_viewer =
        |method: &str, path: &str, body: Option<&Value>| server.send(&viewer, method, path, &[], body);
    as_viewer("GET", &format!("/runs/{run}"), None).is(200);
    let pause = json!({ "kind": "pause" });
    let refused = as_viewer("POST", &format!("/runs/{run}/control"), Some(&pause)).is(403);
    assert!(refused.json()["detail"].as_str().unwrap().contains("operator"), "{}", refused.text());
    let create = json!({ "repo": repo.dir, "text": "Do it" });
    as_viewer("POST", "/runs", Some(&create)).is(403);
    as_viewer("DELETE", &format!("/runs/{run}"), None).is(403);
    as_viewer("PUT", &format!("/runs/{run}/task"), Some(&json!({ "text": "x" }))).is(403);
    as_viewer("GET", "/audit", None).is(403);
    server.send(&operator, "GET", "/people", &[], None).is(403);
    let unsafe_run = json!({ "repo": repo.dir, "text": "Do it", "isolation": "none" });
    server.send(&operator, "POST", "/runs", &[], Some(&unsafe_run)).is(403);
    server.send(&operator, "POST", &format!("/runs/{run}/control"), &[], Some(&pause)).is(202);
    let log = server.get("/audit").is(200).json();
    let steered =
        log["entries"].as_array().unwrap().iter().find(|entry| entry["action"] == "pause").unwrap().clone();
    assert_eq!((steered["who"].as_str(), steered["run"].as_str()), (Some("otto"), Some(run.as_str())));
    let events = repo.events_of(&run);
    let letter = events.iter().find(|event| event["kind"] == "control_received").unwrap();
    assert_eq!(letter["from"], "otto via web", "{letter}");
    server.send(&server.token, "DELETE", "/people/vera", &[], None).is(204);
    as_viewer("GET", "/me", None).is(401);
    repo.ralph(&["cancel", &run]).exits(0);
}

#[test]
fn a_public_address_without_a_token_is_refused() {
    let env = machine();
    let repo = TestRepo::with_task(&env);
    let refused = env.ralph(&repo.dir, &["serve", "--host", "0.0.0.0", "--port", "0"]).exits(2);
    assert!(
        refused.stderr.contains("no token was given") && refused.stderr.contains("--token-file"),
        "{}",
        refused.stderr
    );
    repo.write(".git/token", "short");
    let short = env
        .ralph(&repo.dir, &["serve", "--host", "0.0.0.0", "--port", "0", "--token-file", ".git/token"])
        .exits(2);
    assert!(short.stderr.contains("less than 16"), "{}", short.stderr);
}

#[test]
fn secrets_are_write_only() {
    let env = machine();
    let repo = TestRepo::with_task(&env);
    let server = Served::start(&env, &repo.dir, &[]);
    let value = "sk-ant-never-shown-anywhere";
    server
        .send(&server.token, "PUT", "/secrets/ANTHROPIC_API_KEY", &[], Some(&json!({ "value": value })))
        .is(204);
    server.send(&server.token, "PUT", "/secrets/PATH", &[], Some(&json!({ "value": "/evil" }))).is(422);
    let list = server.get("/secrets").is(200);
    assert!(
        list.text().contains(r#""name":"ANTHROPIC_API_KEY","set":true"#) && !list.text().contains(value),
        "{}",
        list.text()
    );
    assert!(!server.get("/audit").text().contains(value));
    let mut found = Vec::new();
    for name in std::fs::read_dir(env.path("state/ralph/server")).unwrap().flatten() {
        if std::fs::read(name.path()).is_ok_and(|bytes| String::from_utf8_lossy(&bytes).contains(value)) {
            found.push(name.path());
        }
    }
    assert!(found.is_empty(), "{found:?}");
    server.send(&server.token, "DELETE", "/secrets/ANTHROPIC_API_KEY", &[], None).is(204);
}

#[test]
fn every_response_has_security_headers() {
    let env = machine();
    let repo = TestRepo::with_task(&env);
    let server = Served::start(&env, &repo.dir, &[]);
    let page = request(server.port, "GET", "/some/page", &[], None).is(200);
    let policy = page.header("content-security-policy").unwrap().to_owned();
    assert!(policy.contains("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
    assert_eq!(page.header("x-content-type-options"), Some("nosniff"));
    assert!(!page.text().contains("__CSP_NONCE__"));
    request(server.port, "GET", "/api/v1/nothing", &[], None).is(404);
    request(server.port, "GET", "/assets/none.js", &[], None).is(404);
    request(server.port, "GET", "/../../etc/passwd", &[], None).is(200);
    let docs = request(server.port, "GET", "/api/docs", &[], None).is(200).text();
    assert!(docs.contains("/api/v1/runs/{run}/control") && !docs.contains("<script"), "{docs}");
    request(server.port, "GET", "/api/openapi.json", &[], None).is(200).json();
}
