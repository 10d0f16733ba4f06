use ralph_loop_protocol::display::text::count;
use ralph_loop_protocol::event::{CheckResult, TestsQuestion};
use ralph_loop_protocol::proof::level::{HarnessChange, HarnessSource, NAMED_ORIGINALS, ProofLevel};
use ralph_loop_protocol::proof::{Difference, DifferenceKind, Suppression};
use ralph_loop_task::config::{RequiredProof, TestsPolicy};
use std::collections::{BTreeMap, BTreeSet};

const GREEN_BEFORE: &str =
    "no check failed without the work; a new test that fails without it would prove it";
/// Files named in a reason.
const FILES_SHOWN: usize = 3;

/// Names of tests that a difference lists.
const NAMES_MAX: usize = 50;

/// A tree that the checks run on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tree {
    /// Run B: the commit.
    Commit,
    /// Run A: the commit with the original harness.
    OriginalHarness,
    /// Run A again, keeping the run's version of scripts that only the watcher or the task names.
    OriginalTests,
    /// Run C: the original product with the new harness.
    OriginalProduct,
}

/// The results of checking one tree.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TreeRun {
    pub results: Vec<CheckResult>,
    /// Other failures: setup, a check that changed the files it judges.
    pub problems: Vec<String>,
}

impl TreeRun {
    fn result(&self, name: &str) -> Option<&CheckResult> {
        self.results.iter().find(|result| result.name == name)
    }

    fn passes(&self, name: &str) -> bool {
        self.result(name).is_some_and(|result| result.passed)
    }
}

