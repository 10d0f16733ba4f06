//! Finding repos, creating workspaces, clean checkouts, and restoring files.

use crate::support;
use crate::support::{Fixture, checkpoint, commit_of, git, listed, run};
use ralph_loop_domain::ports::Workspace;
use ralph_loop_git::hand_back::restore::{RestoreAction, RestoreScope, apply_restore, plan_restore};
use ralph_loop_git::{Repo, RepoError, checkout};
use ralph_loop_protocol::id::CommitId;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

#[test]
fn folders_that_cannot_be_worked_in_are_refused_with_a_hint() {
    let dir = tempfile::tempdir().unwrap();
    let error = Repo::discover(&support::vars(), dir.path()).unwrap_err();
    assert!(matches!(error, RepoError::NotARepo(_)) && error.hint().unwrap().contains("git init"));
    assert!(matches!(
        Repo::discover(&support::vars(), &dir.path().join("absent")),
        Err(RepoError::NotARepo(_))
    ));
    git(dir.path(), &["init", "-q", "--bare", "bare.git"]);
    assert!(matches!(
        Repo::discover(&support::vars(), &dir.path().join("bare.git")),
        Err(RepoError::Bare(_))
    ));
    git(dir.path(), &["init", "-q", "unborn"]);
    let error = Repo::discover(&support::vars(), &dir.path().join("unborn")).unwrap_err();
    assert!(matches!(error, RepoError::NoCommits(_)), "{error}");
    assert_eq!(error.hint().unwrap(), "make one: git add -A && git commit --allow-empty -m start");
    let fixture = Fixture::new();
    let inside = Repo::discover(&support::vars(), &fixture.top.join(".git")).unwrap_err();
    assert!(matches!(inside, RepoError::InsideGitDir(_)), "{inside}");
}

#[test]
fn a_repo_states_its_facts() {
    let fixture = Fixture::new();
    let repo = Repo::discover(&support::vars(), &fixture.top.join("src/deep")).unwrap();
    assert_eq!((repo.top.clone(), repo.branch.as_deref()), (fixture.top.clone(), Some("main")));
    assert_eq!(repo.head, fixture.git(&["rev-parse", "HEAD"]));
    assert!(!repo.is_linked_worktree());
    fixture.git(&["switch", "-q", "--detach"]);
    assert_eq!(fixture.repo().branch, None);
    let identity = repo.identity(Some("Bot"), Some("bot@example.com"));
    assert_eq!((identity.name.as_str(), identity.email.as_str()), ("Bot", "bot@example.com"));
    fixture.git(&["config", "user.name", "Ann <x>"]);
    fixture.git(&["config", "user.email", "ann@example.com"]);
    let identity = repo.identity(None, Some("bot@example.com"));
    assert_eq!(identity.email, "bot@example.com");
}

#[test]
fn the_state_folder_is_excluded_once_and_the_rest_of_the_file_kept() {
    let fixture = Fixture::new();
    let path = fixture.top.join(".git/info/exclude");
    let lines = "/.ralph/*\n!/.ralph/config.json\n!/.ralph/models.yaml\n";
    fs::write(&path, "/.ralph/\nmine").unwrap();
    let repo = fixture.repo();
    repo.exclude_ralph_dir().unwrap();
    repo.exclude_ralph_dir().unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), format!("mine\n{lines}"), "an older line goes");
    fixture.write(".ralph/config.json", "{}\n");
    fixture.write(".ralph/progress.md", "x\n");
    assert_eq!(fixture.git(&["status", "--porcelain", "-uall"]), "?? .ralph/config.json");
    fs::remove_dir_all(path.parent().unwrap()).unwrap();
    repo.exclude_ralph_dir().unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), lines);
}

