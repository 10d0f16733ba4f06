//! Killed anywhere and restarted: nothing is lost or doubled.

use crate::support::{Fixture, START, WORK, checkpoint, commit_of, listed, try_checkpoint};
use ralph_loop_domain::ports::Workspace;
use std::fs;

#[test]
fn begin_can_be_repeated_and_keeps_the_first_snapshot() {
    let fixture = Fixture::new();
    fixture.write("a.txt", "dirty\n");
    let (workspace, baseline) = fixture.begun();
    drop(workspace);
    fixture.write("a.txt", "later\n");
    let (mut workspace, again) = fixture.begun();
    assert_eq!(again, baseline);
    assert_eq!(listed(&checkpoint(&mut workspace, 1)), ["M a.txt"]);
    assert_eq!(fixture.show(START, "a.txt"), "dirty");
    // Without its record, the start ref still gives the baseline.
    drop(workspace);
    fs::remove_file(fixture.top.join(".git/ralph/r1/record.json")).unwrap();
    assert_eq!(fixture.begun().1, baseline);
}

#[test]
fn a_commit_that_was_made_before_a_crash_is_used_again() {
    let fixture = Fixture::new();
    fixture.write("mine", "dirty\n");
    let (mut workspace, baseline) = fixture.begun();
    fixture.write("a.txt", "1\n");
    let first = checkpoint(&mut workspace, 1);
    drop(workspace);
    let mut workspace = fixture.reopened(&baseline);
    let again = checkpoint(&mut workspace, 1);
    assert!(again.reused && !first.reused);
    assert_eq!((again.commit, again.files, again.tree), (first.commit, first.files, first.tree));
    fixture.write("a.txt", "2\n");
    let second = checkpoint(&mut workspace, 2);
    assert_eq!(listed(&second), ["M a.txt"]);
    assert_eq!(fixture.git(&["rev-list", "--count", &format!("main..{WORK}")]), "2");
    drop(workspace);
    let mut workspace = fixture.reopened(&baseline);
    assert_eq!(checkpoint(&mut workspace, 3).commit, None);
}

#[test]
fn changes_between_processes_belong_to_the_next_checkpoint() {
    let fixture = Fixture::new();
    let (mut workspace, baseline) = fixture.begun();
    fixture.write("a.txt", "1\n");
    checkpoint(&mut workspace, 1);
    fixture.write("b.txt", "2\n");
    // The private index has seen it, the work ref has not.
    workspace.tree().unwrap();
    drop(workspace);
    let mut workspace = fixture.reopened(&baseline);
    assert_eq!(listed(&checkpoint(&mut workspace, 2)), ["M b.txt"]);
}

#[test]
fn lost_iterations_are_replaced_without_duplicate_commits() {
    let fixture = Fixture::new();
    let (mut workspace, baseline) = fixture.begun();
    for n in 1..=4 {
        fixture.write("a.txt", &format!("{n}\n"));
        checkpoint(&mut workspace, n);
    }
    drop(workspace);
    let mut workspace = fixture.reopened(&baseline);
    fixture.write("a.txt", "another 2\n");
    let made = checkpoint(&mut workspace, 2);
    assert_eq!(made.files[0].removed, Some(1));
    let log =
        fixture.git(&["log", "--format=%(trailers:key=Ralph-Iteration,valueonly)", &format!("main..{WORK}")]);
    assert_eq!(log.split_whitespace().collect::<Vec<_>>(), ["2", "1"]);
    assert_eq!(fixture.show(WORK, "a.txt"), "another 2");
    assert!(workspace.moved_refs().unwrap().is_empty());
    // Truncated to before the first commit, with nothing changed: the chain is empty again.
    fixture.write("a.txt", "a\n");
    assert_eq!(checkpoint(&mut workspace, 1).commit, None);
    assert_eq!(fixture.git(&["rev-parse", WORK]), baseline.head.as_str());
}

