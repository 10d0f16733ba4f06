//! Plays a trajectory in a real git repo, and reads from it what the engine would: trees, blobs, patches, signatures,
//! test counts, plans and calls.
#![allow(clippy::disallowed_methods, reason = "starts git")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a fixture fails by panicking")]

use super::runner::Ecosystem;
use super::scene::{Scene, Step};
use ralph_loop_domain::stuck::patch;
use ralph_loop_domain::stuck::{Ending, Evidence, SessionCall, SessionWatch, Trace, failure, plan};
use ralph_loop_proof::report::scanner::TestScanner;
use ralph_loop_proof::report::{environment, failing, numbers};
use ralph_loop_protocol::event::{FileChange, SessionEnd};
use ralph_loop_protocol::money::Usd;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

/// What another detector sees: actions with their observations, and messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seen {
    /// An action (its thought included) and its observation.
    Act {
        /// Tool, input and thought.
        action: String,
        /// What came back.
        observation: String,
        /// Whether it is an error.
        failed: bool,
    },
    /// Words without an action.
    Message,
}

/// One played iteration.
#[derive(Debug, Clone)]
pub struct Played {
    /// What the rules of ours see.
    pub trace: Trace,
    /// What a detector of actions sees.
    pub seen: Vec<Seen>,
}

/// Plays every step of a scene.
pub fn play(scene: &Scene) -> Vec<Played> {
    let mut rng = scene.rng.clone();
    let other = rng.chance(50);
    let mut before = start(scene);
    let mut output = String::new();
    let mut played: Vec<Played> = Vec::new();
    for (n, (step, diff)) in scene.steps.iter().zip(commits(scene)).enumerate() {
        let edited = changes(&before, &step.files).map(|(path, _)| path.clone()).collect::<Vec<_>>();
        before.clone_from(&step.files);
        // The engine runs a verifier again only on another tree.
        if n == 0 || !diff.files.is_empty() {
            output = step.check.print(scene.eco, other, &mut rng);
        }
        let seen = seen(step, &edited, scene.eco, &output);
        played.push(Played { trace: trace(n, step, scene.eco, diff, &output), seen });
    }
    played
}

/// The project as it stands before the first iteration.
fn start(scene: &Scene) -> BTreeMap<String, String> {
    let files = scene.steps.first().map(|s| s.files.keys().cloned().collect::<Vec<_>>()).unwrap_or_default();
    files.into_iter().map(|path| (path, "start\n".to_owned())).collect()
}

fn changes<'a>(
    before: &'a BTreeMap<String, String>,
    after: &'a BTreeMap<String, String>,
) -> impl Iterator<Item = (&'a String, &'a String)> {
    after.iter().filter(|(path, text)| before.get(*path) != Some(text))
}

/// Commits the project and every iteration into a new repo, and reads what each of them changed. One stream in and one log
/// out: a process for each commit would take minutes.
fn commits(scene: &Scene) -> Vec<Diff> {
    // In memory where that is possible: hundreds of repos are slow on a disk.
    let mut builder = tempfile::Builder::new();
    builder.prefix("ralph-trajectory-");
    let folder = builder.tempdir_in("/dev/shm").or_else(|_| builder.tempdir()).expect("a temporary folder");
    let dir = folder.path();
    git(dir, &["init", "-q", "-b", "main", "--template="], "");
    let mut stream = String::new();
    let mut before = BTreeMap::new();
    let start = start(scene);
    for files in std::iter::once(&start).chain(scene.steps.iter().map(|s| &s.files)) {
        stream.push_str("commit refs/heads/main\ncommitter t <t@example.com> 1700000000 +0000\ndata 2\nit\n");
        for (path, text) in changes(&before, files) {
            stream.push_str(&format!("M 100644 inline {path}\ndata {}\n{text}\n", text.len()));
        }
        before.clone_from(files);
    }
    git(dir, &["fast-import", "--quiet"], &stream);
    let format =
        ["log", "--reverse", "--no-renames", "--no-abbrev", "--raw", "--numstat", "-p", "--format=%x00%T"];
    let log = git(dir, &format, "");
    log.split('\0').skip(2).map(Diff::read).collect()
}

fn git(dir: &Path, args: &[&str], input: &str) -> String {
    use std::io::Write as _;
    let mut child = Command::new("git")
        .args(args)
        .current_dir(dir)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("git can be started");
    child.stdin.take().expect("a pipe").write_all(input.as_bytes()).expect("git reads");
    let done = child.wait_with_output().expect("git ends");
    assert!(done.status.success(), "git {args:?}");
    String::from_utf8_lossy(&done.stdout).into_owned()
}

/// What git says of one iteration.
struct Diff {
    tree: String,
    files: Vec<FileChange>,
    patch: String,
}

