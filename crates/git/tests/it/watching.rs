//! Refs that must not move and files that must not change.

use crate::support;
use crate::support::{Fixture, checkpoint};
use ralph_loop_domain::ports::Workspace;
use ralph_loop_domain::repo::protect::{ProtectedChange, ProtectedKind};
use ralph_loop_git::GitWorkspace;
use ralph_loop_protocol::event::RefMove;

fn moved(workspace: &mut GitWorkspace) -> Vec<(String, bool)> {
    workspace.moved_refs().unwrap().into_iter().map(|m| (m.name, m.needs_person)).collect()
}

#[test]
fn only_the_runs_refs_are_watched() {
    type Case = (&'static [&'static [&'static str]], &'static [(&'static str, bool)]);
    let cases: &[Case] = &[
        (&[&["commit", "-qam", "x"]], &[("refs/heads/main", false)]),
        (&[&["branch", "x"]], &[]),
        (&[&["tag", "v1"]], &[]),
        (&[&["stash"]], &[]),
        (&[&["reset", "-q", "--hard", "HEAD^"]], &[("refs/heads/main", true)]),
        (&[&["switch", "-qc", "y"]], &[("HEAD", false)]),
        (&[&["switch", "-qc", "y"], &["commit", "-qam", "x"]], &[("HEAD", false)]),
        (&[&["checkout", "-q", "--detach"]], &[("HEAD", false)]),
        (&[&["checkout", "-q", "-f", "--detach", "HEAD^"]], &[("HEAD", true)]),
        (&[&["branch", "-D", "old"]], &[]),
        (&[&["update-ref", "refs/remotes/origin/main", "HEAD"]], &[]),
        (&[&["update-ref", "refs/ralph/r0/work", "HEAD"]], &[]),
        (&[&["update-ref", "-d", "refs/ralph/r1/start"]], &[("refs/ralph/r1/start", true)]),
        (&[&["update-ref", "refs/ralph/r1/work", "HEAD"]], &[("refs/ralph/r1/work", true)]),
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
        // Moves that need approval are reported until approved, even by a new process; others once.
        let open: Vec<(String, bool)> = expected.into_iter().filter(|(_, person)| *person).collect();
        assert_eq!(moved(&mut workspace), open, "{commands:?}");
        assert_eq!(moved(&mut fixture.reopened(&baseline)), open, "{commands:?}");
        workspace.accept_refs().unwrap();
        assert_eq!(moved(&mut workspace), []);
        assert_eq!(moved(&mut fixture.reopened(&baseline)), []);
    }
}

#[test]
fn ref_move_reports_both_ends() {
    let fixture = Fixture::new();
    let (mut workspace, _) = fixture.begun();
    fixture.git(&["switch", "-qc", "y"]);
    let moves = workspace.moved_refs().unwrap();
    let head = RefMove {
        name: "HEAD".to_owned(),
        from: Some("refs/heads/main".to_owned()),
        to: Some("refs/heads/y".to_owned()),
        needs_person: false,
    };
    assert_eq!(moves, [head]);
}

#[test]
fn rewriting_the_runs_branch_needs_approval() {
    let fixture = Fixture::new();
    fixture.git(&["commit", "-q", "--allow-empty", "-m", "second"]);
    let mut workspace = fixture.workspace_with(|o| o.branch = Some("main".to_owned()));
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
    fixture.git(&["switch", "-qc", "elsewhere"]);
    assert_eq!(moved(&mut workspace), [("HEAD".to_owned(), true)]);
    fixture.git(&["switch", "-q", "main"]);
    fixture.git(&["reset", "-q", "--hard", "HEAD~2"]);
    assert_eq!(moved(&mut workspace), [("refs/heads/main".to_owned(), true)]);
}

/// The run's branch receives the agent's files, whatever it does to branches in the run's own tree.
#[test]
fn agent_may_change_branches_in_the_runs_tree() {
    let agents: [&[&[&str]]; 7] = [
        &[&["switch", "-qc", "feature"]],
        &[&["switch", "-qc", "feature"], &["add", "-A"], &["commit", "-qm", "mine"]],
        &[&["add", "-A"], &["commit", "-qm", "mine"]],
        &[&["add", "-A"], &["commit", "-q", "--amend", "-m", "rewritten"]],
        &[&["reset", "-q", "--soft", "HEAD^"]],
        &[&["checkout", "-q", "--detach"], &["branch", "-qD", "main"]],
        &[&["branch", "-qm", "main", "renamed"], &["tag", "main"]],
    ];
    for commands in agents {
        let fixture = Fixture::new();
        fixture.git(&["commit", "-q", "--allow-empty", "-m", "second"]);
        let mut workspace = fixture.workspace_with(|o| {
            o.branch = Some("main".to_owned());
            o.own_tree = true;
        });
        workspace.begin(&[]).unwrap();
        fixture.write("one.txt", "1\n");
        let first = support::commit_of(&support::try_checkpoint(&mut workspace, 1, true).unwrap());
        fixture.write("two.txt", "2\n");
        for command in commands {
            fixture.git(command);
        }
        assert!(workspace.moved_refs().unwrap().iter().all(|m| !m.needs_person), "{commands:?}");
        let made = support::commit_of(&support::try_checkpoint(&mut workspace, 2, true).unwrap());
        let main = "refs/heads/main";
        assert_eq!(fixture.git(&["rev-parse", main]), made, "{commands:?}");
        assert_eq!(fixture.git(&["symbolic-ref", "HEAD"]), main, "{commands:?}");
        assert_eq!(fixture.git(&["status", "--porcelain"]), "", "{commands:?}");
        assert_eq!(fixture.git(&["show", &format!("{main}:two.txt")]), "2", "{commands:?}");
        let chain = fixture.git(&["rev-list", main]);
        assert!(chain.lines().any(|id| id == first), "{commands:?}: the run's own commits stay");
        assert_eq!(moved(&mut workspace), [], "{commands:?}");
        fixture.write("three.txt", "3\n");
        let made = support::commit_of(&support::try_checkpoint(&mut workspace, 3, true).unwrap());
        assert_eq!(fixture.git(&["rev-parse", main]), made, "{commands:?}");
        assert_eq!(fixture.git(&["status", "--porcelain"]), "", "{commands:?}");
    }
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
    // After another state was accepted, returning to the start is a change.
    fixture.write("tests/two.rs", "2\n");
    assert_eq!(workspace.protected_changes().unwrap(), [changed("tests/two.rs", ProtectedKind::Added)]);
}
