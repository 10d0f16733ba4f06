//! What a run records, and what it doesn't touch.

use crate::support;
use crate::support::{
    Fixture, START, WORK, checkpoint, checkpoint_in_parts, commit_of, git, listed, run, try_checkpoint,
};
use ralph_loop_domain::ports::Workspace;
use ralph_loop_protocol::event::CommitPart;
use std::fs;
use std::os::unix::fs::symlink;

fn user_state(fixture: &Fixture) -> (Vec<u8>, String, String, String, String) {
    let top = &fixture.top;
    (
        fs::read(top.join(".git/index")).unwrap(),
        fs::read_to_string(top.join(".git/HEAD")).unwrap(),
        git(top, &["stash", "list"]),
        git(top, &["for-each-ref", "refs/heads", "refs/tags", "refs/stash"]),
        git(top, &["--no-optional-locks", "status", "--porcelain=v1"]),
    )
}

#[test]
fn the_users_index_head_stash_and_branches_stay_byte_for_byte() {
    let fixture = Fixture::new();
    fixture.git(&["branch", "other"]);
    fixture.write("a.txt", "stashed\n");
    fixture.git(&["stash"]);
    fixture.write("a.txt", "staged\n");
    fixture.git(&["add", "a.txt"]);
    fixture.write("a.txt", "staged and dirty\n");
    fixture.write("untracked.txt", "mine\n");
    fixture.git(&["add", "-N", "untracked.txt"]);
    let before = user_state(&fixture);
    let (mut workspace, baseline) = fixture.begun();
    assert_eq!(baseline.dirty, ["a.txt", "untracked.txt"]);
    assert_eq!(user_state(&fixture), before);
    for n in 1..=5 {
        fixture.write("agent.txt", &format!("{n}\n"));
        let made = checkpoint(&mut workspace, n);
        assert!(made.commit.is_some());
        fixture.remove("agent.txt");
        assert_eq!(user_state(&fixture), before);
        fixture.write("agent.txt", &format!("{n}\n"));
    }
}

#[test]
fn the_users_own_changes_are_in_the_start_snapshot_but_not_in_the_work_commit() {
    let fixture = Fixture::new();
    fixture.write("a.txt", "dirty\n");
    fixture.write("mine.txt", "mine\n");
    fixture.remove("b.txt");
    fixture.write("note.log", "ignored\n");
    let (mut workspace, baseline) = fixture.begun();
    assert_eq!(baseline.dirty, ["a.txt", "b.txt", "mine.txt"]);
    assert_eq!(baseline.dirty_total, 3);
    assert_eq!(fixture.show(START, "a.txt"), "dirty");
    assert!(!fixture.names(START).contains(&"note.log".to_owned()));
    fixture.write("new.txt", "agent\n");
    let made = checkpoint(&mut workspace, 1);
    assert_eq!(listed(&made), ["A new.txt"]);
    assert_eq!(made.files[0].added, Some(1));
    assert!(made.dirty_touched.is_empty());
    assert_eq!(fixture.git(&["diff", "--name-status", "HEAD", WORK]), "A\tnew.txt");
    assert_eq!(fixture.git(&["rev-parse", &format!("{WORK}^")]), baseline.head.as_str());
    let full = fixture.names(made.tree.as_str());
    assert!(full.contains(&"mine.txt".to_owned()) && !full.contains(&"b.txt".to_owned()));
}

#[test]
fn a_dirty_file_that_the_agent_edits_goes_in_whole_and_returns_to_head_when_undone() {
    let fixture = Fixture::new();
    fixture.write("a.txt", "dirty\n");
    let (mut workspace, _) = fixture.begun();
    fixture.write("a.txt", "dirty\nagent\n");
    let made = checkpoint(&mut workspace, 1);
    assert_eq!(made.dirty_touched, ["a.txt"]);
    assert_eq!(fixture.show(WORK, "a.txt"), "dirty\nagent");
    fixture.write("a.txt", "dirty\n");
    let made = checkpoint(&mut workspace, 2);
    assert!(made.dirty_touched.is_empty());
    assert_eq!(fixture.show(WORK, "a.txt"), "a");
}

