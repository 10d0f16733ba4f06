//! `ralph upgrade` and `ralph --version --verbose` of the real binary. What can go wrong on the way is tested in `ralph-upgrade`.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test fails by panicking")]

use ralph_testkit::{Finished, TestEnv};
use serde_json::json;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

const RALPH: &str = env!("CARGO_BIN_EXE_ralph");
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Serves the files of a folder, one connection each.
fn serve(folder: PathBuf) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
            let first = lines.next().unwrap().unwrap_or_default();
            while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
            let path = first.split(' ').nth(1).unwrap_or_default().trim_start_matches('/');
            let (status, body) = match std::fs::read(folder.join(path)) {
                Ok(body) => ("200 OK", body),
                Err(_) => ("404 Not Found", Vec::new()),
            };
            let head =
                format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
            let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&body));
        }
    });
    address
}

/// A machine with this very binary installed below `own`, and a server of releases.
struct Installed {
    env: TestEnv,
    address: String,
}

impl Installed {
    fn new() -> Self {
        let env = TestEnv::new(RALPH);
        std::fs::create_dir_all(env.path("own/bin")).unwrap();
        std::fs::create_dir_all(env.path("own/share/ralph")).unwrap();
        std::fs::copy(RALPH, env.path("own/bin/ralph")).unwrap();
        let list = format!("ralph {VERSION} t\nbin/ralph\nshare/ralph/installed\n");
        std::fs::write(env.path("own/share/ralph/installed"), list).unwrap();
        let address = serve(env.path("site"));
        Self { env, address }
    }

    /// A release whose program only says its version.
    fn release(&self, version: &str) {
        let target = ralph_upgrade::target();
        let name = format!("ralph-{version}-{target}");
        let tree = self.env.path("tree").join(&name);
        let place = self.env.path("site/download").join(format!("v{version}"));
        std::fs::create_dir_all(tree.join("bin")).unwrap();
        std::fs::create_dir_all(&place).unwrap();
        std::fs::write(tree.join("bin/ralph"), format!("#!/bin/sh\necho 'ralph {version}'\n")).unwrap();
        std::fs::set_permissions(tree.join("bin/ralph"), std::fs::Permissions::from_mode(0o755)).unwrap();
        let archive = place.join(format!("{name}.tar.gz"));
        let sh = |line: &str, dir: &Path| {
            let done = TestEnv::finish(Command::new("sh").args(["-c", line]).current_dir(dir));
            assert_eq!(done.code, Some(0), "{line}: {}", done.stderr);
        };
        sh(&format!("tar -czf '{}' {name}/bin/ralph", archive.display()), &self.env.path("tree"));
        sh("sha256sum *.tar.gz > SHA256SUMS", &place);
        let latest = self.env.path("site/latest/download");
        std::fs::create_dir_all(&latest).unwrap();
        std::fs::copy(place.join("SHA256SUMS"), latest.join("SHA256SUMS")).unwrap();
    }

    fn ralph(&self, args: &[&str]) -> Finished {
        let mut command = self.env.command(self.env.path("own/bin/ralph"), &self.env.path("home"));
        TestEnv::finish(command.args(args).env("RALPH_DOWNLOAD_URL", &self.address))
    }
}

#[test]
fn the_long_version_says_what_was_built() {
    let env = TestEnv::new(RALPH);
    let folder = env.path("home");
    assert_eq!(env.ralph(&folder, &["--version"]).exits(0).stdout, format!("ralph {VERSION}\n"));
    let long = env.ralph(&folder, &["--version", "--verbose"]).exits(0).stdout;
    assert!(long.starts_with(&format!("ralph {VERSION}\ncommit:   ")), "{long}");
    assert!(long.contains(&format!("target:   {}\n", ralph_upgrade::target())), "{long}");
    let json = env.ralph(&folder, &["--json", "--version"]).exits(0).json();
    assert_eq!((&json["version"], &json["target"]), (&json!(VERSION), &json!(ralph_upgrade::target())));
}

#[test]
fn a_newer_release_is_told_and_taken_only_when_asked_for() {
    let installed = Installed::new();
    installed.release(VERSION);
    let same = installed.ralph(&["upgrade"]).exits(0);
    assert_eq!(same.stdout, format!("ralph {VERSION} is the newest\n"));
    installed.release("99.0.0");
    let told = installed.ralph(&["upgrade", "--check"]).exits(0);
    assert_eq!(told.stdout, format!("ralph 99.0.0 is there; this is {VERSION}\n"));
    assert!(told.stderr.contains("next: ralph upgrade"), "{}", told.stderr);
    let json = installed.ralph(&["upgrade", "--check", "--json"]).exits(0).json();
    assert_eq!(
        (&json["newer"], &json["upgraded"], &json["latest"]),
        (&json!(true), &json!(false), &json!("99.0.0"))
    );
    assert_eq!(
        installed.ralph(&["--version"]).stdout,
        format!("ralph {VERSION}\n"),
        "a look changes nothing"
    );
    let wrong = installed.ralph(&["upgrade", "--sha256", &"0".repeat(64)]).exits(4);
    assert!(
        wrong.stderr.contains("is not what its sum says") && wrong.stderr.contains("next:"),
        "{}",
        wrong.stderr
    );
    assert_eq!(installed.ralph(&["--version"]).stdout, format!("ralph {VERSION}\n"));
    let taken = installed.ralph(&["upgrade"]).exits(0);
    assert!(taken.stderr.contains("ralph 99.0.0 is in"), "{}", taken.stderr);
    assert_eq!(installed.ralph(&["--version"]).stdout, "ralph 99.0.0\n");
}

#[test]
fn what_came_another_way_is_left_to_that() {
    let env = TestEnv::new(RALPH);
    let refused = env.ralph(&env.path("home"), &["upgrade"]).exits(2);
    assert!(refused.stderr.contains("was not installed from an archive"), "{}", refused.stderr);
    let json = env.ralph(&env.path("home"), &["upgrade", "--to", "latest", "--json"]).exits(2).json();
    assert_eq!(json["success"], json!(false));
}
