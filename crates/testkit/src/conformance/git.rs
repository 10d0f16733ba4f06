//! Checks git in the sandbox, and that a secret stays in the environment.

use super::fixture::{Done, eq, wrong};
use super::{Check, Fault, Fixture};
use ralph_loop_domain::ports::{ExecEnd, WriteMode::Replace};

pub(super) const CHECKS: &[Check] = &[
    Check { name: "git: clone, status, diff, branch, commit, push", needs: &[], run: round },
    Check { name: "git: push with a secret from the environment only", needs: &[], run: secret },
];

/// Makes a bare repo with one commit and a clone of it.
const CLONE: &str = "set -e; export GIT_CONFIG_GLOBAL=/dev/null GIT_AUTHOR_NAME=A GIT_AUTHOR_EMAIL=a@example.com \
    GIT_COMMITTER_NAME=A GIT_COMMITTER_EMAIL=a@example.com; \
    git init -q --bare -b main origin.git; git init -q -b main seed; echo one > seed/file; git -C seed add file; \
    git -C seed commit -qm one; git -C seed push -q ../origin.git main; git clone -q origin.git work; ";

/// A remote helper in a few lines of shell: it asks git for the password of `vault.example`, refuses a wrong one, and then
/// speaks to a bare repo in the folder. So an authenticated push needs no network and no server.
const VAULT: &str = r#"#!/bin/sh
path=$2
while read -r line; do
  case $line in
    capabilities) printf 'connect\n\n' ;;
    connect\ *)
      got=$(printf 'protocol=https\nhost=vault.example\n\n' | git credential fill | sed -n 's/^password=//p')
      if [ "$got" != "$(cat "$VAULT_WANTS")" ]; then echo 'vault: wrong password' >&2; exit 1; fi
      printf '\n'; exec "${line#connect }" "$path" ;;
    *) exit 0 ;;
  esac
done
"#;

fn has_git(fixture: &Fixture<'_>) -> Result<(), Fault> {
    match fixture.exec(&fixture.sh("git --version")?)?.outcome.end {
        ExecEnd::Exited(0) => Ok(()),
        _ => Err(Fault::Skip("there is no git inside".to_owned())),
    }
}

fn round(fixture: &Fixture<'_>) -> Result<(), Fault> {
    has_git(fixture)?;
    fixture.run(CLONE)?;
    eq("clone", fixture.sandbox().read(&fixture.path("work/file"))?, Some(b"one\n".to_vec()))?;
    fixture.sandbox().write(&fixture.path("work/file"), b"one\ntwo\n", Replace)?;
    fixture.sandbox().write(&fixture.path("work/new"), b"n\n", Replace)?;
    eq("status", fixture.run("git -C work status --porcelain")?.as_str(), " M file\n?? new\n")?;
    let diff = fixture.run("git -C work diff")?;
    if !diff.contains("\n+two\n") {
        return wrong(format!("diff: {diff}"));
    }
    fixture.run(
        "set -e; cd work; git checkout -q -b side; git add -A; \
         git -c user.name=A -c user.email=a@example.com commit -qm two; git push -q origin side",
    )?;
    let there = fixture.run("git -C origin.git log --format=%s side")?;
    eq("what was pushed", there.as_str(), "two\none\n")
}

fn secret(fixture: &Fixture<'_>) -> Result<(), Fault> {
    static SUITES: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    has_git(fixture)?;
    // A unique value: other suites run at the same time, and their commands are visible here.
    let own = SUITES.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let password = format!("conformance-{}-{own}", std::process::id());
    fixture.run(CLONE)?;
    fixture.sandbox().write(&fixture.path("bin/git-remote-vault"), VAULT.as_bytes(), Replace)?;
    fixture.sandbox().write(&fixture.path("wanted"), password.as_bytes(), Replace)?;
    fixture.run("chmod +x bin/git-remote-vault; git -C work remote add vault \"vault::$PWD/origin.git\"")?;
    let push = |password: &str| -> Result<Done, Fault> {
        let mut request =
            fixture.sh("PATH=\"$PWD/bin:$PATH\"; export PATH VAULT_WANTS=\"$PWD/wanted\"; cd work; \
             git push -q vault main:refs/heads/pushed & child=$!; \
             cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' '; wait $child")?;
        // The helper is a line of configuration in the environment; the password is a variable that only it reads.
        for (name, value) in [
            ("GIT_TERMINAL_PROMPT", "0"),
            ("GIT_CONFIG_COUNT", "1"),
            ("GIT_CONFIG_KEY_0", "credential.helper"),
            ("GIT_CONFIG_VALUE_0", "!f() { echo username=x; echo \"password=$RALPH_GIT_PASSWORD\"; }; f"),
            ("RALPH_GIT_PASSWORD", password),
        ] {
            request.env.push((name.to_owned(), value.to_owned()));
        }
        fixture.exec(&request)
    };
    if push("not-the-one")?.outcome.end.success() {
        return wrong("a wrong password was taken");
    }
    let done = push(&password)?;
    if !done.outcome.end.success() {
        return wrong(format!("push: {:?} {}", done.outcome.end, done.stderr()));
    }
    if done.stdout().contains(&password) || done.stderr().contains(&password) {
        return wrong("the password is in an argument or in the output");
    }
    eq("what was pushed", fixture.run("git -C origin.git log --format=%s pushed")?.as_str(), "one\n")?;
    fixture.run("rm wanted")?;
    let found = fixture.run(&format!("grep -rl {password} . || true"))?;
    eq("files with the password", found.as_str(), "")
}
