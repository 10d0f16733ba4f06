//! Criteria: the conditions that make a task done, and how each is checked. One type for every task format.

use crate::command_line::CommandLine;
use ralph_loop_protocol::display::text::one_line;
use serde::{Deserialize, Serialize};

/// A position in a task file, counted from 1; the column counts characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Span {
    pub line: usize,
    pub column: usize,
}

impl Span {
    /// The start of a file, for findings without a position.
    pub const START: Self = Self { line: 1, column: 1 };
}

impl Default for Span {
    fn default() -> Self {
        Self::START
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Criterion {
    /// Unique in its task: `M1.1`, `US-001`, `C3`.
    pub id: String,
    /// What must be true, in the task's words.
    pub text: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub milestone: Option<String>,
    pub check: Check,
    /// Whether the file says that it is met. A claim: the engine checks it again.
    #[serde(default)]
    pub ticked: bool,
    #[serde(default)]
    pub place: Span,
}

/// How a criterion is checked. Paths are relative to the task's working folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Check {
    /// The command exits with 0.
    #[serde(rename = "command_succeeds")]
    Command {
        command: CommandLine,
    },
    /// The command exits with 0 and its output matches.
    CommandOutput {
        command: CommandLine,
        /// What its output must be.
        #[serde(flatten)]
        output: ExpectedOutput,
    },
    FileExists {
        path: String,
    },
    FileContains {
        path: String,
        /// What its content must match.
        pattern: Pattern,
    },
    PrChecksPass,
    PrApproved,
    /// No separate check: met when it is claimed and every global verify command passes.
    Claimed,
}

impl Check {
    /// What must happen, as text.
    pub fn describe(&self) -> String {
        match self {
            Self::Command { command } => format!("`{}` exits with 0", command.display()),
            Self::CommandOutput { command, output } => {
                format!("`{}` exits with 0 and prints {}", command.display(), output.describe())
            }
            Self::FileExists { path } => format!("`{path}` exists"),
            Self::FileContains { path, pattern } => {
                format!("`{path}` contains a match of /{}/", pattern.as_str())
            }
            Self::PrChecksPass => "the checks of the pull request pass (needs a code host)".into(),
            Self::PrApproved => "the pull request is approved (needs a code host)".into(),
            Self::Claimed => "claimed by the agent, and every verify command passes".into(),
        }
    }
    pub fn command(&self) -> Option<&CommandLine> {
        match self {
            Self::Command { command } | Self::CommandOutput { command, .. } => Some(command),
            _ => None,
        }
    }
    /// Whether only a code host can evaluate it.
    pub fn needs_forge(&self) -> bool {
        matches!(self, Self::PrChecksPass | Self::PrApproved)
    }
    /// Whether it is a separate check, not only a claim.
    pub fn is_own(&self) -> bool {
        *self != Self::Claimed
    }
}

/// What a command must print.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", schemars(inline))]
pub enum ExpectedOutput {
    /// A match of this regular expression.
    #[serde(alias = "matches")]
    Pattern(Pattern),
    /// This text, among other output.
    Contains(#[cfg_attr(feature = "schema", schemars(length(min = 1)))] String),
    /// Only this text; spaces and line ends around it don't count.
    Equals(String),
}

impl ExpectedOutput {
    /// The one expectation among the keys of a file: `pattern` (or `matches`), `contains`, `equals`.
    pub fn of_keys(
        pattern: Option<&str>,
        contains: Option<String>,
        equals: Option<String>,
    ) -> Result<Self, String> {
        match (pattern, contains, equals) {
            (Some(pattern), None, None) => Pattern::parse(pattern).map(Self::Pattern),
            (None, Some(text), None) if text.is_empty() => {
                Err("`contains` is empty: every output has it".into())
            }
            (None, Some(text), None) => Ok(Self::Contains(text)),
            (None, None, Some(text)) => Ok(Self::Equals(text)),
            _ => Err("an output is judged by exactly one of `contains`, `equals` and `matches`".into()),
        }
    }
    pub fn describe(&self) -> String {
        match self {
            Self::Pattern(pattern) => format!("a match of /{}/", pattern.as_str()),
            Self::Contains(text) => format!("`{}`", one_line(text, 80)),
            Self::Equals(text) => format!("only `{}`", one_line(text.trim(), 80)),
        }
    }
    pub fn holds(&self, output: &str) -> bool {
        match self {
            Self::Pattern(pattern) => pattern.matches(output),
            Self::Contains(text) => !text.is_empty() && output.contains(text.as_str()),
            Self::Equals(text) => output.trim().replace("\r\n", "\n") == text.trim().replace("\r\n", "\n"),
        }
    }
}

/// A command of a task's verify list: it exits with 0, and may also have to print something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
#[cfg_attr(feature = "schema", schemars(inline))]
pub enum VerifyCommand {
    /// A command.
    Succeeds(CommandLine),
    /// A command and its expected output.
    Prints(OutputCheck),
}

/// A command and what it must print: one of `contains`, `equals` and `matches`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", schemars(inline))]
pub struct OutputCheck {
    /// The command.
    pub command: CommandLine,
    /// Text that must be in its output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contains: Option<String>,
    /// Its only output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub equals: Option<String>,
    /// A regular expression that must match in its output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matches: Option<String>,
}

impl From<CommandLine> for VerifyCommand {
    fn from(command: CommandLine) -> Self {
        Self::Succeeds(command)
    }
}

impl VerifyCommand {
    pub fn command(&self) -> &CommandLine {
        match self {
            Self::Succeeds(command) => command,
            Self::Prints(check) => &check.command,
        }
    }
    /// The command and its expectation, as typed in a shell.
    pub fn display(&self) -> String {
        match self.output() {
            Ok(Some(output)) => format!("{} prints {}", self.command().display(), output.describe()),
            _ => self.command().display(),
        }
    }
    /// What it must print, if anything; or what is wrong with that.
    pub fn output(&self) -> Result<Option<ExpectedOutput>, String> {
        match self {
            Self::Succeeds(_) => Ok(None),
            Self::Prints(OutputCheck { contains, equals, matches, .. }) => {
                ExpectedOutput::of_keys(matches.as_deref(), contains.clone(), equals.clone()).map(Some)
            }
        }
    }
}

/// A valid regular expression. Matching takes time linear in the text: no pattern of a task can hang a run. `^` and
/// `$` match at every line, as in `grep`. `(?i)` and `(?s)` switch modes; Unicode classes (`\p{…}`) aren't supported.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline, !try_from, !into))]
pub struct Pattern(#[cfg_attr(feature = "schema", schemars(length(min = 1)))] String);

fn compile(text: &str) -> Result<regex_lite::Regex, regex_lite::Error> {
    regex_lite::RegexBuilder::new(text).multi_line(true).build()
}

impl Pattern {
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err("the pattern is empty: it would match everything".into());
        }
        match compile(text) {
            Ok(_) => Ok(Self(text.to_owned())),
            Err(error) => Err(format!("`{text}` is not a regular expression: {error}")),
        }
    }
    pub fn as_str(&self) -> &str {
        &self.0
    }
    /// The first group of the last match in `text`, or the whole match without groups.
    pub fn last_group(&self, text: &str) -> Option<String> {
        let found = compile(&self.0).ok()?.captures_iter(text).last()?;
        found.get(1).or_else(|| found.get(0)).map(|group| group.as_str().to_owned())
    }
    /// Whether it matches anywhere in `text`.
    pub fn matches(&self, text: &str) -> bool {
        compile(&self.0).is_ok_and(|regex| regex.is_match(text))
    }
}

impl TryFrom<String> for Pattern {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        Self::parse(&text)
    }
}