#[test]
fn nothing_changed_means_no_commit_and_the_same_tree() {
    let fixture = Fixture::new();
    let (mut workspace, baseline) = fixture.begun();
    let made = checkpoint(&mut workspace, 1);
    assert_eq!((made.commit, made.tree), (None, baseline.tree.clone()));
    fixture.write("x.log", "ignored\n");
    assert_eq!(checkpoint(&mut workspace, 2).commit, None);
    assert_eq!(workspace.tree().unwrap(), baseline.tree);
}

#[test]
fn named_paths_get_commits_of_their_own_before_the_rest() {
    let fixture = Fixture::new();
    let (mut workspace, baseline) = fixture.begun();
    fixture.write("a.txt", "new\n");
    fs::remove_dir_all(fixture.top.join("src/deep")).unwrap();
    fixture.write("src/deep", "a file now\n");
    fixture.write("c.txt", "c\n");
    let part = |message: &str, paths: &[&str]| CommitPart {
        message: message.to_owned(),
        paths: paths.iter().map(|path| (*path).to_owned()).collect(),
    };
    let parts =
        [part("The first", &["./a.txt"]), part("Nothing", &["b.txt", "no"]), part("A folder", &["src/"])];
    let made = checkpoint_in_parts(&mut workspace, 1, false, &parts).unwrap();
    let log = |range: &str| fixture.git(&["log", "--reverse", "--format=%s", "--name-only", range]);
    let commits = log(&format!("main..{WORK}"));
    assert_eq!(commits, "The first\n\na.txt\nA folder\n\nsrc/deep\nsrc/deep/mod.rs\nAdd c.txt\n\nc.txt");
    assert_eq!(made.files.len(), 4, "the iteration's change is all of it");
    fixture.git(&["fsck", "--strict", "--no-dangling"]);
    // Another process continues from there and repeats nothing.
    let again = checkpoint_in_parts(&mut fixture.reopened(&baseline), 1, false, &parts).unwrap();
    assert_eq!((again.commit, again.tree), (made.commit.clone(), made.tree.clone()));
    assert_eq!(log(&format!("main..{WORK}")), commits);
    fixture.write("d.txt", "d\n");
    let all = [part("All of it", &["."])];
    checkpoint_in_parts(&mut workspace, 2, false, &all).unwrap();
    assert_eq!(fixture.git(&["log", "--format=%s", &format!("{}..{WORK}", commit_of(&made))]), "All of it");
}

#[test]
fn every_kind_of_change_is_recorded_as_git_itself_would() {
    let fixture = Fixture::new();
    symlink("a.txt", fixture.top.join("link")).unwrap();
    let (mut workspace, _) = fixture.begun();
    fixture.chmod("a.txt", 0o755);
    fixture.remove("b.txt");
    fixture.remove("link");
    fixture.write("link", "now a file\n");
    fs::rename(fixture.top.join("src/deep"), fixture.top.join("src/moved")).unwrap();
    for name in ["with space.txt", "ünïcode-日本.txt", "new\nline.txt", "tab\tquote\".txt", "-dash"] {
        fixture.write(name, "x\n");
    }
    let made = checkpoint(&mut workspace, 1);
    let mut files = listed(&made);
    files.sort();
    let mut expected = vec![
        "M a.txt",
        "D b.txt",
        "T link",
        "D src/deep/mod.rs",
        "A src/moved/mod.rs",
        "A with space.txt",
        "A ünïcode-日本.txt",
        "A new\nline.txt",
        "A tab\tquote\".txt",
        "A -dash",
    ];
    expected.sort_unstable();
    assert_eq!(files, expected);
    assert!(made.files.iter().filter(|f| f.status == 'A').all(|f| f.added == Some(1)));
    fixture.git(&["add", "-A"]);
    assert_eq!(fixture.git(&["write-tree"]), made.tree.as_str());
    fixture.git(&["fsck", "--strict", "--no-dangling"]);
}

#[test]
fn a_same_size_change_within_one_clock_tick_is_noticed() {
    let fixture = Fixture::new();
    let (mut workspace, _) = fixture.begun();
    let mut last = workspace.tree().unwrap();
    for n in 0..60 {
        fixture.write("a.txt", if n % 2 == 0 { "x\n" } else { "y\n" });
        let tree = workspace.tree().unwrap();
        assert_ne!(tree, last, "round {n}");
        assert_eq!(workspace.tree().unwrap(), tree);
        last = tree;
    }
}

