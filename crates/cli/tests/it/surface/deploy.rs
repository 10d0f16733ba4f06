//! `ralph deploy daytona` against the fake Daytona.

use crate::RALPH;
use ralph_loop_testkit::fake_daytona::{FakeDaytona, Fault};
use ralph_loop_testkit::{Finished, TestEnv};
use serde_json::json;
use std::os::unix::fs::PermissionsExt as _;

/// A program in place of the dashboard: it listens and prints its arguments.
const SERVER: &str = r#"#!/usr/bin/env python3
import os, socket, sys
if sys.argv[1:] == ["--version"]:
    print("ralph 9.9.9"); sys.exit(0)
command, port, token = sys.argv[1], int(sys.argv[3]), open(sys.argv[5]).read()
mode = oct(os.stat(sys.argv[5]).st_mode & 0o777)
listener = socket.socket(); listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.bind(("127.0.0.1", port)); listener.listen()
print(command, token, mode, os.environ.get("MY_MODEL_KEY"), "RALPH_EXEC" in os.environ, flush=True)
while True:
    client, _ = listener.accept(); client.sendall(token.encode()); client.close()
"#;

fn deploy(env: &TestEnv, fake: &FakeDaytona, args: &[&str]) -> Finished {
    let mut command = env.ralph_command(&env.path("tmp"), &[&["deploy", "daytona"], args].concat());
    command
        .env("DAYTONA_API_KEY", fake.key())
        .env("DAYTONA_SERVER_URL", fake.url())
        .env("MY_MODEL_KEY", "a key");
    TestEnv::finish(&mut command)
}

fn free_port() -> String {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string()
}

fn read_response(port: &str) -> Option<String> {
    use std::io::Read as _;
    let mut said = String::new();
    std::net::TcpStream::connect(format!("127.0.0.1:{port}")).ok()?.read_to_string(&mut said).ok()?;
    Some(said)
}

#[test]
fn deploy_creates_starts_finds_and_removes_a_server() {
    let env = TestEnv::new(RALPH);
    let fake = FakeDaytona::start().unwrap();
    let binary = env.path("server");
    std::fs::write(&binary, SERVER).unwrap();
    std::fs::set_permissions(&binary, std::fs::Permissions::from_mode(0o755)).unwrap();
    let port = free_port();
    let args = ["--binary", binary.to_str().unwrap(), "--port", &port, "--env", "MY_MODEL_KEY", "--json"];
    let first = deploy(&env, &fake, &args).exits(0).json();
    assert_eq!((&first["running"], &first["problem"]), (&json!(true), &json!(null)), "{first}");
    let token = first["token"].as_str().unwrap();
    assert_eq!(token.len(), 64);
    assert_eq!(read_response(&port).as_deref(), Some(token), "it keeps running after the command");
    assert!(first["url"].as_str().unwrap().starts_with(&format!("https://{port}-")), "{first}");
    assert!(first["link"].as_str().unwrap().contains("DAYTONA_SANDBOX_AUTH_KEY=token-"), "{first}");
    let id = first["sandbox"].as_str().unwrap();
    assert_eq!(fake.asked(id).unwrap()["autoStopInterval"], 0, "the server must survive without visitors");
    assert!(fake.asked(id).unwrap()["buildInfo"].is_null(), "a server needs no image of agents' tools");

    // Again: the same sandbox, a new token, one server.
    let again = deploy(&env, &fake, &args).exits(0).json();
    assert_eq!((fake.made(), &again["sandbox"]), (1, &first["sandbox"]));
    assert_ne!(again["token"], first["token"]);
    assert_eq!(read_response(&port).as_deref(), again["token"].as_str());
    let plain = deploy(&env, &fake, &args[..6]).exits(0);
    assert!(
        plain.stdout.contains("link     https://") && plain.stdout.contains("token    "),
        "{}",
        plain.stdout
    );

    let removed = deploy(&env, &fake, &["--rm", "--json"]).exits(0).json();
    assert_eq!(removed["removed"], json!([id]));
    assert_eq!(read_response(&port), None, "nothing is left of it");
    assert_eq!(deploy(&env, &fake, &["--rm", "--json"]).exits(0).json()["removed"], json!([]));
}

