//! Filters of the user's run where the engine put the files, and nowhere else; LFS needs no program.

use crate::support::{Fixture, checkpoint, commit_of};
use ralph_loop_domain::ports::Workspace as _;
use std::fs;
use std::path::Path;

const POINTER: &str = "version https://git-lfs.github.com/spec/v1\n";

/// A filter that notes where it runs.
fn noted(fixture: &Fixture, command: &str) -> String {
    format!("pwd >> '{}'; {command}", fixture.dir.path().join("ran").display())
}

fn ran_in(fixture: &Fixture) -> Vec<String> {
    let text = fs::read_to_string(fixture.dir.path().join("ran")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// A repo whose files `*.nb` lose their lines with `out` in git, as notebooks do.
fn notebooks() -> Fixture {
    let fixture = Fixture::new();
    fixture.write(".gitattributes", "*.nb filter=nb eol=lf\n");
    fixture.write("old.nb", "code\n");
    fixture.write("deep/[a] \"b\" *.nb", "code\n");
    fixture.git(&["add", "-A"]);
    fixture.git(&["commit", "-qm", "notebooks"]);
    fixture.git(&["config", "filter.nb.clean", &noted(&fixture, "grep -v out")]);
    fixture.git(&["config", "filter.nb.smudge", &noted(&fixture, "sed s/code/CODE/")]);
    fixture
}

#[test]
fn filters_run_only_on_files_in_the_engines_folder() {
    let fixture = notebooks();
    let (mut workspace, _) = fixture.begun();
    fixture.write("old.nb", "code\r\nout 1\nmore\n");
    fixture.write("deep/[a] \"b\" *.nb", "out 2\ndeep\n");
    fixture.write("new.nb", "new\nout 3\n");
    let commit = commit_of(&checkpoint(&mut workspace, 1));
    for (name, text) in [("old.nb", "code\nmore"), ("deep/[a] \"b\" *.nb", "deep"), ("new.nb", "new")] {
        assert_eq!(fixture.show(&commit, name), text, "{name}");
    }
    assert_eq!(checkpoint(&mut workspace, 2).commit, None, "recorded once");
    let into = fixture.dir.path().join("clean");
    workspace.checkout_clean(&commit.as_str().into(), &into).unwrap();
    assert_eq!(fs::read_to_string(into.join("old.nb")).unwrap(), "CODE\nmore\n");
    assert_eq!(workspace.verify_checkout(&commit.as_str().into(), &into).unwrap(), Vec::<String>::new());
    let ran = ran_in(&fixture);
    let temporary = ralph_loop_testkit::vars().temp_dir().join("ralph-git-").display().to_string();
    assert!(!ran.is_empty() && ran.iter().all(|folder| folder.starts_with(&temporary)), "{ran:?}");
}

#[test]
fn a_filter_that_cannot_run_is_refused_with_its_reason() {
    let fixture = Fixture::new();
    fixture.write(".gitattributes", "*.nb filter=nb\n");
    fixture.git(&["config", "filter.nb.clean", "no-such-filter"]);
    let (mut workspace, _) = fixture.begun();
    fixture.write("x.nb", "x\n");
    let error = workspace.tree().unwrap_err();
    assert!(error.reason.contains("`nb`") && error.reason.contains("no-such-filter"), "{error:?}");
    assert!(error.hint.is_some());
}

#[test]
fn lfs_files_are_pointers_in_git_and_files_on_the_disk_without_its_program() {
    let fixture = Fixture::new();
    for (key, program) in
        [("clean", "clean -- %f"), ("smudge", "smudge -- %f"), ("process", "filter-process")]
    {
        fixture.git(&["config", &format!("filter.lfs.{key}"), &format!("no-such-git-lfs {program}")]);
    }
    fixture.write(".gitattributes", "*.bin filter=lfs -text\n");
    fixture.write(".lfsconfig", "[lfs]\n\turl = http://127.0.0.1:9/evil\n");
    let (mut workspace, _) = fixture.begun();
    let large = "x\r\n".repeat(100_000);
    fixture.write("large.bin", &large);
    fixture.write("empty.bin", "");
    let commit = commit_of(&checkpoint(&mut workspace, 1));
    let pointer = fixture.show(&commit, "large.bin");
    assert!(pointer.starts_with(POINTER) && pointer.ends_with("\nsize 300000"), "{pointer}");
    assert_eq!(fixture.show(&commit, "empty.bin"), "");
    let into = fixture.dir.path().join("clean");
    workspace.checkout_clean(&commit.as_str().into(), &into).unwrap();
    assert_eq!(fs::read_to_string(into.join("large.bin")).unwrap(), large);
    assert_eq!(workspace.verify_checkout(&commit.as_str().into(), &into).unwrap(), Vec::<String>::new());
    // A pointer instead of a file stays a pointer.
    fixture.write("copy.bin", &format!("{pointer}\n"));
    let commit = commit_of(&checkpoint(&mut workspace, 2));
    assert_eq!(fixture.show(&commit, "copy.bin"), pointer);
    fs::remove_dir_all(fixture.top.join(".git/lfs")).unwrap();
    let error = workspace.checkout_clean(&commit.as_str().into(), Path::new(&into.with_extension("2")));
    let error = error.unwrap_err();
    assert!(error.reason.contains("copy.bin") || error.reason.contains("large.bin"), "{error:?}");
    assert!(error.hint.unwrap().contains("git lfs pull"));
}
