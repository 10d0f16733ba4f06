//! The copy of a user's tree, and handing back an agent's work.

mod hostile;

use crate::support;
use crate::support::{Fixture, WORK, git, run};
use jiff::Timestamp;
use ralph_loop_domain::ports::{
    Baseline, Checkpoint, CheckpointRequest, HandedBack, UserCheckout as _, Workspace,
};
use ralph_loop_git::agent_copy::{self, CopyContents, CopyDirs};
use ralph_loop_git::{CommitIdentity, HandBack, WorkspaceOptions};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

fn folders(user: &Fixture) -> CopyDirs {
    let record = user.dir.path().canonicalize().unwrap().join("record");
    CopyDirs { user: Some(record.join("git")), agent: Some(record.join("copy-git")) }
}

struct Pair {
    user: Fixture,
    agent_copy: PathBuf,
    branch: Option<String>,
}

impl Pair {
    fn of(user: Fixture, branch: Option<&str>) -> Self {
        Self::with(user, branch, &CopyContents::default())
    }
    fn with(user: Fixture, branch: Option<&str>, contents: &CopyContents) -> Self {
        let top = user.dir.path().canonicalize().unwrap().join("twin");
        let branch = branch.map(str::to_owned);
        let made = agent_copy::make(&user.repo(), &run(), branch.clone(), &top, (contents, &folders(&user)))
            .unwrap();
        assert_eq!(made.top, top);
        Self { user, agent_copy: top, branch }
    }
    fn open(&self) -> HandBack {
        let identity = CommitIdentity::new("Ralph", "ralph@localhost");
        let options = WorkspaceOptions { branch: self.branch.clone(), ..WorkspaceOptions::new(identity) };
        let agent_copy =
            agent_copy::open(&self.agent_copy, &self.user.repo(), &run(), &folders(&self.user)).unwrap();
        HandBack::new(agent_copy, self.user.repo(), run(), options, &folders(&self.user)).unwrap()
    }
    fn begun(&self) -> (HandBack, Baseline) {
        let mut both = self.open();
        let baseline = both.begin(&["PROMPT.md".to_owned()]).unwrap();
        (both, baseline)
    }
    fn agent(&self, path: &str, text: &str) {
        let path = self.agent_copy.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

fn back(both: &mut HandBack) -> HandedBack {
    both.hand_back(Timestamp::from_second(1_700_000_000).unwrap(), &mut |_| {}).unwrap()
}

fn iteration(both: &mut HandBack, iteration: u32, on_branch: bool) -> Checkpoint {
    let agent = "stub".into();
    let at = Timestamp::from_second(1_700_000_000 + i64::from(iteration)).unwrap();
    both.checkpoint(&CheckpointRequest {
        iteration,
        agent: &agent,
        message: "work",
        parts: &[],
        at,
        on_branch,
        redactor: None,
    })
    .unwrap()
}

#[test]
fn the_copy_knows_the_same_start_as_the_users_repo() {
    let user = Fixture::new();
    user.write("a.txt", "dirty\n");
    user.write("mine", "new\n");
    user.remove("b.txt");
    user.git(&["remote", "add", "origin", "https://me:secret@example.com/x.git"]);
    user.git(&["config", "core.fsmonitor", "evil"]);
    user.git(&["config", "filter.x.clean", "evil"]);
    user.git(&["tag", "v1"]);
    let pair = Pair::of(user, None);
    let (mut both, baseline) = pair.begun();
    assert_eq!(baseline.dirty, ["a.txt", "b.txt", "mine"]);
    assert_eq!(baseline.start.as_str(), pair.user.git(&["rev-parse", support::START]));
    assert_eq!(both.tree().unwrap(), baseline.tree, "nothing looks like the agent's doing");
    let config = fs::read_to_string(pair.agent_copy.join(".git/config")).unwrap();
    assert!(config.contains("https://example.com/x.git"), "{config}");
    assert!(!config.contains("secret") && !config.contains("evil"), "{config}");
    assert_eq!(git(&pair.agent_copy, &["describe", "--tags"]), "v1");
    // Only the agent's own change is committed.
    pair.agent("src/lib.rs", "fn new() {}\n");
    iteration(&mut both, 1, false);
    assert_eq!(back(&mut both).written, ["src/lib.rs"]);
    assert_eq!(pair.user.git(&["diff", "--name-only", "main", WORK]), "src/lib.rs");
    assert_eq!(back(&mut both), HandedBack::default(), "repeating it changes nothing");
}

#[test]
fn unchanged_side_gets_the_other_sides_edit() {
    let pair = Pair::of(Fixture::new(), None);
    let (mut both, baseline) = pair.begun();
    pair.agent("a.txt", "agent\n");
    pair.user.write("a.txt", "user\n");
    pair.user.write("b.txt", "user\n");
    assert_eq!(both.pull_user_edits().unwrap(), ["b.txt"]);
    assert_eq!(fs::read_to_string(pair.agent_copy.join("b.txt")).unwrap(), "user\n");
    let first = back(&mut both);
    assert_eq!((first.written, first.conflicts), (vec![], vec!["a.txt".to_owned()]));
    assert_eq!(pair.user.read("a.txt"), "user\n");
    // A new process still knows what was agreed on.
    drop(both);
    let mut both = pair.open();
    both.reopen(&baseline).unwrap();
    assert_eq!(back(&mut both).conflicts, ["a.txt"]);
    // The user restores the file: the agent's edit arrives.
    pair.user.write("a.txt", "a\n");
    let second = back(&mut both);
    assert_eq!((second.written, second.conflicts), (vec!["a.txt".to_owned()], vec![]));
    assert_eq!(pair.user.read("a.txt"), "agent\n");
    // When the agent changes what the user has taken over, it is handed back again.
    pair.agent("b.txt", "agent\n");
    assert_eq!(back(&mut both).written, ["b.txt"]);
}

#[test]
fn files_become_folders_and_folders_files_and_names_need_not_be_text() {
    let pair = Pair::of(Fixture::new(), None);
    let (mut both, baseline) = pair.begun();
    fs::remove_file(pair.agent_copy.join("a.txt")).unwrap();
    pair.agent("a.txt/inside", "x\n");
    fs::remove_dir_all(pair.agent_copy.join("src")).unwrap();
    pair.agent("src", "a file now\n");
    let odd = OsStr::from_bytes(b"odd\xff\n");
    fs::write(pair.agent_copy.join(odd), "odd\n").unwrap();
    let done = back(&mut both);
    assert_eq!((done.written.len(), done.conflicts.len()), (6, 0), "{done:?}");
    assert_eq!(pair.user.read("a.txt/inside"), "x\n");
    assert_eq!(pair.user.read("src"), "a file now\n");
    drop(both);
    let mut both = pair.open();
    both.reopen(&baseline).unwrap();
    fs::remove_file(pair.agent_copy.join(odd)).unwrap();
    assert_eq!(back(&mut both).written.len(), 1);
    assert!(!pair.user.top.join(odd).exists());
}

#[test]
fn untracked_files_are_never_overwritten() {
    let user = Fixture::new();
    user.write("secret.log", "the user's\n");
    user.write("target/x", "built\n");
    let pair = Pair::of(user, None);
    let (mut both, _) = pair.begun();
    // The rules that hid it are gone, and something took its path.
    pair.agent(".gitignore", "");
    pair.agent("secret.log", "agent\n");
    fs::remove_dir_all(pair.agent_copy.join("target")).unwrap();
    pair.agent("target", "a file\n");
    let done = back(&mut both);
    assert!(done.conflicts.contains(&"secret.log".to_owned()), "{done:?}");
    assert!(done.conflicts.contains(&"target".to_owned()), "{done:?}");
    assert_eq!(pair.user.read("secret.log"), "the user's\n");
    assert_eq!(pair.user.read("target/x"), "built\n");
}

#[test]
fn an_agent_that_unhides_a_secret_does_not_get_it() {
    let user = Fixture::new();
    user.write(".gitignore", ".env\n");
    user.git(&["commit", "-qam", "ignore"]);
    user.write(".env", "TOKEN=start\n");
    let pair = Pair::of(user, None);
    let (mut both, _) = pair.begun();
    assert!(!pair.agent_copy.join(".env").exists());
    pair.agent(".gitignore", "!.env\n");
    assert_eq!(back(&mut both).written, [".gitignore"]);
    pair.user.write("deep/.env", "TOKEN=later\n");
    pair.user.write("open.txt", "open\n");
    assert_eq!(both.pull_user_edits().unwrap(), ["open.txt"]);
    back(&mut both);
    assert!(!pair.agent_copy.join(".env").exists() && !pair.agent_copy.join("deep").exists());
    // Nor through the objects that the copy can read.
    let all = git(&pair.agent_copy, &["cat-file", "--batch-all-objects", "--batch"]);
    assert!(all.contains("fn lib"), "the copy reads the user's objects: {all}");
    assert!(!all.contains("TOKEN"), "{all}");
    assert_eq!(pair.user.git(&["fsck", "--no-dangling", "--no-progress"]), "");
}

#[test]
fn a_protected_file_of_the_user_stays_on_its_side_and_a_switched_branch_is_not_mixed_in() {
    let user = Fixture::new();
    user.write("PROMPT.md", "task\n");
    user.git(&["add", "-A"]);
    user.git(&["commit", "-qm", "task"]);
    let pair = Pair::of(user, None);
    let (mut both, _) = pair.begun();
    pair.user.write("PROMPT.md", "another\n");
    assert_eq!(both.pull_user_edits().unwrap(), Vec::<String>::new());
    assert!(both.protected_changes().unwrap().is_empty());
    pair.user.git(&["switch", "-qc", "elsewhere"]);
    pair.user.write("b.txt", "other work\n");
    assert_eq!(both.pull_user_edits().unwrap(), Vec::<String>::new());
}

#[test]
fn a_branch_follows_by_compare_and_swap_with_its_index() {
    let user = Fixture::new();
    user.git(&["switch", "-qc", "fix"]);
    user.write("staged", "staged\n");
    user.git(&["add", "staged"]);
    let pair = Pair::of(user, Some("fix"));
    let (mut both, baseline) = pair.begun();
    pair.agent("a.txt", "1\n");
    let first = iteration(&mut both, 1, true);
    assert_eq!(back(&mut both).branch_kept, None);
    assert_eq!(pair.user.git(&["rev-parse", "fix"]), first.commit.unwrap().as_str());
    assert_eq!(pair.user.git(&["status", "--porcelain"]), "A  staged");
    // Killed after the branch, before saving: a repeat changes nothing.
    fs::remove_file(folders(&pair.user).user.unwrap().join("handed.json")).unwrap();
    drop(both);
    let mut both = pair.open();
    both.reopen(&baseline).unwrap();
    assert_eq!(back(&mut both), HandedBack::default());
    // Branches that an agent moves in its copy aren't handed back.
    git(&pair.agent_copy, &["commit", "-q", "--allow-empty", "-m", "agent's own"]);
    assert_eq!(back(&mut both), HandedBack::default());
    assert_eq!(pair.user.git(&["log", "--format=%s", "-1", "fix"]), "work");
    git(&pair.agent_copy, &["reset", "-q", "--soft", "HEAD^"]);
    pair.user.git(&["commit", "-qm", "the user's"]);
    pair.agent("a.txt", "2\n");
    iteration(&mut both, 2, true);
    let done = back(&mut both);
    assert_eq!(done.branch_kept.as_deref(), Some("fix"));
    assert_eq!(pair.user.git(&["log", "--format=%s", "-1", "fix"]), "the user's");
    assert_eq!(pair.user.git(&["show", &format!("{WORK}:a.txt")]), "2");
}

#[test]
fn a_copy_answers_what_a_proof_asks() {
    let user = Fixture::new();
    user.write(".gitignore", "secret\n");
    let pair = Pair::of(user, None);
    let (mut both, baseline) = pair.begun();
    pair.agent("new.txt", "new\n");
    pair.agent("secret", "hidden\n");
    let commit = iteration(&mut both, 1, false).commit.unwrap();
    assert_eq!(both.unrecorded().unwrap(), ["secret"]);
    assert_eq!(both.file_at(&commit, "new.txt").unwrap().as_deref(), Some(&b"new\n"[..]));
    assert_eq!(both.file_at(&baseline.head, "new.txt").unwrap(), None);
    let into = pair.user.dir.path().join("clean");
    fs::create_dir(&into).unwrap();
    both.checkout_clean(&commit, &into).unwrap();
    assert_eq!(both.verify_checkout(&commit, &into).unwrap(), Vec::<String>::new());
    fs::write(into.join("new.txt"), "forged\n").unwrap();
    assert_ne!(both.verify_checkout(&commit, &into).unwrap(), Vec::<String>::new());
    assert_eq!(both.damage(), None);
    fs::remove_dir_all(pair.agent_copy.join(".git")).unwrap();
    assert!(both.damage().is_some());
}

#[test]
fn copy_with_a_replaced_git_folder_is_refused() {
    let pair = Pair::of(Fixture::new(), None);
    let (mut both, _) = pair.begun();
    fs::rename(pair.agent_copy.join(".git"), pair.agent_copy.join("git")).unwrap();
    std::os::unix::fs::symlink("git", pair.agent_copy.join(".git")).unwrap();
    let error = both.tree().unwrap_err();
    assert!(error.reason.contains("the agent has replaced it"), "{error}");
}

/// Everything that git reads in a copy, in any way.
fn objects_of(pair: &Pair) -> String {
    git(&pair.agent_copy, &["cat-file", "--batch-all-objects", "--unordered", "--batch"])
}

#[test]
fn ignored_files_stay_with_the_user_whatever_their_name() {
    let user = Fixture::new();
    let hidden = ["prod.env", "AuthKey.p8", "backup.sql", "notes", "config/local.yml", ".env"];
    user.write(
        ".gitignore",
        "/target/\nnode_modules/\n*.local\n/keys/\nprod.env\nAuthKey.p8\nbackup.sql\nnotes\nlocal.yml\n.env\n.venv/\ncaches/\n",
    );
    user.git(&["commit", "-qam", "ignore"]);
    for path in hidden.iter().chain(&["keys/deploy", "deep/er/x.local", "config/shown.yml"]) {
        user.write(path, "CANARY\n");
    }
    for path in [
        "target/debug/x",
        "web/node_modules/a/index.js",
        ".venv/pyvenv.cfg",
        ".venv/bin/python",
        "caches/CACHEDIR.TAG",
        "caches/entry",
    ] {
        user.write(path, "made\n");
    }
    let pair = Pair::of(user, None);
    let has = |path: &str| pair.agent_copy.join(path).symlink_metadata().is_ok();
    for path in hidden.iter().chain(&["keys", "deep"]) {
        assert!(!has(path), "{path}");
    }
    for path in ["target/debug/x", "web/node_modules/a/index.js", ".venv/bin/python", "caches/entry"] {
        assert!(has(path), "{path}");
    }
    assert!(has("config/shown.yml"), "git doesn't ignore it");

    let withheld = |include: &[&str]| {
        let into = pair.user.dir.path().join("another");
        let _ = fs::remove_dir_all(&into);
        let contents =
            CopyContents { include: include.iter().map(|i| (*i).to_owned()).collect(), ..Default::default() };
        let run = ralph_loop_protocol::id::RunId::new("20261115-143307-aaaa".to_owned());
        let made = agent_copy::make(&pair.user.repo(), &run, None, &into, (&contents, &CopyDirs::default()))
            .unwrap();
        let mut names: Vec<String> =
            made.left_out.withheld.iter().map(|path| path.display().to_string()).collect();
        names.sort();
        (into, names)
    };
    let (into, names) = withheld(&["prod.env", "keys", "**/*.local"]);
    assert!(into.join("prod.env").exists() && into.join("keys/deploy").exists());
    assert!(into.join("deep/er/x.local").exists() && !into.join("backup.sql").exists());
    assert!(names.contains(&"backup.sql".to_owned()) && !names.contains(&"prod.env".to_owned()), "{names:?}");
}

#[test]
fn only_what_the_start_reaches_can_be_read() {
    let user = Fixture::new();
    user.git(&["tag", "-am", "ANNOTATED", "v1"]);
    user.write("a.txt", "second\n");
    user.git(&["commit", "-qam", "second"]);
    user.git(&["switch", "-qc", "other"]);
    user.write("a.txt", "CANARY of another branch\n");
    user.git(&["commit", "-qam", "CANARY message"]);
    user.git(&["tag", "newer"]);
    user.git(&["switch", "-q", "main"]);
    user.write("a.txt", "CANARY in the stash\n");
    user.git(&["stash", "-q"]);
    user.write("dangling", "CANARY that was never committed\n");
    user.git(&["hash-object", "-w", "dangling"]);
    user.remove("dangling");
    user.write("amended", "CANARY that was taken back\n");
    user.git(&["add", "-A"]);
    user.git(&["commit", "-qm", "oops"]);
    user.git(&["reset", "-q", "--hard", "HEAD^"]);
    user.write("staged", "staged\n");
    user.git(&["add", "staged"]);
    user.write("staged", "and changed\n");
    let pair = Pair::of(user, None);
    let (mut both, _) = pair.begun();
    let all = objects_of(&pair);
    assert!(!all.contains("CANARY"), "{all}");
    assert!(all.contains("ANNOTATED") && all.contains("second") && all.contains("fn lib"), "{all}");
    assert_eq!(
        git(&pair.agent_copy, &["for-each-ref", "--format=%(refname)", "refs/heads", "refs/tags"]),
        "refs/heads/main\nrefs/tags/v1"
    );
    assert_eq!(git(&pair.agent_copy, &["describe"]).split('-').next(), Some("v1"));
    assert_eq!(git(&pair.agent_copy, &["show", ":staged"]), "staged");
    assert_eq!(git(&pair.agent_copy, &["fsck", "--no-dangling", "--no-progress"]), "");
    // The work of the run still arrives.
    pair.agent("b.txt", "agent\n");
    iteration(&mut both, 1, false);
    assert_eq!(back(&mut both).written, ["b.txt"]);
    assert_eq!(pair.user.git(&["show", &format!("{WORK}:b.txt")]), "agent");
}

#[test]
fn packs_of_an_earlier_start_are_used_again() {
    let user = Fixture::new();
    let copy = |name: &str| {
        let run = ralph_loop_protocol::id::RunId::new(format!("20261115-143307-{name}"));
        let into = user.dir.path().canonicalize().unwrap().join(name);
        let contents = CopyContents::default();
        agent_copy::make(&user.repo(), &run, None, &into, (&contents, &CopyDirs::default())).unwrap();
        assert_eq!(git(&into, &["fsck", "--no-dangling", "--no-progress"]), "");
        into
    };
    let packs = |commit: &str| {
        let folder = user.top.join(".git/ralph/lent").join(commit).join("pack");
        let mut names: Vec<_> =
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.retain(|name| name.to_str().unwrap().ends_with(".pack"));
        names.sort();
        names
    };
    copy("aaaa");
    let first = packs(&user.git(&["rev-parse", "HEAD"]));
    copy("bbbb");
    user.write("a.txt", "more\n");
    user.git(&["commit", "-qam", "more"]);
    let made = copy("cccc");
    let second = packs(&user.git(&["rev-parse", "HEAD"]));
    assert_eq!((first.len(), second.len()), (1, 2));
    assert!(second.contains(&first[0]));
    // Neither a garbage collection nor the next runs take a copy's objects away.
    user.git(&["gc", "-q", "--prune=now"]);
    fs::remove_dir_all(user.top.join(".git/ralph/lent")).unwrap();
    assert_eq!(git(&made, &["fsck", "--no-dangling", "--no-progress"]), "");
}

#[test]
fn whole_history_is_lent_only_when_asked() {
    let user = Fixture::new();
    user.git(&["branch", "other"]);
    user.write("a.txt", "STASHED\n");
    user.git(&["stash", "-q"]);
    let into = user.dir.path().canonicalize().unwrap().join("full");
    let contents = CopyContents { history: agent_copy::History::Full, ..Default::default() };
    agent_copy::make(&user.repo(), &run(), None, &into, (&contents, &folders(&user))).unwrap();
    assert!(git(&into, &["cat-file", "--batch-all-objects", "--batch"]).contains("STASHED"));
    assert_eq!(git(&into, &["rev-parse", "other"]), user.git(&["rev-parse", "other"]));
}

#[test]
fn an_agent_that_unhides_a_file_does_not_get_it() {
    let user = Fixture::new();
    user.write(".gitignore", "prod.env\n/private/\n");
    user.write("deep/.gitignore", "here\n");
    user.git(&["add", "-A"]);
    user.git(&["commit", "-qm", "ignore"]);
    for path in ["prod.env", "private/key", "deep/here"] {
        user.write(path, "CANARY\n");
    }
    let pair = Pair::of(user, None);
    let (mut both, _) = pair.begun();
    pair.agent(".gitignore", "");
    fs::remove_file(pair.agent_copy.join("deep/.gitignore")).unwrap();
    back(&mut both);
    pair.user.write("open.txt", "open\n");
    assert_eq!(both.pull_user_edits().unwrap(), ["open.txt"]);
    back(&mut both);
    assert!(!objects_of(&pair).contains("CANARY"));
    assert!(!pair.agent_copy.join("prod.env").exists() && !pair.agent_copy.join("private").exists());
}

#[test]
fn nested_repos_bring_what_their_git_does_not_ignore() {
    let user = Fixture::new();
    for path in ["sub/tracked", "sub/prod.env", "sub/new", "sub/in/deep", "sub/in/private"] {
        user.write(path, "x\n");
    }
    user.write("sub/.gitignore", "prod.env\n");
    user.write("sub/in/.gitignore", "private\n");
    for (top, what) in [("sub/in", "deep"), ("sub", "tracked")] {
        let top = user.top.join(top);
        git(&top, &["init", "-q", "-b", "main"]);
        git(&top, &["add", what, ".gitignore"]);
        git(&top, &["commit", "-qm", "inner"]);
    }
    let pair = Pair::of(user, None);
    let has = |path: &str| pair.agent_copy.join(path).exists();
    assert!(has("sub/tracked") && has("sub/new") && has("sub/in/deep"));
    assert!(!has("sub/prod.env") && !has("sub/in/private") && !has("sub/.git"));
}
