//! `ralph sandbox list` and `rm`, with a fake microVM tool.

use crate::RALPH;
use ralph_loop_testkit::{Finished, TestEnv};
use serde_json::json;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

/// A fake microVM tool; its machines are files in a folder.
const STAND_IN: &str = r#"#!/bin/sh
cd "$(dirname "$0")/machines" || exit 1
case "$*" in
  'ls --json') printf '{"sandboxes":['; comma=
    for n in *; do [ -e "$n" ] || continue; printf '%s{"name":"%s","status":"stopped"}' "$comma" "$n"; comma=,; done
    echo ']}' ;;
  'rm -f '*) rm "$3" ;;
  *) exit 64 ;;
esac
"#;

struct Fixture {
    env: TestEnv,
    bin: tempfile::TempDir,
}

impl Fixture {
    fn new(machines: &[&str]) -> Self {
        let bin = tempfile::tempdir().unwrap();
        let tool = bin.path().join("sbx");
        std::fs::write(&tool, STAND_IN).unwrap();
        std::fs::set_permissions(&tool, std::fs::Permissions::from_mode(0o755)).unwrap();
        std::fs::create_dir(bin.path().join("machines")).unwrap();
        let fixture = Self { env: TestEnv::new(RALPH), bin };
        for machine in machines {
            std::fs::write(fixture.machine(machine), "").unwrap();
        }
        fixture
    }

    fn machine(&self, name: &str) -> PathBuf {
        self.bin.path().join("machines").join(name)
    }

    fn ralph(&self, args: &[&str], docker: Option<&str>) -> Finished {
        let mut command = self.env.ralph_command(self.bin.path(), &[&["sandbox"], args].concat());
        command.env("PATH", format!("{}:/usr/bin:/bin", self.bin.path().display()));
        // An unsupported URL counts as no engine.
        command.env("DOCKER_HOST", docker.unwrap_or("ssh://nowhere"));
        TestEnv::finish(&mut command)
    }
}

#[test]
fn list_shows_only_sandboxes_created_by_ralph() {
    let b = Fixture::new(&["ralph-run-one", "other-sandbox"]);
    let list = b.ralph(&["list", "--json"], None).exits(0).json();
    assert_eq!(list["sandboxes"].as_array().unwrap().len(), 1, "{list}");
    assert_eq!(list["sandboxes"][0]["id"], "ralph-run-one");
    assert_eq!(list["sandboxes"][0]["run"], "one");
    assert_eq!(list["problems"], json!([]));
    let text = b.ralph(&["list"], None).exits(0).stdout;
    assert!(text.contains("ralph-run-one") && text.contains("sbx") && text.contains("stopped"), "{text}");
}

#[test]
fn silent_provider_is_named_and_others_are_listed() {
    let b = Fixture::new(&["ralph-run-one"]);
    let list = b.ralph(&["list", "--json"], Some("unix:///nowhere/docker.sock")).exits(0).json();
    assert_eq!(list["sandboxes"].as_array().unwrap().len(), 1, "{list}");
    assert_eq!(list["problems"][0]["provider"], "docker");
    assert!(list["problems"][0]["problem"].as_str().unwrap().contains("/nowhere/docker.sock"), "{list}");
}

#[test]
fn rm_takes_an_id_a_run_or_all() {
    let b = Fixture::new(&["ralph-run-one", "ralph-run-two", "ralph-run-three", "other-sandbox"]);
    b.ralph(&["rm", "ralph-run-one"], None).exits(0);
    b.ralph(&["rm", "two"], None).exits(0);
    assert!(!b.machine("ralph-run-one").exists() && !b.machine("ralph-run-two").exists());
    assert!(b.machine("ralph-run-three").exists());
    let refused = b.ralph(&["rm", "other-sandbox"], None).exits(2);
    assert!(
        refused.stderr.contains("`other-sandbox` doesn't exist, or `ralph` didn't create it"),
        "{}",
        refused.stderr
    );
    b.ralph(&["rm"], None).exits(2);
    let all = b.ralph(&["rm", "--all", "--json"], None).exits(0).json();
    assert_eq!(all["removed"], json!(["ralph-run-three"]));
    assert!(b.machine("other-sandbox").exists());
}