#[derive(Debug, Clone, Default)]
pub struct ProofState {
    /// What a run may do to the harness.
    pub policy: TestsPolicy,
    /// The level the task requires.
    pub require: Option<RequiredProof>,
    pub required: Vec<String>,
    /// Results on the original tree; `None` if unknown or not comparable.
    pub baseline: Option<Vec<CheckResult>>,
    /// Checks that failed there twice, and not because of the environment.
    pub red: BTreeSet<String>,
    /// Whether the commit changes anything.
    pub has_diff: bool,
    /// Every changed file.
    pub changed: Vec<String>,
    /// Changes of the harness.
    pub harness: Vec<HarnessChange>,
    /// Suppression comments added by the run.
    pub suppressions: Vec<Suppression>,
    /// What forbids a pass in any case: a changed protected path, a forged checkout.
    pub obstacles: Vec<String>,
    /// What ran so far.
    pub runs: BTreeMap<Tree, TreeRun>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// Run the checks on this tree.
    RunChecks(Tree),
    Done(Box<Verdict>),
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verdict {
    /// The level; `None` if it failed or needs your approval.
    pub level: Option<ProofLevel>,
    /// What was red and is green.
    pub difference: Vec<Difference>,
    /// Why the level isn't higher.
    pub reason: Option<String>,
    /// Why it failed.
    pub failed: Vec<String>,
    /// The question that needs your approval.
    pub question: Option<TestsQuestion>,
}

/// The result with the original harness.
enum Originals<'a> {
    /// The run left the harness alone.
    Untouched,
    /// The original harness passes on the work.
    Pass(&'a TreeRun),
    /// It passes if scripts that may be the product stay as the run made them.
    PassWithScripts(&'a TreeRun),
    /// It passes only with the run's build files or settings, and nothing that passed before fails without them.
    Undecided,
    /// There were no tests that could fail.
    None,
    /// The original tests can't be built or collected with the work.
    DoNotFit,
    /// An original test ran and failed.
    Fail(&'a TreeRun),
}

/// The next tree to check, or the result.
pub fn next(state: &ProofState) -> Next {
    match step(state) {
        Ok(verdict) => Next::Done(Box::new(verdict)),
        Err(tree) => Next::RunChecks(tree),
    }
}

fn step(state: &ProofState) -> Result<Verdict, Tree> {
    let mut failed = state.obstacles.clone();
    if !state.has_diff {
        failed.push("nothing was changed, so nothing is done".to_owned());
    }
    if state.required.is_empty() {
        failed.push("no check is required, so nothing can be proven".to_owned());
    }
    if state.policy == TestsPolicy::Frozen {
        let undo =
            |change: &HarnessChange| format!("{}, but tests are frozen: {}", change.line(), change.cure());
        failed.extend(state.harness.iter().map(undo));
    }
    if !failed.is_empty() {
        return Ok(failure(failed));
    }
    let commit = state.run(Tree::Commit)?;
    failed.extend(commit.problems.iter().cloned());
    for name in &state.required {
        match commit.result(name) {
            None if failed.is_empty() => failed.push(format!("{name}: it has no result")),
            Some(result) if !result.passed => {
                failed.push(format!("{name}: {}", result.why.as_deref().unwrap_or("failed")));
            }
            _ => {}
        }
    }
    // Changed tests explain another count; then the original tests are counted.
    if failed.is_empty() && state.harness.is_empty() {
        failed.extend(fewer_tests(state, commit));
    }
    if !failed.is_empty() {
        return Ok(failure(failed));
    }
    let originals = originals(state, commit)?;
    let verdict = match originals {
        Originals::Untouched => match state.red_to_green(commit) {
            difference if difference.is_empty() => state.no_difference(commit),
            difference => proven(ProofLevel::Independent, difference),
        },
        Originals::Pass(run) => match state.red_to_green(run) {
            difference if difference.is_empty() => by_new_tests(state, commit)?,
            difference => proven(ProofLevel::Independent, difference),
        },
        Originals::PassWithScripts(run) => {
            let verdict = match state.red_to_green(run) {
                difference if difference.is_empty() => by_new_tests(state, commit)?,
                difference => proven(ProofLevel::OwnTests, difference),
            };
            match verdict.level {
                Some(ProofLevel::OwnTests) => Verdict { reason: Some(state.scripts()), ..verdict },
                _ => verdict,
            }
        }
        Originals::Undecided => unverified(&format!(
            "without the run's {}, the checks fail as before; such files may be the product or decide the checks",
            names(state.harness.iter().filter(|change| state.keeps(change)))
        )),
        Originals::None => by_new_tests(state, commit)?,
        Originals::DoNotFit | Originals::Fail(_) if state.policy == TestsPolicy::Free => {
            by_new_tests(state, commit)?
        }
        Originals::DoNotFit => unverified("the original tests don't fit the work"),
        Originals::Fail(run) => {
            let failing = run.results.iter().filter(|result| !result.passed).cloned().collect();
            let changed = state.harness.clone();
            let question = TestsQuestion { changed, failing, why: run.problems.clone() };
            return Ok(Verdict {
                failed: question.reasons(),
                question: Some(question),
                ..Verdict::default()
            });
        }
    };
    Ok(state.meet(verdict.lowered_by(&state.suppressions)))
}

impl ProofState {
    fn run(&self, tree: Tree) -> Result<&TreeRun, Tree> {
        self.runs.get(&tree).ok_or(tree)
    }

    fn before(&self, name: &str) -> Option<&CheckResult> {
        self.baseline.as_deref()?.iter().find(|result| result.name == name)
    }

    /// Whether run A may keep a change: the file may be part of the product, and nothing that passed before fails
    /// without the change.
    pub fn keeps(&self, change: &HarnessChange) -> bool {
        change.is_soft() || change.describes_product() && !self.loses_originals()
    }

    /// Whether a check or a test that passed before fails with the original harness.
    fn loses_originals(&self) -> bool {
        let Some(run) = self.runs.get(&Tree::OriginalHarness) else { return true };
        run.results.iter().filter(|result| !result.passed).any(|result| {
            self.before(&result.name).is_none_or(|before| {
                let failed = |of: &CheckResult| of.tests.map_or(0, |tests| tests.failed);
                before.passed
                    || failed(result) > failed(before)
                    || result.failing.iter().any(|name| !before.failing.contains(name))
            })
        })
    }

    /// What the work passes only with, besides the product.
    fn scripts(&self) -> String {
        let is_named = |change: &&HarnessChange| change.named && !change.added && !change.may_be_product();
        if self.harness.iter().any(|change| is_named(&change)) {
            let files = names(self.harness.iter().filter(is_named));
            return format!("{NAMED_ORIGINALS}, and the checks fail with the originals: {files}");
        }
        let is_script = |change: &&HarnessChange| change.is_soft() && change.source != HarnessSource::Shadow;
        let scripts = self.harness.iter().filter(is_script);
        let product: Vec<String> =
            scripts.take(FILES_SHOWN).map(|change| format!("\"!{}\"", change.path)).collect();
        let cure = match product.is_empty() {
            true => String::new(),
            false => format!(
                "; if they are your product, set `\"harness\": [{}]` in .ralph/config.json",
                product.join(", ")
            ),
        };
        format!("the run changed scripts that the checks execute{cure}")
    }

    fn executed_before(&self, name: &str) -> u64 {
        self.before(name).and_then(|result| result.tests).map_or(0, |tests| tests.executed())
    }

    /// Why nothing shows a difference.
    fn no_difference(&self, run: &TreeRun) -> Verdict {
        match self.required.iter().any(|name| self.red.contains(name) && run.passes(name)) {
            true => unverified("the failing tests are in files that the run changed"),
            false => unverified(GREEN_BEFORE),
        }
    }

    /// Whether every failing test is in a changed file of the product, according to its runner: examples in documents
    /// and comments. The original harness replaces the other changed files.
    fn changed_its_tests(&self, name: &str) -> bool {
        let failing = self.before(name).map(|result| result.failing.as_slice()).unwrap_or_default();
        let replaced = |path: &String| {
            let whole = |change: &HarnessChange| change.source != HarnessSource::InlineTests;
            self.harness.iter().any(|change| change.path == *path && whole(change))
        };
        let product: Vec<&String> = self.changed.iter().filter(|path| !replaced(path)).collect();
        let is_changed = |test: &String| product.iter().any(|path| is_in_file(test, path));
        !failing.is_empty() && failing.iter().all(is_changed)
    }

    /// Checks that were red and pass in a run, with the tests that failed.
    fn red_to_green(&self, run: &TreeRun) -> Vec<Difference> {
        let green = self.required.iter().filter(|name| self.red.contains(*name) && run.passes(name));
        green
            .filter(|name| !self.changed_its_tests(name))
            .map(|name| {
                let failing = self.before(name).map(|result| result.failing.as_slice()).unwrap_or_default();
                Difference {
                    check: name.clone(),
                    tests: failing.iter().take(NAMES_MAX).cloned().collect(),
                    kind: DifferenceKind::RedToGreen,
                }
            })
            .collect()
    }

    /// Asks the user if the level is lower than required.
    fn meet(&self, verdict: Verdict) -> Verdict {
        let enough = match self.require {
            None => true,
            Some(RequiredProof::OwnTests) => verdict.level >= Some(ProofLevel::OwnTests),
            Some(RequiredProof::Independent) => verdict.level == Some(ProofLevel::Independent),
        };
        let (Some(required), false) = (self.require, enough) else { return verdict };
        let reached = verdict.level.map_or("none", ProofLevel::words);
        let mut why =
            vec![format!("the task requires the level {}; this result is {reached}", required.as_str())];
        why.extend(verdict.reason.clone());
        let question = TestsQuestion { changed: self.harness.clone(), failing: Vec::new(), why };
        Verdict { level: None, failed: question.why.clone(), question: Some(question), ..verdict }
    }
}

/// Whether the work passes with the original harness, or the tree to run next.
fn originals<'a>(state: &'a ProofState, commit: &TreeRun) -> Result<Originals<'a>, Tree> {
    if state.harness.is_empty() {
        return Ok(Originals::Untouched);
    }
    let run = state.run(Tree::OriginalHarness)?;
    if holds(state, run) {
        return Ok(Originals::Pass(run));
    }
    let outcome = refused(state, run);
    let soft: Vec<&HarnessChange> = state.harness.iter().filter(|change| state.keeps(change)).collect();
    // Without a module that the product needs, the original tests can't be loaded. If they load and fail, it only
    // hides an installed one.
    let only_hides = soft.iter().all(|change| change.source == HarnessSource::Shadow && !change.named);
    if soft.is_empty() || only_hides && matches!(outcome, Originals::Fail(_)) {
        return Ok(outcome);
    }
    // If only such files changed, that tree is the commit.
    let again = match soft.len() == state.harness.len() {
        true => state.run(Tree::Commit)?,
        false => state.run(Tree::OriginalTests)?,
    };
    Ok(match holds(state, again) {
        true if soft.iter().all(|change| change.is_soft()) => Originals::PassWithScripts(again),
        true => Originals::Undecided,
        false if again == commit => outcome,
        false => refused(state, again),
    })
}

/// Whether every required check passes in a run, with at least the original number of tests.
fn holds(state: &ProofState, run: &TreeRun) -> bool {
    run.problems.is_empty()
        && state.required.iter().all(|name| run.passes(name))
        && fewer_tests(state, run).is_empty()
}

/// Interprets a failure with the original harness: only an original test that ran and failed blocks.
fn refused<'a>(state: &ProofState, run: &'a TreeRun) -> Originals<'a> {
    let failing: Vec<&CheckResult> = run.results.iter().filter(|result| !result.passed).collect();
    // Without a test report, the exit code alone shows that a check ran: if it passed before, or the run
    // edited it.
    let edited = state.harness.iter().any(|change| !change.added && !change.is_manifest());
    let is_refusal = |result: &&CheckResult| match result.tests {
        Some(tests) => tests.failed > 0 && !result.failing.iter().any(|name| is_unloadable(state, name)),
        None => {
            state.executed_before(&result.name) == 0
                && (edited || state.before(&result.name).is_some_and(|before| before.passed))
        }
    };
    let had_no_tests = |result: &&CheckResult| state.executed_before(&result.name) == 0;
    if failing.iter().any(is_refusal) {
        Originals::Fail(run)
    } else if !failing.is_empty() && failing.iter().all(had_no_tests) {
        Originals::None
    } else {
        Originals::DoNotFit
    }
}

