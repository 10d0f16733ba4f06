//! Finds the commands in a script.

use super::Shell;
use crate::guard::category::Category;
use crate::guard::limits;
use crate::guard::paths::Guards;
use crate::guard::text::{self, push};
use brush_parser::ast::{
    self, AndOr, AssignmentName, AssignmentValue, Command, CommandPrefixOrSuffixItem as Item,
    CompoundCommand, CompoundList, IoFileRedirectKind, IoFileRedirectTarget, IoRedirect, SimpleCommand,
};
use brush_parser::{Parser, ParserOptions};
use ralph_loop_domain::secret_name::is_secret_name;

const LOOP_MAX: usize = 24;
const FILES_MAX: usize = 64;

#[derive(Default)]
struct Parts {
    words: Vec<String>,
    assigned: Vec<(String, Vec<String>)>,
    stdin: Option<String>,
    writes: Vec<String>,
    raw: String,
}

impl Shell<'_> {
    /// Walks a script; returns its output, with gaps for unknown parts.
    pub(super) fn script(&mut self, script: &str, stdin: &str) -> String {
        let mut out = String::new();
        if self.refusal.is_some() || script.trim().is_empty() {
            return out;
        }
        let nested = (self.depth >= limits::CALLS_MAX).then_some("It calls itself too deeply to be checked.");
        if let Some(why) = nested.or_else(|| limits::beyond(script)) {
            self.unreadable(script, why);
            return out;
        }
        // The parser takes a continued line for two words; a quoted here-document keeps its backslashes.
        let script = if script.contains("<<") { script.to_owned() } else { script.replace("\\\n", "") };
        let parsed =
            Parser::new(std::io::Cursor::new(script.as_bytes()), &ParserOptions::default()).parse_program();
        let Ok(program) = parsed else {
            self.unreadable(&script, "It isn't a command that a shell can read.");
            return out;
        };
        self.depth += 1;
        for list in &program.complete_commands {
            push(&mut out, &self.list(list, stdin));
        }
        self.depth -= 1;
        out
    }

    fn list(&mut self, list: &CompoundList, stdin: &str) -> String {
        let mut out = String::new();
        for item in &list.0 {
            push(&mut out, &self.pipeline(&item.0.first, stdin));
            for next in &item.0.additional {
                let (AndOr::And(pipeline) | AndOr::Or(pipeline)) = next;
                push(&mut out, &self.pipeline(pipeline, stdin));
            }
        }
        out
    }

    fn pipeline(&mut self, pipeline: &ast::Pipeline, stdin: &str) -> String {
        let mut passed = stdin.to_owned();
        let picks = match pipeline.seq.as_slice() {
            [first, filter, ..] => picks_variables(&first.to_string(), &filter.to_string()),
            _ => false,
        };
        for (number, command) in pipeline.seq.iter().enumerate().skip(usize::from(picks)) {
            let piped = number > 0 && !text::has_gap(&passed) && passed.is_empty();
            if piped {
                passed = text::output("");
            }
            passed = self.command(command, &passed);
        }
        passed
    }

    fn command(&mut self, command: &Command, stdin: &str) -> String {
        match command {
            Command::Simple(simple) => self.simple(simple, stdin),
            Command::Compound(compound, redirects) => {
                let mut parts = Parts::default();
                for redirect in redirects.iter().flat_map(|list| &list.0) {
                    self.redirect(redirect, &mut parts);
                }
                let stdin = parts.stdin.take().unwrap_or_else(|| stdin.to_owned());
                let out = self.compound(compound, &stdin);
                self.written(&parts, &out);
                out
            }
            Command::Function(function) => {
                self.define(function);
                String::new()
            }
            Command::ExtendedTest(test, _) => {
                for word in test_words(&test.expr) {
                    let value = self.text(&word.value);
                    self.arithmetic(&value);
                }
                String::new()
            }
        }
    }

    fn compound(&mut self, compound: &CompoundCommand, stdin: &str) -> String {
        let mut out = String::new();
        match compound {
            CompoundCommand::BraceGroup(group) => return self.list(&group.list, stdin),
            CompoundCommand::Subshell(sub) => {
                let kept = (self.cwd.clone(), self.vars.clone());
                out = self.list(&sub.list, stdin);
                (self.cwd, self.vars) = kept;
            }
            CompoundCommand::ForClause(clause) => {
                let values: Vec<String> = match &clause.values {
                    Some(words) => words.iter().flat_map(|word| self.fields(word)).collect(),
                    None => vec![text::variable("@")],
                };
                for value in values.into_iter().take(LOOP_MAX) {
                    self.vars.insert(clause.variable_name.clone(), vec![value]);
                    push(&mut out, &self.list(&clause.body.list, stdin));
                }
            }
            CompoundCommand::CaseClause(case) => {
                self.fields(&case.value);
                for body in case.cases.iter().filter_map(|case| case.cmd.as_ref()) {
                    push(&mut out, &self.list(body, stdin));
                }
            }
            CompoundCommand::IfClause(clause) => {
                let elses = clause
                    .elses
                    .iter()
                    .flatten()
                    .flat_map(|other| other.condition.iter().chain([&other.body]));
                for list in [&clause.condition, &clause.then].into_iter().chain(elses) {
                    push(&mut out, &self.list(list, stdin));
                }
            }
            CompoundCommand::WhileClause(clause) | CompoundCommand::UntilClause(clause) => {
                push(&mut out, &self.list(&clause.0, stdin));
                push(&mut out, &self.list(&clause.1.list, stdin));
            }
            CompoundCommand::ArithmeticForClause(clause) => {
                for part in [&clause.initializer, &clause.condition, &clause.updater].into_iter().flatten() {
                    self.arithmetic(&part.value);
                }
                return self.list(&clause.body.list, stdin);
            }
            CompoundCommand::Arithmetic(command) => self.arithmetic(&command.expr.value),
            CompoundCommand::Coprocess(process) => return self.command(&process.body, stdin),
        }
        out
    }

    /// A function's body is walked once, with unknown arguments.
    fn define(&mut self, function: &ast::FunctionDefinition) {
        let name = function.fname.value.clone();
        let body = function.body.to_string();
        let words = body.split(|c: char| c.is_whitespace() || "|&;(){}".contains(c));
        if words.filter(|word| *word == name).count() >= 2 && body.contains(['|', '&']) {
            self.refuse(Category::Kill, &body, "The function starts copies of itself without end.");
        }
        self.functions.insert(name);
        let kept = (self.cwd.clone(), self.vars.clone());
        self.compound(&function.body.0, "");
        (self.cwd, self.vars) = kept;
    }

    fn simple(&mut self, simple: &SimpleCommand, stdin: &str) -> String {
        let mut parts = Parts { raw: simple.to_string(), ..Parts::default() };
        if !self.step(&parts.raw) {
            return String::new();
        }
        for item in simple.prefix.iter().flat_map(|prefix| &prefix.0) {
            self.item(item, &mut parts);
        }
        if let Some(word) = &simple.word_or_name {
            let fields = self.fields(word);
            parts.words.extend(fields);
        }
        for item in simple.suffix.iter().flat_map(|suffix| &suffix.0) {
            self.item(item, &mut parts);
        }
        let own_stdin = parts.stdin.take();
        let kept = self.vars.clone();
        for (name, values) in std::mem::take(&mut parts.assigned) {
            self.assign(&name, values);
        }
        let out = match parts.words.is_empty() {
            // `$(<file)` prints the file.
            true => own_stdin.unwrap_or_default(),
            false => {
                let names = self.vars.keys().filter(|name| self.vars.get(*name) != kept.get(*name)).cloned();
                let prefixed: Vec<String> = names.collect();
                let out =
                    self.invoke(std::mem::take(&mut parts.words), own_stdin.as_deref().unwrap_or(stdin));
                for name in prefixed {
                    match kept.get(&name) {
                        Some(values) => drop(self.vars.insert(name, values.clone())),
                        None => drop(self.vars.remove(&name)),
                    }
                }
                out
            }
        };
        self.written(&parts, &out);
        out
    }

    /// Sets a variable. Its value may be a command line that another program runs (`GIT_EDITOR`, `PAGER`).
    pub(super) fn assign(&mut self, name: &str, values: Vec<String>) {
        let value = values.first().cloned().unwrap_or_default();
        let line = format!("{name}={value}");
        let refusal =
            self.rules.judge_variable(name, &value).filter(|_| !value.starts_with(&self.paths.project));
        self.keep(refusal, &line);
        if value.contains(char::is_whitespace)
            && name.chars().all(|c| c.is_ascii_uppercase() || c == '_' || c.is_ascii_digit())
        {
            self.run_quietly(value.trim_start_matches('|'));
        }
        self.vars.insert(name.to_owned(), values);
    }

    fn item(&mut self, item: &Item, parts: &mut Parts) {
        match item {
            Item::Word(word) => {
                let fields = self.fields(word);
                parts.words.extend(fields);
            }
            Item::IoRedirect(redirect) => self.redirect(redirect, parts),
            Item::ProcessSubstitution(_, sub) => {
                let file = self.substituted_file(&sub.list);
                parts.words.push(file);
            }
            // `export A=b` has its assignment among the arguments.
            Item::AssignmentWord(assignment, word) if !parts.words.is_empty() => {
                let value = self.assigned(&assignment.value).join(" ");
                let name = word.value.split(['=', '+']).next().unwrap_or_default();
                parts.words.push(format!("{name}={value}"));
            }
            Item::AssignmentWord(assignment, _) => {
                let values = self.assigned(&assignment.value);
                match &assignment.name {
                    AssignmentName::ArrayElementName(name, index) => {
                        self.arithmetic(index);
                        self.vars.insert(name.clone(), vec![text::output("expansion")]);
                    }
                    AssignmentName::VariableName(name) => {
                        let before = self.vars.get(name).cloned().unwrap_or_default();
                        let values = match (assignment.append, &assignment.value) {
                            (true, AssignmentValue::Scalar(_)) => vec![before.concat() + &values.concat()],
                            (true, AssignmentValue::Array(_)) => before.into_iter().chain(values).collect(),
                            _ => values,
                        };
                        parts.assigned.push((name.clone(), values));
                    }
                }
            }
        }
    }

    fn assigned(&mut self, value: &AssignmentValue) -> Vec<String> {
        match value {
            AssignmentValue::Scalar(word) => vec![self.text(&word.value)],
            AssignmentValue::Array(words) => words.iter().flat_map(|(_, word)| self.fields(word)).collect(),
        }
    }

    fn substituted_file(&mut self, list: &CompoundList) -> String {
        let out = self.list(list, "");
        let name = format!("/dev/fd/{}", 63 + self.files.len());
        self.files.insert(name.clone(), out);
        name
    }

    fn redirect(&mut self, redirect: &IoRedirect, parts: &mut Parts) {
        match redirect {
            IoRedirect::HereDocument(_, document) => {
                parts.stdin = Some(match document.requires_expansion {
                    true => self.here_document(&document.doc.value),
                    false => document.doc.value.clone(),
                });
            }
            IoRedirect::HereString(_, word) => parts.stdin = Some(self.text(&word.value) + "\n"),
            IoRedirect::OutputAndError(word, _) => {
                let target = self.text(&word.value);
                parts.writes.push(target);
            }
            IoRedirect::File(_, kind, target) => {
                let name = match target {
                    IoFileRedirectTarget::Filename(word) | IoFileRedirectTarget::Duplicate(word) => {
                        self.text(&word.value)
                    }
                    IoFileRedirectTarget::ProcessSubstitution(_, sub) => self.substituted_file(&sub.list),
                    IoFileRedirectTarget::Fd(_) => return,
                };
                match kind {
                    IoFileRedirectKind::Read | IoFileRedirectKind::ReadAndWrite => {
                        self.connects(&name, &parts.raw);
                        let class = self.paths.judge(&self.path(&name), Guards::Reading);
                        self.keep_path(class, &parts.raw);
                        parts.stdin = Some(self.content(&name));
                    }
                    IoFileRedirectKind::DuplicateInput | IoFileRedirectKind::DuplicateOutput
                        if name.bytes().all(|b| b.is_ascii_digit() || b == b'-') => {}
                    _ => parts.writes.push(name),
                }
            }
        }
    }

    fn connects(&mut self, name: &str, raw: &str) {
        if name.starts_with("/dev/tcp/") || name.starts_with("/dev/udp/") {
            self.refuse(Category::ReverseShell, raw, "It connects a command to another machine.");
        }
    }

    pub(super) fn content(&self, name: &str) -> String {
        self.files.get(&self.path(name)).cloned().unwrap_or_else(|| text::output(&format!("cat {name}")))
    }

    /// Remembers a file's text, for a command that runs it.
    pub(super) fn remember(&mut self, name: &str, text: &str) {
        if self.files.len() < FILES_MAX && !text::has_gap(name) {
            let path = self.path(name);
            push(self.files.entry(path).or_default(), text);
        }
    }

    fn written(&mut self, parts: &Parts, out: &str) {
        for name in &parts.writes {
            self.connects(name, &parts.raw);
            let class = self.paths.judge(&self.path(name), Guards::Writing);
            self.keep_path(class, &parts.raw);
            self.remember(name, out);
        }
    }
}

