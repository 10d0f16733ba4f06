//! Reads a command as a shell would, without running anything: words are expanded as far as they are known, and every program
//! that would be started is shown to the rules, however it is wrapped, quoted or put together.
//!
//! Nothing here is exact. Where a text cannot be known a placeholder stands for it; both ways of an `if` are walked; a loop is
//! walked once for each value that is known.

mod arguments;
mod builtins;
mod code;
mod expand;
mod filters;
mod invoke;
mod languages;
mod narrowed;
mod options;
mod parameter;
mod variables;
mod walk;
mod wrappers;

use super::category::{Category, Refusal};
use super::limits;
use super::places::Places;
use super::value::{Field, Value};
use brush_parser::ast;
use std::collections::HashMap;

/// What a refusal is asked about before it counts: the words of the command that was refused.
pub type Allows<'a> = &'a dyn Fn(Category, &str) -> bool;

/// A shell that only reads.
pub struct Shell<'a> {
    places: &'a Places,
    allows: Allows<'a>,
    /// The folder that commands work in; none where that is not known any more.
    cwd: String,
    vars: HashMap<String, Vec<Field>>,
    functions: HashMap<String, ast::FunctionBody>,
    aliases: HashMap<String, String>,
    /// What this command has written, by path.
    files: HashMap<String, Value>,
    /// `$1` and so on; none where they are not known.
    positional: Option<Vec<Field>>,
    /// `$0`.
    zero: Field,
    /// Functions and aliases that are being walked.
    calling: Vec<String>,
    depth: usize,
    steps: usize,
    substitutions: usize,
    refusal: Option<Refusal>,
}

impl<'a> Shell<'a> {
    /// A fresh shell in a folder.
    pub fn new(places: &'a Places, allows: Allows<'a>) -> Self {
        Self {
            places,
            allows,
            cwd: places.cwd.clone(),
            vars: HashMap::new(),
            functions: HashMap::new(),
            aliases: HashMap::new(),
            files: HashMap::new(),
            positional: Some(Vec::new()),
            zero: Field::plain("bash"),
            calling: Vec::new(),
            depth: 0,
            steps: 0,
            substitutions: 0,
            refusal: None,
        }
    }

    /// What is wrong with a script, where something is.
    pub fn judge(mut self, script: &str) -> Option<Refusal> {
        self.script(script, &Value::default());
        self.refusal
    }

    /// The same for a program and its arguments.
    pub fn judge_words(mut self, words: &[String]) -> Option<Refusal> {
        let fields = words.iter().map(Field::plain).collect();
        self.invoke(fields, &Value::default());
        self.refusal
    }

    /// Keeps the first refusal that nobody allows.
    pub(super) fn refuse(&mut self, refusal: Refusal, words: &str) {
        if self.refusal.is_none() && !(self.allows)(refusal.category, words) {
            self.refusal = Some(refusal);
        }
    }

    /// Whether nothing more needs to be looked at.
    fn is_over(&self) -> bool {
        self.refusal.is_some()
    }

    /// Counts one command; false where there were too many.
    fn step(&mut self, words: &str) -> bool {
        self.steps += 1;
        if self.steps > limits::STEPS_MAX {
            let why = "It comes to more commands than can be checked.";
            self.refuse(Refusal::new(Category::Unreadable, words, why), words);
        }
        !self.is_over()
    }

    /// A path as it is meant here.
    fn path(&self, text: &str) -> String {
        self.places.resolve(&self.cwd, text)
    }
}