/// Whether a runner's name of a test says that it is in this file: `src/lib.rs - add (line 3)`, `a.py::a.add`.
fn is_in_file(test: &str, path: &str) -> bool {
    let end = ["::", " - ", ": "].iter().filter_map(|mark| test.find(mark)).min().unwrap_or(test.len());
    let file = &test[..end];
    file.contains('.') && (file == path || path.strip_suffix(file).is_some_and(|above| above.ends_with('/')))
}

fn names<'a>(changes: impl Iterator<Item = &'a HarnessChange>) -> String {
    let all: Vec<&str> = changes.map(|change| change.path.as_str()).collect();
    let more = if all.len() > FILES_SHOWN { " and others" } else { "" };
    format!("{}{more}", all[..all.len().min(FILES_SHOWN)].join(", "))
}

/// Whether a failing "test" is a file that the runner couldn't load: unittest names its stand-in, node the file.
fn is_unloadable(state: &ProofState, name: &str) -> bool {
    let known =
        state.baseline.iter().flatten().any(|result| result.failing.iter().any(|failing| failing == name));
    name.contains("_FailedTest") || !known && state.harness.iter().any(|change| name.ends_with(&change.path))
}

/// Run C: whether new or changed tests fail on the original product.
fn by_new_tests(state: &ProofState, commit: &TreeRun) -> Result<Verdict, Tree> {
    if state.harness.iter().all(HarnessChange::may_be_product) {
        return Ok(unverified(GREEN_BEFORE));
    }
    let run = state.run(Tree::OriginalProduct)?;
    let mut difference = Vec::new();
    for name in &state.required {
        let Some(now) = commit.result(name).filter(|result| result.passed) else { continue };
        let executed = |result: &CheckResult| result.tests.map_or(0, |tests| tests.executed());
        let more_than_before = executed(now) > state.executed_before(name);
        let kind = match run.result(name) {
            Some(result) if result.passed => {
                (more_than_before && executed(result) < executed(now)).then_some(DifferenceKind::DoesNotBuild)
            }
            Some(result) if result.tests.is_some_and(|tests| tests.failed > 0) || now.tests.is_none() => {
                Some(DifferenceKind::NewTests)
            }
            _ => more_than_before.then_some(DifferenceKind::DoesNotBuild),
        };
        let Some(kind) = kind else { continue };
        let failing = run.result(name).map(|result| result.failing.as_slice()).unwrap_or_default();
        let tests: Vec<String> = match failing.is_empty() {
            true => state.harness.iter().map(|change| change.path.clone()).take(NAMES_MAX).collect(),
            false => failing.iter().take(NAMES_MAX).cloned().collect(),
        };
        difference.push(Difference { check: name.clone(), tests, kind });
    }
    Ok(match difference.is_empty() {
        true => unverified("the changed tests and scripts pass without the rest of the work"),
        false => proven(ProofLevel::OwnTests, difference),
    })
}

