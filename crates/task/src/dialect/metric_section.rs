//! `metric` in the frontmatter of `ralph_task.md`: the command that measures, and the numeric goal.

use crate::command_line::CommandLine;
use crate::config::{Better, MetricConfig, RunWhen, VerifierConfig};
use crate::criterion::Pattern;
use serde::{Deserialize, Serialize};

const NAME: &str = "metric";

/// The numeric goal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", schemars(inline))]
pub struct MetricSection {
    /// The command that prints the number; it must exit with 0.
    pub command: CommandLine,
    /// Finds the number in its output: the first group of the last match.
    pub pattern: Pattern,
    /// Which direction is better.
    pub better: Better,
    /// The run isn't done before it reaches this value.
    pub target: f64,
    /// How often to run the command: the median counts, and a change within the noise doesn't count.
    #[serde(default = "once")]
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 25), extend("default" = once())))]
    pub repeat: u32,
}

fn once() -> u32 {
    1
}

impl MetricSection {
    /// What a verifier measures with this command; `None` if it measures nothing, or has no target.
    pub fn of(verifier: &VerifierConfig, command: CommandLine) -> Option<Self> {
        let MetricConfig { pattern, better, target, repeat } = verifier.metric.clone()?;
        Some(Self { command, pattern, better, target: target?, repeat })
    }

    /// Its verifier: runs after every iteration, passes from the target on.
    pub fn verifier(&self) -> VerifierConfig {
        let metric = MetricConfig {
            target: Some(self.target),
            repeat: self.repeat,
            ..MetricConfig::new(self.pattern.clone(), self.better)
        };
        VerifierConfig {
            metric: Some(metric),
            run_when: RunWhen::Always,
            ..VerifierConfig::command(NAME, self.command.argv())
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::dialect::{Dialect, TaskTexts, parse};

    fn task(front: &str) -> String {
        format!("---\ntest_command: sh test.sh\n{front}\n---\n# T\n## Success criteria\n- [ ] M1.1 a\n")
    }

    fn rules(front: &str) -> Vec<&'static str> {
        let files = TaskTexts::new("ralph_task.md", task(front));
        parse(Dialect::RalphTaskMd, &files).unwrap_err().into_iter().map(|found| found.rule).collect()
    }

    #[test]
    fn a_number_becomes_a_verifier_that_passes_from_its_target_on() {
        let front = "keep_best: true\nmetric:\n  command: sh bench.sh\n  pattern: \"took ([0-9.]+) ms\"\n  better: lower\n  target: 80\n  repeat: 5";
        let file = parse(Dialect::RalphTaskMd, &TaskTexts::new("ralph_task.md", task(front))).unwrap();
        let verifiers = file.verifiers();
        let names: Vec<&str> = verifiers.iter().map(|v| v.name.as_str()).collect();
        assert_eq!(names, ["tests", "metric"]);
        let metric = verifiers[1].metric.as_ref().unwrap();
        assert_eq!((metric.repeat, metric.value("took 81.5 ms")), (5, Ok(81.5)));
        assert!(metric.shortfall(81.5).is_some() && metric.shortfall(80.0).is_none());
        assert_eq!(file.settings.keep_best, Some(true));
        assert_eq!(file.commands().len(), 2, "the linter looks for its program, too");
    }

    #[test]
    fn unmeasurable_metrics_are_refused() {
        let one =
            |more: &str| format!("metric: {{command: x, pattern: 'n ([0-9]+)', better: lower, {more}}}");
        assert_eq!(rules(&one("target: .nan")), ["not-yaml"]);
        assert_eq!(rules(&one("target: 1, repeat: 26")), ["bad-metric"]);
        assert_eq!(rules("keep_best: true"), ["bad-metric"]);
        assert_eq!(
            rules("metric: {command: '', pattern: 'n ([0-9]+)', better: lower, target: 1}"),
            ["bad-command"]
        );
        assert_eq!(rules(&one("repeat: 2")), ["wrong-type"], "what is enough must be said");
        assert_eq!(rules(&one("target: 1, best: 2")), ["unknown-key"]);
        assert_eq!(rules("metric: {command: x, pattern: '(', better: lower, target: 1}"), ["wrong-type"]);
    }
}
