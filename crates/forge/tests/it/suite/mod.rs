//! What every code host must do; and a user's repo to push from.
#![allow(dead_code, reason = "every test file uses its own part of it")]
#![allow(clippy::disallowed_methods, reason = "tests set repos up with plain git")]

pub mod github;

use ralph_loop_domain::ports::{
    CiState, Comment, Forge, ForgeError, GitRemote, Lease, NewPr, NewStatus, PrChange, PrState,
    Publisher as _, Push, PushEnd, ReviewState,
};
use ralph_loop_git::{CommitIdentity, GitWorkspace, Repo, WorkspaceOptions};
use ralph_loop_protocol::id::{CommitId, RunId};
use std::path::PathBuf;
use std::process::Command;

pub use ralph_loop_testkit::vars;

/// A code host with its users.
pub trait Host {
    fn forge(&self) -> &dyn Forge;
    fn review(&self, number: u64, author: &str, state: ReviewState, body: &str, lines: &[(&str, u64, &str)]);
    fn dismiss(&self, number: u64, author: &str);
    fn close(&self, number: u64);
    fn merge(&self, number: u64);
    fn set_check(&self, commit: &str, name: &str, state: CiState, summary: &str, log: Option<&str>);
    fn add_issue(&self, title: &str, body: &str, labels: &[&str]) -> u64;
    fn say(&self, number: u64, author: &str, body: &str);
    fn comments(&self, number: u64) -> Vec<Comment>;
    fn labels(&self, number: u64) -> Vec<String>;
}

/// A user's repo.
pub struct Work {
    _dir: tempfile::TempDir,
    pub top: PathBuf,
}

impl Work {
    pub fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap().join("repo");
        std::fs::create_dir(&top).unwrap();
        let work = Self { _dir: dir, top };
        work.git(&["init", "-q", "-b", "main"]);
        work.commit("a.txt", "a\n");
        work
    }

    pub fn git(&self, args: &[&str]) -> String {
        let output = Command::new("git")
            .args(args)
            .current_dir(&self.top)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_AUTHOR_NAME", "User")
            .env("GIT_AUTHOR_EMAIL", "user@example.com")
            .env("GIT_COMMITTER_NAME", "User")
            .env("GIT_COMMITTER_EMAIL", "user@example.com")
            .output()
            .unwrap();
        assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
    }

    /// Commits a file; returns the commit.
    pub fn commit(&self, path: &str, text: &str) -> String {
        std::fs::write(self.top.join(path), text).unwrap();
        self.git(&["add", "-A"]);
        self.git(&["commit", "-qm", path]);
        self.head()
    }

    pub fn head(&self) -> String {
        self.git(&["rev-parse", "HEAD"])
    }

    pub fn workspace(&self) -> GitWorkspace {
        let options = WorkspaceOptions::new(CommitIdentity::new("Ralph", "ralph@localhost"));
        GitWorkspace::new(Repo::discover(&vars(), &self.top).unwrap(), RunId::from("r1"), options).unwrap()
    }

    /// Pushes `HEAD` as a branch.
    pub fn push(&self, remote: &GitRemote, branch: &str, lease: Lease) -> PushEnd {
        let commit = CommitId::new(self.head());
        let push = Push { commit, name: format!("refs/heads/{branch}"), lease };
        self.workspace().push(remote, &[push]).unwrap()
    }

    /// Commits a file on a new branch and pushes it; returns the commit.
    pub fn branch(&self, remote: &GitRemote, branch: &str, path: &str) -> String {
        self.git(&["checkout", "-q", "-B", branch, "main"]);
        let commit = self.commit(path, &format!("{branch}\n"));
        assert_eq!(self.push(remote, branch, Lease::Absent), PushEnd::Pushed);
        commit
    }
}

pub fn new_pr(head: &str, draft: bool) -> NewPr {
    NewPr {
        head: head.into(),
        base: "main".into(),
        title: format!("Work of {head}"),
        body: "Body\n\n| a | b |".into(),
        draft,
    }
}

fn with_main(host: &dyn Host) -> (Work, GitRemote) {
    let (work, remote) = (Work::new(), host.forge().remote().unwrap());
    assert_eq!(work.push(&remote, "main", Lease::Absent), PushEnd::Pushed);
    (work, remote)
}

