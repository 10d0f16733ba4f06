//! What is refused, one file per category. A rule sees one program with its arguments as the shell would hand them over.

mod cloud;
mod container;
mod credentials;
mod database;
mod disk;
mod environment;
mod exfiltration;
mod files;
mod git_history;
mod guard;
mod kernel;
mod kill;
mod network_scan;
mod persistence;
mod privilege;
mod publish;
mod remote_code;
mod reverse_shell;

use super::category::{Category, Refusal};
use super::places::Places;
use super::value::{Field, Value};

pub use database::sql;
pub use kill::is_others;

/// A program as it would be started.
pub struct Call<'a> {
    /// Its name, without its folder.
    pub name: &'a str,
    /// Its arguments.
    pub args: &'a [Field],
    /// What is piped into it.
    pub stdin: &'a Value,
    /// The whole command, for messages and the user's own rules.
    pub words: &'a str,
    /// Whose place is where.
    pub places: &'a Places,
    /// A path as it is meant here.
    pub resolve: &'a dyn Fn(&str) -> String,
    /// A variable that this command has set.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
}

impl Call<'_> {
    /// Whether one of these words is an argument.
    fn has(&self, words: &[&str]) -> bool {
        self.args.iter().any(|arg| words.contains(&arg.text.as_str()))
    }

    /// Whether an argument is this option, with or without its value.
    fn option(&self, names: &[&str]) -> bool {
        self.args.iter().any(|arg| names.contains(&arg.text.split('=').next().unwrap_or_default()))
    }

    /// Whether one of the short options is this letter.
    fn short(&self, letter: char) -> bool {
        let short = |text: &str| text.starts_with('-') && !text.starts_with("--") && text.contains(letter);
        self.args.iter().any(|arg| short(&arg.text))
    }

    /// Arguments that are no options.
    fn operands(&self) -> impl Iterator<Item = &Field> {
        self.args.iter().filter(|arg| !arg.text.starts_with('-') || arg.text == "-")
    }

    /// The first words that are no options: `git push`, `aws s3 rb`.
    fn verbs(&self) -> Vec<&str> {
        self.operands().map(|arg| arg.text.as_str()).take(4).collect()
    }

    /// Whether the first words are these.
    fn is(&self, name: &str, verbs: &[&str]) -> bool {
        self.name == name && self.verbs().starts_with(verbs)
    }

    /// What stands in the place of an option's value: `--x VALUE` or `--x=VALUE`.
    fn value(&self, names: &[&str]) -> Option<&str> {
        self.args.iter().enumerate().find_map(|(at, arg)| match arg.text.split_once('=') {
            Some((name, value)) if names.contains(&name) => Some(value),
            _ if names.contains(&arg.text.as_str()) => self.args.get(at + 1).map(|next| next.text.as_str()),
            _ => None,
        })
    }

    fn refuse(&self, category: Category, why: impl Into<String>) -> Option<Refusal> {
        Some(Refusal::new(category, self.words, why))
    }
}

/// A rule.
type Rule = fn(&Call<'_>) -> Option<Refusal>;

/// All rules, the gravest first.
const RULES: &[Rule] = &[
    guard::rule,
    disk::rule,
    files::rule,
    reverse_shell::rule,
    exfiltration::rule,
    credentials::rule,
    privilege::rule,
    remote_code::rule,
    container::rule,
    persistence::rule,
    kernel::rule,
    git_history::rule,
    publish::rule,
    cloud::rule,
    database::rule,
    kill::rule,
    environment::rule,
    network_scan::rule,
];

/// What the rules say of a program.
pub fn judge(call: &Call<'_>) -> Option<Refusal> {
    RULES.iter().find_map(|rule| rule(call))
}

/// What is wrong with reading a file.
pub fn reads(path: &str, words: &str, places: &Places) -> Option<Refusal> {
    places.reading(path).map(|(category, why)| Refusal::new(category, words, why))
}

/// What is wrong with writing a file.
pub fn writes(path: &str, words: &str, places: &Places) -> Option<Refusal> {
    places.writing(path).map(|(category, why)| Refusal::new(category, words, why))
}

/// Variables that make programs run or load something else.
pub fn assignment(name: &str, value: &str, places: &Places) -> Option<Refusal> {
    let words = format!("{name}={value}");
    if ["LD_PRELOAD", "LD_AUDIT", "DYLD_INSERT_LIBRARIES"].contains(&name) && !places.below_project(value) {
        return Some(Refusal::new(Category::Persistence, words, "It loads code into every program."));
    }
    let own = ["CLAUDE_CODE_STOP_HOOK_BLOCK_CAP", "RALPH_RUN", "RALPH_ITERATION"];
    own.contains(&name).then(|| Refusal::new(Category::Guard, words, "The hooks stand on it."))
}

/// Names that must keep their meaning.
pub fn alias(name: &str) -> Option<Refusal> {
    ["ralph", "claude"]
        .contains(&name)
        .then(|| Refusal::new(Category::Guard, format!("alias {name}"), "The hooks stand on it."))
}
