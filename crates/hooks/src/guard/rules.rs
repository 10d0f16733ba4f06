//! The rules of `rules.toml`, and how they are matched with a program call.

use super::category::{Category, Refusal};
use super::paths::{Guards, PathRules};
use super::text::{self, matches, matches_any};
use ralph_loop_domain::secret_name::is_secret_name;
use serde::Deserialize;
use std::collections::{BTreeMap, HashMap};
use std::sync::LazyLock;

static RULES: LazyLock<Option<Rules>> = LazyLock::new(|| toml::from_str(include_str!("rules.toml")).ok());

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rules {
    pub categories: BTreeMap<Category, (String, String)>,
    pub programs: Programs,
    values: HashMap<String, Vec<String>>,
    pub wrapper: Vec<Wrapper>,
    pub interpreter: Vec<Interpreter>,
    pub code: Code,
    pub path: Vec<PathRule>,
    pub secrets: Secrets,
    pub change: Vec<Change>,
    group: Vec<Group>,
    variable: Vec<VariableRule>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Programs {
    pub shells: Vec<String>,
    pub fetchers: Vec<String>,
    pub script_printers: Vec<String>,
    pub file_listers: Vec<String>,
    pub locators: Vec<String>,
    pub readers: Vec<String>,
    pub login_users: Vec<String>,
    pub copiers: Vec<String>,
    pub text: Vec<String>,
    pub destroyers: Vec<String>,
}

/// A program that starts the command in its arguments.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wrapper {
    pub programs: Vec<String>,
    #[serde(default)]
    pub values: Vec<String>,
    #[serde(default)]
    pub skip: usize,
    #[serde(default)]
    pub verbs: Vec<String>,
}