/// Checks that ran fewer tests than on the original tree, or no longer report them.
fn fewer_tests(state: &ProofState, run: &TreeRun) -> Vec<String> {
    let passed = run.results.iter().filter(|result| result.passed);
    passed
        .filter_map(|result| {
            let first = state.executed_before(&result.name);
            match result.tests {
                None if first > 0 => Some(format!(
                    "{}: it no longer reports its tests; the original run had {first}",
                    result.name
                )),
                Some(now) if now.executed() < first => Some(format!(
                    "{}: it ran {} of the {} that ran originally",
                    result.name,
                    now.executed(),
                    count(first as usize, "test")
                )),
                _ => None,
            }
        })
        .collect()
}

fn failure(failed: Vec<String>) -> Verdict {
    Verdict { failed, ..Verdict::default() }
}

fn proven(level: ProofLevel, difference: Vec<Difference>) -> Verdict {
    Verdict { level: Some(level), difference, ..Verdict::default() }
}

fn unverified(reason: &str) -> Verdict {
    Verdict { level: Some(ProofLevel::Unverified), reason: Some(reason.to_owned()), ..Verdict::default() }
}

impl Verdict {
    /// Caps the level for a run that added suppressions, because a reviewer must read them.
    fn lowered_by(self, suppressions: &[Suppression]) -> Self {
        if suppressions.is_empty() || self.level != Some(ProofLevel::Independent) {
            return self;
        }
        let reason = format!("the run added {}", count(suppressions.len(), "suppression comment"));
        Self { level: Some(ProofLevel::OwnTests), reason: Some(reason), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ralph_loop_protocol::id::{Digest, TreeId};
    use ralph_loop_protocol::proof::test_counts::TestCounts;

    /// A check's end: `+3` three tests pass, `-1/3` one of three fails, `ok` and `no` without a report,
    /// `none` no tests.
    fn result(end: &str) -> CheckResult {
        let counts = |passed: u64, failed: u64| Some(TestCounts { passed, failed });
        let (passed, tests) = match end {
            "ok" => (true, None),
            "no" => (false, None),
            "none" => (false, counts(0, 0)),
            _ if end.starts_with('+') => (true, counts(end[1..].parse().unwrap(), 0)),
            _ => {
                let (failed, all) = end[1..].split_once('/').unwrap();
                let failed: u64 = failed.parse().unwrap();
                (false, counts(all.parse::<u64>().unwrap() - failed, failed))
            }
        };
        CheckResult {
            name: "tests".into(),
            tree: TreeId::from("t"),
            passed,
            why: (!passed).then(|| "exit code 1".to_owned()),
            exit_code: Some(i32::from(!passed)),
            duration_ms: 1,
            tests,
            log: "log".into(),
            log_digest: Digest::of(b""),
            failing: if tests.is_some_and(|t| t.failed > 0) { vec!["test_a".into()] } else { Vec::new() },
            last_lines: Vec::new(),
        }
    }

    fn change(kind: &str) -> HarnessChange {
        HarnessChange {
            path: "tests/a.py".into(),
            added: kind == "added",
            source: match kind {
                "watched" => HarnessSource::Watched,
                "shadow" => HarnessSource::Shadow,
                _ => HarnessSource::Glob,
            },
            named: kind == "named",
            what: format!("changed: {kind}"),
        }
    }

    /// Baseline, harness changes, results per tree, and the outcome after the trees that ran: a level,
    /// `fails` or `asks`.
    fn play(policy: TestsPolicy, before: &str, changes: &[&str], trees: &[(Tree, &str)]) -> String {
        let red = !result(before).passed;
        let mut state = ProofState {
            policy,
            required: vec!["tests".into()],
            baseline: Some(vec![result(before)]),
            red: red.then(|| "tests".to_owned()).into_iter().collect(),
            has_diff: true,
            harness: changes.iter().map(|kind| change(kind)).collect(),
            ..ProofState::default()
        };
        let mut ran = String::new();
        loop {
            match next(&state) {
                Next::RunChecks(tree) => {
                    let end = trees.iter().find(|(known, _)| *known == tree);
                    let (_, end) = end.unwrap_or_else(|| panic!("{tree:?} isn't expected after {ran}"));
                    let run = TreeRun { results: vec![result(end)], problems: Vec::new() };
                    ran.push_str(match tree {
                        Tree::Commit => "B",
                        Tree::OriginalHarness => "A",
                        Tree::OriginalTests => "a",
                        Tree::OriginalProduct => "C",
                    });
                    assert!(state.runs.insert(tree, run).is_none(), "{tree:?} runs once");
                }
                Next::Done(verdict) => {
                    let end = match (&verdict.level, &verdict.question) {
                        (Some(level), _) => level.words(),
                        (None, Some(_)) => "asks",
                        (None, None) => "fails",
                    };
                    let proven = verdict.level.is_some_and(ProofLevel::is_proven);
                    assert_eq!(proven, !verdict.difference.is_empty(), "a proof shows a difference");
                    let headline = ProofLevel::headline(verdict.level, None, verdict.reason.as_deref());
                    let named = if headline.contains("(named in the task)") { ", named" } else { "" };
                    return format!("{ran} {end}{named}");
                }
            }
        }
    }

    #[test]
    fn the_trees_that_ran_decide_the_level() {
        use Tree::{Commit as B, OriginalHarness as A, OriginalProduct as C, OriginalTests as A2};
        type Case = (&'static str, &'static [&'static str], &'static [(Tree, &'static str)], &'static str);
        let cases: &[Case] = &[
            // Without a change of the harness the commit alone decides.
            ("-1/3", &[], &[(B, "+3")], "B independent"),
            ("no", &[], &[(B, "ok")], "B independent"),
            ("+3", &[], &[(B, "+3")], "B unverified"),
            ("+3", &[], &[(B, "+2")], "B fails"),
            ("+3", &[], &[(B, "ok")], "B fails"),
            ("-1/3", &[], &[(B, "-1/3")], "B fails"),
            ("-1/3", &[], &[(B, "none")], "B fails"),
            // The original harness passes on the work.
            ("-1/3", &["added"], &[(B, "+4"), (A, "+3")], "BA independent"),
            ("+3", &["added"], &[(B, "+4"), (A, "+3"), (C, "-1/4")], "BAC own tests"),
            ("+3", &["added"], &[(B, "+4"), (A, "+3"), (C, "+4")], "BAC unverified"),
            ("+3", &["added"], &[(B, "+4"), (A, "+3"), (C, "no")], "BAC own tests"),
            ("+3", &["changed"], &[(B, "+3"), (A, "+3"), (C, "no")], "BAC unverified"),
            // An original test ran and failed.
            ("-1/3", &["changed"], &[(B, "+3"), (A, "-1/3")], "BA asks"),
            ("no", &["changed"], &[(B, "ok"), (A, "no")], "BA asks"),
            ("ok", &["added"], &[(B, "ok"), (A, "no")], "BA asks"),
            ("+3", &["changed"], &[(B, "+3"), (A, "+2")], "BA unverified"),
            // The original tests don't fit the work.
            ("+3", &["deleted"], &[(B, "+2"), (A, "none")], "BA unverified"),
            ("+3", &["deleted"], &[(B, "+2"), (A, "no")], "BA unverified"),
            // There were no tests.
            ("none", &["added"], &[(B, "+1"), (A, "none"), (C, "-1/1")], "BAC own tests"),
            ("none", &["added"], &[(B, "+1"), (A, "none"), (C, "+1")], "BAC unverified"),
            // Scripts that may be the product.
            ("no", &["watched"], &[(B, "ok"), (A, "no")], "BA own tests"),
            ("no", &["watched"], &[(B, "ok"), (A, "ok")], "BA independent"),
            ("ok", &["watched"], &[(B, "ok"), (A, "no")], "BA unverified"),
            ("ok", &["named"], &[(B, "ok"), (A, "no"), (C, "no")], "BAC own tests, named"),
            ("ok", &["watched", "changed"], &[(B, "ok"), (A, "ok"), (C, "no")], "BAC own tests"),
            ("no", &["watched", "changed"], &[(B, "ok"), (A, "no"), (A2, "ok")], "BAa own tests"),
            ("no", &["watched", "changed"], &[(B, "ok"), (A, "no"), (A2, "no")], "BAa asks"),
            ("-1/1", &["named"], &[(B, "+1"), (A, "-1/1")], "BA own tests, named"),
            ("-1/1", &["named"], &[(B, "+1"), (A, "+1")], "BA independent"),
            ("-1/3", &["watched"], &[(B, "+2"), (A, "-1/3")], "BA asks"),
            // Build files and settings may be the product; what passed before must still pass without them.
            ("no", &["build"], &[(B, "ok"), (A, "no")], "BA unverified"),
            ("no", &["build"], &[(B, "ok"), (A, "ok")], "BA independent"),
            ("-1/3", &["build"], &[(B, "+3"), (A, "-1/3")], "BA unverified"),
            ("-1/3", &["build"], &[(B, "+3"), (A, "-2/3")], "BA asks"),
            ("-1/3", &["build"], &[(B, "ok"), (A, "-1/3")], "BA asks"),
            ("ok", &["build"], &[(B, "ok"), (A, "no")], "BA asks"),
            ("no", &["build", "changed"], &[(B, "ok"), (A, "no"), (A2, "ok")], "BAa unverified"),
            ("no", &["build", "changed"], &[(B, "ok"), (A, "no"), (A2, "no")], "BAa asks"),
            // A new module named like an installed one.
            ("-1/3", &["shadow"], &[(B, "+3"), (A, "+3")], "BA independent"),
            ("-1/3", &["shadow"], &[(B, "+3"), (A, "-1/3")], "BA asks"),
            ("-1/3", &["shadow"], &[(B, "+3"), (A, "none")], "BA own tests"),
        ];
        for (before, changes, trees, want) in cases {
            assert_eq!(
                play(TestsPolicy::Additive, before, changes, trees),
                *want,
                "{before} {changes:?} {trees:?}"
            );
        }
    }

    #[test]
    fn a_test_in_a_changed_file_shows_no_difference() {
        let outcome = |failing: &str, changed: &str| {
            let before = CheckResult { failing: vec![failing.to_owned()], ..result("no") };
            let state = ProofState {
                required: vec!["tests".into()],
                baseline: Some(vec![before]),
                red: ["tests".to_owned()].into(),
                has_diff: true,
                changed: vec![changed.to_owned()],
                runs: [(Tree::Commit, TreeRun { results: vec![result("ok")], problems: Vec::new() })].into(),
                ..ProofState::default()
            };
            match next(&state) {
                Next::Done(verdict) => verdict.level.map(ProofLevel::words).unwrap_or_default(),
                Next::RunChecks(_) => "runs",
            }
        };
        for (failing, changed, want) in [
            ("docs/a.md", "docs/a.md", "unverified"),
            ("src/lib.rs - add (line 3)", "src/lib.rs", "unverified"),
            ("a.py::a.add", "pkg/a.py", "unverified"),
            ("a.py", "ba.py", "independent"),
            ("index.js works", "index.js", "independent"),
            ("test_a.T.test_add", "a.py", "independent"),
        ] {
            assert_eq!(outcome(failing, changed), want, "{failing} {changed}");
        }
    }

    #[test]
    fn a_red_test_in_a_changed_test_file_is_judged_by_the_original() {
        let named = |end| CheckResult { failing: vec!["tests/a.py::test_a".to_owned()], ..result(end) };
        let tree = |end| TreeRun { results: vec![result(end)], problems: Vec::new() };
        let state = ProofState {
            required: vec!["tests".into()],
            baseline: Some(vec![named("-1/3")]),
            red: ["tests".to_owned()].into(),
            has_diff: true,
            changed: vec!["tests/a.py".to_owned(), "a.py".to_owned()],
            harness: vec![change("tests")],
            runs: [(Tree::Commit, tree("+4")), (Tree::OriginalHarness, tree("+3"))].into(),
            ..ProofState::default()
        };
        let Next::Done(verdict) = next(&state) else { panic!("nothing else must run") };
        assert_eq!(verdict.level, Some(ProofLevel::Independent));
    }

    #[test]
    fn file_that_cannot_be_loaded_is_not_a_failed_test() {
        let named = |name: &str| CheckResult { failing: vec![name.to_owned()], ..result("-1/3") };
        let outcome = |before: CheckResult, name: &str| {
            let runs = [(Tree::Commit, result("+3")), (Tree::OriginalHarness, named(name))];
            let state = ProofState {
                required: vec!["tests".into()],
                baseline: Some(vec![before]),
                has_diff: true,
                harness: vec![change("changed")],
                runs: runs
                    .map(|(tree, result)| (tree, TreeRun { results: vec![result], problems: Vec::new() }))
                    .into(),
                ..ProofState::default()
            };
            let Next::Done(verdict) = next(&state) else { panic!("everything ran") };
            verdict.level
        };
        assert_eq!(outcome(result("+3"), "/tmp/x/tests/a.py"), Some(ProofLevel::Unverified));
        assert_eq!(outcome(result("+3"), "unittest.loader._FailedTest.a"), Some(ProofLevel::Unverified));
        assert_eq!(outcome(result("+3"), "adds"), None);
        assert_eq!(
            outcome(named("/tmp/x/tests/a.py"), "/tmp/x/tests/a.py"),
            None,
            "it ran and failed before"
        );
    }

    #[test]
    fn policies_and_obstacles_come_first() {
        use Tree::{Commit as B, OriginalHarness as A, OriginalProduct as C};
        assert_eq!(play(TestsPolicy::Frozen, "-1/3", &["added"], &[]), " fails");
        assert_eq!(
            play(TestsPolicy::Free, "-1/3", &["changed"], &[(B, "+3"), (A, "-1/3"), (C, "+3")]),
            "BAC unverified"
        );
        assert_eq!(
            play(TestsPolicy::Free, "+3", &["changed"], &[(B, "+3"), (A, "-1/3"), (C, "-1/3")]),
            "BAC own tests"
        );
        let nothing = ProofState { required: vec!["tests".into()], ..ProofState::default() };
        assert!(
            matches!(next(&nothing), Next::Done(verdict) if verdict.failed[0].starts_with("nothing was changed"))
        );
        let protected = ProofState { obstacles: vec!["x".into()], has_diff: true, ..nothing };
        assert!(matches!(next(&protected), Next::Done(verdict) if verdict.failed == ["x"]));
    }

    #[test]
    fn a_required_level_and_suppressions_change_the_outcome() {
        let run = |require, suppressions: Vec<Suppression>| {
            let state = ProofState {
                require,
                required: vec!["tests".into()],
                baseline: Some(vec![result("no")]),
                red: ["tests".to_owned()].into(),
                has_diff: true,
                suppressions,
                runs: [(Tree::Commit, TreeRun { results: vec![result("ok")], problems: Vec::new() })].into(),
                ..ProofState::default()
            };
            let Next::Done(verdict) = next(&state) else { panic!("everything ran") };
            (verdict.level, verdict.question.is_some())
        };
        let comment = || vec![Suppression { path: "a.py".into(), line: 1, text: "# noqa".into() }];
        assert_eq!(run(None, Vec::new()), (Some(ProofLevel::Independent), false));
        assert_eq!(run(None, comment()), (Some(ProofLevel::OwnTests), false));
        assert_eq!(run(Some(RequiredProof::OwnTests), comment()), (Some(ProofLevel::OwnTests), false));
        assert_eq!(run(Some(RequiredProof::Independent), comment()), (None, true));
    }
}
