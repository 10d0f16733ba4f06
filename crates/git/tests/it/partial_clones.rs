//! Shallow and sparse clones of a repo with some hundred files: missing files don't count as deleted.

use crate::support;
use crate::support::{Fixture, checkpoint, commit_of, git, listed, run};
use ralph_loop_domain::ports::{Lease, Publisher as _, Push, PushEnd, Workspace};
use ralph_loop_git::{
    CloneDepth, CommitIdentity, GitWorkspace, Repo, WorkspaceOptions, checkout, path_remote,
};
use std::fs;
use std::path::{Path, PathBuf};

const PACKAGES: [&str; 4] = ["api", "web", "docs", "tools"];
const EACH: usize = 80;

/// A repo with many files and some history, and a bare one that serves it.
fn served(filters: bool) -> (Fixture, PathBuf) {
    let fixture = Fixture::empty(&[]);
    fixture.write("readme.txt", "hello\n");
    for package in PACKAGES {
        for n in 0..EACH {
            fixture.write(&format!("packages/{package}/src/file{n:03}.txt"), &format!("{package} {n}\n"));
        }
        fixture.write(&format!("packages/{package}/.gitattributes"), "*.txt text\n");
    }
    fixture.git(&["add", "-A"]);
    fixture.git(&["commit", "-qm", "first"]);
    for n in 0..5 {
        fixture.write("packages/web/src/file000.txt", &format!("version {n}\n"));
        fixture.git(&["commit", "-qam", "more"]);
    }
    fixture.git(&["branch", "other"]);
    let bare = fixture.dir.path().join("served.git");
    git(
        fixture.dir.path(),
        &["clone", "-q", "--bare", fixture.top.to_str().unwrap(), bare.to_str().unwrap()],
    );
    git(&bare, &["config", "uploadpack.allowFilter", if filters { "true" } else { "false" }]);
    (fixture, bare)
}

fn extent(depth: Option<u32>, sparse: &[&str]) -> CloneDepth {
    CloneDepth { depth, sparse: sparse.iter().map(|s| (*s).to_owned()).collect(), base: None }
}

fn workspace(repo: &Repo, extent: &CloneDepth) -> GitWorkspace {
    let mut options = WorkspaceOptions::new(CommitIdentity::new("Ralph", "ralph@localhost"));
    options.sparse.clone_from(&extent.sparse);
    GitWorkspace::new(repo.clone(), run(), options).unwrap()
}

fn files(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(&dir).unwrap().flatten() {
            match entry.file_name() {
                name if name == ".git" || name == ".ralph" => {}
                _ if entry.path().is_dir() => open.push(entry.path()),
                _ => found.push(entry.path().strip_prefix(folder).unwrap().display().to_string()),
            }
        }
    }
    found.sort();
    found
}

fn names(top: &Path, tree: &str) -> Vec<String> {
    git(top, &["ls-tree", "-r", "--name-only", tree]).lines().map(str::to_owned).collect()
}

