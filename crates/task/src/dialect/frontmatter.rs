//! The YAML frontmatter of `ralph_task.md`: its position, its keys, and errors with lines of the file.

use super::diagnostic::{Findings, Lines};
use super::json::unknown_key_fix;
use super::keys::keys_of;
use super::metric_section::MetricSection;
use crate::config::{CommandLine, Mode, RequiredProof, TestsPolicy};
use crate::criterion::{Span, VerifyCommand};
use ralph_loop_protocol::display::text::one_line;
use ralph_loop_protocol::money::Usd;
use serde::{Deserialize, Deserializer, Serialize};
use serde_saphyr::{Error, Spanned};
use std::collections::BTreeMap;
use std::ops::Range;

const MAX_BYTES: usize = 256 * 1024;

/// The byte ranges of a file's two parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrontmatterSplit {
    pub yaml: Range<usize>,
    pub body: Range<usize>,
}

/// Why a file has no frontmatter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SplitError {
    /// The first line is not `---`.
    Missing,
    /// No later line is `---` or `...`.
    Unclosed,
}

/// Finds the frontmatter. A byte order mark and CRLF line ends are fine.
pub fn split(text: &str) -> Result<FrontmatterSplit, SplitError> {
    let start = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    let mut yaml_start = None;
    let mut at = start;
    for line in text[start..].split_inclusive('\n') {
        let bare = line.trim_end();
        let next = at + line.len();
        match yaml_start {
            None if bare == "---" => yaml_start = Some(next),
            None => return Err(SplitError::Missing),
            Some(from) if bare == "---" || bare == "..." => {
                return Ok(FrontmatterSplit { yaml: from..at, body: next..text.len() });
            }
            Some(_) => {}
        }
        at = next;
    }
    Err(if yaml_start.is_some() { SplitError::Unclosed } else { SplitError::Missing })
}

/// The frontmatter.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
#[cfg_attr(feature = "schema", schemars(extend("required" = ["test_command", "max_iterations", "max_wall_time_minutes"], "anyOf" = [{"required": ["max_cost_usd_estimate"]}, {"required": ["max_tokens_total"]}])))]
pub struct Frontmatter {
    /// Stable id of the task: part of paths and of the branch.
    #[cfg_attr(
        feature = "schema",
        schemars(regex(pattern = "^[A-Za-z0-9_][A-Za-z0-9._-]*$"), length(max = 64))
    )]
    pub task_id: Option<String>,
    /// The repo to clone; without it the run works in the folder it is started in.
    pub repo_url: Option<String>,
    /// The branch to start from; may be another branch of `ralph`.
    pub base_branch: Option<String>,
    /// First part of the run's branch; default: `ralph/<task_id>/`.
    pub target_branch_prefix: Option<String>,
    /// Last part of the run's branch; default: from the title.
    pub target_branch_slug: Option<String>,
    /// The sandbox provider.
    #[cfg_attr(feature = "schema", schemars(extend("enum" = super::ralph_task_md::PROVIDERS)))]
    pub sandbox_provider: Option<String>,
    /// Image of the sandbox.
    pub sandbox_image: Option<String>,
    /// Size of the sandbox.
    pub sandbox_resources: Option<Resources>,
    /// Model profile.
    pub model_profile_default: Option<String>,
    /// Model profile to switch to when the run is stuck.
    pub model_profile_fallback: Option<String>,
    /// Most iterations.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub max_iterations: Option<u32>,
    /// Most working time; waits don't count.
    #[cfg_attr(feature = "schema", schemars(extend("exclusiveMinimum" = 0)))]
    pub max_wall_time_minutes: Option<f64>,
    /// Most money.
    pub max_cost_usd_estimate: Option<Usd>,
    /// Most tokens in total.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub max_tokens_total: Option<u64>,
    /// How often the run may be stuck in a row, without progress in between, before it ends.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub max_consecutive_gutter: Option<u32>,
    /// The one command that must pass at the end.
    pub test_command: Option<CommandLine>,
    /// More commands that must pass.
    pub verify_commands: Option<Vec<VerifyCommand>>,
    /// The numeric goal; the run is done when it has reached its target and everything else passes.
    pub metric: Option<MetricSection>,
    /// Restore the files with the best number if an iteration made it worse.
    pub keep_best: Option<bool>,
    /// What the run may do to the original tests; default: `additive`.
    pub tests: Option<TestsPolicy>,
    /// What the dashboard and the API may do to the run; default: `autonomous`.
    pub mode: Option<Mode>,
    /// The minimum strength of the proof.
    pub require_proof: Option<RequiredProof>,
    /// The pull request.
    pub pr: Option<PrSection>,
}

