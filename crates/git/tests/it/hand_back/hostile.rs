//! An agent plants things in its copy for the engine's git to find.

use super::{Pair, back, iteration};
use crate::support::{Fixture, git};
use ralph_loop_domain::ports::Workspace as _;
use ralph_loop_git::agent_copy::{CopyContents, History};
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

/// A program that leaves a mark when it runs.
fn trap(user: &Fixture) -> (PathBuf, String) {
    let [mark, program] = ["mark", "trap"].map(|name| user.dir.path().join(name));
    fs::write(&program, format!("#!/bin/sh\n: > {}\ncat\n", mark.display())).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    (mark, program.display().to_string())
}

/// A repo whose configuration runs `program` wherever git lets it.
fn arm(repo: &Path, program: &str) {
    for key in
        ["filter.trap.clean", "filter.trap.smudge", "core.fsmonitor", "diff.trap.textconv", "core.sshCommand"]
    {
        git(repo, &["config", key, program]);
    }
    fs::write(repo.join(".git/info/attributes"), "* filter=trap diff=trap\n").unwrap();
}

fn nested(at: &Path, program: &str) {
    fs::create_dir_all(at).unwrap();
    git(at, &["init", "-q"]);
    fs::write(at.join("n"), "n\n").unwrap();
    git(at, &["add", "-A"]);
    git(at, &["commit", "-qm", "n"]);
    arm(at, program);
    fs::write(at.join("n"), "m\n").unwrap();
}

#[test]
fn a_nested_repo_runs_nothing_and_comes_back_as_files() {
    let user = Fixture::new();
    let (mark, program) = trap(&user);
    let pair = Pair::of(user, None);
    let (mut both, _) = pair.begun();
    nested(&pair.agent_copy.join("deep/nested"), &program);
    fs::write(pair.agent_copy.join("deep/nested/x.log"), "ignored\n").unwrap();
    let made = iteration(&mut both, 1, false);
    assert_eq!(made.files.iter().map(|f| f.path.as_str()).collect::<Vec<_>>(), ["deep/nested/n"]);
    assert_eq!(back(&mut both).written, ["deep/nested/n"]);
    assert!(!pair.user.exists("deep/nested/.git"), "a repo is not handed back");
    // Again, now that the folder is known.
    pair.agent("deep/nested/more", "x\n");
    nested(&pair.agent_copy.join("deep/nested/inner"), &program);
    let made = iteration(&mut both, 2, false);
    let names: Vec<_> = made.files.iter().map(|f| f.path.as_str()).collect();
    assert_eq!(names, ["deep/nested/inner/n", "deep/nested/more"]);
    assert_eq!(back(&mut both).written, names);
    assert!(!mark.exists(), "git went into the nested repo");
}

#[test]
fn a_submodule_stays_pinned_and_is_not_visited() {
    let user = Fixture::new();
    let (mark, program) = trap(&user);
    let library = user.dir.path().join("library");
    fs::create_dir(&library).unwrap();
    git(&library, &["init", "-q"]);
    fs::write(library.join("l"), "l\n").unwrap();
    git(&library, &["add", "-A"]);
    git(&library, &["commit", "-qm", "l"]);
    user.git(&[
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "add",
        "-q",
        library.to_str().unwrap(),
        "sub",
    ]);
    user.git(&["commit", "-qm", "sub"]);
    let pair = Pair::of(user, None);
    let (mut both, baseline) = pair.begun();
    let sub = pair.agent_copy.join("sub");
    fs::remove_dir_all(&sub).unwrap();
    nested(&sub, &program);
    git(&sub, &["-c", "core.fsmonitor=false", "commit", "-q", "--allow-empty", "-m", "moved"]);
    fs::remove_file(&mark).ok();
    assert_eq!(both.tree().unwrap(), baseline.tree);
    pair.agent("a.txt", "agent\n");
    let made = iteration(&mut both, 1, false);
    assert_eq!(made.files.iter().map(|f| f.path.as_str()).collect::<Vec<_>>(), ["a.txt"]);
    assert_eq!(back(&mut both).written, ["a.txt"]);
    assert_eq!(pair.user.read("sub/l"), "l\n");
    assert!(!mark.exists(), "git went into the submodule");
}

