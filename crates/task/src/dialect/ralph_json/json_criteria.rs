//! The acceptance criteria of `ralph.json`: each type has its own keys.

use crate::criterion::{Check, Criterion, ExpectedOutput, Pattern, Span};
use crate::dialect::diagnostic::{Findings, Lines};
use crate::dialect::json;
use crate::dialect::json::Node;
use crate::dialect::names;
use crate::dialect::ralph_json::{Entry, KINDS, OUTPUT_KEYS};
use crate::dialect::ralph_task_md::check_command;
use ralph_loop_protocol::display::text::one_line;
use std::collections::BTreeMap;

pub(in crate::dialect) struct Criteria<'a> {
    pub lines: &'a Lines<'a>,
    pub found: &'a mut Findings,
}

impl Criteria<'_> {
    /// Parses all of them; `list` is their position.
    pub(in crate::dialect) fn read(&mut self, entries: &[Entry], list: Option<&Node>) -> Vec<Criterion> {
        let nodes = list.map(Node::items).unwrap_or_default();
        let mut ids: BTreeMap<String, usize> = BTreeMap::new();
        let mut out = Vec::with_capacity(entries.len());
        for (at, entry) in entries.iter().enumerate() {
            let place = nodes.get(at).map_or(Span::START, |node| self.lines.place(node.range.start));
            let id = entry.id.clone().unwrap_or_else(|| format!("C{}", at + 1));
            if !names::is_usable_id(&id) {
                let message = format!("the id `{}` is not usable", one_line(&id, 60));
                let fix = "use letters, digits, `-`, `_` and `.`";
                self.found.error("bad-id", place, message, fix);
            }
            if let Some(line) = ids.insert(id.clone(), place.line) {
                let message = format!("the id `{id}` is used twice; the first is in line {line}");
                let fix = "give each criterion a unique id";
                self.found.error("duplicate-id", place, message, fix);
            }
            let Some(check) = self.check(entry, &id, place) else { continue };
            let text = match entry.description.as_deref().map(str::trim).filter(|text| !text.is_empty()) {
                Some(text) => one_line(text, 4_000),
                None => check.describe(),
            };
            out.push(Criterion { id, text, milestone: None, check, ticked: false, place });
        }
        out
    }

    fn check(&mut self, entry: &Entry, id: &str, place: Span) -> Option<Check> {
        let Some((kind, needed)) = KINDS.iter().find(|(kind, _)| *kind == entry.kind) else {
            let fix = json::unknown_key_fix(&entry.kind, KINDS.iter().map(|(kind, _)| *kind));
            let message = format!("unknown criterion type `{}`", one_line(&entry.kind, 60));
            let fix = fix.replace("the keys are", "the types are");
            self.found.error("unknown-type", place, message, fix);
            return None;
        };
        let given = [
            ("command", entry.command.is_some()),
            ("path", entry.path.is_some()),
            ("pattern", entry.pattern.is_some()),
            ("contains", entry.contains.is_some()),
            ("equals", entry.equals.is_some()),
        ];
        let judges_output = *kind == "command_output";
        let mut fine = true;
        for (key, is_given) in given {
            if judges_output && OUTPUT_KEYS.contains(&key) {
                continue;
            }
            let problem = match (needed.contains(&key), is_given) {
                (true, false) => format!("`{id}` is of type `{kind}`, but has no `{key}`"),
                (false, true) => format!("`{id}` is of type `{kind}`, which has no `{key}`"),
                _ => continue,
            };
            fine = false;
            let fix = match needed {
                [] => "this type has no keys but `id` and `description`".to_owned(),
                keys => format!(
                    "this type has {}",
                    keys.iter().map(|k| format!("`{k}`")).collect::<Vec<_>>().join(" and ")
                ),
            };
            self.found.error("wrong-keys", place, problem, fix);
        }
        if let Some(command) = &entry.command {
            check_command(command, "command", place, self.found);
        }
        if let Some(path) = &entry.path
            && let Some(problem) = names::path_problem(path)
        {
            let message = format!("invalid path `{}` in `{id}`: {problem}", one_line(path, 80));
            let fix = "name a file below the working folder";
            self.found.error("bad-path", place, message, fix);
            fine = false;
        }
        if judges_output {
            let output = ExpectedOutput::of_keys(
                entry.pattern.as_deref(),
                entry.contains.clone(),
                entry.equals.clone(),
            );
            return match (entry.command.clone().filter(|_| fine), output) {
                (Some(command), Ok(output)) => Some(Check::CommandOutput { command, output }),
                (_, Err(problem)) => {
                    let problem = format!("`{id}`: {problem}");
                    let fix = "add for example `\"contains\": \"3 items\"`; `\\\\.` matches a dot in JSON";
                    self.found.error("bad-output", place, problem, fix);
                    None
                }
                (None, Ok(_)) => None,
            };
        }
        let pattern = match entry.pattern.as_deref().map(Pattern::parse) {
            Some(Err(problem)) => {
                let fix = "write a regular expression; `\\\\.` matches a dot in JSON";
                self.found.error("bad-pattern", place, problem, fix);
                return None;
            }
            Some(Ok(pattern)) => Some(pattern),
            None => None,
        };
        if !fine {
            return None;
        }
        match (*kind, entry.command.clone(), entry.path.clone(), pattern) {
            ("file_exists", _, Some(path), _) => Some(Check::FileExists { path }),
            ("file_contains", _, Some(path), Some(pattern)) => Some(Check::FileContains { path, pattern }),
            ("command_succeeds", Some(command), _, _) => Some(Check::Command { command }),
            ("pr_checks_pass", ..) => Some(Check::PrChecksPass),
            ("pr_approved", ..) => Some(Check::PrApproved),
            _ => None,
        }
    }
}
