//! Counts the processes of a checkpoint. A single test, since the count is per process.

use crate::support::{Fixture, checkpoint, try_checkpoint};
use ralph_loop_domain::ports::Workspace;
use ralph_loop_git::processes_started;

#[test]
fn an_unchanged_checkpoint_starts_no_process_and_a_changed_one_a_constant_number() {
    let fixture = Fixture::new();
    fixture.git(&["switch", "-qc", "work"]);
    fixture.write("logs/kept.txt", "known\n");
    fixture.write(".gitignore", "*.log\n");
    fixture.write("logs/a.log", "0\n");
    fixture.write("mine", "dirty\n");
    let mut workspace = fixture.workspace_with(|o| o.branch = Some("work".to_owned()));
    let baseline = workspace.begin(&["src/**".to_owned(), ".env".to_owned()]).unwrap();
    let mut last = processes_started();
    let mut since = || {
        let before = std::mem::replace(&mut last, processes_started());
        last - before
    };
    for n in 1..=3 {
        assert_eq!(checkpoint(&mut workspace, n).commit, None);
        workspace.tree().unwrap();
        assert!(workspace.moved_refs().unwrap().is_empty());
        assert!(workspace.protected_changes().unwrap().is_empty());
    }
    assert_eq!(since(), 0, "nothing changed");
    for n in 1..=3 {
        fixture.write("logs/a.log.new.log", &format!("{n}\n"));
        std::fs::rename(fixture.top.join("logs/a.log.new.log"), fixture.top.join("logs/a.log")).unwrap();
        checkpoint(&mut workspace, n);
    }
    assert_eq!(since(), 0, "an ignored file is replaced by one of the same name");
    fixture.write("a.txt", "changed\n");
    let made = checkpoint(&mut workspace, 4);
    workspace.patch(baseline.tree.as_str(), made.tree.as_str(), 1 << 20).unwrap();
    workspace.moved_refs().unwrap();
    workspace.protected_changes().unwrap();
    assert_eq!(since(), 6, "one changed file next to unfinished changes");
    fixture.write("new/folder/file", "x\n");
    fixture.remove("b.txt");
    checkpoint(&mut workspace, 5);
    assert_eq!(since(), 7, "a new folder and a removed file: what is new is listed first");
    // Just written, so compared by content: still no process.
    checkpoint(&mut workspace, 6);
    assert_eq!(since(), 0, "nothing changed after a change");
    fixture.write("a.txt", "changed again\n");
    try_checkpoint(&mut workspace, 7, true).unwrap();
    workspace.moved_refs().unwrap();
    assert_eq!(since(), 7, "on the branch, the user's index is updated, too");
}
