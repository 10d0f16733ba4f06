//! Parses reviewers' findings: JSON, or plain lines if an agent ignores the format.

use ralph_loop_protocol::display::text::one_line;
use serde::Deserialize;

/// Findings kept per reviewer.
const MOST: usize = 30;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The task can't run like this.
    Blocker,
    /// Loops are likely to fail.
    Warn,
    /// An improvement.
    Nice,
}

impl Severity {
    pub fn word(self) -> &'static str {
        match self {
            Self::Blocker => "blocker",
            Self::Warn => "warning",
            Self::Nice => "nice to have",
        }
    }

    fn read(word: &str) -> Option<Self> {
        match word.trim().to_ascii_lowercase().as_str() {
            "blocker" | "error" | "critical" | "high" => Some(Self::Blocker),
            "warn" | "warning" | "major" | "medium" => Some(Self::Warn),
            "nice" | "nice-to-have" | "nice to have" | "minor" | "info" | "low" => Some(Self::Nice),
            _ => None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub severity: Severity,
    pub by: String,
    pub text: String,
    /// The section for [`Finding::line`].
    pub section: String,
    /// The line that fixes it.
    pub line: String,
    /// Whether the draft includes it.
    pub applied: bool,
}

#[derive(Deserialize)]
struct Answer {
    #[serde(default)]
    findings: Vec<Raw>,
}

#[derive(Deserialize)]
struct Raw {
    #[serde(default)]
    severity: String,
    #[serde(default)]
    text: String,
    #[serde(default)]
    section: String,
    #[serde(default)]
    line: String,
}

/// Parses a reviewer's answer.
pub fn read(by: &str, answer: &str) -> Vec<Finding> {
    let mut found = from_json(answer).unwrap_or_else(|| from_lines(answer));
    found.truncate(MOST);
    let known = |section: &str| {
        let known = crate::draft::SECTIONS.iter().find(|name| name.eq_ignore_ascii_case(section.trim()));
        known.copied().unwrap_or("Open questions").to_owned()
    };
    let finding = |raw: Raw| {
        let text = one_line(&raw.text, 400);
        let line = if raw.line.trim().is_empty() { text.clone() } else { one_line(&raw.line, 400) };
        Finding {
            severity: Severity::read(&raw.severity).unwrap_or(Severity::Warn),
            by: by.to_owned(),
            section: if raw.line.trim().is_empty() { known("") } else { known(&raw.section) },
            text,
            line,
            applied: false,
        }
    };
    found.into_iter().map(finding).filter(|finding| !finding.text.is_empty()).collect()
}

fn from_json(answer: &str) -> Option<Vec<Raw>> {
    let start = answer.find('{')?;
    let end = answer.rfind('}')?;
    serde_json::from_str::<Answer>(answer.get(start..=end)?).ok().map(|answer| answer.findings)
}

/// `[BLOCKER] text`, `- warn: text`, or plain list items.
fn from_lines(answer: &str) -> Vec<Raw> {
    let mut found = Vec::new();
    for line in answer.lines().map(str::trim) {
        let point = line.strip_prefix("- ").or_else(|| line.strip_prefix("* ")).unwrap_or(line);
        let tagged = point
            .strip_prefix('[')
            .and_then(|rest| rest.split_once(']'))
            .or_else(|| point.split_once(':').filter(|(word, _)| word.len() < 14));
        let (severity, text) = match tagged {
            Some((word, text)) if Severity::read(word).is_some() => (word, text),
            _ if point.len() < line.len() => ("warn", point),
            _ => continue,
        };
        let (text, line) = (text.trim().to_owned(), String::new());
        found.push(Raw { severity: severity.to_owned(), text, section: String::new(), line });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_findings_are_parsed_inside_prose() {
        let answer = r#"Here: {"findings":[{"severity":"blocker","text":"no edge case","section":"acceptance","line":"an empty list stays empty"},{"severity":"nice","text":"docs"}]} done"#;
        let found = read("codex", answer);
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].severity, found[0].section.as_str()), (Severity::Blocker, "Acceptance"));
        assert_eq!(found[1].section, "Open questions", "what names no line is a question");
        assert!(read("codex", r#"{"findings":[]}"#).is_empty());
    }

    #[test]
    fn plain_findings_are_parsed_and_sanitized() {
        let found = read("x", "Review:\n[BLOCKER] a \u{1b}[2Jb\n- warn: c\n* d\nprose isn't a finding\n");
        let told: Vec<(Severity, &str)> = found.iter().map(|f| (f.severity, f.text.as_str())).collect();
        assert_eq!(told, [(Severity::Blocker, "a b"), (Severity::Warn, "c"), (Severity::Warn, "d")]);
    }
}