#[test]
fn the_state_folder_is_committed_only_where_asked() {
    let fixture = Fixture::new();
    let mut workspace = fixture.workspace_with(|o| o.commit_state = true);
    workspace.begin(&[]).unwrap();
    fixture.write(".ralph/progress.md", "x\n");
    let before = checkpoint(&mut workspace, 1);
    assert_eq!(before.commit, None, "the engine's own notes don't count as work");
    fixture.write("work.txt", "x\n");
    let made = checkpoint(&mut workspace, 2);
    assert_eq!(listed(&made), ["A work.txt"], "and no part of what is judged");
    let commit = made.commit.unwrap();
    let files = fixture.git(&["ls-tree", "-r", "--name-only", commit.as_str()]);
    assert!(files.contains(".ralph/progress.md") && files.contains("work.txt"), "{files}");

    let fixture = Fixture::new();
    let mut workspace = fixture.workspace_with(|_| {});
    workspace.begin(&[]).unwrap();
    fixture.write(".ralph/progress.md", "x\n");
    fixture.write("work.txt", "x\n");
    let commit = checkpoint(&mut workspace, 1).commit.unwrap();
    assert!(!fixture.git(&["ls-tree", "-r", "--name-only", commit.as_str()]).contains(".ralph"));
}

#[test]
fn taken_branch_names_get_a_suffix() {
    let fixture = Fixture::new();
    let free = |base: &str| checkout::free_branch_name(&fixture.repo(), base).unwrap();
    assert_eq!(free("ralph/t1/fix"), "ralph/t1/fix");
    fixture.git(&["branch", "ralph/t1/fix"]);
    assert_eq!(free("ralph/t1/fix"), "ralph/t1/fix-v2");
    fixture.git(&["branch", "ralph/t1/fix-v2"]);
    assert_eq!(free("ralph/t1/fix"), "ralph/t1/fix-v3");
    assert_eq!(free("ralph/t1"), "ralph/t1-v2");
    fixture.git(&["branch", "ralph/t2"]);
    assert_eq!(free("ralph/t2/fix"), "ralph/t2-fix");
    fixture.git(&["branch", "top"]);
    assert_eq!(free("top/a/b"), "top-a-b");
}

#[test]
fn a_branch_in_place_touches_no_file_and_is_made_once() {
    let fixture = Fixture::new();
    fixture.write("a.txt", "dirty\n");
    let index = fs::read(fixture.top.join(".git/index")).unwrap();
    let repo = checkout::create_branch_in_place(&fixture.repo(), &run(), "ralph/x").unwrap();
    assert_eq!(repo.branch.as_deref(), Some("ralph/x"));
    assert_eq!(fixture.read("a.txt"), "dirty\n");
    assert_eq!(fs::read(fixture.top.join(".git/index")).unwrap(), index);
    let error = checkout::create_branch_in_place(&repo, &run(), "main").unwrap_err();
    assert!(error.to_string().contains("`main`") && error.hint().unwrap().contains("main-v2"));
}

#[test]
fn a_run_works_in_a_linked_worktree() {
    let fixture = Fixture::new();
    fixture.write("a.txt", "dirty\n");
    let path = fixture.dir.path().join(run().as_str());
    let (repo, branch) = checkout::add_worktree(&fixture.repo(), &run(), &path, "ralph/w").unwrap();
    assert!(repo.is_linked_worktree());
    assert_eq!(branch, "ralph/w");
    let (again, branch) = checkout::add_worktree(&fixture.repo(), &run(), &path, "ralph/w").unwrap();
    assert_eq!((again.top, branch.as_str()), (repo.top.clone(), "ralph/w"));
    let foreign = fixture.dir.path().join("foreign");
    fs::create_dir(&foreign).unwrap();
    fs::write(foreign.join("mine"), "x").unwrap();
    let error = checkout::add_worktree(&fixture.repo(), &run(), &foreign, "ralph/w").unwrap_err();
    assert!(error.to_string().contains("is not ours"), "{error}");
    let options = ralph_loop_git::WorkspaceOptions {
        branch: Some("ralph/w".to_owned()),
        ..ralph_loop_git::WorkspaceOptions::new(ralph_loop_git::CommitIdentity::new(
            "Ralph",
            "ralph@localhost",
        ))
    };
    let mut workspace = ralph_loop_git::GitWorkspace::new(repo, run(), options).unwrap();
    let baseline = workspace.begin(&[]).unwrap();
    assert!(baseline.dirty.is_empty());
    fs::write(path.join("new"), "x\n").unwrap();
    let made = support::try_checkpoint(&mut workspace, 1, true).unwrap();
    assert_eq!(git(&path, &["status", "--porcelain"]), "");
    assert_eq!(fixture.git(&["rev-parse", "ralph/w"]), commit_of(&made));
    assert!(workspace.moved_refs().unwrap().is_empty());
    let clean = fixture.dir.path().join("clean");
    workspace.checkout_clean(made.commit.as_ref().unwrap(), &clean).unwrap();
    assert!(clean.join("new").exists());
}

