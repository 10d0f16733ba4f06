//! `ralph deploy daytona` against the vendor's stand-in.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use ralph_testkit::fake_daytona::FakeDaytona;
use ralph_testkit::{Finished, TestEnv};
use serde_json::json;
use std::os::unix::fs::PermissionsExt as _;

const RALPH: &str = env!("CARGO_BIN_EXE_ralph");

/// A program that serves as the dashboard will: it listens, and says what it was given.
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

fn says(port: &str) -> Option<String> {
    use std::io::Read as _;
    let mut said = String::new();
    std::net::TcpStream::connect(format!("127.0.0.1:{port}")).ok()?.read_to_string(&mut said).ok()?;
    Some(said)
}

#[test]
fn a_server_is_brought_started_found_again_and_removed() {
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
    assert_eq!(says(&port).as_deref(), Some(token), "it goes on after the command");
    assert!(first["url"].as_str().unwrap().starts_with(&format!("https://{port}-")), "{first}");
    assert!(first["link"].as_str().unwrap().contains("DAYTONA_SANDBOX_AUTH_KEY=token-"), "{first}");
    let id = first["sandbox"].as_str().unwrap();
    assert_eq!(fake.asked(id).unwrap()["autoStopInterval"], 0, "nobody may look for a while");
    assert!(fake.asked(id).unwrap()["buildInfo"].is_null(), "a server needs no image of agents' tools");

    // Again: the same sandbox, a new token, one server.
    let again = deploy(&env, &fake, &args).exits(0).json();
    assert_eq!((fake.made(), &again["sandbox"]), (1, &first["sandbox"]));
    assert_ne!(again["token"], first["token"]);
    assert_eq!(says(&port).as_deref(), again["token"].as_str());
    let plain = deploy(&env, &fake, &args[..6]).exits(0);
    assert!(
        plain.stdout.contains("link     https://") && plain.stdout.contains("token    "),
        "{}",
        plain.stdout
    );

    let removed = deploy(&env, &fake, &["--rm", "--json"]).exits(0).json();
    assert_eq!(removed["removed"], json!([id]));
    assert_eq!(says(&port), None, "nothing is left of it");
    assert_eq!(deploy(&env, &fake, &["--rm", "--json"]).exits(0).json()["removed"], json!([]));
}

#[test]
fn what_does_not_run_is_told_and_not_called_running() {
    let env = TestEnv::new(RALPH);
    let fake = FakeDaytona::start().unwrap();
    let broken = env.path("broken");
    std::fs::write(&broken, "#!/bin/sh\n[ \"$1\" = --version ] && exit 0\necho \"error: unrecognized subcommand '$1'\" >&2; exit 2\n").unwrap();
    let port = free_port();
    let done = deploy(&env, &fake, &["--binary", broken.to_str().unwrap(), "--port", &port, "--json"])
        .exits(4)
        .json();
    assert_eq!(done["running"], false);
    assert!(done["problem"].as_str().unwrap().contains("has no `serve` yet"), "{done}");

    // The program itself, as long as it has no dashboard.
    if env.ralph(&env.path("tmp"), &["serve", "--help"]).code == Some(2) {
        let own = deploy(&env, &fake, &["--port", &port, "--json"]).exits(4).json();
        assert!(own["problem"].as_str().is_some_and(|p| p.contains("has no `serve` yet")), "{own}");
    }

    std::fs::write(&broken, "no program at all").unwrap();
    let done = deploy(&env, &fake, &["--binary", broken.to_str().unwrap(), "--port", &port]).exits(4);
    assert!(done.stderr.contains("does not run in the sandbox"), "{}", done.stderr);
    deploy(&env, &fake, &["--rm"]).exits(0);

    deploy(&env, &fake, &["--env", "NOT_SET_ANYWHERE"]).exits(2);
    let keyless = env.ralph(&env.path("tmp"), &["deploy", "daytona"]).exits(4);
    assert!(keyless.stderr.contains("DAYTONA_API_KEY"), "{}", keyless.stderr);
}