#[test]
fn a_crash_between_work_ref_and_branch_is_finished_by_the_next_process() {
    let fixture = Fixture::new();
    fixture.git(&["switch", "-qc", "work"]);
    let open = || fixture.workspace_with(|o| o.branch = Some("work".to_owned()));
    let mut workspace = open();
    let baseline = workspace.begin(&[]).unwrap();
    fixture.write("a.txt", "1\n");
    // Like dying before the branch moved: only the work ref has this iteration.
    let first = try_checkpoint(&mut workspace, 1, false).unwrap();
    drop(workspace);
    fs::write(fixture.top.join(".git/ralph/r1/index.lock"), "").unwrap();
    let mut workspace = open();
    workspace.reopen(&baseline).unwrap();
    let again = try_checkpoint(&mut workspace, 1, true).unwrap();
    assert!(again.reused);
    assert_eq!(fixture.git(&["rev-parse", "work"]), commit_of(&first));
    assert_eq!(fixture.git(&["status", "--porcelain"]), "");
    fixture.write("b.txt", "2\n");
    try_checkpoint(&mut workspace, 2, true).unwrap();
    assert_eq!(fixture.git(&["status", "--porcelain"]), "");
}

/// A git whose driver was killed may still use that driver's private index.
#[test]
fn the_private_index_of_a_killed_process_is_taken_over_under_another_name() {
    let fixture = Fixture::new();
    let (mut workspace, baseline) = fixture.begun();
    fixture.write("a.txt", "1\n");
    checkpoint(&mut workspace, 1);
    drop(workspace);
    let folder = fixture.top.join(".git/ralph/r1");
    let own = folder.join(format!("index-{}", std::process::id()));
    fs::rename(&own, folder.join("index-1")).unwrap();
    fs::write(folder.join("index-1.lock"), "half").unwrap();
    let mut workspace = fixture.reopened(&baseline);
    assert!(own.exists() && !folder.join("index-1").exists());
    // Now the old git ends.
    fs::rename(folder.join("index-1.lock"), folder.join("index-1")).unwrap();
    fixture.write("a.txt", "2\n");
    assert_eq!(listed(&checkpoint(&mut workspace, 2)), ["M a.txt"]);
}

#[test]
fn moved_work_ref_is_reported_and_not_overwritten() {
    let fixture = Fixture::new();
    let (mut workspace, baseline) = fixture.begun();
    fixture.write("a.txt", "1\n");
    checkpoint(&mut workspace, 1);
    fixture.git(&["update-ref", WORK, "HEAD"]);
    let moves = workspace.moved_refs().unwrap();
    assert_eq!((moves.len(), moves[0].name.as_str(), moves[0].needs_person), (1, WORK, true));
    fixture.write("a.txt", "2\n");
    assert!(try_checkpoint(&mut workspace, 2, false).unwrap_err().reason.contains(WORK));
    drop(workspace);
    let mut workspace = fixture.reopened(&baseline);
    assert_eq!(workspace.moved_refs().unwrap(), moves);
    workspace.accept_refs().unwrap();
    assert!(workspace.moved_refs().unwrap().is_empty());
    checkpoint(&mut workspace, 2);
    assert_eq!(fixture.git(&["rev-parse", &format!("{WORK}^")]), baseline.head.as_str());
}

#[test]
fn damaged_private_index_is_recreated() {
    let fixture = Fixture::new();
    let (mut workspace, baseline) = fixture.begun();
    fixture.write("a.txt", "1\n");
    let index = fixture.top.join(format!(".git/ralph/r1/index-{}", std::process::id()));
    fs::write(&index, "rubbish").unwrap();
    assert_eq!(listed(&checkpoint(&mut workspace, 1)), ["M a.txt"]);
    drop(workspace);
    fs::remove_file(&index).unwrap();
    assert_eq!(checkpoint(&mut fixture.reopened(&baseline), 2).commit, None);
}