/// Size of a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
#[cfg_attr(feature = "schema", schemars(inline))]
pub struct Resources {
    /// Processors.
    #[cfg_attr(feature = "schema", schemars(extend("exclusiveMinimum" = 0)))]
    pub vcpu: Option<f64>,
    /// Memory.
    #[cfg_attr(feature = "schema", schemars(extend("exclusiveMinimum" = 0)))]
    pub memory_gib: Option<f64>,
    /// Disk.
    #[cfg_attr(feature = "schema", schemars(extend("exclusiveMinimum" = 0)))]
    pub disk_gib: Option<f64>,
}

/// The pull request.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
#[cfg_attr(feature = "schema", schemars(inline))]
pub struct PrSection {
    /// Open it as a draft.
    pub draft: Option<bool>,
    /// Its labels.
    pub labels: Option<Vec<String>>,
    /// Its title, a template.
    pub title_template: Option<String>,
    /// Its text, a template.
    pub body_template: Option<String>,
}
/// Parses the YAML of a split file: typed, with the position of every key.
pub fn read(
    text: &str,
    split: &FrontmatterSplit,
    lines: &Lines<'_>,
    found: &mut Findings,
) -> Option<(Frontmatter, BTreeMap<String, Span>)> {
    let yaml = text.get(split.yaml.clone()).unwrap_or_default();
    let first = lines.place(split.yaml.start).line;
    if yaml.len() > MAX_BYTES {
        found.error(
            "frontmatter-too-large",
            Span { line: first, column: 1 },
            format!("the frontmatter has {} kB; it may have 256", yaml.len() / 1024),
            "move long texts below the closing `---`",
        );
        return None;
    }
    let moved = |line: u64, column: u64| Span {
        line: usize::try_from(line).unwrap_or(1).max(1) + first - 1,
        column: usize::try_from(column).unwrap_or(1).max(1),
    };
    let keys: Keys = match serde_saphyr::from_str_with_options(yaml, crate::yaml::yaml_limits()) {
        Ok(keys) => keys,
        Err(error) => {
            let place = error.location().map_or(moved(1, 1), |l| moved(l.line(), l.column()));
            explain(&error, None, place, found);
            report_tabs(yaml, split.yaml.start, lines, found);
            return None;
        }
    };
    let before = found.all.len();
    let mut places = BTreeMap::new();
    for key in keys.0 {
        let place = moved(key.referenced.line(), key.referenced.column());
        if !keys_of::<Frontmatter>().contains(&key.value.as_str()) {
            found.error(
                "unknown-key",
                place,
                format!("unknown key `{}` in the frontmatter", one_line(&key.value, 60)),
                unknown_key_fix(&key.value, keys_of::<Frontmatter>().iter().copied()),
            );
        }
        places.insert(key.value, place);
    }
    if found.all.len() > before {
        return None;
    }
    match serde_saphyr::from_str_with_options::<Frontmatter>(yaml, crate::yaml::yaml_limits()) {
        Ok(front) => Some((front, places)),
        Err(error) => {
            let place = error.location().map_or(moved(1, 1), |l| moved(l.line(), l.column()));
            let key = places.iter().filter(|(_, at)| **at <= place).max_by_key(|(_, at)| **at);
            explain(&error, key.map(|(key, _)| key.as_str()), place, found);
            None
        }
    }
}