#[test]
fn a_worktree_that_was_left_half_made_is_made_again_on_its_own_branch() {
    type Break = fn(&Fixture, &Path);
    let breaks: [(&str, Break); 5] = [
        ("not marked whole", |f, _| {
            let admin = f.top.join(".git/worktrees").join(run().as_str());
            fs::remove_file(admin.join("ralph-ready")).unwrap();
        }),
        ("files are missing", |f, path| {
            let admin = f.top.join(".git/worktrees").join(run().as_str());
            fs::remove_file(admin.join("ralph-ready")).unwrap();
            fs::remove_file(path.join("a.txt")).unwrap();
            fs::write(admin.join("index.lock"), "").unwrap();
        }),
        ("no link back", |_, path| fs::remove_file(path.join(".git")).unwrap()),
        ("no folder", |_, path| fs::remove_dir_all(path).unwrap()),
        ("no admin folder", |f, _| fs::remove_dir_all(f.top.join(".git/worktrees")).unwrap()),
    ];
    for (what, break_it) in breaks {
        let fixture = Fixture::new();
        let path = fixture.dir.path().join(run().as_str());
        checkout::add_worktree(&fixture.repo(), &run(), &path, "ralph/w").unwrap();
        break_it(&fixture, &path);
        let (repo, branch) = checkout::add_worktree(&fixture.repo(), &run(), &path, "ralph/w").unwrap();
        assert_eq!(branch, "ralph/w", "{what}: the branch that was made is used again");
        assert_eq!(repo.branch.as_deref(), Some("ralph/w"), "{what}");
        assert_eq!(git(&path, &["status", "--porcelain"]), "", "{what}");
        assert_eq!(
            fixture.git(&["for-each-ref", "refs/heads/ralph", "--format=%(refname)"]),
            "refs/heads/ralph/w"
        );
    }
}

#[test]
fn worktrees_are_added_concurrently_despite_half_made_ones() {
    let fixture = Fixture::new();
    let left = fixture.top.join(".git/worktrees/20261116-101112-abcd");
    fs::create_dir_all(&left).unwrap();
    fs::write(left.join("gitdir"), "/nowhere/.git\n").unwrap();
    fs::write(left.join("commondir"), "").unwrap();
    std::thread::scope(|scope| {
        let adds: Vec<_> = (0..6)
            .map(|n| {
                let (repo, dir) = (fixture.repo(), fixture.dir.path().to_owned());
                scope.spawn(move || {
                    let run =
                        ralph_loop_protocol::id::RunId::from(format!("20261116-10111{n}-abcd").as_str());
                    checkout::add_worktree(&repo, &run, &dir.join(run.as_str()), "ralph/same")
                        .map(|(_, branch)| branch)
                })
            })
            .collect();
        let mut branches: Vec<String> = adds.into_iter().map(|add| add.join().unwrap().unwrap()).collect();
        branches.sort();
        branches.dedup();
        assert_eq!(branches.len(), 6, "{branches:?}");
    });
    let again = fs::metadata(left.join("commondir")).unwrap();
    assert!(again.len() > 0, "what was half-made is made again under its name");
}