#[test]
fn a_file_in_an_empty_folder_and_a_change_of_ignore_rules_are_noticed() {
    let fixture = Fixture::new();
    fs::create_dir_all(fixture.top.join("empty/inner")).unwrap();
    fixture.write("target/out.o", "built\n");
    fixture.write("hidden/.gitignore", "*\n");
    fixture.write("hidden/x", "1\n");
    let (mut workspace, _) = fixture.begun();
    let quiet = workspace.tree().unwrap();
    fixture.write("target/deep/more.o", "built\n");
    assert_eq!(workspace.tree().unwrap(), quiet);
    fixture.write("empty/inner/x", "1\n");
    assert_eq!(listed(&checkpoint(&mut workspace, 1)), ["A empty/inner/x"]);
    fixture.write("hidden/.gitignore", "y\n");
    assert_eq!(listed(&checkpoint(&mut workspace, 2)), ["A hidden/.gitignore", "A hidden/x"]);
    fixture.write(".gitignore", "*.log\n");
    let made = listed(&checkpoint(&mut workspace, 3));
    assert_eq!(made, ["M .gitignore", "A target/deep/more.o", "A target/out.o"]);
    fs::write(fixture.top.join(".git/info/exclude"), "/.ralph/\n/private\n").unwrap();
    fixture.write("private", "1\n");
    assert_eq!(checkpoint(&mut workspace, 4).commit, None);
}

#[test]
fn odd_user_files_do_not_stop_a_run() {
    let fixture = Fixture::new();
    // An unfinished merge with a conflict, a nested repo with and one without a commit, a broken link.
    fixture.git(&["switch", "-qc", "side"]);
    fixture.write("a.txt", "side\n");
    fixture.git(&["commit", "-qam", "side"]);
    fixture.git(&["switch", "-q", "main"]);
    fixture.write("a.txt", "main\n");
    fixture.git(&["commit", "-qam", "main"]);
    assert!(!support::try_git(&fixture.top, &["merge", "side"]).0);
    let nested = fixture.top.join("nested");
    fs::create_dir(&nested).unwrap();
    git(&nested, &["init", "-q"]);
    fs::create_dir(fixture.top.join("unborn")).unwrap();
    git(&fixture.top.join("unborn"), &["init", "-q"]);
    fixture.write("unborn/x", "x\n");
    fixture.write("nested/n", "n\n");
    git(&nested, &["add", "-A"]);
    git(&nested, &["commit", "-qm", "n"]);
    symlink("nowhere", fixture.top.join("broken")).unwrap();
    let index = fs::read(fixture.top.join(".git/index")).unwrap();
    let (mut workspace, baseline) = fixture.begun();
    assert!(fixture.show(START, "a.txt").contains("<<<<<<<"));
    assert_eq!(workspace.tree().unwrap(), baseline.tree);
    fixture.write("nested/n", "n2\n");
    git(&nested, &["commit", "-qam", "n2"]);
    assert_eq!(checkpoint(&mut workspace, 1).commit, None, "what was nested at the start stays pinned");
    fixture.write("agent.txt", "x\n");
    assert_eq!(listed(&checkpoint(&mut workspace, 2)), ["A agent.txt"]);
    assert_eq!(fs::read(fixture.top.join(".git/index")).unwrap(), index);
    assert!(fixture.exists(".git/MERGE_HEAD"));
}

#[test]
fn large_untracked_files_are_left_out_and_reported() {
    let fixture = Fixture::new();
    fixture.write("big [1].bin", &"x".repeat(5000));
    let mut workspace = fixture.workspace_with(|o| o.large_file_limit = 1000);
    let baseline = workspace.begin(&[]).unwrap();
    assert_eq!(baseline.left_out, ["big [1].bin"]);
    fixture.write("new/huge.bin", &"x".repeat(5000));
    fixture.write("new/small", "x\n");
    fixture.write("a.txt", &"tracked files are taken whatever their size\n".repeat(100));
    assert_eq!(listed(&checkpoint(&mut workspace, 1)), ["M a.txt", "A new/small"]);
    assert_eq!(checkpoint(&mut workspace, 2).commit, None);
    fixture.write("new/huge.bin", "small now\n");
    fixture.write("new/other", "x\n");
    assert_eq!(listed(&checkpoint(&mut workspace, 3)), ["A new/huge.bin", "A new/other"]);
}