fn explain(error: &Error, key: Option<&str>, place: Span, found: &mut Findings) {
    let inner = match error {
        Error::AliasError { error, .. } => error.as_ref(),
        other => other,
    };
    let subject = key.map(|key| format!("`{key}`: ")).unwrap_or_default();
    let (rule, message, fix) = match inner {
        Error::SerdeUnknownField { field, expected, .. } => (
            "unknown-key",
            format!("{subject}unknown key `{}`", one_line(field, 60)),
            unknown_key_fix(field, expected.iter().copied()),
        ),
        Error::DuplicateMappingKey { key, .. } => (
            "duplicate-key",
            format!("`{}` is given twice", key.as_deref().unwrap_or("a key")),
            "remove one of them".into(),
        ),
        Error::Budget { .. }
        | Error::AliasReplayLimitExceeded { .. }
        | Error::AliasExpansionLimitExceeded { .. }
        | Error::AliasReplayStackDepthExceeded { .. } => (
            "frontmatter-too-large",
            "the frontmatter repeats or nests more than any task needs".into(),
            "write the values out, without anchors and aliases".into(),
        ),
        other
            if key.is_some()
                && let Some(wanted) = crate::yaml::wanted(other) =>
        {
            ("wrong-type", format!("{subject}the value is not {wanted}"), format!("give {wanted}"))
        }
        other => {
            let text = other.to_string();
            let text = text.split(" at line ").next().unwrap_or_default();
            if text.contains("untagged enum") {
                let fix = "a command is a text, for example `\"npm test\"`, or a list of texts";
                ("wrong-type", format!("{subject}the value is not a command"), fix.into())
            } else if key.is_some() {
                let fix = "give a value of the right kind; `docs/TASKS.md` shows every key";
                ("wrong-type", format!("{subject}{}", one_line(text, 200)), fix.into())
            } else {
                let fix = "fix the YAML here; texts with `:` or `#` need quotes";
                ("not-yaml", one_line(text, 200), fix.into())
            }
        }
    };
    found.error(rule, place, message, fix);
}

/// Reports lines indented with tabs, which YAML refuses. Only used if the YAML is invalid: a tab inside a block of
/// text may be meant.
fn report_tabs(yaml: &str, base: usize, lines: &Lines<'_>, found: &mut Findings) {
    let mut at = base;
    for line in yaml.split_inclusive('\n') {
        let indent = line.len() - line.trim_start_matches([' ', '\t']).len();
        if line[..indent].contains('\t') && !line.trim().is_empty() {
            let message = "the line is indented with a tab, which YAML does not allow";
            let finding = found.error("tab-in-frontmatter", lines.place(at), message, "indent with spaces");
            finding.set_edit(at..at + indent, line[..indent].replace('\t', "  "));
        }
        at += line.len();
    }
}

/// The keys of a mapping with their positions; values are skipped.
struct Keys(Vec<Spanned<String>>);

