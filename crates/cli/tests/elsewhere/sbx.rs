//! MicroVMs, with a stand-in for their tool that knows its words and runs commands here.
#![allow(clippy::disallowed_methods, reason = "a test asks what it was started with")]

use crate::fixture::Fixture;
use crate::stories;
use serde_json::json;
use std::os::unix::fs::PermissionsExt as _;

/// A machine is a folder with its state. Unknown words end with 64.
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
    mkdir "$base/$name"; echo "$2" > "$base/$name/workspace" ;;
  ls)
    printf '{"sandboxes":['; comma=
    for d in "$base"/*/; do [ -d "$d" ] || continue; n=${d%/}; n=${n##*/}
      printf '%s{"name":"%s","status":"running","workspaces":["%s"]}' "$comma" "$n" "$(cat "$d/workspace")"; comma=,
    done; echo ']}' ;;
  stop) must "$1" ;;
  rm) must "$2"; rm -rf "$base/$2" ;;
  exec)
    stdin=no
    while :; do case $1 in
      -i) stdin=yes; shift ;; -u) shift 2 ;; -e) case $2 in *=*) export "$2" ;; esac; shift 2 ;; *) break ;;
    esac; done
    must "$1"; shift; cd /
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
fn a_micro_vm_works_to_a_proven_end() {
    let (_bin, fixture) = fixture();
    stories::to_a_proven_end(&fixture);
}

#[test]
fn a_killed_run_goes_on_in_its_micro_vm() {
    let (_bin, fixture) = fixture();
    stories::killed_and_resumed(&fixture, std::path::Path::new(".ralph/waiting"));
}