#[test]
fn concurrent_starts_get_separate_branches() {
    let fixture = Fixture::new();
    let names: Vec<String> = std::thread::scope(|scope| {
        let starts: Vec<_> = (0..8)
            .map(|n| {
                let repo = fixture.repo();
                scope.spawn(move || {
                    let run = ralph_loop_protocol::id::RunId::from(format!("r{n}").as_str());
                    checkout::create_branch(&repo, &run, "ralph/same", &repo.head).unwrap()
                })
            })
            .collect();
        starts.into_iter().map(|start| start.join().unwrap()).collect()
    });
    let different: std::collections::BTreeSet<&String> = names.iter().collect();
    assert_eq!(different.len(), 8, "{names:?}");
}

#[test]
fn a_clone_shares_nothing_with_its_source_and_is_made_once() {
    let fixture = Fixture::new();
    let into = fixture.dir.path().join("clone");
    fs::create_dir(fixture.dir.path().join("clone.ralph-partial")).unwrap();
    let from = fixture.top.to_str().unwrap();
    let repo = checkout::clone(&support::vars(), from, &into, "ralph/c").unwrap();
    assert_eq!(repo.branch.as_deref(), Some("ralph/c"));
    assert_eq!(checkout::clone(&support::vars(), from, &into, "ralph/c").unwrap().head, repo.head);
    assert!(!into.join(".git/objects/info/alternates").exists());
    let object = format!("objects/{}/{}", &repo.head[..2], &repo.head[2..]);
    let inode = |top: &Path| fs::metadata(top.join(".git").join(&object)).map(|m| m.ino()).ok();
    assert_ne!(inode(&into), inode(&fixture.top));
    let refused =
        |from: &str, into: &Path| checkout::clone(&support::vars(), from, into, "x").unwrap_err().to_string();
    let error = refused(from, &fixture.top.join("src"));
    assert!(error.contains("exists and is not ours"), "a folder with files: {error}");
    let error = refused("/nowhere/at/all", &fixture.dir.path().join("no"));
    assert!(error.contains("'/nowhere/at/all' does not exist"), "{error}");
}

#[test]
fn a_clean_checkout_has_the_commit_and_nothing_else() {
    let fixture = Fixture::new();
    fixture.write("mine", "dirty\n");
    fixture.write("x.log", "ignored\n");
    let (mut workspace, _) = fixture.begun();
    fixture.write("run.sh", "#!/bin/sh\n");
    fixture.chmod("run.sh", 0o755);
    let commit = checkpoint(&mut workspace, 1).commit.unwrap();
    let into = fixture.dir.path().join("clean");
    workspace.checkout_clean(&commit, &into).unwrap();
    assert!(into.join("run.sh").exists() && !into.join("mine").exists() && !into.join("x.log").exists());
    assert_eq!(git(&into, &["rev-parse", "HEAD"]), commit.as_str());
    assert_eq!(git(&into, &["status", "--porcelain", "--ignored"]), "");
    assert_eq!(git(&into, &["remote"]), "");
    assert!(workspace.moved_refs().unwrap().is_empty());
    assert!(workspace.checkout_clean(&commit, &into).unwrap_err().reason.contains("not empty"));
    // What changes in it later can be committed there.
    std::fs::write(into.join("run.sh"), "other\n").unwrap();
    std::fs::write(into.join("more"), "new\n").unwrap();
    workspace.commit_in_checkout(&into, &["run.sh", "more", "gone"]).unwrap();
    assert_eq!(git(&into, &["status", "--porcelain"]), "");
    assert_eq!(git(&into, &["show", "HEAD:run.sh"]), "other");
    assert_eq!(git(&into, &["rev-parse", "HEAD~1"]), commit.as_str());
}