/// `env | grep NAME`: only names that aren't secret are printed.
fn picks_variables(first: &str, filter: &str) -> bool {
    let mut words = filter.split_whitespace();
    let grep = ["grep", "egrep", "rg"].contains(&words.next().unwrap_or_default());
    let pattern = words.find(|word| !word.starts_with('-')).unwrap_or_default();
    let mut names =
        pattern.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|name| !name.is_empty()).peekable();
    let secret = |name: &str| {
        is_secret_name(name)
            || ["key", "token", "pass", "secret", "auth", "cred", "api", "pwd"]
                .iter()
                .any(|part| name.to_lowercase().contains(part))
    };
    ["env", "printenv"].contains(&first.trim())
        && grep
        && !filter.contains(" -v")
        && !filter.contains("invert")
        && names.peek().is_some()
        && names.all(|name| name.len() > 2 && !secret(name))
}

fn test_words(expr: &ast::ExtendedTestExpr) -> Vec<ast::Word> {
    use ast::ExtendedTestExpr as E;
    match expr {
        E::And(a, b) | E::Or(a, b) => test_words(a).into_iter().chain(test_words(b)).collect(),
        E::Not(a) | E::Parenthesized(a) => test_words(a),
        E::UnaryTest(_, a) => vec![a.clone()],
        E::BinaryTest(_, a, b) => vec![a.clone(), b.clone()],
    }
}
