//! The doctor's report: its format, validation and rendering.

use crate::control::Control;
use crate::display::text::{head, one_line};
use crate::id::AgentName;
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;

/// The published JSON Schema of a report, which models must follow.
pub const SCHEMA: &str = include_str!("../../schemas/diagnosis.schema.json");

/// The doctor's report.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Report {
    /// One or two sentences for the next session.
    #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
    pub summary: String,
    /// What was observed.
    #[serde(default)]
    pub failure_patterns: Vec<Pattern>,
    /// Likely causes.
    #[serde(default)]
    pub root_causes: Vec<String>,
    /// One to three rules for the following sessions.
    #[cfg_attr(feature = "schema", schemars(length(min = 1, max = 3)))]
    pub guardrails: Vec<Guardrail>,
    /// Edits that make the task clearer or easier to check.
    #[serde(default)]
    pub task_edits: Vec<TaskEdit>,
    /// Another model or agent, if that would help.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_suggestion: Option<ModelSuggestion>,
}

/// An observation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Pattern {
    /// The pattern.
    pub pattern: String,
    /// The evidence.
    #[serde(default)]
    pub evidence: String,
}

/// A rule for the following sessions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Guardrail {
    /// When it applies.
    pub trigger: String,
    /// What to do then.
    #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
    pub instruction: String,
}

/// A task edit: one passage, found exactly once, and its replacement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct TaskEdit {
    /// The passage.
    #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
    pub find: String,
    /// The replacement.
    pub replace: String,
    /// Why.
    pub why: String,
}

/// Another model or agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ModelSuggestion {
    /// The agent it is for; all agents if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The model or profile.
    pub model: String,
    /// Why.
    pub why: String,
}

/// Most bytes of each text in a report.
const TEXT_MAX: usize = 2000;

impl Report {
    /// Parses a model's answer; the error tells the model what to fix.
    pub fn parse(answer: &str) -> Result<Self, String> {
        let json = match (answer.find('{'), answer.rfind('}')) {
            (Some(from), Some(to)) if from < to => &answer[from..=to],
            _ => return Err("the answer holds no JSON object".into()),
        };
        let report: Self = serde_json::from_str(json).map_err(|error| error.to_string())?;
        report.check()?;
        Ok(report.bounded())
    }

    fn check(&self) -> Result<(), String> {
        if self.summary.trim().is_empty() {
            return Err("`summary` is empty".into());
        }
        if self.guardrails.is_empty() || self.guardrails.len() > 3 {
            return Err(format!("`guardrails` must hold one to three rules, not {}", self.guardrails.len()));
        }
        if self.guardrails.iter().any(|g| g.instruction.trim().is_empty()) {
            return Err("a guardrail has an empty `instruction`".into());
        }
        if self.task_edits.iter().any(|e| e.find.is_empty() || e.find == e.replace) {
            return Err(
                "a task edit changes nothing: `find` must be a passage of the task, `replace` something else"
                    .into(),
            );
        }
        Ok(())
    }

    fn bounded(mut self) -> Self {
        let cut = |text: &mut String| {
            if text.len() > TEXT_MAX {
                *text = head(text, TEXT_MAX).to_owned();
            }
        };
        cut(&mut self.summary);
        self.failure_patterns.truncate(10);
        self.root_causes.truncate(10);
        self.task_edits.truncate(10);
        for pattern in &mut self.failure_patterns {
            cut(&mut pattern.pattern);
            cut(&mut pattern.evidence);
        }
        self.root_causes.iter_mut().for_each(cut);
        for rule in &mut self.guardrails {
            rule.trigger = one_line(&rule.trigger, 300);
            rule.instruction = one_line(&rule.instruction, 600);
        }
        self
    }

    /// The task with every edit whose passage occurs exactly once; `None` if there is none.
    pub fn edited(&self, task: &str) -> Option<String> {
        let mut text = task.to_owned();
        for edit in &self.task_edits {
            if text.matches(&edit.find).count() == 1 {
                text = text.replacen(&edit.find, &edit.replace, 1);
            }
        }
        (text != task).then_some(text)
    }

    /// The report's suggestions as controls for the run's inbox.
    pub fn controls(&self, task: &str) -> Vec<Control> {
        let mut controls: Vec<Control> = self
            .guardrails
            .iter()
            .map(|rule| Control::Guardrail { text: format!("when {}: {}", rule.trigger, rule.instruction) })
            .collect();
        controls.extend(self.edited(task).map(|task| Control::Edit { task }));
        if let Some(wish) = &self.model_suggestion {
            controls.push(Control::Model {
                model: Some(wish.model.clone()),
                agent: wish.agent.as_deref().map(AgentName::from),
                always: true,
            });
        }
        controls
    }

