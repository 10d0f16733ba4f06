//! Finds commands and files in a tool call: for known agents' tools, and by argument names for all others (above all
//! MCP servers).

use super::allow::AllowRules;
use super::category::{Category, Refusal};
use super::paths::{Guards, PathRules};
use super::rules::{CallSite, Rules};
use super::shell::Shell;
use serde_json::Value;
use std::collections::HashMap;

const COMMANDS: &[&str] =
    &["command", "cmd", "script", "shell", "commandline", "command_line", "bash", "commands", "chars"];
/// Arguments that hold code of another language, or a statement.
const CODE: &[&str] = &["code", "sql", "query", "statement"];
const PATHS: &[&str] = &[
    "file_path",
    "filepath",
    "path",
    "paths",
    "absolute_path",
    "notebook_path",
    "filename",
    "file",
    "files",
    "source",
    "destination",
    "target",
    "dir",
    "directory",
    "uri",
    "old_path",
    "new_path",
    "target_file",
    "relative_path",
    "dir_path",
];
/// Words in the name of a read-only tool.
const LOOKS: &[&str] =
    &["read", "view", "grep", "glob", "list", "search", "find", "cat", "get", "ls", "open", "info", "stat"];
/// Words in the name of a tool that makes changes.
const CHANGES: &[&str] = &[
    "write", "edit", "create", "delete", "remove", "move", "rename", "update", "patch", "replace", "append",
    "save", "notebook", "put", "copy", "mkdir",
];
/// Tools without local commands and files.
const HARMLESS: &[&str] = &[
    "todowrite",
    "task",
    "agent",
    "websearch",
    "webfetch",
    "exitplanmode",
    "askuserquestion",
    "skill",
    "toolsearch",
    "bashoutput",
    "killshell",
    "update_plan",
    "taskoutput",
];
const DEPTH_MAX: usize = 6;
const TEXTS_MAX: usize = 400;

pub(super) fn judge(paths: &PathRules, allow: &AllowRules, tool: &str, input: &Value) -> Option<Refusal> {
    let name = tool.to_lowercase();
    if HARMLESS.contains(&name.as_str()) {
        return None;
    }
    // Codex sends its patch as text, or as the text of a field.
    if name.contains("apply_patch") {
        let text = input
            .as_str()
            .or_else(|| input["input"].as_str())
            .or_else(|| input["patch"].as_str())
            .or_else(|| input["command"].as_str());
        let inner = input["command"].as_array().and_then(|list| list.last()?.as_str());
        return patch(paths, allow, text.or(inner).unwrap_or_default());
    }
    let short = name.rsplit("__").next().unwrap_or(&name).to_owned();
    let changes = CHANGES.iter().any(|word| short.contains(word));
    let looks = !changes && LOOKS.iter().any(|word| short.contains(word));
    let mut judging = Judging { paths, allow, tool, looks, texts: 0 };
    judging.value("", input, 0)
}

pub(super) fn command(paths: &PathRules, allow: &AllowRules, command: &str) -> Option<Refusal> {
    let allows =
        |category: Category, words: &str| allow.allow(category, words) || allow.allow(category, command);
    with_rules(command, |rules| Shell::new(rules, paths, &allows).judge(command))
}

/// Without rules, everything is refused.
fn with_rules(what: &str, judge: impl FnOnce(&'static Rules) -> Option<Refusal>) -> Option<Refusal> {
    match Rules::load() {
        Some(rules) => judge(rules),
        None => Some(Refusal::new(Category::Unreadable, what, "The guard's rules are broken.")),
    }
}

struct Judging<'a> {
    paths: &'a PathRules,
    allow: &'a AllowRules,
    tool: &'a str,
    looks: bool,
    texts: usize,
}

impl Judging<'_> {
    fn value(&mut self, key: &str, value: &Value, depth: usize) -> Option<Refusal> {
        if depth > DEPTH_MAX || self.texts > TEXTS_MAX {
            let why = "Its arguments are more than can be checked.";
            return Some(Refusal::new(Category::Unreadable, self.tool, why));
        }
        match value {
            Value::String(text) => self.text(key, text),
            Value::Array(list) if COMMANDS.contains(&key) => self.words(list),
            Value::Array(list) => list.iter().find_map(|one| self.value(key, one, depth + 1)),
            Value::Object(map) => {
                map.iter().find_map(|(key, one)| self.value(&key.to_lowercase(), one, depth + 1))
            }
            _ => None,
        }
    }

    fn text(&mut self, key: &str, text: &str) -> Option<Refusal> {
        self.texts += 1;
        if COMMANDS.contains(&key) {
            return command(self.paths, self.allow, text);
        }
        if CODE.contains(&key) && !self.looks {
            return self.unless_allowed(with_rules(text, |rules| {
                let (cwd, vars) = (&self.paths.cwd, &HashMap::new());
                rules.judge(&rules.call(
                    "sql",
                    &[text.to_owned()],
                    "",
                    CallSite { paths: self.paths, cwd, vars },
                ))
            }));
        }
        if PATHS.contains(&key) {
            return self.path(text);
        }
        None
    }

    /// A program and its arguments; a shell's are parsed.
    fn words(&mut self, list: &[Value]) -> Option<Refusal> {
        let words: Vec<String> = list.iter().filter_map(|word| word.as_str().map(str::to_owned)).collect();
        if words.is_empty() {
            return None;
        }
        let allows = |category: Category, line: &str| self.allow.allow(category, line);
        with_rules(self.tool, |rules| Shell::new(rules, self.paths, &allows).judge_words(&words))
    }

    fn path(&self, text: &str) -> Option<Refusal> {
        let path = self.paths.resolve(&self.paths.cwd, text.strip_prefix("file://").unwrap_or(text));
        let what = format!("{} {text}", self.tool);
        let access = if self.looks { Guards::Reading } else { Guards::Writing };
        let class = self.paths.judge(&path, access);
        self.unless_allowed(class.map(|(category, why)| Refusal::new(category, what, why)))
    }

    fn unless_allowed(&self, refusal: Option<Refusal>) -> Option<Refusal> {
        refusal.filter(|refusal| !self.allow.allow(refusal.category, &refusal.what))
    }
}

/// The files that a codex patch touches.
fn patch(paths: &PathRules, allow: &AllowRules, text: &str) -> Option<Refusal> {
    let heads = ["*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: "];
    let files = text.lines().filter_map(|line| heads.iter().find_map(|head| line.strip_prefix(head)));
    files.take(TEXTS_MAX).find_map(|file| {
        let path = paths.resolve(&paths.cwd, file.trim());
        let what = format!("apply_patch {file}");
        let (category, why) = paths.judge(&path, Guards::Writing)?;
        (!allow.allow(category, &what)).then(|| Refusal::new(category, what, why))
    })
}
