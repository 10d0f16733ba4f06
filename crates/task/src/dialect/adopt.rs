//! Turns a task file into what the engine needs: the task for the spec, and its settings.

use super::{Dialect, SandboxChoice, TaskFile, TaskTexts};
use crate::config::settings::beside;
use crate::config::{Completion, ConfigFile, Expect, PrConfig, ProviderName, SandboxConfig, VerifierConfig};
use crate::criterion::{Check, Criterion};
use crate::spec::{RunSpec, Task};
use std::time::Duration;

pub fn checks(file: &TaskFile) -> ConfigFile {
    let mut verifiers = file.verifiers();
    verifiers.extend(file.criteria.iter().filter_map(verifier_of));
    ConfigFile {
        required_verifiers: Some(verifiers.iter().map(|v| v.name.clone()).collect()),
        verifiers: Some(verifiers),
        ..ConfigFile::default()
    }
}

/// The task and the settings of a valid file; `raw` is its text.
pub fn adopt(file: TaskFile, raw: &str) -> (Task, ConfigFile) {
    let mut settings = file.settings.clone().overlaid(checks(&file));
    settings.completion = Some(match file.completion {
        super::Completion::Promise => Completion::Promise,
        super::Completion::Claim => Completion::Claim,
        super::Completion::Checks => Completion::Checks,
    });
    settings.commit_author = settings.commit_author.or_else(|| file.git.commit_author.clone());
    settings.commit_email = settings.commit_email.or_else(|| file.git.commit_email.clone());
    settings.publish = settings.publish.or(file.git.publish);
    let pr = PrConfig {
        draft: file.pr.draft,
        labels: file.pr.labels.clone(),
        title_template: file.pr.title_template.clone(),
        body_template: file.pr.body_template.clone(),
        base: file.git.base_branch.clone(),
    };
    if pr != PrConfig::default() {
        settings.pr = Some(pr);
    }
    let sandbox = SandboxConfig::from(&file.sandbox);
    settings.sandbox = (sandbox != SandboxConfig::default()).then_some(sandbox);
    // A plan's prompt tells the agent to commit its stories.
    settings.allow_agent_commits = (file.dialect == Dialect::Plan).then_some(true);
    let task = Task {
        id: Some(file.task_id),
        ticket: file.ticket_id,
        title: file.title,
        text: file.goal.replace("\r\n", "\n"),
        source: file.source,
        dialect: file.dialect,
        raw: (file.dialect != Dialect::PromptMd).then(|| raw.to_owned()),
        criteria: file.criteria,
        working_dir: file.git.working_dir,
        context_files: file.context_files,
        rules: file.rules,
    };
    (task, settings)
}

impl From<&SandboxChoice> for SandboxConfig {
    fn from(choice: &SandboxChoice) -> Self {
        Self {
            provider: choice.provider.as_deref().and_then(|name| ProviderName::parse(name).ok()),
            image: choice.image.clone(),
            vcpu: choice.vcpu,
            memory_gib: choice.memory_gib,
            disk_gib: choice.disk_gib,
            ..Self::default()
        }
    }
}

/// The check of a criterion, named after it; `None` if it has none that can run here.
fn verifier_of(criterion: &Criterion) -> Option<VerifierConfig> {
    let command = |argv: Vec<String>| VerifierConfig::command(criterion.id.clone(), argv);
    let file = |expect: Expect| VerifierConfig { expect: Some(expect), ..command(Vec::new()) };
    match &criterion.check {
        Check::Command { command: line } => Some(command(line.argv())),
        Check::CommandOutput { command: line, output } => {
            let expect = Expect::Output(output.clone());
            Some(VerifierConfig { expect: Some(expect), ..command(line.argv()) })
        }
        Check::FileExists { path } => Some(file(Expect::FileExists { path: path.clone() })),
        Check::FileContains { path, pattern } => {
            Some(file(Expect::FileContains { path: path.clone(), pattern: pattern.clone() }))
        }
        Check::PrChecksPass | Check::PrApproved | Check::Claimed => None,
    }
}

/// The user's new text of the task: parsed in its dialect, or refused with the first problem.
pub fn edited(task: &Task, text: &str) -> Result<(Task, ConfigFile), String> {
    if text.trim().is_empty() {
        return Err("the new task is empty".into());
    }
    let file =
        super::parse(task.dialect, &TaskTexts::new(&task.source, text)).map_err(|found| {
            match found.first() {
                Some(first) => format!("{}:{}: {}; {}", first.file, first.line, first.message, first.fix),
                None => "can't be read".to_owned(),
            }
        })?;
    if task.dialect == Dialect::PromptMd {
        return Ok((Task { text: text.replace("\r\n", "\n"), ..task.clone() }, checks(&file)));
    }
    let vars = file.vars();
    let (new, settings) = adopt(file.filled(&vars), text);
    // A plan's goal is in its other files, which this edit doesn't change.
    let goal = if task.dialect == Dialect::Plan { task.text.clone() } else { new.text.clone() };
    Ok((
        Task { text: goal, source: task.source.clone(), working_dir: task.working_dir.clone(), ..new },
        settings,
    ))
}