#[test]
fn a_clean_checkout_works_from_a_shallow_clone_and_names_a_missing_filter() {
    let fixture = Fixture::new();
    fixture.git(&["commit", "-q", "--allow-empty", "-m", "second"]);
    let url = format!("file://{}", fixture.top.display());
    git(fixture.dir.path(), &["clone", "-q", "--depth=1", &url, "shallow"]);
    let shallow =
        Fixture { top: fixture.dir.path().join("shallow").canonicalize().unwrap(), dir: fixture.dir };
    shallow.write(".gitattributes", "*.bin filter=nofilter\n");
    let (mut workspace, baseline) = shallow.begun();
    workspace.checkout_clean(&baseline.head, &shallow.dir.path().join("c1")).unwrap();
    shallow.write(".gitattributes", "*.bin filter=nofilter -text\n");
    let commit = checkpoint(&mut workspace, 1).commit.unwrap();
    let error = workspace.checkout_clean(&commit, &shallow.dir.path().join("c2")).unwrap_err();
    assert!(error.reason.contains("nofilter") && error.hint.is_some(), "{error}");
    let error =
        workspace.checkout_clean(&CommitId::from("--help"), &shallow.dir.path().join("c3")).unwrap_err();
    assert_eq!(error.reason, "`--help` names no commit");
}

#[test]
fn a_folder_that_became_a_link_is_not_followed() {
    let fixture = Fixture::new();
    fixture.write("lib/a.txt", "x\n");
    fixture.git(&["add", "-A"]);
    fixture.git(&["commit", "-q", "-m", "lib"]);
    let mut workspace = fixture.workspace_with(|o| o.large_file_limit = 1000);
    workspace.begin(&[]).unwrap();
    let outside = tempfile::tempdir().unwrap();
    fs::create_dir(outside.path().join("sub")).unwrap();
    fs::write(outside.path().join("sub/large.bin"), [0; 5000]).unwrap();
    fs::remove_dir_all(fixture.top.join("lib")).unwrap();
    symlink(outside.path(), fixture.top.join("lib")).unwrap();
    let listed = listed(&checkpoint(&mut workspace, 1));
    assert_eq!(listed, ["A lib", "D lib/a.txt"]);
}

#[test]
fn a_restore_brings_every_file_back_and_keeps_what_was_there() {
    let fixture = Fixture::new();
    let odd = ["sp ace", "ünï", "new\nline"];
    for name in odd {
        fixture.write(name, "before\n");
    }
    fixture.write("tool.sh", "x\n");
    fixture.chmod("tool.sh", 0o755);
    symlink("a.txt", fixture.top.join("link")).unwrap();
    fixture.write("a.txt", "dirty\n");
    fixture.write(".env", "SECRET\n");
    fixture.write(".gitignore", "*.log\n.env\n");
    let (mut workspace, baseline) = fixture.begun();
    let index = fs::read(fixture.top.join(".git/index")).unwrap();
    fixture.write("a.txt", "agent\n");
    fixture.write("sp ace", "agent\n");
    fixture.remove("ünï");
    fixture.remove("new\nline");
    fixture.write("new\nline/now a folder", "x\n");
    fixture.chmod("tool.sh", 0o644);
    fixture.remove("link");
    fs::remove_dir_all(fixture.top.join("src")).unwrap();
    symlink("/tmp", fixture.top.join("src")).unwrap();
    fixture.write("made/by/agent", "x\n");
    fixture.write("keep.log", "ignored\n");
    // The agent un-ignores the user's private file; it must not count as a new one.
    fixture.write(".gitignore", "*.log\n");
    checkpoint(&mut workspace, 1);
    let work = fixture.git(&["rev-parse", support::WORK]);
    let plan = plan_restore(&fixture.repo(), &run(), None, RestoreScope::OfRun).unwrap();
    let action = |path: &str| plan.changes.iter().find(|c| c.path == Path::new(path)).map(|c| c.action);
    assert_eq!(action("a.txt"), Some(RestoreAction::Rewrite));
    assert_eq!(action("ünï"), Some(RestoreAction::Recreate));
    assert_eq!(action("made/by/agent"), Some(RestoreAction::Delete));
    // Secrets aren't even considered.
    assert_eq!(action(".env"), None);
    let done = apply_restore(&fixture.repo(), &run(), None, RestoreScope::OfRun).unwrap();
    assert!(done.plan.changes.iter().all(|change| change.path != Path::new(".env")));
    assert_eq!(fs::read_dir(fixture.top.join("src")).unwrap().count(), 2);
    assert_eq!((fixture.read("a.txt"), fixture.read("new\nline")), ("dirty\n".into(), "before\n".into()));
    assert_eq!((fixture.read(".env"), fixture.read("keep.log")), ("SECRET\n".into(), "ignored\n".into()));
    assert!(!fixture.exists("made"), "folders that are left empty go too");
    assert_eq!(fs::read_link(fixture.top.join("link")).unwrap(), Path::new("a.txt"));
    assert_ne!(fs::metadata(fixture.top.join("tool.sh")).unwrap().permissions().mode() & 0o111, 0);
    assert_eq!(fs::read(fixture.top.join(".git/index")).unwrap(), index);
    assert_eq!(fixture.git(&["rev-parse", "HEAD", support::WORK]), format!("{}\n{work}", baseline.head));
    assert_eq!(fixture.show(done.saved.as_str(), "a.txt"), "agent");
    assert_eq!(fixture.git(&["rev-parse", "refs/ralph/r1/before-restore"]), done.saved.as_str());
    assert!(plan_restore(&fixture.repo(), &run(), None, RestoreScope::OfRun).unwrap().changes.is_empty());
    assert!(workspace.moved_refs().unwrap().is_empty());
}

