//! Parses a command as a shell would, without running anything, and checks every program that it would start against
//! the rules.
//!
//! Nothing here emulates programs. What the command line alone doesn't show is a gap; if a gap decides what would run
//! or be destroyed, the command is refused as unreadable. Both branches of an `if` are walked, and a loop's body once
//! for each known value.

mod code;
mod programs;
mod walk;
mod words;

use super::category::{Category, Refusal};
use super::limits;
use super::paths::{Guards, PathClass, PathRules};
use super::rules::{Call, CallSite, Rules};
use super::text;
use std::collections::{HashMap, HashSet};

/// Decides whether a refusal counts, by the words of the refused command.
pub type Allows<'a> = &'a dyn Fn(Category, &str) -> bool;

pub struct Shell<'a> {
    rules: &'static Rules,
    paths: &'a PathRules,
    allows: Allows<'a>,
    cwd: String,
    vars: HashMap<String, Vec<String>>,
    functions: HashSet<String>,
    aliases: HashMap<String, String>,
    files: HashMap<String, String>,
    depth: usize,
    steps: usize,
    refusal: Option<Refusal>,
}

impl<'a> Shell<'a> {
    /// A new shell in the folder where commands start.
    pub fn new(rules: &'static Rules, paths: &'a PathRules, allows: Allows<'a>) -> Self {
        Self {
            rules,
            paths,
            allows,
            cwd: paths.cwd.clone(),
            vars: HashMap::new(),
            functions: HashSet::new(),
            aliases: HashMap::new(),
            files: HashMap::new(),
            depth: 0,
            steps: 0,
            refusal: None,
        }
    }

    pub fn judge(mut self, script: &str) -> Option<Refusal> {
        self.script(&text::without_marks(script), "");
        self.refusal
    }

    pub fn judge_words(mut self, words: &[String]) -> Option<Refusal> {
        self.invoke(words.iter().map(|word| text::without_marks(word)).collect(), "");
        self.refusal
    }

    /// Keeps the first refusal that the user doesn't allow.
    fn refuse(&mut self, category: Category, what: &str, why: &str) {
        self.keep(Some(Refusal::new(category, text::shown(what), why)), what);
    }

    fn keep(&mut self, refusal: Option<Refusal>, what: &str) {
        if self.refusal.is_none() {
            self.refusal = refusal.filter(|refusal| !(self.allows)(refusal.category, &text::shown(what)));
        }
    }

    fn keep_path(&mut self, class: Option<PathClass>, what: &str) {
        if let Some((category, why)) = class {
            self.refuse(category, what, why);
        }
    }

    fn unreadable(&mut self, what: &str, why: &str) {
        self.refuse(Category::Unreadable, what, why);
    }

    /// Counts a command; false if no more commands need checking.
    fn step(&mut self, what: &str) -> bool {
        self.steps += 1;
        if self.steps > limits::STEPS_MAX {
            self.unreadable(what, "It expands to more commands than can be checked.");
        }
        self.refusal.is_none()
    }

    fn path(&self, text: &str) -> String {
        self.paths.resolve(&self.cwd, text)
    }

    fn call<'c>(&'c self, name: &str, args: &[String], stdin: &'c str) -> Call<'c> {
        let at = CallSite { paths: self.paths, cwd: &self.cwd, vars: &self.vars };
        self.rules.call(name, args, stdin, at)
    }

    /// Walks a text that would be run.
    fn run_text(&mut self, script: &str, what: &str) -> String {
        let rules = self.rules;
        let start = script.trim_start();
        let begins_unknown = text::fill(start, "\0").starts_with('\0');
        let from_output = text::producers(start).next().is_some();
        if begins_unknown {
            let mut producers = text::producers(start);
            if text::producers(start).any(|word| rules.is(&rules.programs.fetchers, word)) {
                self.refuse(Category::RemoteCode, what, "It runs code from the network.");
            } else if !from_output || !producers.any(|word| rules.is(&rules.programs.script_printers, word)) {
                self.unreadable(what, "What it would run isn't in the command.");
            }
            return String::new();
        }
        self.script(script, "")
    }

    /// Walks an argument that may be a command line. Only dangers count, not parse errors.
    fn run_quietly(&mut self, script: &str) {
        if self.refusal.is_some()
            || self.depth >= limits::CALLS_MAX / 2
            || text::fill(script.trim_start(), "\0").starts_with('\0')
        {
            return;
        }
        let kept = (self.cwd.clone(), self.vars.clone(), self.files.clone());
        self.depth += limits::CALLS_MAX / 4;
        self.script(script, "");
        self.depth -= limits::CALLS_MAX / 4;
        (self.cwd, self.vars, self.files) = kept;
        let harmless = [Category::Unreadable, Category::Environment];
        self.refusal = self.refusal.take().filter(|refusal| !harmless.contains(&refusal.category));
    }

    /// Judges the paths among the words of a command.
    fn touch_words(&mut self, words: &[String], access: Guards, what: &str) {
        for word in words {
            // `-v /etc:/x`, `--file=~/x`, `@~/x`, `host:path`, `-C/etc`.
            let glued = word.get(2..).filter(|rest| word.starts_with('-') && rest.starts_with(['/', '~']));
            let marks = ['=', ':', ',', '@', '<'];
            let whole = word.contains(marks).then_some(word.as_str());
            for piece in word.split(marks).chain(whole).chain(glued) {
                let class = self.paths.judge(&self.path(piece), access);
                if !piece.is_empty() && class.is_some() {
                    self.keep_path(class, what);
                }
            }
        }
    }
}