impl<'de> Deserialize<'de> for Keys {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = Keys;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("keys with values")
            }
            fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Keys, A::Error> {
                let mut keys = Vec::new();
                while let Some(key) = map.next_key()? {
                    map.next_value::<serde::de::IgnoredAny>()?;
                    keys.push(key);
                }
                Ok(Keys(keys))
            }
        }
        deserializer.deserialize_map(Visitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::Diagnostic;

    fn read_text(text: &str) -> (Option<Frontmatter>, Vec<Diagnostic>) {
        let mut found = Findings::of("t.md");
        let split = split(text).unwrap();
        let front = read(text, &split, &Lines::new(text), &mut found);
        (front.map(|(front, _)| front), found.all)
    }

    fn refused(yaml: &str) -> Diagnostic {
        let (front, mut found) = read_text(&format!("---\n{yaml}\n---\n"));
        assert!(front.is_none(), "{yaml}");
        found.remove(0)
    }

    #[test]
    fn the_two_parts_are_found_with_any_line_end() {
        let text = "\u{feff}---\r\na: 1\r\n---  \r\nbody";
        let parts = split(text).unwrap();
        assert_eq!((&text[parts.yaml], &text[parts.body]), ("a: 1\r\n", "body"));
        assert_eq!(split("# x\n---\n---\n"), Err(SplitError::Missing));
        assert_eq!(split(""), Err(SplitError::Missing));
        assert_eq!(split("---\na: 1\n"), Err(SplitError::Unclosed));
        assert_eq!(split("---\n---").unwrap().yaml, 4..4);
    }

    #[test]
    fn common_spellings_of_values_are_accepted() {
        let (front, found) = read_text(
            "---\ntask_id: 007\nmax_iterations: 3\ntest_command: npm test\nverify_commands:\n  - [npm, run, lint]\n  - \"a: b\"\nsandbox_image:\npr: {draft: true}\n---\n",
        );
        assert!(found.is_empty(), "{found:?}");
        let front = front.unwrap();
        assert_eq!(front.task_id.as_deref(), Some("007"));
        assert_eq!(front.sandbox_image, None);
        assert_eq!(front.verify_commands.unwrap()[1], CommandLine::Shell("a: b".into()).into());
    }

    #[test]
    fn a_misspelt_key_is_named_with_its_line_in_the_file() {
        let error = refused("task_id: a\nmax_iteration: 3");
        assert_eq!((error.rule, error.line, error.column), ("unknown-key", 3, 1));
        assert_eq!(error.fix, "did you mean `max_iterations`?");
        let nested = refused("pr:\n  drft: true");
        assert_eq!((nested.rule, nested.line, nested.column), ("unknown-key", 3, 3));
        assert_eq!(nested.fix, "did you mean `draft`?");
    }

    #[test]
    fn every_unknown_key_is_named_at_once() {
        let (_, found) = read_text("---\nzzz: 1\nmax_iteration: 3\n---\n");
        assert_eq!(found.len(), 2);
    }

    #[test]
    fn wrong_values_are_named_with_their_key() {
        let error = refused("max_iterations: many");
        assert_eq!((error.rule, error.line, error.column), ("wrong-type", 2, 17));
        assert_eq!(error.message, "`max_iterations`: the value is not a whole number from 0 to 4294967295");
        assert!(refused("test_command: true").fix.contains("npm test"));
        assert_eq!(refused("pr: {draft: maybe}").fix, "give `true` or `false`");
        assert!(refused("max_cost_usd_estimate: -3").message.contains("at least 0"));
        assert_eq!(refused("a: 1\na: 2").rule, "duplicate-key");
        assert_eq!(refused("- a").rule, "not-yaml");
        assert_eq!(refused("pr: [").rule, "not-yaml");
    }

    #[test]
    fn tabs_are_named_and_can_be_replaced() {
        let (_, found) = read_text("---\npr:\n\tdraft: true\n---\n");
        let tab = found.iter().find(|d| d.rule == "tab-in-frontmatter").unwrap();
        assert_eq!(tab.line, 3);
        assert_eq!(tab.edit.as_ref().unwrap().range, 8..9);
    }

    #[test]
    fn a_billion_laughs_are_refused() {
        let mut yaml = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
        for i in 1..40 {
            let again = vec![format!("*a{}", i - 1); 10].join(", ");
            yaml.push_str(&format!("a{i}: &a{i} [{again}]\n"));
        }
        assert_eq!(refused(&yaml).rule, "frontmatter-too-large");
        assert_eq!(refused(&format!("pr: {}", "[".repeat(100_000))).line, 2);
    }
}