/// Every behavior, on hosts created by `make`.
pub fn all<H: Host>(make: impl Fn() -> H) {
    for behaviour in [life, found_again, comments, checks, reviews, files, refusals, issues] {
        behaviour(&make());
    }
}

fn life(host: &dyn Host) {
    let (work, remote) = with_main(host);
    let forge = host.forge();
    assert!(forge.access().unwrap().push);
    assert_eq!(forge.default_branch().unwrap(), "main");
    assert_eq!(forge.find_pr("ralph/t/one").unwrap(), None);
    let commit = work.branch(&remote, "ralph/t/one", "one.txt");
    let pr = forge.open_pr(&new_pr("ralph/t/one", true)).unwrap();
    assert_eq!((pr.state, pr.draft, pr.head_commit.as_str()), (PrState::Open, true, commit.as_str()));
    assert_eq!((pr.head.as_str(), pr.base.as_str()), ("ralph/t/one", "main"));
    assert_eq!(pr.title, "Work of ralph/t/one");
    assert!(pr.body.contains("| a | b |") && pr.url.contains("://"), "{pr:?}");
    // A push moves the pull request.
    let commit = work.commit("one.txt", "more\n");
    assert_eq!(work.push(&remote, "ralph/t/one", Lease::FastForward), PushEnd::Pushed);
    assert_eq!(forge.pr(pr.number).unwrap().head_commit, commit);
    let change = PrChange { title: Some("New".into()), body: Some("Other".into()), draft: Some(false) };
    let changed = forge.update_pr(pr.number, &change).unwrap();
    assert_eq!((changed.title.as_str(), changed.body.as_str(), changed.draft), ("New", "Other", false));
    assert_eq!(forge.pr(pr.number).unwrap(), changed);
    assert_eq!(forge.update_pr(pr.number, &PrChange::default()).unwrap(), changed);
    let again = PrChange { draft: Some(true), ..PrChange::default() };
    assert!(forge.update_pr(pr.number, &again).unwrap().draft);
    forge.add_labels(pr.number, &["ralph".into(), "x".into()]).unwrap();
    forge.add_labels(pr.number, &["x".into()]).unwrap();
    assert_eq!(host.labels(pr.number), ["ralph", "x"]);
    host.merge(pr.number);
    let merged = forge.pr(pr.number).unwrap();
    assert_eq!((merged.state, merged.head_commit.as_str()), (PrState::Merged, commit.as_str()));
    assert_eq!(forge.pr_files(pr.number).unwrap(), ["one.txt"]);
    assert_eq!(forge.open_prs().unwrap(), []);
}

fn found_again(host: &dyn Host) {
    let (work, remote) = with_main(host);
    let forge = host.forge();
    work.branch(&remote, "one", "one.txt");
    work.branch(&remote, "two", "two.txt");
    let one = forge.open_pr(&new_pr("one", false)).unwrap();
    assert_eq!(forge.open_pr(&new_pr("one", true)).unwrap(), one, "the open one is found");
    let two = forge.open_pr(&new_pr("two", false)).unwrap();
    let open: Vec<u64> = forge.open_prs().unwrap().iter().map(|pr| pr.number).collect();
    assert_eq!(open, [two.number, one.number], "newest first");
    host.close(one.number);
    assert_eq!(forge.find_pr("one").unwrap().unwrap().state, PrState::Closed, "the latest");
    let new = forge.open_pr(&new_pr("one", false)).unwrap();
    assert!(new.number > two.number, "a closed one is not used again");
    assert_eq!(forge.find_pr("one").unwrap().unwrap(), new);
    host.close(new.number);
    assert_eq!(forge.find_pr("one").unwrap().unwrap().number, new.number);
}

