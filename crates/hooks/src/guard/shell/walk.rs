//! From the text of a script to the commands in it.

use super::{Shell, narrowed};
use crate::guard::category::{Category, Refusal};
use crate::guard::limits;
use crate::guard::rules;
use crate::guard::value::{Field, Taint, UNKNOWN, Value};
use brush_parser::ast::{
    self, AndOr, AssignmentName, AssignmentValue, Command, CommandPrefixOrSuffixItem as Item,
    CompoundCommand, CompoundList, IoFileRedirectKind, IoFileRedirectTarget, IoRedirect, SimpleCommand,
};
use brush_parser::{Parser, ParserOptions};

/// Values of a loop that are tried.
const LOOP_MAX: usize = 24;

/// A simple command, taken apart.
#[derive(Default)]
struct Parts {
    words: Vec<Field>,
    assigned: Vec<(String, Vec<Field>)>,
    stdin: Option<Value>,
    writes: Vec<String>,
    raw: String,
}

impl Shell<'_> {
    /// Walks a script; what it prints, as far as that is known.
    pub(super) fn script(&mut self, text: &str, stdin: &Value) -> Value {
        if self.is_over() || text.trim().is_empty() {
            return Value::default();
        }
        if self.depth >= limits::CALLS_MAX {
            let why = "It calls itself too deeply to be checked.";
            self.refuse(Refusal::new(Category::Unreadable, text, why), text);
            return Value::default();
        }
        if let Some(why) = limits::beyond(text) {
            self.refuse(Refusal::new(Category::Unreadable, text, why), text);
            return Value::default();
        }
        // The parser takes a continued line for two words in some places; a shell never does.
        let text = continued(text);
        let program =
            Parser::new(std::io::Cursor::new(text.as_bytes()), &ParserOptions::default()).parse_program();
        let Ok(program) = program else {
            let why = "It is not a command that a shell can read.";
            self.refuse(Refusal::new(Category::Unreadable, text.as_ref(), why), &text);
            return Value::default();
        };
        self.depth += 1;
        let mut out = Value::default();
        for list in &program.complete_commands {
            out.push(&self.list(list, stdin));
        }
        self.depth -= 1;
        out
    }

    fn list(&mut self, list: &CompoundList, stdin: &Value) -> Value {
        let mut out = Value::default();
        for item in &list.0 {
            out.push(&self.pipeline(&item.0.first, stdin));
            for next in &item.0.additional {
                let (AndOr::And(pipeline) | AndOr::Or(pipeline)) = next;
                out.push(&self.pipeline(pipeline, stdin));
            }
            if self.is_over() {
                break;
            }
        }
        out
    }

    fn pipeline(&mut self, pipeline: &ast::Pipeline, stdin: &Value) -> Value {
        let mut passed = stdin.clone();
        let narrowed = match pipeline.seq.as_slice() {
            [first, filter, ..] => narrowed::is_harmless(&first.to_string(), &filter.to_string()),
            _ => false,
        };
        if narrowed {
            passed = Value::unknown(Taint::default());
        }
        for command in pipeline.seq.iter().skip(usize::from(narrowed)) {
            if self.is_over() {
                break;
            }
            passed = self.command(command, &passed);
        }
        passed
    }

    fn command(&mut self, command: &Command, stdin: &Value) -> Value {
        match command {
            Command::Simple(simple) => self.simple(simple, stdin),
            Command::Compound(compound, redirects) => {
                let mut parts = Parts::default();
                for redirect in redirects.iter().flat_map(|list| &list.0) {
                    self.redirect(redirect, &mut parts);
                }
                let stdin = parts.stdin.take().unwrap_or_else(|| stdin.clone());
                let out = self.compound(compound, &stdin);
                self.written(&parts, &out);
                out
            }
            Command::Function(function) => {
                self.define(function);
                Value::default()
            }
            Command::ExtendedTest(test, _) => {
                for word in test_words(&test.expr) {
                    let value = self.text(&word);
                    self.arithmetic(&value.text);
                }
                Value::default()
            }
        }
    }

    fn compound(&mut self, compound: &CompoundCommand, stdin: &Value) -> Value {
        match compound {
            CompoundCommand::BraceGroup(group) => self.list(&group.list, stdin),
            CompoundCommand::Subshell(sub) => {
                let (cwd, vars) = (self.cwd.clone(), self.vars.clone());
                let out = self.list(&sub.list, stdin);
                (self.cwd, self.vars) = (cwd, vars);
                out
            }
            CompoundCommand::ForClause(clause) => {
                let values: Vec<Field> = match &clause.values {
                    Some(words) => words.iter().flat_map(|word| self.fields(word)).collect(),
                    None => self.positional.clone().unwrap_or_default(),
                };
                let mut out = Value::default();
                for value in values.into_iter().take(LOOP_MAX) {
                    self.vars.insert(clause.variable_name.clone(), vec![value]);
                    out.push(&self.list(&clause.body.list, stdin));
                }
                out
            }
            CompoundCommand::CaseClause(case) => {
                let mut out = Value::default();
                self.fields(&case.value);
                for body in case.cases.iter().filter_map(|case| case.cmd.as_ref()) {
                    out.push(&self.list(body, stdin));
                }
                out
            }
            CompoundCommand::IfClause(clause) => {
                let mut out = self.list(&clause.condition, stdin);
                out.push(&self.list(&clause.then, stdin));
                for other in clause.elses.iter().flatten() {
                    for list in other.condition.iter().chain([&other.body]) {
                        out.push(&self.list(list, stdin));
                    }
                }
                out
            }
            CompoundCommand::WhileClause(clause) | CompoundCommand::UntilClause(clause) => {
                let mut out = self.list(&clause.0, stdin);
                out.push(&self.list(&clause.1.list, stdin));
                out
            }
            CompoundCommand::ArithmeticForClause(clause) => {
                for part in [&clause.initializer, &clause.condition, &clause.updater].into_iter().flatten() {
                    self.arithmetic(&part.value);
                }
                self.list(&clause.body.list, stdin)
            }
            CompoundCommand::Arithmetic(command) => {
                self.arithmetic(&command.expr.value);
                Value::default()
            }
            CompoundCommand::Coprocess(process) => self.command(&process.body, stdin),
        }
    }

    /// A function is looked at when it is defined, with any arguments, and again at each call.
    fn define(&mut self, function: &ast::FunctionDefinition) {
        let name = function.fname.value.clone();
        let body = function.body.to_string();
        let calls_itself = body.split(|c: char| c.is_whitespace() || "|&;(){}".contains(c));
        if calls_itself.filter(|word| *word == name).count() >= 2 && body.contains(['|', '&']) {
            let why = "The function starts copies of itself without end.";
            self.refuse(Refusal::new(Category::Kill, &body, why), &body);
        }
        self.functions.insert(name.clone(), function.body.clone());
        let before = self.positional.take();
        self.call_body(&name, &function.body, &Value::default());
        self.positional = before;
    }

    /// Walks the body of a function with the arguments that are set.
    pub(super) fn call_body(&mut self, name: &str, body: &ast::FunctionBody, stdin: &Value) -> Value {
        if self.calling.iter().any(|one| one == name) || self.calling.len() >= limits::CALLS_MAX {
            return Value::unknown(Taint::default());
        }
        self.calling.push(name.to_owned());
        let out = self.compound(&body.0, stdin);
        self.calling.pop();
        out
    }

    fn simple(&mut self, simple: &SimpleCommand, stdin: &Value) -> Value {
        let mut parts = Parts { raw: simple.to_string(), ..Parts::default() };
        if !self.step(&parts.raw) {
            return Value::default();
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
        let stdin = own_stdin.as_ref().unwrap_or(stdin);
        if parts.words.is_empty() {
            // `$(<file)` prints the file.
            let out = own_stdin.clone().unwrap_or_default();
            self.vars.extend(std::mem::take(&mut parts.assigned));
            self.written(&parts, &out);
            return out;
        }
        let before: Vec<_> =
            parts.assigned.iter().map(|(name, _)| (name.clone(), self.vars.get(name).cloned())).collect();
        self.vars.extend(parts.assigned.clone());
        for (name, value) in &parts.assigned {
            let text = value.first().map(|field| field.text.as_str()).unwrap_or_default();
            let text = text.to_owned();
            self.assigned_value(name, &text, &parts.raw);
        }
        let out = self.invoke(parts.words.clone(), stdin);
        for (name, value) in before {
            match value {
                Some(value) => drop(self.vars.insert(name, value)),
                None => drop(self.vars.remove(&name)),
            }
        }
        self.written(&parts, &out);
        out
    }

    fn item(&mut self, item: &Item, parts: &mut Parts) {
        match item {
            Item::Word(word) => {
                let fields = self.fields(word);
                parts.words.extend(fields);
            }
            Item::IoRedirect(redirect) => self.redirect(redirect, parts),
            Item::ProcessSubstitution(_, sub) => {
                let field = self.substituted_file(&sub.list);
                parts.words.push(field);
            }
            // `export A=b` has its assignment among the arguments.
            Item::AssignmentWord(assignment, word) if !parts.words.is_empty() => {
                let value = self.assigned(&assignment.value);
                let text = value.first().map(|field| field.text.clone()).unwrap_or_default();
                let taint = value.first().map(|field| field.taint).unwrap_or_default();
                let name = word.value.split(['=', '+']).next().unwrap_or_default();
                parts.words.push(Field { text: format!("{name}={text}"), glob: false, taint });
            }
            Item::AssignmentWord(assignment, _) => {
                let value = self.assigned(&assignment.value);
                let AssignmentName::VariableName(name) = &assignment.name else {
                    let AssignmentName::ArrayElementName(name, index) = &assignment.name else { return };
                    self.arithmetic(index);
                    self.vars.entry(name.clone()).or_default().extend(value);
                    return;
                };
                let value = match (assignment.append, self.vars.get(name)) {
                    (true, Some(before)) => appended(before, &value, &assignment.value),
                    _ => value,
                };
                parts.assigned.push((name.clone(), value));
            }
        }
    }

    fn assigned(&mut self, value: &AssignmentValue) -> Vec<Field> {
        match value {
            AssignmentValue::Scalar(word) => vec![self.text(word).into()],
            AssignmentValue::Array(words) => words.iter().flat_map(|(_, word)| self.fields(word)).collect(),
        }
    }

    /// A process whose output is given as a file.
    fn substituted_file(&mut self, list: &CompoundList) -> Field {
        let out = self.list(list, &Value::default());
        let name = format!("/dev/fd/{}", 63 + self.substitutions);
        self.substitutions += 1;
        let taint = out.taint;
        self.files.insert(name.clone(), out);
        Field { text: name, glob: false, taint }
    }

    fn redirect(&mut self, redirect: &IoRedirect, parts: &mut Parts) {
        match redirect {
            IoRedirect::HereDocument(_, document) => {
                let value = match document.requires_expansion {
                    true => self.here_document(&document.doc.value),
                    false => Value::known(document.doc.value.clone()),
                };
                parts.stdin = Some(value);
            }
            IoRedirect::HereString(_, word) => {
                let mut value = self.text(word);
                value.push(&Value::known("\n"));
                parts.stdin = Some(value);
            }
            IoRedirect::OutputAndError(word, _) => {
                let target = self.text(word).text;
                self.connects(&target, &parts.raw);
                parts.writes.push(target);
            }
            IoRedirect::File(_, kind, target) => self.file_redirect(kind, target, parts),
        }
    }

    fn file_redirect(&mut self, kind: &IoFileRedirectKind, target: &IoFileRedirectTarget, parts: &mut Parts) {
        let name = match target {
            IoFileRedirectTarget::Filename(word) | IoFileRedirectTarget::Duplicate(word) => {
                self.text(word).text
            }
            IoFileRedirectTarget::ProcessSubstitution(_, sub) => self.substituted_file(&sub.list).text,
            IoFileRedirectTarget::Fd(_) => return,
        };
        self.connects(&name, &parts.raw);
        match kind {
            IoFileRedirectKind::Read | IoFileRedirectKind::ReadAndWrite => {
                let path = self.path(&name);
                self.judged(rules::reads(&path, &parts.raw, self.places), &parts.raw);
                parts.stdin = Some(self.content(&path));
            }
            IoFileRedirectKind::DuplicateInput | IoFileRedirectKind::DuplicateOutput
                if name.bytes().all(|b| b.is_ascii_digit() || b == b'-') => {}
            _ => parts.writes.push(name),
        }
    }

    /// Files that are connections.
    fn connects(&mut self, name: &str, raw: &str) {
        if name.starts_with("/dev/tcp/") || name.starts_with("/dev/udp/") {
            let why = "It connects a command to a machine far away.";
            self.refuse(Refusal::new(Category::ReverseShell, raw, why), raw);
        }
    }

    /// What is known of a file's text.
    pub(super) fn content(&self, path: &str) -> Value {
        let secret = self.places.holds_secrets(path);
        let known = self.files.get(path).cloned();
        known.unwrap_or_else(|| Value::unknown(Taint { secret, ..Taint::default() }))
    }

    /// Shows the files that a command writes to the rules, and remembers what is in them.
    fn written(&mut self, parts: &Parts, out: &Value) {
        for name in &parts.writes {
            let path = self.path(name);
            self.judged(rules::writes(&path, &parts.raw, self.places), &parts.raw);
            if self.files.len() < 64 && !name.contains(UNKNOWN) {
                self.files.entry(path).or_default().push(out);
            }
        }
    }

    /// Keeps what a rule has refused.
    pub(super) fn judged(&mut self, refusal: Option<Refusal>, words: &str) {
        if let Some(refusal) = refusal {
            self.refuse(refusal, words);
        }
    }
}

/// The text without its continued lines. Those in a quoted here-document stay: there, a backslash is a backslash.
fn continued(text: &str) -> std::borrow::Cow<'_, str> {
    match text.contains("\\\n") && !text.contains("<<") {
        true => text.replace("\\\n", "").into(),
        false => text.into(),
    }
}

fn appended(before: &[Field], added: &[Field], value: &AssignmentValue) -> Vec<Field> {
    match (value, before.last(), added.first()) {
        (AssignmentValue::Scalar(_), Some(last), Some(first)) => {
            let text = format!("{}{}", last.text, first.text);
            vec![Field { text, glob: last.glob || first.glob, taint: last.taint.and(first.taint) }]
        }
        _ => before.iter().chain(added).cloned().collect(),
    }
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