/// A program that runs code of another language.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Interpreter {
    pub programs: Vec<String>,
    pub options: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Code {
    pub starts: Vec<String>,
    pub removes: Vec<String>,
    pub writes: Vec<String>,
    pub homes: Vec<String>,
    pub rule: Vec<CodeRule>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CodeRule {
    pub category: Category,
    pub all: Vec<Vec<String>>,
    pub why: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PathRule {
    pub category: Category,
    pub guards: Guards,
    pub paths: Vec<String>,
    #[serde(default)]
    pub except: Vec<String>,
    pub why: String,
}

/// Files that must not leave this machine, and removable folders of a home.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Secrets {
    pub paths: Vec<String>,
    pub except: Vec<String>,
    pub caches: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Change {
    pub programs: Vec<String>,
    #[serde(default)]
    pub when: Vec<String>,
    #[serde(default)]
    pub targets: Targets,
    #[serde(default)]
    pub options: Vec<String>,
    #[serde(default)]
    pub removes: bool,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Targets {
    #[default]
    None,
    All,
    First,
    Last,
    Rest,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Group {
    category: Category,
    rules: Vec<Rule>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Rule {
    programs: Vec<String>,
    #[serde(default)]
    verbs: Vec<String>,
    #[serde(default)]
    options: Vec<String>,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    operands: Vec<String>,
    #[serde(default)]
    last: Vec<String>,
    #[serde(default)]
    stdin: Vec<String>,
    /// The arguments and piped input, with single spaces.
    #[serde(default)]
    anywhere: Vec<String>,
    #[serde(default)]
    max_operands: Option<usize>,
    /// A variable with a secret name is among the arguments.
    #[serde(default)]
    secret_variable: bool,
    /// What is sent holds secrets, or isn't the program's to send.
    #[serde(default)]
    leaks: bool,
    /// Doesn't apply if every named host is this machine.
    #[serde(default)]
    remote: bool,
    #[serde(default)]
    unless: Vec<String>,
    why: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct VariableRule {
    category: Category,
    names: Vec<String>,
    why: String,
}

impl Rules {
    /// The rules; `None` if the file is broken, which a test rules out.
    pub fn load() -> Option<&'static Self> {
        RULES.as_ref()
    }

    pub fn judge(&self, call: &Call<'_>) -> Option<Refusal> {
        self.group.iter().find_map(|group| {
            let found = group.rules.iter().find(|rule| rule.matches(call))?;
            Some(Refusal::new(group.category, call.line(), &found.why))
        })
    }

    pub fn judge_variable(&self, name: &str, value: &str) -> Option<Refusal> {
        let found = self.variable.iter().find(|rule| rule.names.iter().any(|one| one == name))?;
        Some(Refusal::new(found.category, format!("{name}={value}"), &found.why))
    }

    pub fn is(&self, list: &[String], name: &str) -> bool {
        matches_any(list, name)
    }

    pub fn call<'a>(&self, name: &str, args: &[String], stdin: &'a str, at: CallSite<'a>) -> Call<'a> {
        let none = Vec::new();
        let values = self.values.get(name).unwrap_or(&none);
        let (mut options, mut operands) = (Vec::new(), Vec::new());
        let mut words = args.iter().enumerate();
        while let Some((number, arg)) = words.next() {
            let next = args.get(number + 1);
            if arg == "--" {
                operands.extend(words.map(|(_, arg)| arg.clone()));
                break;
            }
            if !arg.starts_with('-') || arg.len() < 2 {
                operands.push(arg.clone());
                continue;
            }
            options.push(arg.clone());
            options.extend(arg.split_once('=').map(|(name, _)| name.to_owned()));
            options.extend(next.map(|next| format!("{arg}={next}")));
            // `-KILL` is a name.
            let is_name = arg.len() > 3 && arg.chars().skip(1).all(|c| c.is_ascii_uppercase());
            if !arg.starts_with("--") && arg.len() <= 6 && !is_name {
                let letters = arg.chars().skip(1).filter(char::is_ascii_alphabetic);
                options.extend(letters.map(|letter| format!("-{letter}")));
            }
            if values.contains(arg) {
                words.next();
            }
        }
        Call { name: name.to_owned(), args: args.to_vec(), options, operands, stdin, at }
    }
}

/// What a call depends on besides its words.
#[derive(Clone, Copy)]
pub struct CallSite<'a> {
    pub paths: &'a PathRules,
    pub cwd: &'a str,
    pub vars: &'a HashMap<String, Vec<String>>,
}

/// A program with its arguments, as the shell would start it.
pub struct Call<'a> {
    pub name: String,
    pub args: Vec<String>,
    /// Options, one by one: `-rf` also as `-r` and `-f`, and with the next word as `-o=FILE`.
    pub options: Vec<String>,
    pub operands: Vec<String>,
    pub stdin: &'a str,
    pub at: CallSite<'a>,
}

impl Rule {
    fn matches(&self, call: &Call<'_>) -> bool {
        let home = &call.at.paths.home;
        let fits = |patterns: &[String], text: &str| {
            patterns.iter().any(|pattern| match pattern.contains('~') {
                true => matches(&pattern.replace('~', home), text),
                false => matches(pattern, text),
            })
        };
        let any = |patterns: &[String], texts: &[String]| {
            patterns.is_empty() || texts.iter().any(|text| matches_any(patterns, text))
        };
        self.programs.iter().any(|command| call.is(command))
            && (self.verbs.is_empty() || self.verbs.iter().any(|verbs| call.has_verbs(verbs)))
            && (self.options.is_empty() || call.options.iter().any(|option| fits(&self.options, option)))
            && any(&self.operands, &call.operands)
            && any(&self.last, call.args.last().map(std::slice::from_ref).unwrap_or_default())
            && self.max_operands.is_none_or(|most| call.operands.len() <= most)
            && (self.args.is_empty()
                || call.args.iter().any(|arg| fits(&self.args, arg) || fits(&self.args, &arg.to_lowercase())))
            && (self.stdin.is_empty() || matches_any(&self.stdin, call.stdin))
            && (self.anywhere.is_empty() || matches_any(&self.anywhere, &call.everything()))
            && (!self.secret_variable || call.args.iter().any(|arg| names_secret(arg)))
            && !(self.remote && call.is_local())
            && (!self.leaks || call.leaks())
            && !self.unless.iter().any(|exception| call.has_exception(exception))
    }
}

impl Call<'_> {
    /// The command line, for messages and the user's rules.
    pub fn line(&self) -> String {
        format!("{} {}", self.name, self.args.join(" ")).trim_end().to_owned()
    }

    /// Whether this is a command of `rules.toml`: a program, or a program and its verbs.
    pub fn is(&self, command: &str) -> bool {
        match command.split_once(' ') {
            Some((program, verbs)) => program == self.name && self.has_verbs(verbs),
            None => matches(command, &self.name),
        }
    }

    fn has_verbs(&self, verbs: &str) -> bool {
        let mut operands = self.operands.iter();
        let mut words = self.args.iter();
        verbs.split(' ').all(|verb| match verb.strip_prefix('-') {
            Some(_) => words.any(|word| matches(verb, word)),
            None => operands.next().is_some_and(|operand| matches(verb, operand)),
        })
    }

    fn has_exception(&self, exception: &str) -> bool {
        let assigned = |(name, value): (&str, &str)| {
            let known = self.at.vars.get(name).and_then(|values| values.first());
            known.is_some_and(|known| matches(value, known))
        };
        matches(exception, &self.everything())
            || self.args.iter().chain(&self.options).any(|arg| matches(exception, arg))
            || exception.split_once('=').is_some_and(assigned)
    }

    /// The arguments and piped input, in lower case, with single spaces.
    fn everything(&self) -> String {
        let words = self.args.iter().map(String::as_str).chain([self.stdin]);
        let words = words.flat_map(str::split_whitespace).take(4000);
        words.collect::<Vec<_>>().join(" ").to_lowercase() + " "
    }

    /// Whether every named host is this machine.
    fn is_local(&self) -> bool {
        let here = ["localhost", "127.0.0.1", "[::1]", "0.0.0.0"];
        let mut hosts = self.args.iter().filter_map(|arg| match arg.split_once("://") {
            Some((_, rest)) => Some(rest),
            None => here.iter().any(|host| arg.starts_with(host)).then_some(arg.as_str()),
        });
        let mut named = false;
        hosts.all(|rest| {
            named = true;
            here.iter().any(|host| rest.starts_with(host))
        }) && named
    }

    /// Whether what is sent holds a secret, is the whole project or home, or is outside the project.
    fn leaks(&self) -> bool {
        let paths = self.at.paths;
        let path_of = |text: &str| paths.resolve(self.at.cwd, text);
        let piped = text::producers(self.stdin).any(|word| {
            let archive = ["tar", "zip", "7z", "cpio", "archive", "bundle"].contains(&word);
            archive && self.name != "ssh"
                || paths.holds_secrets(&path_of(word))
                || paths.is_whole(&path_of(word))
        });
        // A token in a request header is normal authentication.
        let headers = ["-H", "--header", "-u", "--user", "--oauth2-bearer"];
        let sends = ["-T", "--upload-file", "--post-file", "--body-file", "-a"];
        let before = |at: usize| at.checked_sub(1).map(|at| self.args[at].as_str()).unwrap_or_default();
        let copies = ["scp", "rsync", "sftp", "rclone", "aws", "gsutil", "kubectl", "docker", "podman"]
            .contains(&self.name.as_str());
        let to_remote = self.operands.last().is_some_and(|to| to.contains(':'));
        let args = self.args.iter().enumerate().any(|(at, arg)| {
            if names_secret(arg) || text::producers(arg).any(|word| paths.holds_secrets(&path_of(word))) {
                return !headers.contains(&before(at));
            }
            if arg.contains("://") || copies && (!to_remote || arg.contains(':') || arg.starts_with('-')) {
                return false;
            }
            let file = arg.rsplit(['@', '<']).next().unwrap_or(arg);
            let file =
                file.split_once(':').map_or(file, |(_, file)| file).split([';', ',']).next().unwrap_or(file);
            let is_file = file.len() < arg.len()
                || copies
                || sends.contains(&before(at))
                || arg.starts_with("--post-file=");
            let path = path_of(file.rsplit('=').next().unwrap_or(file));
            is_file
                && file != "-"
                && (paths.holds_secrets(&path) || paths.is_whole(&path) || paths.is_foreign(&path))
        });
        piped || args
    }
}

/// Whether a text contains the value of a variable with a secret name, or is such a name.
fn names_secret(text: &str) -> bool {
    let is_name = |name: &str| name.chars().all(|c| c.is_ascii_uppercase() || c == '_' || c.is_ascii_digit());
    text::gaps(text).any(is_secret_name) || is_name(text) && text.contains('_') && is_secret_name(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rules_are_complete() {
        let rules: Rules = toml::from_str(include_str!("rules.toml")).unwrap();
        assert_eq!(rules.categories.len(), 19, "eighteen categories and unreadable");
        for category in rules.categories.keys().filter(|category| **category != Category::Unreadable) {
            assert!(rules.group.iter().any(|group| group.category == *category), "{category:?} has no rule");
        }
    }
}