#[test]
fn line_end_rules_of_the_repo_are_kept() {
    let fixture = Fixture::new();
    fixture.write(".gitattributes", "*.txt text=auto\n*.crlf text eol=crlf\n");
    fixture.git(&["add", "-A"]);
    fixture.git(&["commit", "-qm", "attributes"]);
    let (mut workspace, baseline) = fixture.begun();
    assert!(baseline.dirty.is_empty());
    fixture.write("a.txt", "a\r\n");
    assert_eq!(checkpoint(&mut workspace, 1).commit, None, "only line ends changed");
    fixture.write("w.crlf", "one\r\ntwo\r\n");
    checkpoint(&mut workspace, 2);
    assert_eq!(fixture.git(&["cat-file", "-p", &format!("{WORK}:w.crlf")]), "one\ntwo");
    assert_eq!(checkpoint(&mut workspace, 3).commit, None);
}

#[test]
fn sha256_and_reftable_repos_work_alike() {
    for init in [&["--object-format=sha256"][..], &["--ref-format=reftable"]] {
        let probe = tempfile::tempdir().unwrap();
        let mut args = vec!["init", "-q"];
        args.extend(init);
        if !support::try_git(probe.path(), &args).0 {
            continue;
        }
        let fixture = Fixture::with(init);
        fixture.write("mine", "dirty\n");
        let (mut workspace, baseline) = fixture.begun();
        fixture.write("src/new.rs", "x\n");
        let made = checkpoint(&mut workspace, 1);
        assert_eq!(fixture.git(&["rev-parse", WORK]), commit_of(&made));
        assert_eq!(fixture.git(&["diff", "--name-only", "HEAD", WORK]), "src/new.rs");
        assert!(workspace.moved_refs().unwrap().is_empty());
        fixture.git(&["branch", "agent"]);
        assert!(workspace.moved_refs().unwrap().is_empty());
        fixture.git(&["commit", "-q", "--allow-empty", "-m", "mine"]);
        assert_eq!(workspace.moved_refs().unwrap()[0].name, "refs/heads/main");
        drop(workspace);
        let mut workspace = fixture.reopened(&baseline);
        assert!(checkpoint(&mut workspace, 1).reused);
        fixture.git(&["fsck", "--strict", "--no-dangling"]);
    }
}

#[test]
fn split_compressed_and_sparse_indexes_are_read() {
    for setup in [
        &["update-index", "--split-index"][..],
        &["update-index", "--index-version", "4"],
        &["sparse-checkout", "set", "--cone", "--sparse-index", "src"],
    ] {
        let fixture = Fixture::new();
        fixture.write("other/x", "x\n");
        fixture.git(&["add", "-A"]);
        fixture.git(&["commit", "-qm", "other"]);
        fixture.git(setup);
        let index = fs::read(fixture.top.join(".git/index")).unwrap();
        let (mut workspace, baseline) = fixture.begun();
        assert_eq!(baseline.dirty, Vec::<String>::new(), "{setup:?}");
        fixture.write("src/new.rs", "x\n");
        assert_eq!(listed(&checkpoint(&mut workspace, 1)), ["A src/new.rs"], "{setup:?}");
        assert_eq!(fixture.git(&["diff", "--name-only", "HEAD", WORK]), "src/new.rs");
        assert_eq!(fs::read(fixture.top.join(".git/index")).unwrap(), index);
    }
}