    /// The suggestions, one line each.
    pub fn suggestions(&self) -> Vec<String> {
        let mut lines: Vec<String> =
            self.guardrails.iter().map(|g| format!("guardrail: {}", one_line(&g.instruction, 160))).collect();
        lines.extend(self.task_edits.iter().map(|e| format!("task edit: {}", one_line(&e.why, 160))));
        lines.extend(
            self.model_suggestion.iter().map(|m| format!("model {}: {}", m.model, one_line(&m.why, 160))),
        );
        lines
    }

    /// The report for `diagnostics.md`.
    pub fn markdown(&self, heading: &str) -> String {
        let mut out = format!("# Diagnostics\n\n{heading}\n\n{}\n", self.summary.trim());
        let mut part = |title: &str, lines: Vec<String>| {
            let _ = write!(out, "\n## {title}\n\n");
            match lines.is_empty() {
                true => out.push_str("(none)\n"),
                false => lines.iter().for_each(|line| out.push_str(&format!("{line}\n"))),
            }
        };
        part(
            "Observed failure patterns",
            self.failure_patterns
                .iter()
                .map(|p| match p.evidence.is_empty() {
                    true => format!("- {}", one_line(&p.pattern, TEXT_MAX)),
                    false => {
                        format!("- {}: {}", one_line(&p.pattern, TEXT_MAX), one_line(&p.evidence, TEXT_MAX))
                    }
                })
                .collect(),
        );
        part(
            "Likely root causes",
            self.root_causes.iter().map(|c| format!("- {}", one_line(c, TEXT_MAX))).collect(),
        );
        part(
            "Suggested guardrails",
            self.guardrails.iter().map(|g| format!("- when {}: {}", g.trigger, g.instruction)).collect(),
        );
        part("Suggested edits of the task", self.task_edits.iter().map(TaskEdit::diff).collect());
        part(
            "Suggested model or agent",
            self.model_suggestion
                .iter()
                .map(|m| {
                    let who = m.agent.as_deref().map_or_else(String::new, |a| format!(" for {a}"));
                    format!("- {}{who}: {}", m.model, one_line(&m.why, TEXT_MAX))
                })
                .collect(),
        );
        out
    }
}

impl TaskEdit {
    /// The edit as a diff.
    pub fn diff(&self) -> String {
        let mut out = format!("{}\n\n```diff\n", one_line(&self.why, TEXT_MAX));
        self.find.lines().for_each(|line| out.push_str(&format!("-{line}\n")));
        self.replace.lines().for_each(|line| out.push_str(&format!("+{line}\n")));
        out.push_str("```\n");
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        Report {
            summary: "The drain test fails for want of a seed.".into(),
            failure_patterns: vec![Pattern {
                pattern: "same failure".into(),
                evidence: "iterations 3 to 6".into(),
            }],
            root_causes: vec!["the clock is read twice".into()],
            guardrails: vec![Guardrail {
                trigger: "a test hangs".into(),
                instruction: "seed the clock".into(),
            }],
            task_edits: vec![TaskEdit {
                find: "make it fast".into(),
                replace: "`bench` stays under 3 s".into(),
                why: "cannot be checked".into(),
            }],
            model_suggestion: Some(ModelSuggestion {
                agent: None,
                model: "strong-doctor".into(),
                why: "harder".into(),
            }),
        }
    }

    #[test]
    fn report_renders_as_markdown() {
        insta::assert_snapshot!(report().markdown("Run r1 after 6 iterations, by rules"));
    }

    #[test]
    fn invalid_answer_error_says_what_to_fix() {
        let good = serde_json::to_string(&report()).unwrap();
        assert_eq!(Report::parse(&format!("Here it is:\n```json\n{good}\n```")).unwrap(), report());
        for (change, says) in [
            (good.replace("\"summary\"", "\"sumary\""), "unknown field `sumary`"),
            (good.replace("seed the clock", " "), "empty `instruction`"),
            ("nothing".into(), "no JSON object"),
            (r#"{"summary":"x","guardrails":[]}"#.into(), "one to three rules"),
        ] {
            let error = Report::parse(&change).unwrap_err();
            assert!(error.contains(says), "{error}");
        }
    }

    #[test]
    fn passage_that_is_missing_or_repeated_is_skipped() {
        let task = "Please make it fast. Tests pass.";
        assert_eq!(report().edited(task).unwrap(), "Please `bench` stays under 3 s. Tests pass.");
        assert_eq!(report().edited("make it fast, make it fast"), None);
        assert_eq!(report().controls("nothing to edit").len(), 2);
    }
}
