//! A scene: a small project in memory that a trajectory's program edits, one iteration after the other.

use super::rng::Rng;
use super::runner::{Check, Ecosystem, Failing};
use ralph_loop_protocol::event::SessionEnd;
use std::collections::BTreeMap;

/// A tool call of a session.
#[derive(Debug, Clone)]
pub struct Tool {
    /// Its name.
    pub name: String,
    /// What it was given.
    pub input: String,
    /// What came back.
    pub result: String,
    /// Whether it failed.
    pub failed: bool,
}

/// One iteration as it will be played.
#[derive(Debug, Clone)]
pub struct Step {
    /// Every file after it.
    pub files: BTreeMap<String, String>,
    /// What the verifier says.
    pub check: Check,
    /// The final message.
    pub message: String,
    /// How the session ended.
    pub end: SessionEnd,
    /// Dollars.
    pub cost: f64,
    /// Denied tool uses.
    pub denials: u32,
    /// Calls beyond edits and the test run.
    pub calls: Vec<Tool>,
    /// Messages without any call.
    pub monologue: u32,
    /// Who works.
    pub agent: &'static str,
    /// Criteria met.
    pub met: u32,
    /// What a second run of the verifier prints, where that is something else.
    pub again: Option<String>,
    /// Why the final check refuses it, though its checks pass.
    pub refused: Option<String>,
}

/// The project and what is known of it.
#[derive(Debug)]
pub struct Scene {
    /// Chance.
    pub rng: Rng,
    /// Where it plays.
    pub eco: Ecosystem,
    /// Files.
    pub files: BTreeMap<String, String>,
    /// Tests that pass.
    pub passed: Vec<String>,
    /// Tests that fail.
    pub failed: Vec<Failing>,
    /// Iterations so far.
    pub steps: Vec<Step>,
    /// The first iteration that circles, from 0.
    pub onset: Option<usize>,
    /// Whether its sessions tell their work in new words each time.
    rewords: bool,
    serial: usize,
}

impl Scene {
    /// A project of a few files with some passing tests.
    pub fn new(name: &str, eco: Ecosystem) -> Self {
        let mut scene = Self {
            rng: Rng::named(name),
            eco,
            files: BTreeMap::new(),
            passed: Vec::new(),
            failed: Vec::new(),
            steps: Vec::new(),
            onset: None,
            rewords: true,
            serial: 0,
        };
        scene.rewords = scene.rng.chance(50);
        for stem in ["core", "api", "store", "util"] {
            let lines = scene.rng.between(12, 30);
            scene.add_lines(&eco.source(stem), lines);
        }
        scene.files.insert("README.md".into(), "# App\n\nA small app.\n".into());
        scene.files.insert(eco.lock().into(), "version 1\n".into());
        for _ in 0..scene.rng.between(3, 7) {
            let test = scene.new_test();
            scene.passed.push(test);
        }
        scene
    }

    /// The path of a source file.
    pub fn source(&self, stem: &str) -> String {
        self.eco.source(stem)
    }

    /// A line of code that was never there before.
    pub fn line(&mut self) -> String {
        self.serial += 1;
        let verb =
            self.rng.pick(&["compute", "fetch", "merge", "parse", "render", "index", "retry", "flush"]);
        let noun = self.rng.pick(&["order", "token", "frame", "row", "path", "range", "entry", "queue"]);
        let n = self.rng.between(2, 900);
        match self.eco {
            Ecosystem::Rust => format!("    let {noun}_{} = {verb}_{noun}({n});", self.serial),
            Ecosystem::Python => format!("    {noun}_{} = {verb}_{noun}({n})", self.serial),
            Ecosystem::Go => format!("\t{noun}{} := {verb}{noun}({n})", self.serial),
            Ecosystem::Js => format!("  const {noun}{} = {verb}({n}, '{noun}');", self.serial),
            Ecosystem::Java => format!("        int {noun}{} = {verb}({n});", self.serial),
        }
    }

    /// Appends lines of code.
    pub fn add_lines(&mut self, path: &str, count: usize) {
        let lines: Vec<String> = (0..count).map(|_| self.line()).collect();
        let text = self.files.entry(path.to_owned()).or_default();
        for line in lines {
            text.push_str(&line);
            text.push('\n');
        }
    }

    /// Replaces the last `count` lines by as many new ones (or a few more or less).
    pub fn rewrite_tail(&mut self, path: &str, count: usize) {
        let text = self.files.get(path).cloned().unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        let kept = lines.len().saturating_sub(count);
        let text: String = lines[..kept].iter().map(|l| format!("{l}\n")).collect();
        self.files.insert(path.to_owned(), text);
        self.add_lines(path, count);
    }

