//! `ralph.json`, version 2: a task as JSON, with typed acceptance criteria and a pull request at the end.

pub(super) mod json_criteria;

use super::diagnostic::{Findings, Lines};
use super::json::{self, ObjectShape};
use super::ralph_task_md::check_command;
use super::task_file::{Dialect, GitChoice, PrChoice, Publish, TaskFile};
use super::template::{self, Vars};
use super::{TaskTexts, names};
use crate::config::{CommandLine, Mode, RequiredProof, TestsPolicy};
use crate::criterion::Span;
use crate::dialect::ralph_json::json_criteria::Criteria;
use ralph_loop_protocol::display::text::one_line;
use ralph_loop_protocol::money::Usd;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The file as written.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RalphJson {
    /// Editor hint; ignored.
    #[serde(rename = "$schema", default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
    /// Format version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("const" = 2)))]
    pub version: Option<u32>,
    /// The task; the first line is the title.
    #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
    pub task: String,
    /// The value of `{{ticket_id}}` in templates; also the id of the task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ticket_id: Option<String>,
    /// The repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repository: Option<Repository>,
    /// Branch, author and pull request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git: Option<GitSection>,
    /// The acceptance criteria. At least one, unless the configuration has verifiers.
    #[serde(default)]
    pub acceptance_criteria: Vec<Entry>,
    /// Most iterations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub max_iterations: Option<u32>,
    /// Tokens, money and time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<BudgetSection>,
    /// Files shown to the agent, relative to the repository.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub context_files: Vec<String>,
    /// Rules for every session.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<String>,
    /// Commands that prepare a clean checkout for its checks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub setup_commands: Vec<CommandLine>,
    /// Paths or globs that must stay unchanged.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub protected_paths: Vec<String>,
    /// What the run may do to the original tests; default: `additive`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tests: Option<TestsPolicy>,
    /// What the dashboard and the API may do to the run; default: `autonomous`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// The minimum strength of the proof.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub require_proof: Option<RequiredProof>,
}

/// The repository.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
#[cfg_attr(feature = "schema", schemars(inline))]
pub struct Repository {
    /// The URL to clone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The branch to start from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The folder for the agent, relative to the repository.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub working_dir: Option<String>,
}

/// Branch, author and pull request.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
#[cfg_attr(feature = "schema", schemars(inline))]
pub struct GitSection {
    /// The branch of the run, a template: `feature/ralph-{{ticket_id}}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub feature_branch: Option<String>,
    /// Author name of commits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit_author: Option<String>,
    /// Author email of commits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit_email: Option<String>,
    /// Open a pull request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub create_pr: Option<bool>,
    /// Its title, a template.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pr_title: Option<String>,
    /// Its text, a template.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pr_body_template: Option<String>,
}

/// Tokens and money.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
#[cfg_attr(feature = "schema", schemars(inline))]
pub struct BudgetSection {
    /// Most tokens in total.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub max_tokens: Option<u64>,
    /// Most money.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_cost_usd: Option<Usd>,
    /// Most working time; waits don't count.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("exclusiveMinimum" = 0)))]
    pub max_wall_time_minutes: Option<f64>,
}

/// An acceptance criterion: a condition and how it is checked.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", schemars(rename = "criterion", transform = criterion_kinds))]
pub struct Entry {
    /// How it is checked.
    #[serde(rename = "type")]
    pub kind: String,
    /// A unique id; default `C1`, `C2`, ….
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(
        feature = "schema",
        schemars(regex(pattern = "^[A-Za-z0-9_][A-Za-z0-9._-]*$"), length(max = 64))
    )]
    pub id: Option<String>,
    /// As text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// For `command_succeeds` and `command_output`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<CommandLine>,
    /// For `file_exists` and `file_contains`, relative to the working folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// For `file_contains` and `command_output`: a regular expression; also written `matches`.
    #[serde(default, alias = "matches", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
    pub pattern: Option<String>,
    /// For `command_output`: text that must be in the output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
    pub contains: Option<String>,
    /// For `command_output`: the only output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub equals: Option<String>,
}

/// Every kind of criterion, with its required keys. `command_output` also needs one of [`OUTPUT_KEYS`].
pub const KINDS: &[(&str, &[&str])] = &[
    ("file_exists", &["path"]),
    ("file_contains", &["path", "pattern"]),
    ("command_succeeds", &["command"]),
    ("command_output", &["command"]),
    ("pr_checks_pass", &[]),
    ("pr_approved", &[]),
];

/// The keys that judge an output; one of them is given.
pub const OUTPUT_KEYS: [&str; 4] = ["pattern", "matches", "contains", "equals"];