#[test]
fn work_in_a_sparse_clone_keeps_files_outside_it() {
    for filters in [true, false] {
        let (fixture, bare) = served(filters);
        let all = fixture.names("HEAD");
        let into = fixture.dir.path().join("clone");
        let extent = extent(Some(1), &["packages/api"]);
        let repo =
            checkout::clone_part(&support::vars(), bare.to_str().unwrap(), &into, "work", &extent).unwrap();
        assert_eq!(files(&into).len(), EACH + 2, "one package and what lies above it");
        assert_eq!(git(&into, &["rev-list", "--count", "HEAD"]), "1");
        let objects = git(&into, &["rev-list", "--objects", "--missing=print", "HEAD"]);
        assert!(!objects.lines().any(|line| line.starts_with('?')), "no object is left with the server");

        let mut workspace = workspace(&repo, &extent);
        let baseline = workspace.begin(&[]).unwrap();
        assert_eq!(baseline.dirty_total, 0, "{:?}", baseline.dirty);
        assert_eq!(names(&into, baseline.tree.as_str()), all);
        fs::write(into.join("packages/api/src/file001.txt"), "changed\n").unwrap();
        fs::write(into.join("packages/api/src/new.txt"), "new\n").unwrap();
        fs::remove_file(into.join("packages/api/src/file002.txt")).unwrap();
        // Outside the clone, new files count and missing ones stay.
        fs::create_dir_all(into.join("packages/web/src")).unwrap();
        fs::write(into.join("packages/web/src/added.txt"), "added\n").unwrap();
        let made = checkpoint(&mut workspace, 1);
        assert_eq!(
            listed(&made),
            [
                "M packages/api/src/file001.txt",
                "D packages/api/src/file002.txt",
                "A packages/api/src/new.txt",
                "A packages/web/src/added.txt"
            ]
        );
        let commit = commit_of(&made);
        assert_eq!(names(&into, &commit).len(), all.len() + 1);

        // Nothing changed, for a later process either.
        let mut later = self::workspace(&repo, &extent);
        later.reopen(&baseline).unwrap();
        assert_eq!(listed(&checkpoint(&mut later, 2)), Vec::<String>::new());

        let clean = fixture.dir.path().join("clean");
        workspace.checkout_clean(made.commit.as_ref().unwrap(), &clean).unwrap();
        let brought = files(&clean);
        assert_eq!(brought.len(), EACH + 2, "{brought:?}");
        assert!(brought.contains(&"packages/api/src/new.txt".to_owned()));
        assert!(!brought.iter().any(|path| path.starts_with("packages/web")));

        let push = Push {
            commit: made.commit.clone().unwrap(),
            name: "refs/heads/work".into(),
            lease: Lease::Absent,
        };
        assert_eq!(workspace.push(&path_remote(&bare), &[push]).unwrap(), PushEnd::Pushed);
        git(&bare, &["fsck", "--strict", "--connectivity-only"]);
        assert_eq!(git(&bare, &["rev-list", "--count", "work"]), "7", "the whole history is still behind it");
        assert_eq!(git(&bare, &["show", "work:packages/api/src/file001.txt"]), "changed");
        assert_eq!(names(&bare, "work").len(), all.len() + 1);
    }
}

#[test]
fn an_agent_that_narrows_the_checkout_does_not_narrow_the_proof() {
    let (fixture, bare) = served(true);
    let into = fixture.dir.path().join("clone");
    let extent = extent(None, &["packages/api", "packages/web"]);
    let repo =
        checkout::clone_part(&support::vars(), bare.to_str().unwrap(), &into, "work", &extent).unwrap();
    let mut workspace = workspace(&repo, &extent);
    workspace.begin(&[]).unwrap();
    git(&into, &["sparse-checkout", "set", "packages/api"]);
    fs::write(into.join("packages/api/src/new.txt"), "new\n").unwrap();
    let made = checkpoint(&mut workspace, 1);
    let clean = fixture.dir.path().join("clean");
    workspace.checkout_clean(made.commit.as_ref().unwrap(), &clean).unwrap();
    let brought = files(&clean);
    // Whether the missing files count as deleted or as unseen, the proof must not miss them silently.
    let deleted = listed(&made).iter().filter(|line| line.starts_with("D packages/web")).count();
    let there = brought.iter().filter(|path| path.starts_with("packages/web")).count();
    assert_eq!(deleted + there, EACH + 1, "{:?}", listed(&made));
}

#[test]
fn a_shallow_clone_can_start_from_another_branch_and_be_made_again() {
    let (fixture, bare) = served(true);
    fixture.git(&["switch", "-q", "other"]);
    fixture.write("other.txt", "x\n");
    fixture.git(&["add", "-A"]);
    fixture.git(&["commit", "-qm", "other"]);
    fixture.git(&["push", "-q", bare.to_str().unwrap(), "other"]);
    let into = fixture.dir.path().join("clone");
    let extent = CloneDepth { depth: Some(2), sparse: Vec::new(), base: Some("other".into()) };
    let from = format!("file://{}", bare.display());
    let made = checkout::clone_part(&support::vars(), &from, &into, "work", &extent).unwrap();
    assert_eq!(made.branch.as_deref(), Some("work"));
    assert!(into.join("other.txt").exists());
    assert_eq!(git(&into, &["rev-list", "--count", "HEAD"]), "2");
    assert_eq!(checkout::clone_part(&support::vars(), &from, &into, "work", &extent).unwrap().top, made.top);
}