    /// Replaces lines from the top: old code goes, new code comes.
    pub fn rewrite_from(&mut self, path: &str, from: usize, count: usize) {
        let text = self.files.get(path).cloned().unwrap_or_default();
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        for at in from..(from + count).min(lines.len()) {
            lines[at] = self.line();
        }
        self.files.insert(path.to_owned(), lines.join("\n") + "\n");
    }

    /// Appends to a file.
    pub fn append(&mut self, path: &str, text: &str) {
        self.files.entry(path.to_owned()).or_default().push_str(text);
    }

    /// Indents every line anew, or takes the indent away.
    pub fn reindent(&mut self, path: &str) {
        let text = self.files.get(path).cloned().unwrap_or_default();
        let by = " ".repeat(self.rng.between(1, 9));
        let text: String = text.lines().map(|l| format!("{by}{}\n", l.trim_start())).collect();
        self.files.insert(path.to_owned(), text);
    }

    /// A name for a new test.
    pub fn new_test(&mut self) -> String {
        self.serial += 1;
        let noun = self.rng.pick(&["order", "token", "frame", "row", "path", "range", "entry", "queue"]);
        let n = self.serial;
        match self.eco {
            Ecosystem::Rust => format!("suite::{noun}_case_{n}"),
            Ecosystem::Python => format!("test_{noun}_{n}"),
            Ecosystem::Go => format!("Test{}{n}", noun.to_uppercase()),
            Ecosystem::Js => format!("{noun} case {n}"),
            Ecosystem::Java => format!("{noun}Case{n}"),
        }
    }

    /// A new failing test.
    pub fn fail_new(&mut self) -> String {
        let name = self.new_test();
        let noun = self.rng.pick(&["order", "token", "frame", "row", "path", "range", "entry", "queue"]);
        let says = format!(
            "assert expected {noun} to be {} but it was missing",
            self.rng.pick(&["ready", "sorted", "closed", "unique"])
        );
        self.failed.push(Failing { name: name.clone(), says });
        name
    }

    /// Mends the first failing test.
    pub fn mend(&mut self) {
        if !self.failed.is_empty() {
            let mended = self.failed.remove(0);
            self.passed.push(mended.name);
        }
    }

    /// What the tests say now.
    pub fn tests(&self) -> Check {
        Check::Tests { passed: self.passed.clone(), failed: self.failed.clone() }
    }

    /// A final message that never reads the same.
    pub fn words(&mut self) -> String {
        let verb = self.rng.pick(&[
            "Looked into",
            "Reworked",
            "Adjusted",
            "Traced",
            "Went through",
            "Changed",
            "Tried another way for",
        ]);
        let noun = self.rng.pick(&[
            "the order flow",
            "the token cache",
            "how frames are read",
            "the row index",
            "the queue",
            "path handling",
        ]);
        let rest = self.rng.pick(&[
            "and ran the tests",
            "since the values differ",
            "to see where it breaks",
            "as the log suggests",
            "with a smaller change",
            "after reading the code again",
        ]);
        let more = self.rng.pick(&[
            "Next I will check the caller.",
            "It should hold now.",
            "There is more to do.",
            "The rest follows.",
            "Will continue from here.",
        ]);
        format!("{verb} {noun} {rest}. {more}")
    }

    /// Ends the iteration: the files as they are, the tests as they are.
    pub fn step(&mut self) -> &mut Step {
        let check = self.tests();
        self.step_with(check)
    }

    /// Ends the iteration with another check.
    pub fn step_with(&mut self, check: Check) -> &mut Step {
        let mut message = self.words();
        if let Some(at) = self.onset.filter(|at| !self.rewords && *at < self.steps.len()) {
            message.clone_from(&self.steps[at].message);
        }
        let cost = self.rng.between(5, 40) as f64 / 100.0;
        let met = self.steps.last().map_or(0, |s| s.met);
        self.steps.push(Step {
            files: self.files.clone(),
            check,
            message,
            end: SessionEnd::Completed,
            cost,
            denials: 0,
            calls: Vec::new(),
            monologue: 0,
            agent: "a",
            met,
            again: None,
            refused: None,
        });
        let at = self.steps.len() - 1;
        &mut self.steps[at]
    }

    /// From here on it circles.
    pub fn circles_from_here(&mut self) {
        self.onset = Some(self.steps.len());
    }

    /// Ordinary good work before whatever follows: code in some file, one more test passes each time.
    pub fn good_start(&mut self, least: usize, most: usize) {
        for _ in 0..self.rng.between(least, most) {
            let stem = self.rng.pick(&["core", "api", "store", "util"]).to_owned();
            let (path, count) = (self.source(&stem), self.rng.between(5, 25));
            self.add_lines(&path, count);
            let test = self.new_test();
            self.passed.push(test);
            self.step();
        }
    }
}

/// A call with its result.
pub fn tool(name: &str, input: &str, result: &str, failed: bool) -> Tool {
    Tool { name: name.into(), input: input.into(), result: result.into(), failed }
}