fn comments(host: &dyn Host) {
    let (work, remote) = with_main(host);
    let forge = host.forge();
    work.branch(&remote, "one", "one.txt");
    let number = forge.open_pr(&new_pr("one", false)).unwrap().number;
    host.say(number, "ann", "hello");
    let first = forge.comment(number, "r1:progress", "1 of 3").unwrap();
    let other = forge.comment(number, "r1:end", "the end").unwrap();
    let again = forge.comment(number, "r1:progress", "2 of 3").unwrap();
    assert_eq!((again.id, again.body.as_str()), (first.id, "2 of 3"));
    assert_ne!(other.id, first.id);
    let said: Vec<(String, String)> = host
        .comments(number)
        .into_iter()
        .map(|c| (c.author, c.body.split("\n\n<!--").next().unwrap().into()))
        .collect();
    let me = forge.access().unwrap().login;
    let expected = [("ann", "hello"), (&me, "2 of 3"), (&me, "the end")];
    assert_eq!(said, expected.map(|(a, b)| (a.to_owned(), b.to_owned())));
    // A quoted comment with its mark stays unchanged.
    host.say(number, "ann", "> 2 of 3\n\n<!-- ralph-mark: r1:other -->");
    let mine = forge.comment(number, "r1:other", "mine").unwrap();
    assert_eq!((host.comments(number).len(), mine.author), (4 + 1, me));
}

fn checks(host: &dyn Host) {
    let (work, remote) = with_main(host);
    let forge = host.forge();
    let commit = work.branch(&remote, "one", "one.txt");
    assert_eq!(forge.checks(&commit).unwrap(), [], "a commit without checks has none");
    let states = || {
        let mut found: Vec<(String, CiState)> =
            forge.checks(&commit).unwrap().into_iter().map(|c| (c.name, c.state)).collect();
        found.sort_by(|a, b| a.0.cmp(&b.0));
        found
    };
    host.set_check(&commit, "test", CiState::Pending, "", None);
    assert_eq!(states(), [("test".to_owned(), CiState::Pending)]);
    host.set_check(&commit, "lint", CiState::Passed, "fine", None);
    host.set_check(&commit, "test", CiState::Failed, "2 of 9 fail", Some("line 1\nassertion failed: äöü\n"));
    let status = NewStatus {
        state: CiState::Pending,
        context: "ralph/proof".into(),
        description: "proving".into(),
        url: None,
    };
    forge.set_status(&commit, &status).unwrap();
    forge.set_status(&commit, &NewStatus { state: CiState::Passed, ..status }).unwrap();
    let expected = [("lint", CiState::Passed), ("ralph/proof", CiState::Passed), ("test", CiState::Failed)];
    assert_eq!(states(), expected.map(|(name, state)| (name.to_owned(), state)));
    let all = forge.checks(&commit).unwrap();
    let of = |name: &str| all.iter().find(|c| c.name == name).unwrap();
    assert!(of("test").summary.contains("2 of 9 fail"), "{:?}", of("test"));
    let log = forge.check_log(of("test"), 10_000).unwrap();
    assert!(log.contains("assertion failed: äöü"), "{log}");
    assert!(forge.check_log(of("test"), 7).unwrap().len() <= 7);
    assert!(forge.check_log(of("ralph/proof"), 100).unwrap().contains("proving"));
    // The same check again, for the same commit: the latest counts.
    host.set_check(&commit, "test", CiState::Passed, "all fine", None);
    assert!(states().iter().all(|(_, state)| *state == CiState::Passed), "{:?}", states());
    assert_eq!(forge.checks(&work.git(&["rev-parse", "main"])).unwrap(), [], "another commit has none");
}