impl RunSpec {
    /// Applies the user's new text of the task, with its checks. An invalid text changes nothing.
    pub fn take_edit(&mut self, text: &str) {
        let Ok((task, settings)) = edited(&self.task, text) else { return };
        let before =
            edited(&self.task, self.task.file_text()).map(|(_, settings)| settings).unwrap_or_default();
        let by_task: Vec<String> = before
            .required_verifiers
            .iter()
            .flatten()
            .chain(self.task.criteria.iter().map(|criterion| &criterion.id))
            .filter(|name| !self.settings.own_verifiers.contains(name))
            .cloned()
            .collect();
        self.task = task;
        self.take_limits(&settings, &before);
        // An edit can't remove what the configuration checks.
        let known = std::mem::take(&mut self.settings.verifiers);
        let known = known.into_iter().filter(|verifier| !by_task.contains(&verifier.name));
        let (own, optional): (Vec<_>, Vec<_>) =
            known.partition(|verifier| self.settings.required_verifiers.contains(&verifier.name));
        let (mut verifiers, kept) = beside(settings.verifiers.unwrap_or_default(), own);
        let mut required = settings.required_verifiers.unwrap_or_default();
        required.retain(|name| verifiers.iter().any(|verifier| verifier.name == *name));
        let more: Vec<String> = kept.iter().filter(|name| !required.contains(name)).cloned().collect();
        let free = |optional: &VerifierConfig| verifiers.iter().all(|known| known.name != optional.name);
        let optional: Vec<VerifierConfig> = optional.into_iter().filter(free).collect();
        verifiers.extend(optional);
        self.settings.verifiers = verifiers;
        self.settings.required_verifiers = [required, more].concat();
        self.settings.own_verifiers = kept;
    }

    /// Applies budgets and test policies that changed in the text: values set by a flag or the user since stay,
    /// unless the edit changes them.
    fn take_limits(&mut self, now: &ConfigFile, before: &ConfigFile) {
        let budgets = &mut self.settings.budgets;
        if let Some(most) = now.max_iterations.filter(|_| now.max_iterations != before.max_iterations) {
            budgets.max_iterations = most;
        }
        if let Some(cost) =
            now.max_cost_usd_estimate.filter(|cost| Some(*cost) != before.max_cost_usd_estimate)
        {
            budgets.max_cost = cost;
        }
        if let Some(minutes) =
            now.max_wall_time_minutes.filter(|minutes| Some(*minutes) != before.max_wall_time_minutes)
        {
            budgets.max_wall_time = Duration::from_secs_f64((minutes * 60.0).clamp(0.0, 1e12));
        }
        if now.max_tokens_total.is_some() && now.max_tokens_total != before.max_tokens_total {
            budgets.max_tokens = now.max_tokens_total;
        }
        if let Some(tests) = now.tests.filter(|_| now.tests != before.tests) {
            self.settings.tests = tests;
        }
        if let Some(mode) = now.mode.filter(|_| now.mode != before.mode) {
            self.settings.mode = mode;
        }
        // An edit can't remove a required proof.
        self.settings.require_proof = now.require_proof.or(self.settings.require_proof);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TASK: &str = include_str!("testdata/ralph_task.md");

    #[test]
    fn edit_updates_checks_and_invalid_edit_is_refused() {
        let file = super::super::parse(Dialect::RalphTaskMd, &TaskTexts::new("ralph_task.md", TASK)).unwrap();
        let (task, settings) = adopt(file, TASK);
        let names = settings.required_verifiers.unwrap();
        assert!(!names.is_empty());
        let (again, settings) = edited(&task, TASK).unwrap();
        assert_eq!((again, settings.required_verifiers.unwrap()), (task.clone(), names));
        assert!(
            edited(&task, "no frontmatter at all").unwrap_err().contains("does not start with a frontmatter")
        );
        assert_eq!(edited(&task, " ").unwrap_err(), "the new task is empty");
    }

    #[test]
    fn an_edit_of_the_files_text_is_taken_in_every_format() {
        let json = r#"{"version": 2, "task": "Write one", "acceptance_criteria": [{"type": "file_exists", "path": "one"}]}"#;
        let plan = r#"{"project": "p", "branchName": "b", "description": "Write one", "verifyCommands": ["true"],
            "userStories": [{"id": "US-1", "title": "Write one", "acceptanceCriteria": ["x"], "priority": 1, "passes": false}]}"#;
        let prompt = "# Write one\n\n## Verification\n\n```sh\ntrue\n```\n";
        let markdown = TASK.replacen("# Task: ", "# Task: Write one ", 1);
        for (dialect, text) in [
            (Dialect::RalphTaskMd, markdown.as_str()),
            (Dialect::RalphJson, json),
            (Dialect::Plan, plan),
            (Dialect::PromptMd, prompt),
        ] {
            let file = super::super::parse(dialect, &TaskTexts::new(dialect.main_file(), text)).unwrap();
            let (task, _) = adopt(file, text);
            let new = task.file_text().replace("Write one", "Write two");
            let (task, _) = edited(&task, &new).unwrap_or_else(|error| panic!("{dialect:?}: {error}"));
            assert!(task.file_text().contains("Write two"), "{dialect:?}: {}", task.file_text());
        }
    }
}