impl Diff {
    fn read(text: &str) -> Self {
        let (tree, rest) = text.split_once('\n').unwrap_or((text, ""));
        let (head, patch) = match rest.find("diff --git ") {
            Some(at) => rest.split_at(at),
            None => (rest, ""),
        };
        let mut files = Vec::new();
        let mut counts = BTreeMap::new();
        for line in head.lines() {
            if let Some(raw) = line.strip_prefix(':') {
                let (meta, path) = raw.split_once('\t').expect("a raw line");
                let words: Vec<&str> = meta.split(' ').collect();
                files.push(FileChange {
                    path: path.to_owned(),
                    status: words[4].chars().next().unwrap_or('M'),
                    added: None,
                    removed: None,
                    blob: Some(words[3].to_owned()),
                });
            } else if let [added, removed, path] = line.split('\t').collect::<Vec<_>>().as_slice() {
                counts.insert((*path).to_owned(), (added.parse::<u64>().ok(), removed.parse::<u64>().ok()));
            }
        }
        for file in &mut files {
            (file.added, file.removed) = counts.get(&file.path).copied().unwrap_or_default();
        }
        Self { tree: tree.to_owned(), files, patch: patch.to_owned() }
    }
}

fn trace(n: usize, step: &Step, eco: Ecosystem, diff: Diff, output: &str) -> Trace {
    let changed = !diff.files.is_empty();
    let passes = step.check.passes();
    let refused =
        step.refused.as_ref().map(|why| ralph_loop_domain::state::proof_failure(std::slice::from_ref(why)));
    let failure = match (&step.end, passes) {
        (_, true) if refused.is_some() => refused,
        (_, false) => Some(failure::signature(eco.command(), Some(1), output)),
        (SessionEnd::Completed | SessionEnd::Stopped { .. }, true) => None,
        (end, true) => Some(failure::signature(end.word(), None, end.reason().unwrap_or(""))),
    };
    let mut scanner = TestScanner::default();
    scanner.feed(output.as_bytes());
    let mut watch = SessionWatch::default();
    for call in &step.calls {
        watch.call(SessionCall::of(&call.name, &call.input, Some(&call.result), call.failed));
    }
    for _ in 0..step.monologue {
        watch.message("words");
    }
    let failing_output = if passes { "" } else { output };
    let tests = scanner.finish();
    let read = |text: &str| if tests.is_none() { numbers::measured(text) } else { Vec::new() };
    let measured = read(failing_output);
    let again = step.again.as_deref().map_or_else(|| measured.clone(), read);
    let unsteady = measured.iter().filter(|n| !again.contains(n)).map(|n| n.key).collect();
    let code = if output.contains(": not found") { 127 } else { 1 };
    Trace {
        failure,
        lines: diff.files.iter().map(|f| f.added.unwrap_or(0) + f.removed.unwrap_or(0)).sum(),
        changed,
        files: Trace::files_of(&diff.files),
        sizes: Trace::sizes_of(&diff.files),
        agent: Some(step.agent.into()),
        ending: Ending::of(&step.end, &step.message, changed),
        tests,
        cost: Some(Usd::from_dollars(step.cost)),
        denials: step.denials,
        evidence: Evidence {
            failing: failing::failing_tests(failing_output),
            problems: failing::problems(failing_output),
            gap: failing::gap(failing_output),
            met: step.met,
            plan: plan::shingles(&step.message),
            patch: changed.then(|| patch::sketch(&diff.patch)),
            session: watch.finish(),
            environment: environment::fault(Some(code), failing_output, &|_| false).map(|f| f.sentence()),
            numbers: measured,
            unsteady,
            ..Evidence::default()
        },
        ..Trace::new(n as u32 + 1, diff.tree.as_str().into())
    }
}

fn seen(step: &Step, changed: &[String], eco: Ecosystem, output: &str) -> Vec<Seen> {
    let mut seen: Vec<Seen> = step
        .calls
        .iter()
        .map(|c| Seen::Act {
            action: format!("{} {}", c.name, c.input),
            observation: c.result.clone(),
            failed: c.failed,
        })
        .collect();
    for path in changed {
        let text = step.files.get(path).cloned().unwrap_or_default();
        seen.push(Seen::Act {
            action: format!("edit {path} {text} {}", step.message),
            observation: "written".into(),
            failed: false,
        });
    }
    if step.calls.is_empty() && step.monologue == 0 && step.end == SessionEnd::Completed {
        seen.push(Seen::Act {
            action: format!("run {} {}", eco.command(), step.message),
            observation: output.to_owned(),
            failed: !step.check.passes(),
        });
    }
    seen.extend((0..step.monologue).map(|_| Seen::Message));
    seen
}