#[cfg(feature = "schema")]
fn criterion_kinds(schema: &mut schemars::Schema) {
    let kinds: Vec<&str> = KINDS.iter().map(|(kind, _)| *kind).collect();
    if let Some(kind) = schema.pointer_mut("/properties/type") {
        kind["enum"] = serde_json::json!(kinds);
    }
    let branch = |(kind, needed): &(&str, &[&str])| {
        let required: Vec<&str> = std::iter::once("type").chain(needed.iter().copied()).collect();
        let mut branch =
            serde_json::json!({ "properties": { "type": { "const": kind } }, "required": required });
        if *kind == "command_output" {
            branch["oneOf"] =
                OUTPUT_KEYS.iter().map(|key| serde_json::json!({ "required": [key] })).collect();
        }
        branch
    };
    schema.insert("oneOf".to_owned(), serde_json::Value::Array(KINDS.iter().map(branch).collect()));
}

fn shape() -> ObjectShape {
    ObjectShape::of::<RalphJson>()
        .with("repository", ObjectShape::of::<Repository>())
        .with("git", ObjectShape::of::<GitSection>())
        .with("budget", ObjectShape::of::<BudgetSection>())
        .with("acceptance_criteria", ObjectShape::of::<Entry>())
}

pub(crate) fn read(files: &TaskTexts, found: &mut Findings) -> Option<TaskFile> {
    let (file, text) = (files.name(), files.text());
    let lines = Lines::new(text);
    let document = json::read::<RalphJson>(text, &shape(), &lines, found)?;
    let (written, root) = (document.value, document.root);
    let mut reader = RalphJsonReader { keys: json::key_places(&root, &lines), found };
    reader.values(&written);
    reader.templates(&written);
    let keys = reader.keys;
    let mut criteria = Criteria { lines: &lines, found };
    let criteria = criteria.read(&written.acceptance_criteria, root.get("acceptance_criteria"));

    let title = written.task.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("task");
    let title = one_line(title.trim_start_matches('#').trim(), 80);
    let goal = written.task.replace("\r\n", "\n").trim().to_owned();
    let mut task = TaskFile::new(Dialect::RalphJson, file, &title, goal);
    task.criteria = criteria;
    task.keys = keys;
    fill_in(&mut task, written);
    Some(task)
}

fn without_blanks(repository: Repository) -> Repository {
    Repository {
        url: names::non_blank(repository.url),
        branch: names::non_blank(repository.branch),
        working_dir: names::non_blank(repository.working_dir),
    }
}

fn fill_in(task: &mut TaskFile, written: RalphJson) {
    if let Some(ticket) = written.ticket_id {
        task.task_id = if names::is_usable_id(&ticket) { ticket.clone() } else { names::slug(&ticket) };
        task.ticket_id = Some(ticket);
    }
    let repository = without_blanks(written.repository.unwrap_or_default());
    let git = written.git.unwrap_or_default();
    let publish = match (git.create_pr, &repository.url) {
        (Some(true), _) => Publish::Pr,
        // A clone is removed after the run: without a push the work would be lost.
        (_, Some(_)) => Publish::Push,
        (_, None) => Publish::None,
    };
    task.git = GitChoice {
        repo_url: repository.url,
        base_branch: repository.branch,
        branch: Some(git.feature_branch.unwrap_or_else(|| names::branch(&task.task_id, &task.slug))),
        working_dir: repository.working_dir.map(|dir| dir.trim_end_matches('/').to_owned()),
        commit_author: git.commit_author.clone(),
        commit_email: git.commit_email.clone(),
        create_pr: git.create_pr,
        publish: Some(publish),
    };
    task.pr =
        PrChoice { title_template: git.pr_title, body_template: git.pr_body_template, ..PrChoice::default() };
    let budget = written.budget.unwrap_or_default();
    let settings = &mut task.settings;
    settings.commit_author = git.commit_author;
    settings.commit_email = git.commit_email;
    settings.max_iterations = written.max_iterations;
    settings.max_tokens_total = budget.max_tokens;
    settings.max_cost_usd_estimate = budget.max_cost_usd;
    settings.max_wall_time_minutes = budget.max_wall_time_minutes;
    settings.tests = written.tests;
    settings.mode = written.mode;
    settings.require_proof = written.require_proof;
    settings.completion = Some(crate::config::Completion::Checks);
    settings.setup_commands = (!written.setup_commands.is_empty()).then_some(written.setup_commands);
    settings.protected_paths.get_or_insert_default().extend(written.protected_paths);
    task.context_files = written.context_files;
    task.rules = written.rules;
}

struct RalphJsonReader<'a> {
    keys: BTreeMap<String, Span>,
    found: &'a mut Findings,
}