#[test]
fn settings_attributes_and_redirections_of_the_copy_are_ignored() {
    let user = Fixture::new();
    let (mark, program) = trap(&user);
    let secret = Fixture::new();
    secret.write("key", "private\n");
    secret.git(&["add", "-A"]);
    secret.git(&["commit", "-qm", "secret"]);
    let other = secret.git(&["rev-parse", "HEAD"]);
    let pair = Pair::of(user, None);
    let (mut both, _) = pair.begun();
    let dot = pair.agent_copy.join(".git");
    arm(&pair.agent_copy, &program);
    fs::write(dot.join("commondir"), secret.top.join(".git").display().to_string()).unwrap();
    fs::write(dot.join("config.worktree"), "[core]\n\tfsmonitor = evil\n").unwrap();
    fs::write(dot.join("objects/info/alternates"), secret.top.join(".git/objects").display().to_string())
        .unwrap();
    fs::write(dot.join("info/exclude"), "*\n").unwrap();
    pair.agent(".gitattributes", "* filter=trap diff=trap\n");
    pair.agent("a.txt", "agent\n");
    let made = iteration(&mut both, 1, false);
    let names: Vec<_> = made.files.iter().map(|f| f.path.as_str()).collect();
    assert_eq!(names, [".gitattributes", "a.txt"]);
    both.patch(&made.files[0].path, "HEAD", 100).unwrap_err();
    assert_eq!(back(&mut both).written, names);
    assert!(!mark.exists(), "a program of the agent's choice ran");
    let found = both.file_at(&other.as_str().into(), "key").ok().flatten();
    assert_eq!(found, None, "objects of another repo are not there");
}