#[test]
fn hooks_and_programs_in_the_config_never_run() {
    let fixture = Fixture::new();
    let proof = fixture.dir.path().join("ran");
    let touch = format!("touch {}", proof.display());
    for hook in ["post-index-change", "reference-transaction", "post-checkout", "pre-commit"] {
        fixture.write(&format!(".git/hooks/{hook}"), &format!("#!/bin/sh\n{touch}\n"));
        fixture.chmod(&format!(".git/hooks/{hook}"), 0o755);
    }
    let (mut workspace, baseline) = fixture.begun();
    for key in ["core.fsmonitor", "diff.external", "core.pager", "core.sshCommand", "core.askPass"] {
        fixture.git(&["config", key, &touch]);
    }
    fixture.git(&["config", "core.worktree", "/nowhere"]);
    fixture.git(&["config", "diff.evil.textconv", &touch]);
    fixture.write(".gitattributes", "*.txt diff=evil\n");
    fixture.write("a.txt", "changed\n");
    let made = checkpoint(&mut workspace, 1);
    let patch = workspace.patch(baseline.tree.as_str(), made.tree.as_str(), 1 << 20).unwrap();
    assert!(String::from_utf8_lossy(&patch).contains("+changed"));
    workspace.patch(baseline.head.as_str(), made.tree.as_str(), 1 << 20).unwrap();
    assert!(!proof.exists());
}

#[test]
fn patch_and_changes_agree_with_git_and_are_bounded() {
    let fixture = Fixture::new();
    let (mut workspace, baseline) = fixture.begun();
    fixture.write("a.txt", "a\nmore\n");
    fs::write(fixture.top.join("bin"), [0, 159, 146, 150]).unwrap();
    fixture.remove("b.txt");
    let made = checkpoint(&mut workspace, 1);
    let changes = workspace.changes(baseline.tree.as_str(), made.tree.as_str()).unwrap();
    assert_eq!(changes, made.files);
    let binary = changes.iter().find(|c| c.path == "bin").unwrap();
    assert_eq!((binary.status, binary.added, binary.removed), ('A', None, None));
    assert_eq!(changes.iter().find(|c| c.path == "b.txt").unwrap().blob, None);
    let patch = workspace.patch(baseline.tree.as_str(), made.tree.as_str(), 1 << 20).unwrap();
    let from_git = workspace.patch(baseline.start.as_str(), made.tree.as_str(), 1 << 20).unwrap();
    assert_eq!(patch, from_git);
    assert_eq!(workspace.patch(baseline.start.as_str(), made.tree.as_str(), 10).unwrap(), patch[..10]);
    let error = workspace.patch("--output=/tmp/x", "HEAD", 10).unwrap_err();
    assert_eq!(error.reason, "`--output=/tmp/x` names no tree or commit");
}

#[test]
fn on_its_branch_a_run_moves_the_branch_and_status_stays_sane() {
    let fixture = Fixture::new();
    fixture.git(&["switch", "-qc", "ralph/x"]);
    fixture.write("b.txt", "mine, staged\n");
    fixture.git(&["add", "b.txt"]);
    let mut workspace = fixture.workspace_with(|o| o.branch = Some("ralph/x".to_owned()));
    let baseline = workspace.begin(&[]).unwrap();
    fixture.write("a.txt", "agent\n");
    fixture.remove("src/lib.rs");
    fixture.write("src/lib.rs/now-a-folder", "x\n");
    let made = try_checkpoint(&mut workspace, 1, true).unwrap();
    assert_eq!(fixture.git(&["rev-parse", "ralph/x"]), commit_of(&made));
    assert_eq!(fixture.git(&["status", "--porcelain"]), "M  b.txt");
    assert_eq!(fixture.git(&["log", "-1", "--format=%an %ae"]), "Ralph ralph@localhost");
    assert!(fixture.git(&["reflog", "-1"]).contains("ralph: iteration 1"));
    assert!(workspace.moved_refs().unwrap().is_empty());
    assert_eq!(fixture.git(&["rev-parse", "main"]), baseline.head.as_str());
    // Another process rewrites or leaves the branch: nothing is forced.
    fixture.git(&["commit", "-q", "--amend", "--allow-empty", "-m", "rewritten"]);
    fixture.write("a.txt", "agent 2\n");
    let error = try_checkpoint(&mut workspace, 2, true).unwrap_err();
    assert!(error.reason.contains("refs/heads/ralph/x"), "{error}");
    fixture.git(&["switch", "-q", "--detach"]);
    assert!(try_checkpoint(&mut workspace, 2, true).unwrap_err().reason.contains("HEAD"));
    let _ = run();
}
