//! Refs that must not move and files that must not change.
#![allow(clippy::unwrap_used, reason = "helpers beside the tests fail them, too")]

mod support;

use ralph_domain::event::RefMove;
use ralph_domain::ports::Workspace;
use ralph_domain::protect::{ProtectedChange, ProtectedKind};
use ralph_git::GitWorkspace;
use support::{Fixture, checkpoint};

fn moved(workspace: &mut GitWorkspace) -> Vec<(String, bool)> {
    workspace.moved_refs().unwrap().into_iter().map(|m| (m.name, m.needs_person)).collect()
}

#[test]
fn commits_branches_tags_stashes_and_resets_of_an_agent_are_reported() {
    type Case = (&'static [&'static [&'static str]], &'static [(&'static str, bool)]);
    let cases: &[Case] = &[
        (&[&["commit", "-qam", "x"]], &[("refs/heads/main", true)]),
        (&[&["branch", "x"]], &[("refs/heads/x", true)]),
        (&[&["tag", "v1"]], &[("refs/tags/v1", true)]),
        (&[&["stash"]], &[("refs/stash", true)]),
        (&[&["reset", "-q", "--hard", "HEAD^"]], &[("refs/heads/main", true)]),
        (&[&["switch", "-qc", "y"]], &[("HEAD", true), ("refs/heads/y", true)]),
        (&[&["checkout", "-q", "--detach"]], &[("HEAD", true)]),
        (&[&["branch", "-D", "old"]], &[("refs/heads/old", true)]),
        (&[&["update-ref", "refs/remotes/origin/main", "HEAD"]], &[("refs/remotes/origin/main", false)]),
        (&[&["update-ref", "refs/ralph/r0/work", "HEAD"]], &[("refs/ralph/r0/work", false)]),
        (&[&["update-ref", "-d", "refs/ralph/r1/start"]], &[("refs/ralph/r1/start", true)]),
        (&[&["update-ref", "refs/ralph/r1/state", "HEAD"]], &[]),
        (&[&["pack-refs", "--all"]], &[]),
    ];
    for (commands, expected) in cases {
        let fixture = Fixture::new();
        fixture.git(&["commit", "-q", "--allow-empty", "-m", "second"]);
        fixture.git(&["branch", "old"]);
        let (mut workspace, baseline) = fixture.begun();
        assert_eq!(moved(&mut workspace), []);
        fixture.write("a.txt", "agent\n");
        for command in *commands {
            fixture.git(command);
        }
        let expected: Vec<(String, bool)> = expected.iter().map(|(n, p)| ((*n).to_owned(), *p)).collect();
        assert_eq!(moved(&mut workspace), expected, "{commands:?}");
        // Also by a process that was not there.
        assert_eq!(moved(&mut fixture.reopened(&baseline)), expected, "{commands:?}");
        workspace.accept_refs().unwrap();
        assert_eq!(moved(&mut workspace), []);
        assert_eq!(moved(&mut fixture.reopened(&baseline)), []);
    }
}

#[test]
fn a_move_tells_from_where_to_where() {
    let fixture = Fixture::new();
    let (mut workspace, baseline) = fixture.begun();
    fixture.git(&["switch", "-qc", "y"]);
    let moves = workspace.moved_refs().unwrap();
    let head = RefMove {
        name: "HEAD".to_owned(),
        from: Some("refs/heads/main".to_owned()),
        to: Some("refs/heads/y".to_owned()),
        needs_person: true,
    };
    assert_eq!(moves[0], head);
    assert_eq!((moves[1].from.clone(), moves[1].to.clone()), (None, Some(baseline.head.as_str().to_owned())));
}

#[test]
fn where_agents_may_commit_only_a_fast_forward_is_fine() {
    let fixture = Fixture::new();
    fixture.git(&["commit", "-q", "--allow-empty", "-m", "second"]);
    let mut workspace = fixture.workspace_with(|o| {
        o.allow_agent_commits = true;
        o.branch = Some("main".to_owned());
    });
    workspace.begin(&[]).unwrap();
    fixture.write("a.txt", "agent\n");
    fixture.git(&["commit", "-qam", "agent"]);
    let agent = fixture.git(&["rev-parse", "HEAD"]);
    assert_eq!(moved(&mut workspace), [("refs/heads/main".to_owned(), false)]);
    let made = support::try_checkpoint(&mut workspace, 1, true).unwrap();
    assert_eq!(fixture.git(&["rev-parse", "main"]), support::commit_of(&made));
    assert_eq!(fixture.git(&["rev-parse", "main^"]), agent);
    assert_eq!(fixture.git(&["status", "--porcelain"]), "");
    assert_eq!(moved(&mut workspace), []);
    fixture.git(&["reset", "-q", "--hard", "HEAD~2"]);
    assert_eq!(moved(&mut workspace), [("refs/heads/main".to_owned(), true)]);
}

#[test]
fn a_branch_written_twice_within_one_tick_is_noticed() {
    let fixture = Fixture::new();
    fixture.git(&["commit", "-q", "--allow-empty", "-m", "second"]);
    let (one, two) = (fixture.git(&["rev-parse", "HEAD"]), fixture.git(&["rev-parse", "HEAD^"]));
    let (mut workspace, _) = fixture.begun();
    for n in 0..40 {
        let to = if n % 2 == 0 { &two } else { &one };
        fixture.write(".git/refs/heads/main", &format!("{to}\n"));
        assert_eq!(moved(&mut workspace).len(), (n + 1) % 2, "round {n}");
    }
}

fn changed(path: &str, change: ProtectedKind) -> ProtectedChange {
    ProtectedChange { path: path.to_owned(), change }
}

#[test]
fn protected_files_are_watched_whether_git_knows_them_or_not() {
    let fixture = Fixture::new();
    fixture.write("tests/one.rs", "1\n");
    fixture.write("tests/two.rs", "2\n");
    fixture.write("secret.log", "ignored\n");
    fixture.write(".ralph/config.json", "{}\n");
    let patterns =
        ["tests", "*.toml", "secret.log", ".ralph/config.json", "absent.log", "src/lib.rs"].map(String::from);
    let mut workspace = fixture.workspace();
    let baseline = workspace.begin(&patterns).unwrap();
    assert_eq!(workspace.protected_changes().unwrap(), []);
    fixture.write("tests/one.rs", "tampered\n");
    fixture.remove("tests/two.rs");
    fixture.write("tests/three.rs", "3\n");
    fixture.write("Cargo.toml", "x\n");
    fixture.write("secret.log", "tampered\n");
    fixture.write("absent.log", "new\n");
    fixture.write(".ralph/config.json", "{\"a\":1}\n");
    fixture.chmod("src/lib.rs", 0o755);
    fixture.write("a.txt", "free\n");
    let expected = [
        changed(".ralph/config.json", ProtectedKind::Changed),
        changed("Cargo.toml", ProtectedKind::Added),
        changed("absent.log", ProtectedKind::Added),
        changed("secret.log", ProtectedKind::Changed),
        changed("src/lib.rs", ProtectedKind::Changed),
        changed("tests/one.rs", ProtectedKind::Changed),
        changed("tests/three.rs", ProtectedKind::Added),
        changed("tests/two.rs", ProtectedKind::Removed),
    ];
    assert_eq!(workspace.protected_changes().unwrap(), expected);
    checkpoint(&mut workspace, 1);
    let mut workspace = fixture.reopened(&baseline);
    assert_eq!(workspace.protected_changes().unwrap(), expected);
    for change in &expected[1..] {
        workspace.accept_protected(&change.path).unwrap();
    }
    assert_eq!(workspace.protected_changes().unwrap(), expected[..1]);
    workspace.accept_protected(".ralph/config.json").unwrap();
    let mut workspace = fixture.reopened(&baseline);
    assert_eq!(workspace.protected_changes().unwrap(), []);
    // Back to the start is a change, once another state was accepted.
    fixture.write("tests/two.rs", "2\n");
    assert_eq!(workspace.protected_changes().unwrap(), [changed("tests/two.rs", ProtectedKind::Added)]);
}