fn reviews(host: &dyn Host) {
    let (work, remote) = with_main(host);
    let forge = host.forge();
    let commit = work.branch(&remote, "one", "one.txt");
    let number = forge.open_pr(&new_pr("one", false)).unwrap().number;
    assert_eq!(forge.reviews(number).unwrap(), []);
    assert_eq!(forge.review_comments(number).unwrap(), []);
    let told = || -> Vec<(String, ReviewState)> {
        forge.reviews(number).unwrap().into_iter().map(|r| (r.author, r.state)).collect()
    };
    host.review(number, "ann", ReviewState::ChangesRequested, "please", &[("one.txt", 1, "not so")]);
    host.review(number, "bob", ReviewState::Commented, "hm", &[]);
    assert_eq!(
        told(),
        [("ann".into(), ReviewState::ChangesRequested), ("bob".into(), ReviewState::Commented)]
    );
    assert_eq!(forge.reviews(number).unwrap()[0].commit.as_deref(), Some(commit.as_str()));
    let said = forge.review_comments(number).unwrap();
    let said: Vec<_> =
        said.iter().map(|c| (c.author.as_str(), c.body.as_str(), c.path.as_deref(), c.line)).collect();
    assert_eq!(
        said,
        [
            ("ann", "please", None, None),
            ("ann", "not so", Some("one.txt"), Some(1)),
            ("bob", "hm", None, None)
        ]
    );
    host.review(number, "ann", ReviewState::Approved, "", &[]);
    host.review(number, "ann", ReviewState::Commented, "nice", &[]);
    assert!(told().contains(&("ann".into(), ReviewState::Approved)), "{:?}", told());
    assert_eq!(forge.dismissed_approvals(number).unwrap(), []);
    host.dismiss(number, "ann");
    let taken = forge.dismissed_approvals(number).unwrap();
    let head = forge.pr(number).unwrap().head_commit;
    assert_eq!(
        taken.iter().map(|t| (t.author.as_str(), t.commit.as_deref())).collect::<Vec<_>>(),
        [("ann", Some(head.as_str()))]
    );
    assert!(!told().iter().any(|(_, state)| *state == ReviewState::Approved), "{:?}", told());
    let me = forge.access().unwrap().login;
    host.review(number, &me, ReviewState::Approved, "", &[]);
    assert!(
        !told().iter().any(|(_, state)| *state == ReviewState::Approved),
        "authors can't approve their own work"
    );
}

fn files(host: &dyn Host) {
    let (work, remote) = with_main(host);
    work.git(&["checkout", "-q", "-b", "one"]);
    work.git(&["mv", "a.txt", "moved.txt"]);
    work.commit("ü b.txt", "b\n");
    assert_eq!(work.push(&remote, "one", Lease::Absent), PushEnd::Pushed);
    let pr = host.forge().open_pr(&new_pr("one", false)).unwrap();
    // Later changes of the base aren't part of it.
    work.git(&["checkout", "-q", "main"]);
    work.commit("later.txt", "x\n");
    assert_eq!(work.push(&remote, "main", Lease::FastForward), PushEnd::Pushed);
    let mut files = host.forge().pr_files(pr.number).unwrap();
    files.sort();
    assert_eq!(files, ["a.txt", "moved.txt", "ü b.txt"]);
}

fn refusals(host: &dyn Host) {
    let (work, remote) = with_main(host);
    let forge = host.forge();
    let error = forge.open_pr(&new_pr("nowhere", false)).unwrap_err();
    assert!(matches!(error, ForgeError::Refused { .. }), "{error:?}");
    assert!(error.hint().is_some() && !error.is_temporary());
    assert_eq!(work.push(&remote, "same", Lease::Absent), PushEnd::Pushed);
    let error = forge.open_pr(&new_pr("same", false)).unwrap_err();
    assert!(error.to_string().to_lowercase().contains("no commits between"), "{error}");
    for error in
        [forge.pr(77).unwrap_err(), forge.issue(77).unwrap_err(), forge.comment(77, "m", "b").unwrap_err()]
    {
        assert!(matches!(error, ForgeError::NotFound { .. }), "{error:?}");
        assert!(error.hint().is_some_and(|hint| !hint.is_empty()));
    }
}

fn issues(host: &dyn Host) {
    let (work, remote) = with_main(host);
    let number = host.add_issue("Add a thing", "Please.\n\n- [ ] thing", &["bug"]);
    let issue = host.forge().issue(number).unwrap();
    assert_eq!((issue.number, issue.title.as_str(), issue.closed), (number, "Add a thing", false));
    assert_eq!(
        (issue.body.as_str(), issue.labels.as_slice()),
        ("Please.\n\n- [ ] thing", &["bug".to_owned()][..])
    );
    host.forge().comment(number, "r1", "on it").unwrap();
    host.forge().comment(number, "r1", "done").unwrap();
    assert_eq!(host.comments(number).len(), 1);
    work.branch(&remote, "one", "one.txt");
    assert_eq!(host.forge().open_pr(&new_pr("one", false)).unwrap().number, number + 1, "numbers are shared");
}