#[test]
fn links_in_the_copys_git_folder_lead_nowhere() {
    let user = Fixture::new();
    let outside = user.dir.path().canonicalize().unwrap().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("key"), "private\n").unwrap();
    let pair = Pair::of(user, Some("main"));
    let (mut both, _) = pair.begun();
    let dot = pair.agent_copy.join(".git");
    let swap = |name: &str, target: &Path| {
        let path = dot.join(name);
        fs::remove_file(&path).or_else(|_| fs::remove_dir_all(&path)).ok();
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(target, &path).unwrap();
    };
    for (round, name) in [
        "refs/ralph",
        "refs/heads",
        "ralph",
        "logs",
        "hooks",
        "modules",
        "objects/ab",
        "objects/pack",
        "info",
    ]
    .into_iter()
    .enumerate()
    {
        swap(name, &outside);
        pair.agent("a.txt", &format!("{round}\n"));
        iteration(&mut both, 1 + u32::try_from(round).unwrap(), true);
        back(&mut both);
        assert_eq!(pair.user.read("a.txt"), format!("{round}\n"), "{name}");
        let left: Vec<_> = fs::read_dir(&outside).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(left, ["key"], "{name} led out");
    }
    for name in ["config", "index", "packed-refs.lock", "shallow"] {
        swap(name, &outside.join("key"));
    }
    nix::unistd::mkfifo(&dot.join("FETCH_HEAD.fifo"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    pair.agent("a.txt", "last\n");
    iteration(&mut both, 20, true);
    back(&mut both);
    assert_eq!(fs::read(outside.join("key")).unwrap(), b"private\n");
    assert_eq!(pair.user.read("a.txt"), "last\n");
}

/// The honest case: the user's filters, for files that had them at the start.
#[test]
fn the_users_own_filters_work_in_the_copy() {
    let user = Fixture::new();
    user.git(&["config", "filter.upper.clean", "tr a-z A-Z"]);
    user.git(&["config", "filter.upper.smudge", "tr A-Z a-z"]);
    user.write(".gitattributes", "*.up filter=upper\n");
    user.write("x.up", "abc\n");
    user.git(&["add", "-A"]);
    user.git(&["commit", "-qm", "filtered"]);
    let pair = Pair::of(user, None);
    let (mut both, baseline) = pair.begun();
    assert_eq!(both.tree().unwrap(), baseline.tree);
    pair.agent("x.up", "def\n");
    pair.agent("y.up", "new\n");
    let made = iteration(&mut both, 1, false);
    let commit = made.commit.unwrap();
    assert_eq!(both.file_at(&commit, "x.up").unwrap().unwrap(), b"DEF\n");
    assert_eq!(back(&mut both).written, ["x.up", "y.up"]);
    assert_eq!(pair.user.read("y.up"), "new\n");
}

/// Original objects are where no agent writes, and aren't read again; git prefers a loose one of the same name in
/// the agent's folder if the user's store has no pack.
#[test]
fn replaced_start_object_is_noticed() {
    let contents = CopyContents { history: History::Full, ..Default::default() };
    let pair = Pair::with(Fixture::new(), None, &contents);
    let (mut both, _) = pair.begun();
    pair.agent("new", "x\n");
    let commit = iteration(&mut both, 1, false).commit.unwrap();
    let copy = &pair.agent_copy;
    let id = git(copy, &["rev-parse", &format!("{commit}:a.txt")]);
    let checked = |name: &str| {
        let into = pair.user.dir.path().join(name);
        both.checkout_clean(&commit, &into).unwrap();
        (fs::read_to_string(into.join("a.txt")).unwrap(), both.verify_checkout(&commit, &into).unwrap())
    };
    let (sound, found) = checked("sound");
    assert_eq!(found, Vec::<String>::new());
    pair.agent("../easy", "easy\n");
    let easy = git(copy, &["hash-object", "-w", "../easy"]);
    let place = |id: &str| copy.join(format!(".git/objects/{}/{}", &id[..2], &id[2..]));
    fs::create_dir_all(place(&id).parent().unwrap()).unwrap();
    fs::copy(place(&easy), place(&id)).unwrap();
    let (text, found) = checked("loose");
    assert_eq!(text, "easy\n", "git itself does not notice");
    assert!(found.len() == 1 && found[0].contains("`a.txt`"), "{found:?}");
    // Packed objects are read in full.
    fs::remove_file(place(&id)).unwrap();
    git(copy, &["repack", "-q", "-d"]);
    assert!(fs::read_dir(copy.join(".git/objects/pack")).unwrap().next().is_some());
    assert_eq!(checked("packed"), (sound, Vec::new()));
}

#[test]
fn the_copy_knows_which_files_are_unchanged_without_reading_them() {
    let user = Fixture::new();
    let old = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_700_000_000);
    let age = |name: &str| fs::File::open(user.top.join(name)).unwrap().set_modified(old).unwrap();
    user.git(&["ls-files"]).lines().for_each(age);
    user.git(&["update-index", "--refresh"]);
    user.write("b.txt", "dirty\n");
    let pair = Pair::of(user, None);
    // Without comparing content, git reports every file that it doesn't know.
    let trusting = ["diff-files", "--name-only"];
    assert_eq!(git(&pair.agent_copy, &trusting), "b.txt");
    assert_eq!(git(&pair.agent_copy, &["status", "--porcelain", "-uno"]), " M b.txt");
    // The engine notices a change that git can't see (same size, time and second).
    let (mut both, _) = pair.begun();
    pair.agent("a.txt", &fs::read_to_string(pair.agent_copy.join("a.txt")).unwrap().to_uppercase());
    fs::File::open(pair.agent_copy.join("a.txt")).unwrap().set_modified(old).unwrap();
    let commit = iteration(&mut both, 1, false).commit.unwrap();
    let recorded = both.file_at(&commit, "a.txt").unwrap().unwrap();
    assert_eq!(recorded, fs::read(pair.agent_copy.join("a.txt")).unwrap());
}
