//! The code host that is a folder.

use crate::suite;
use crate::suite::{Host, Work, new_pr};
use ralph_loop_domain::ports::{CiState, Comment, Forge, ForgeError, Lease, PrState, PushEnd, ReviewState};
use ralph_loop_forge::LocalForge;

struct Local {
    _dir: tempfile::TempDir,
    forge: LocalForge,
}

impl Local {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let forge = LocalForge::open(&dir.path().join("forge"), &suite::vars()).unwrap();
        Self { _dir: dir, forge }
    }
}

impl Host for Local {
    fn forge(&self) -> &dyn Forge {
        &self.forge
    }
    fn review(&self, number: u64, author: &str, state: ReviewState, body: &str, lines: &[(&str, u64, &str)]) {
        self.forge.review(number, author, state, body, lines).unwrap();
    }
    fn dismiss(&self, number: u64, author: &str) {
        self.forge.dismiss_review(number, author).unwrap();
    }
    fn close(&self, number: u64) {
        self.forge.close(number).unwrap();
    }
    fn merge(&self, number: u64) {
        self.forge.merge(number).unwrap();
    }
    fn set_check(&self, commit: &str, name: &str, state: CiState, summary: &str, log: Option<&str>) {
        self.forge.set_check(commit, name, state, summary, log).unwrap();
    }
    fn add_issue(&self, title: &str, body: &str, labels: &[&str]) -> u64 {
        self.forge.add_issue(title, body, labels).unwrap()
    }
    fn say(&self, number: u64, author: &str, body: &str) {
        self.forge.say(number, author, body).unwrap();
    }
    fn comments(&self, number: u64) -> Vec<Comment> {
        self.forge.comments(number).unwrap()
    }
    fn labels(&self, number: u64) -> Vec<String> {
        self.forge.labels(number).unwrap()
    }
}

#[test]
fn it_does_what_every_code_host_does() {
    suite::all(Local::new);
}

fn with_pr() -> (Local, Work, u64) {
    let (host, work) = (Local::new(), Work::new());
    host.forge.seed(&work.top, "main").unwrap();
    work.branch(&host.forge.remote().unwrap(), "one", "one.txt");
    let number = host.forge.open_pr(&new_pr("one", true)).unwrap().number;
    (host, work, number)
}

#[test]
fn edited_files_take_effect() {
    let (host, work, number) = with_pr();
    let root = host.forge.root();
    let reviews = root.join(format!("prs/{number}/reviews"));
    std::fs::create_dir_all(&reviews).unwrap();
    let review =
        r#"{"author":"ann","state":"changes_requested","comments":[{"path":"one.txt","body":"why?"}]}"#;
    std::fs::write(reviews.join("ann.json"), review).unwrap();
    std::fs::write(reviews.join(".ann.json.swp"), "not for us").unwrap();
    assert_eq!(host.forge.reviews(number).unwrap()[0].state, ReviewState::ChangesRequested);
    assert_eq!(host.forge.review_comments(number).unwrap()[0].body, "why?");
    let checks = root.join("checks").join(work.head());
    std::fs::create_dir_all(&checks).unwrap();
    std::fs::write(checks.join("test.json"), r#"{"state":"failed"}"#).unwrap();
    std::fs::write(checks.join("test.log"), "boom\n").unwrap();
    let check = host.forge.checks(&work.head()).unwrap().remove(0);
    assert_eq!((check.name.as_str(), check.state), ("test", CiState::Failed));
    assert_eq!(host.forge.check_log(&check, 100).unwrap(), "boom\n");
    let file = root.join(format!("prs/{number}.json"));
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace(r#""state": "open""#, r#""state": "closed", "note": "no time""#))
        .unwrap();
    assert_eq!(host.forge.pr(number).unwrap().state, PrState::Closed);
    host.forge.reopen(number).unwrap();
    assert!(std::fs::read_to_string(&file).unwrap().contains("no time"), "what people add stays");
    std::fs::write(&file, "{ half").unwrap();
    let error = host.forge.pr(number).unwrap_err();
    assert!(error.to_string().contains("1.json") && error.hint().unwrap().contains("mend"), "{error}");
}

#[test]
fn a_log_outside_the_forge_is_not_read() {
    let (host, work, _) = with_pr();
    host.forge.set_check(&work.head(), "test", CiState::Failed, "sum", Some("log")).unwrap();
    let mut check = host.forge.checks(&work.head()).unwrap().remove(0);
    std::fs::write(host.forge.root().join("secret.log"), "secret").unwrap();
    check.url = Some(format!("file://{}/checks/../secret.json", host.forge.root().display()));
    assert_eq!(host.forge.check_log(&check, 100).unwrap(), "sum");
}

#[test]
fn merging_with_plain_git_is_seen() {
    let (host, work, number) = with_pr();
    let remote = host.forge.remote().unwrap();
    assert_eq!(work.push(&remote, "main", Lease::FastForward), PushEnd::Pushed);
    assert_eq!(host.forge.pr(number).unwrap().state, PrState::Merged);
    host.forge.merge(number).unwrap();
    assert_eq!(host.forge.pr_files(number).unwrap(), ["one.txt"]);
}

#[test]
fn diverged_branches_are_merged_and_conflicts_reported() {
    let (host, work, one) = with_pr();
    let remote = host.forge.remote().unwrap();
    work.git(&["checkout", "-q", "-B", "two", "main"]);
    work.commit("one.txt", "other\n");
    assert_eq!(work.push(&remote, "two", Lease::Absent), PushEnd::Pushed);
    work.branch(&remote, "three", "three.txt");
    let two = host.forge.open_pr(&new_pr("two", false)).unwrap().number;
    let three = host.forge.open_pr(&new_pr("three", false)).unwrap().number;
    host.forge.merge(one).unwrap();
    host.forge.merge(three).unwrap();
    assert_eq!(host.forge.pr(three).unwrap().state, PrState::Merged);
    let error = host.forge.merge(two).unwrap_err();
    assert!(error.to_string().contains("conflict"), "{error}");
    assert_eq!(host.forge.pr(two).unwrap().state, PrState::Open);
    host.forge.close(two).unwrap();
    assert!(matches!(host.forge.merge(two), Err(ForgeError::Refused { .. })));
}

#[test]
fn concurrent_creations_get_different_numbers() {
    let (host, work, first) = with_pr();
    let remote = host.forge.remote().unwrap();
    let names: Vec<String> = (0..6).map(|n| format!("b{n}")).collect();
    for name in &names {
        work.branch(&remote, name, &format!("{name}.txt"));
    }
    let root = host.forge.root();
    let mut numbers: Vec<u64> = std::thread::scope(|scope| {
        // Two of each branch: only one pull request may result.
        let threads: Vec<_> = names
            .iter()
            .chain(&names)
            .map(|name| {
                scope.spawn(move || {
                    LocalForge::open(root, &suite::vars())
                        .unwrap()
                        .open_pr(&new_pr(name, false))
                        .unwrap()
                        .number
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers, (first + 1..=first + 6).collect::<Vec<u64>>());
}