impl From<Pattern> for String {
    fn from(pattern: Pattern) -> Self {
        pattern.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_is_written_under_the_names_of_the_file_format() {
        let check = Check::CommandOutput {
            command: CommandLine::Shell("cat x".into()),
            output: ExpectedOutput::Pattern(Pattern::parse("^ok").unwrap()),
        };
        let json = serde_json::to_string(&check).unwrap();
        assert_eq!(json, r#"{"type":"command_output","command":"cat x","pattern":"^ok"}"#);
        assert_eq!(serde_json::from_str::<Check>(&json).unwrap(), check);
        assert_eq!(check.describe(), "`cat x` exits with 0 and prints a match of /^ok/");
        let broken = r#"{"type":"file_contains","path":"a","pattern":"("}"#;
        let refused = serde_json::from_str::<Check>(broken).unwrap_err().to_string();
        assert!(refused.starts_with("`(` is not a regular expression"), "{refused}");
    }

    #[test]
    fn an_output_is_judged_by_one_expectation() {
        let of = |contains: Option<&str>, equals: Option<&str>, pattern| {
            ExpectedOutput::of_keys(pattern, contains.map(str::to_owned), equals.map(str::to_owned))
        };
        let holds = |expected: Result<ExpectedOutput, String>, output| expected.unwrap().holds(output);
        assert!(holds(of(Some("b c"), None, None), "a b c\n") && !holds(of(Some("b c"), None, None), "bc"));
        assert!(holds(of(None, Some("1\n2"), None), " 1\r\n2\n") && !holds(of(None, Some("1"), None), "1 1"));
        assert!(holds(of(None, Some(""), None), "\n") && !holds(of(None, Some(""), None), "x"));
        assert!(holds(of(None, None, Some("^b$")), "a\nb\n"));
        for wrong in [of(None, None, None), of(Some("a"), Some("b"), None), of(Some(""), None, None)] {
            assert!(wrong.is_err());
        }
        let check = Check::CommandOutput {
            command: CommandLine::Shell("app".into()),
            output: ExpectedOutput::Contains("42".into()),
        };
        let json = serde_json::to_string(&check).unwrap();
        assert_eq!(json, r#"{"type":"command_output","command":"app","contains":"42"}"#);
        assert_eq!(serde_json::from_str::<Check>(&json).unwrap(), check);
    }

    #[test]
    fn a_hostile_pattern_neither_hangs_nor_fills_the_memory() {
        assert!(Pattern::parse("((a{100}){100}){100}").unwrap_err().contains("exceeded size limit"));
        let slow_elsewhere = Pattern::parse("^(a+)+$").unwrap();
        assert!(!slow_elsewhere.matches(&format!("{}b", "a".repeat(5_000))));
        assert_eq!(Pattern::parse("").unwrap_err(), "the pattern is empty: it would match everything");
    }
}