impl RalphJsonReader<'_> {
    fn refuse(&mut self, rule: &'static str, key: &str, message: String, fix: &str) {
        let place = self.keys.get(key).copied().unwrap_or_default();
        self.found.error(rule, place, message, fix);
    }

    fn values(&mut self, written: &RalphJson) {
        if let Some(version) = written.version.filter(|version| *version != 2) {
            let message = format!("`version` is {version}, but this ralph reads version 2");
            self.refuse("bad-version", "version", message, "write `\"version\": 2`, or leave it out");
        }
        if written.task.trim().is_empty() {
            self.refuse("empty-task", "task", "`task` is empty".into(), "describe the task");
        }
        let budget = written.budget.clone().unwrap_or_default();
        let positive = [
            ("max_iterations", written.max_iterations.map(f64::from)),
            ("budget.max_tokens", budget.max_tokens.map(|n| n as f64)),
            ("budget.max_wall_time_minutes", budget.max_wall_time_minutes),
        ];
        for (key, value) in positive {
            if value.is_some_and(|v| !v.is_finite() || v <= 0.0) {
                let message = format!("`{key}` must be more than 0");
                self.refuse("bad-number", key, message, "give a positive number, or leave it out");
            }
        }
        let repository = without_blanks(written.repository.clone().unwrap_or_default());
        if let Some(problem) = repository.url.as_deref().and_then(names::url_problem) {
            let message = format!("can't clone from `repository.url`: {problem}");
            let fix = "name the repository as `git clone` takes it";
            self.refuse("bad-url", "repository.url", message, fix);
        }
        if let Some(dir) = &repository.working_dir
            && let Some(problem) = names::path_problem(dir)
        {
            let message = format!("invalid working folder `{}`: {problem}", one_line(dir, 80));
            self.refuse("bad-path", "repository.working_dir", message, "name a folder below the repository");
        }
        if let Some(branch) = &repository.branch
            && let Some(problem) = names::branch_problem(branch)
        {
            let message = format!("invalid branch name `{}`: {problem}", one_line(branch, 80));
            self.refuse("bad-branch", "repository.branch", message, "name a branch of the repository");
        }
        for path in &written.context_files {
            if let Some(problem) = names::path_problem(path) {
                let message = format!("invalid context file `{}`: {problem}", one_line(path, 80));
                self.refuse("bad-path", "context_files", message, "name a file below the repository");
            }
        }
        let place = self.keys.get("setup_commands").copied().unwrap_or_default();
        for command in &written.setup_commands {
            check_command(command, "setup_commands", place, self.found);
        }
    }

    fn templates(&mut self, written: &RalphJson) {
        let git = written.git.clone().unwrap_or_default();
        let mut wants_ticket = Vec::new();
        for (key, text) in [
            ("task", Some(&written.task)),
            ("git.feature_branch", git.feature_branch.as_ref()),
            ("git.pr_title", git.pr_title.as_ref()),
            ("git.pr_body_template", git.pr_body_template.as_ref()),
        ] {
            let Some(text) = text else { continue };
            if key != "task" {
                for (_, name) in template::unknown_names(text) {
                    let fix = json::unknown_key_fix(&name, template::NAMES.iter().copied());
                    self.refuse("unknown-name", key, format!("no template knows `{{{{{name}}}}}`"), &fix);
                }
            }
            if template::open_names(text).contains(&"ticket_id") {
                wants_ticket.push(key);
            }
        }
        if let Some(branch) = &git.feature_branch {
            let filled = template::NAMES.iter().fold(Vars::new(), |vars, name| vars.with(name, "x"));
            if let Some(problem) = names::branch_problem(&template::fill(branch, &filled)) {
                let message = format!("invalid branch name `{}`: {problem}", one_line(branch, 80));
                self.refuse(
                    "bad-branch",
                    "git.feature_branch",
                    message,
                    "for example `feature/ralph-{{ticket_id}}`",
                );
            }
        }
        if let (Some(key), None) = (wants_ticket.first(), &written.ticket_id) {
            let place = self.keys.get(*key).copied().unwrap_or_default();
            self.found.warning(
                "missing-ticket",
                place,
                format!("`{key}` names a ticket, but the file has no `ticket_id`"),
                "add `\"ticket_id\"`, or give it with `--ticket`",
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::parse;

    fn found(text: &str) -> Vec<crate::dialect::Diagnostic> {
        let mut found = Findings::of("ralph.json");
        read(&TaskTexts::new("ralph.json", text), &mut found);
        found.all
    }

    fn rules(text: &str) -> Vec<&'static str> {
        found(text).into_iter().map(|d| d.rule).collect()
    }

    fn criterion(entry: &str) -> String {
        format!("{{\"task\": \"t\", \"acceptance_criteria\": [\n  {entry}\n]}}")
    }

    #[test]
    fn a_whole_file_is_read_and_its_templates_filled() {
        let text = include_str!("testdata/ralph.json");
        let task = parse(Dialect::RalphJson, &TaskTexts::new("ralph.json", text)).unwrap();
        assert_eq!(task.criteria.len(), 6);
        assert!(task.needs_forge() && task.is_checkable());
        assert_eq!(task.git.publish, Some(Publish::Pr));
        assert_eq!(task.git.working_dir.as_deref(), Some("packages/api"));
        assert_eq!(task.settings.max_cost_usd_estimate, Some(Usd::from_dollars(5.0)));
        assert_eq!(task.keys["budget.max_tokens"].line, 29);
        let vars = task.vars();
        let task = task.filled(&vars);
        assert_eq!(task.git.branch.as_deref(), Some("feature/ralph-API-12"));
        assert_eq!(task.pr.title_template.as_deref(), Some("feat: Add the sign-in endpoint"));
    }

    #[test]
    fn every_optional_key_is_read() {
        let text = r#"{"task": "t", "mode": "guided", "tests": "additive", "require_proof": "own_tests"}"#;
        assert!(!rules(text).contains(&"unknown-key"), "{:?}", found(text));
    }

    #[test]
    fn unknown_and_repeated_keys_are_all_named_with_their_place() {
        let text =
            "{\n  \"task\": \"t\", \"tsk\": 1,\n  \"git\": {\"create_pull\": true},\n  \"task\": \"u\"\n}";
        let found = found(text);
        let seen: Vec<_> = found.iter().map(|d| (d.rule, d.line, d.column)).collect();
        assert_eq!(seen, [("unknown-key", 2, 16), ("unknown-key", 3, 11), ("duplicate-key", 4, 3)]);
        assert_eq!(found[0].fix, "did you mean `task`?");
    }

    #[test]
    fn each_criterion_needs_its_own_keys() {
        for (entry, rule) in [
            (r#"{"type":"file_exist","path":"a"}"#, "unknown-type"),
            (r#"{"type":"file_exists"}"#, "wrong-keys"),
            (r#"{"type":"pr_approved","path":"a"}"#, "wrong-keys"),
            (r#"{"type":"file_contains","path":"a","pattern":"("}"#, "bad-pattern"),
            (r#"{"type":"file_exists","path":"../x"}"#, "bad-path"),
            (r#"{"type":"command_succeeds","command":" "}"#, "bad-command"),
            (r#"{"type":"pr_approved","id":"a b"}"#, "bad-id"),
            (r#"{"type":"pr_approved","id":"C2"},{"type":"pr_approved"}"#, "duplicate-id"),
            (r#"{"type":7}"#, "wrong-type"),
        ] {
            assert_eq!(rules(&criterion(entry)), [rule], "{entry}");
        }
        let typo = &found(&criterion(r#"{"type":"file_exist","path":"a"}"#))[0];
        assert_eq!((typo.line, typo.fix.as_str()), (2, "did you mean `file_exists`?"));
    }

    #[test]
    fn values_that_cannot_hold_are_refused() {
        for (rest, rule) in [
            (r#""version": 1"#, "bad-version"),
            (r#""max_iterations": 0"#, "bad-number"),
            (r#""budget": {"max_tokens": 0}"#, "bad-number"),
            (r#""repository": {"working_dir": "/x"}"#, "bad-path"),
            (r#""repository": {"url": "https://a:b@c/d"}"#, "bad-url"),
            (r#""git": {"feature_branch": "a {{ticket_id}}"}, "ticket_id": "1""#, "bad-branch"),
            (r#""git": {"pr_title": "{{tikcet_id}}"}"#, "unknown-name"),
            (r#""git": {"pr_title": "{{ticket_id}}"}"#, "missing-ticket"),
            (r#""max_iterations": "3""#, "wrong-type"),
        ] {
            assert_eq!(rules(&format!("{{\"task\": \"t\", {rest}}}")), [rule], "{rest}");
        }
        assert_eq!(rules("{\"task\": \" \"}"), ["empty-task"]);
        assert_eq!(rules("{}"), ["wrong-type"]);
        assert_eq!(rules("[]"), ["not-json"]);
        assert_eq!(rules("{\"task\": \"t\",}"), ["not-json"]);
    }

    #[test]
    fn without_a_ticket_the_branch_is_still_stable() {
        let files = TaskTexts::new("ralph.json", "\u{feff}{\"task\": \"Fix typo in docs\"}");
        let one = parse(Dialect::RalphJson, &files).unwrap();
        let branch = one.git.branch.clone().unwrap();
        assert!(branch.starts_with("ralph/task-") && branch.ends_with("/fix-typo-in-docs"), "{branch}");
        assert_eq!(one, parse(Dialect::RalphJson, &files).unwrap());
        assert_eq!(one.git.publish, Some(Publish::None));
    }
}
