//! Task templates for the dashboard and `ralph init --template`.

use ralph_loop_task::dialect::{Dialect, names};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskTemplate {
    /// Name in flags and URLs.
    pub name: &'static str,
    /// Its purpose, for display.
    pub title: &'static str,
    pub dialect: Dialect,
    /// Placeholder for the task's title.
    asks: &'static str,
    text: &'static str,
}

/// All templates, most used first.
pub const ALL: &[TaskTemplate] = &[
    TaskTemplate {
        name: "fix",
        title: "Fix a bug",
        dialect: Dialect::PromptMd,
        asks: "Fix: a short description of the bug",
        text: include_str!("../templates/task/fix.md"),
    },
    TaskTemplate {
        name: "feature",
        title: "Add a feature",
        dialect: Dialect::PromptMd,
        asks: "Add: a short description of the feature",
        text: include_str!("../templates/task/feature.md"),
    },
    TaskTemplate {
        name: "tidy",
        title: "Refactor",
        dialect: Dialect::PromptMd,
        asks: "Refactor: the part to clean up",
        text: include_str!("../templates/task/tidy.md"),
    },
    TaskTemplate {
        name: "metric",
        title: "Improve a number: speed, size, accuracy",
        dialect: Dialect::RalphTaskMd,
        asks: "Improve: the number",
        text: include_str!("../templates/task/metric.md"),
    },
    TaskTemplate {
        name: "ralph_task",
        title: "Milestones with checks (ralph_task.md)",
        dialect: Dialect::RalphTaskMd,
        asks: "what is to be done",
        text: include_str!("../templates/task/ralph_task.md"),
    },
];

pub fn named(name: &str) -> Option<&'static TaskTemplate> {
    ALL.iter().find(|one| one.name == name)
}

impl TaskTemplate {
    /// The text to fill in, for a project tested with `tests`.
    pub fn text(&self, title: Option<&str>, tests: &str) -> String {
        let slug = title.map(names::slug).filter(|slug| names::is_usable_id(slug));
        let id = slug.or_else(|| title.map(names::derived_id)).unwrap_or_else(|| "new-task".to_owned());
        // A JSON string is a valid YAML string.
        let quoted = serde_json::Value::from(tests).to_string();
        fill(
            self.text,
            &[
                ("task_id", &id),
                ("test_command", &quoted),
                ("tests", tests),
                ("title", title.unwrap_or(self.asks)),
            ],
        )
    }
}

/// Fills `%%name%%`; `{{name}}` of run-time templates stays.
pub fn fill(template: &str, values: &[(&str, &str)]) -> String {
    let mut out = String::with_capacity(template.len());
    let mut rest = template;
    // One pass, so that a value containing `%%name%%` isn't expanded.
    while let Some((before, after)) = rest.split_once("%%") {
        out.push_str(before);
        let known = after.split_once("%%").and_then(|(name, tail)| {
            values.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value, tail))
        });
        match known {
            Some((value, tail)) => {
                out.push_str(value);
                rest = tail;
            }
            None => {
                out.push_str("%%");
                rest = after;
            }
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use ralph_loop_task::dialect::{TaskTexts, parse};

    #[test]
    fn every_template_can_be_read_whatever_the_title_and_the_command() {
        for one in ALL {
            for title in [None, Some("Keep \"%%tests%%\" in order: all")] {
                let text = one.text(title, "make \"test it\"");
                let files = TaskTexts::new(one.dialect.main_file(), &text);
                let task = parse(one.dialect, &files).unwrap_or_else(|found| panic!("{one:?}: {found:#?}"));
                assert!(text.ends_with('\n'), "{text}");
                assert_eq!(text.contains("%%"), title.is_some(), "{text}");
                assert_eq!(task.metric.is_some(), one.name == "metric");
                assert_eq!(task.test_command.is_some(), one.dialect == Dialect::RalphTaskMd, "{text}");
            }
        }
        assert_eq!(named("metric").map(|one| one.name), Some("metric"));
        assert_eq!(named("other"), None);
    }
}