#[test]
fn a_restore_leaves_large_files_nested_repos_and_blocked_places_alone() {
    let fixture = Fixture::new();
    fixture.write("big", &"x".repeat(3000));
    let mut workspace = fixture.workspace_with(|o| o.large_file_limit = 1000);
    workspace.begin(&[]).unwrap();
    fixture.remove("b.txt");
    fixture.write("b.txt/kept.log", "ignored\n");
    fs::create_dir(fixture.top.join("nested")).unwrap();
    git(&fixture.top.join("nested"), &["init", "-q"]);
    fixture.write("nested/x", "x\n");
    git(&fixture.top.join("nested"), &["add", "x"]);
    git(&fixture.top.join("nested"), &["commit", "-qm", "x"]);
    checkpoint(&mut workspace, 1);
    let done = apply_restore(&fixture.repo(), &run(), None, RestoreScope::OfRun).unwrap();
    let mut left: Vec<_> = done.plan.left_alone.iter().map(|p| p.to_str().unwrap()).collect();
    left.sort_unstable();
    assert_eq!(left, ["b.txt", "big", "nested"]);
    assert_eq!(fixture.read("b.txt/kept.log"), "ignored\n");
    assert!(fixture.exists("big") && fixture.exists("nested/x"));
}

#[test]
fn restore_undoes_the_run_but_not_the_users_edits() {
    let fixture = Fixture::new();
    fixture.write("mine.txt", "before\n");
    let (mut workspace, _) = fixture.begun();
    fixture.write("a.txt", "agent\n");
    fixture.write("made.txt", "agent\n");
    fixture.write("both.txt", "agent\n");
    checkpoint(&mut workspace, 1);
    fixture.write("mine.txt", "my edit\n");
    fixture.write("wip.txt", "my file\n");
    fixture.write("both.txt", "agent\nand I\n");
    let done = apply_restore(&fixture.repo(), &run(), None, RestoreScope::OfRun).unwrap();
    let changed: Vec<_> = done.plan.changes.iter().map(|c| c.path.to_str().unwrap()).collect();
    assert_eq!(changed, ["a.txt", "made.txt"]);
    assert_eq!(done.plan.yours, ["both.txt", "mine.txt", "wip.txt"].map(Path::new));
    assert!(!fixture.exists("made.txt") && fixture.read("both.txt").contains("and I"));
    assert_eq!((fixture.read("mine.txt"), fixture.read("wip.txt")), ("my edit\n".into(), "my file\n".into()));
    let all = apply_restore(&fixture.repo(), &run(), None, RestoreScope::Everything).unwrap();
    assert!(all.plan.yours.is_empty() && !fixture.exists("wip.txt") && !fixture.exists("both.txt"));
    assert_eq!(fixture.read("mine.txt"), "before\n");
}