#[test]
fn dashboard_runs_in_the_cloud_sandbox_and_accepts_the_token() {
    use std::io::{Read as _, Write as _};
    let env = TestEnv::new(RALPH);
    let fake = FakeDaytona::start().unwrap();
    let port = free_port();
    let own = deploy(&env, &fake, &["--port", &port, "--json"]).exits(0).json();
    let ask = |token: &str| {
        let mut stream = std::net::TcpStream::connect(format!("127.0.0.1:{port}")).unwrap();
        let head = format!(
            "GET /api/v1/me HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).unwrap();
        let mut said = String::new();
        stream.read_to_string(&mut said).unwrap();
        said
    };
    assert!(ask(own["token"].as_str().unwrap()).starts_with("HTTP/1.1 200"), "{own}");
    assert!(ask("guess").starts_with("HTTP/1.1 401"));
    deploy(&env, &fake, &["--rm"]).exits(0);
}

#[test]
fn stopped_server_is_not_reported_as_running() {
    let env = TestEnv::new(RALPH);
    let fake = FakeDaytona::start().unwrap();
    let broken = env.path("broken");
    std::fs::write(&broken, "#!/bin/sh\n[ \"$1\" = --version ] && exit 0\necho \"error: unrecognized subcommand '$1'\" >&2; exit 2\n").unwrap();
    let port = free_port();
    let done = deploy(&env, &fake, &["--binary", broken.to_str().unwrap(), "--port", &port, "--json"])
        .exits(4)
        .json();
    assert_eq!(done["running"], false);
    assert!(done["problem"].as_str().unwrap().contains("exited at once"), "{done}");

    std::fs::write(&broken, "no program at all").unwrap();
    let done = deploy(&env, &fake, &["--binary", broken.to_str().unwrap(), "--port", &port]).exits(4);
    assert!(done.stderr.contains("does not run in the sandbox"), "{}", done.stderr);
    deploy(&env, &fake, &["--rm"]).exits(0);

    deploy(&env, &fake, &["--env", "NOT_SET_ANYWHERE"]).exits(2);
    let keyless = env.ralph(&env.path("tmp"), &["deploy", "daytona"]).exits(4);
    assert!(keyless.stderr.contains("DAYTONA_API_KEY"), "{}", keyless.stderr);
}

/// A cloud's URL of a port is shown as a link only if it is a valid URL.
#[test]
fn forged_cloud_url_is_not_shown_as_a_link() {
    let env = TestEnv::new(RALPH);
    let fake = FakeDaytona::start().unwrap();
    let binary = env.path("server");
    std::fs::write(&binary, "#!/bin/sh\n[ \"$1\" = --version ] && exit 0\nexit 2\n").unwrap();
    let port = free_port();
    let args = ["--binary", binary.to_str().unwrap(), "--port", &port];
    let answer = |url: serde_json::Value, token: serde_json::Value| {
        json!({"sandboxId": "s", "url": url, "token": token}).to_string().into_bytes()
    };
    for (url, token) in [
        (json!("javascript:alert(1)"), json!("marked")),
        (json!("file:///etc/marked"), json!("t")),
        (json!("https://daytona.io@marked.example/"), json!("t")),
        (json!("https://daytona.io\\@marked.example/"), json!("t")),
        (json!("https://h.example/\u{1b}]8;;https://marked.example\u{7}"), json!("t")),
        (json!("https://h.example/\r\nmarked: x"), json!("t")),
        (json!("https://h\u{202e}marked.example/"), json!("t")),
        (json!(format!("https://h.example/{}marked", "x".repeat(100_000))), json!("t")),
        (json!("https://h.example/"), json!("a\nmarked")),
        (json!(["https://marked.example"]), json!("t")),
        (json!(7), json!({"marked": true})),
    ] {
        fake.fail("preview-url", Fault::Instead(answer(url.clone(), token)));
        let done = deploy(&env, &fake, &args).exits(4);
        assert!(!done.stdout.contains("marked") && !done.stdout.contains("link"), "{url}: {}", done.stdout);
        assert!(
            !done.stderr.contains('\u{1b}') && done.stderr.contains("its port could not be opened"),
            "{url}: {}",
            done.stderr
        );
    }
    // The honest twin.
    fake.fail("preview-url", Fault::Instead(answer(json!("https://3000-s.proxy.example"), json!("t-1"))));
    let done = deploy(&env, &fake, &args).exits(4);
    let link = "link     https://3000-s.proxy.example/?DAYTONA_SANDBOX_AUTH_KEY=t-1";
    assert!(done.stdout.contains(link), "{} {}", done.stdout, done.stderr);
    deploy(&env, &fake, &["--rm"]).exits(0);
}
