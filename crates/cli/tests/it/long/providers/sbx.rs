//! MicroVMs, with a fake of their tool that takes the same arguments and runs commands here.
#![allow(clippy::disallowed_methods, reason = "a test asks what it was started with")]

use crate::long::providers::fixture::Fixture;
use crate::long::providers::stories;
use ralph_loop_testkit::{TestEnv, TestRepo};
use serde_json::json;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Child;

/// A machine is a folder with its state, its home, and in `$VM_CACHE` the workspace's files at the machine's last start, so it
/// sees outside edits as late as a real one. Unknown arguments exit with 64.
const STAND_IN: &str = r#"#!/bin/sh
base=$(dirname "$0")/vms; mkdir -p "$base"
word=$1; shift
must() { [ -d "$base/$1" ] || { echo "no such sandbox: $1" >&2; exit 1; }; }
case $word in
  policy) case $1 in ls|init) ;; allow) must "$4"; echo "$5" > "$base/$4/allowed" ;; *) exit 64 ;; esac ;;
  create)
    while [ "$1" != shell ]; do case $1 in --name) name=$2; shift 2 ;; -t|--cpus|-m) shift 2 ;; -q) shift ;; *) exit 64 ;; esac; done
    [ -d "$2" ] || exit 64
    shown() { for p in "$@"; do case $p in *:ro) [ -d "${p%:ro}" ] || exit 64 ;; *) exit 64 ;; esac; done; }
    (shift 2; shown "$@") || exit 64
    mkdir -p "$base/$name/home"; echo "$2" > "$base/$name/workspace"; echo stopped > "$base/$name/status" ;;
  ls)
    printf '{"sandboxes":['; comma=
    for d in "$base"/*/; do [ -d "$d" ] || continue; n=${d%/}; n=${n##*/}
      printf '%s{"name":"%s","status":"%s","workspaces":["%s"],"created_at":"2026-11-01T10:00:00Z"}' \
        "$comma" "$n" "$(cat "$d/status")" "$(cat "$d/workspace")"; comma=,
    done; echo ']}' ;;
  stop) must "$1"; echo stopped > "$base/$1/status" ;;
  rm) must "$2"; rm -rf "$base/$2" ;;
  exec)
    stdin=no; unset HOME XDG_CONFIG_HOME
    while :; do case $1 in
      -i) stdin=yes; shift ;; -u) shift 2 ;; -e) case $2 in *=*) export "$2" ;; esac; shift 2 ;; *) break ;;
    esac; done
    must "$1"; vm=$base/$1; shift; cd /
    [ "$(cat "$vm/status")" = running ] || {
      rm -rf "$vm/cache"; mkdir "$vm/cache"; echo running > "$vm/status"
      for f in "$(cat "$vm/workspace")"/*; do [ ! -f "$f" ] || cp "$f" "$vm/cache"; done; }
    export HOME="${HOME:-$vm/home}" VM_CACHE="$vm/cache"
    if [ $stdin = yes ]; then exec "$@"; else exec "$@" < /dev/null; fi ;;
  *) exit 64 ;;
esac
"#;

fn fixture() -> (tempfile::TempDir, Fixture) {
    let bin = tempfile::tempdir().unwrap();
    let tool = bin.path().join("sbx");
    std::fs::write(&tool, STAND_IN).unwrap();
    std::fs::set_permissions(&tool, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", bin.path().display(), std::env::var("PATH").unwrap_or_default());
    (bin, Fixture::new("sbx", &[("PATH", &path)], json!({})))
}

#[test]
fn run_in_a_micro_vm_is_proven() {
    let (_bin, fixture) = fixture();
    stories::assert_proven(&fixture);
}

#[test]
fn killed_run_resumes_in_its_micro_vm() {
    let (_bin, fixture) = fixture();
    stories::kill_and_resume(&fixture, std::path::Path::new(".ralph/waiting"));
}

#[test]
fn git_in_a_micro_vm_commits_as_the_user() {
    let (_bin, fixture) = fixture();
    stories::commits_as_the_user(&fixture);
}

/// The first session waits; the next one writes down the file's content in the machine, and the committer there.
const SEES: &str = "if [ ! -e .ralph/waiting ]; then : > .ralph/waiting; exec sleep 300; fi; \
    cat \"$VM_CACHE/readme.txt\" > part.txt; git config --global user.email >> part.txt; echo '<promise>COMPLETE</promise>'";

/// Ends a run during a session, edits a file here, and resumes the run.
fn edit_between_sessions(end: impl FnOnce(&Fixture, &TestRepo<'_>, Child)) {
    let (_bin, fixture) = fixture();
    let repo = fixture.repo(Fixture::shell_agent(SEES), "test -s part.txt");
    let child = fixture.spawn(&repo, &["run", "--json"]);
    Fixture::await_file(&fixture.agents_folder().join(".ralph/waiting"));
    end(&fixture, &repo, child);
    std::fs::write(fixture.workspace().join("readme.txt"), "edited here\n").unwrap();
    let run = fixture.runs().pop().unwrap();
    let done = fixture.ralph(&repo, &["resume", "--json", &run]).exits(0).json();
    let part = repo.git(&["show", &format!("{}:part.txt", done["ref"].as_str().unwrap())]);
    assert_eq!(part, "edited here\ntester@example.com");
    let ready = fixture.events_named("sandbox_ready");
    assert_eq!(ready[0]["id"], ready[1]["id"], "it is the same machine");
}

#[test]
fn micro_vm_sees_edits_made_while_the_run_was_suspended() {
    edit_between_sessions(|fixture, repo, child| {
        let term = ["-TERM", &child.id().to_string()];
        TestEnv::finish(fixture.env.command("kill", &repo.dir).args(term)).exits(0);
        assert_eq!(TestEnv::wait(child).exits(130).json()["reason"], "suspended");
        let kept = fixture.sandboxes(repo);
        assert_eq!((kept.len(), &kept[0]["state"]), (1, &json!("stopped")), "{kept:?}");
        assert_eq!(kept[0]["created_at"], "2026-11-01T10:00:00Z");
    });
}

#[test]
fn micro_vm_sees_edits_made_after_the_run_was_killed() {
    edit_between_sessions(|fixture, repo, mut child| {
        child.kill().unwrap();
        child.wait().unwrap();
        let kept = fixture.sandboxes(repo);
        assert_eq!(
            (kept.len(), &kept[0]["state"]),
            (1, &json!("running")),
            "it couldn't be stopped: {kept:?}"
        );
    });
}
