//! The configuration: `.ralph/config.json` and the user's config, how the layers are merged, and the resolved
//! [`Settings`] that a run is frozen with.
//!
//! A [`ConfigFile`] holds only what a file says. Unknown keys are errors, because a misspelled budget would have no
//! effect. The keys of the older `ralf` format (`modals`, `modal_priority`, `modal_selection`) are aliases.

mod agent;
mod clone;
mod handover;
mod help;
mod metric;
mod models;
mod models_file;
mod notify;
mod parse;
mod policy;
mod sandbox;
pub(crate) mod settings;
mod share;
mod stuck;

pub use crate::command_line::{CommandLine, join_argv};
pub use agent::{
    AgentConfig, AgentKind, AgentSelection, MAX_TOKENS_PER_ITERATION, OutputFormat, PromptMode,
    RateLimitDetection,
};
pub use clone::{CloneConfig, HistoryAccess, WorkspaceConfig};
pub use handover::{Handover, Overlap, PrConfig, Publish};
pub use help::{Apply, CriticConfig, DoctorConfig, Role, RoleConfig};
pub use metric::{Better, MetricConfig, REPEAT_MAX};
pub use models::{DEFAULT_PROFILE, Models, PriceConfig, Profile, TimeoutConfig, Wire};
pub use models_file::ModelsFile;
pub use notify::{MailTls, NotifyConfig, NotifyKind, SLACK_VARIABLE};
pub use parse::{ConfigError, is_inside};
pub use policy::{
    Completion, Expect, Isolation, Mode, OnStuck, RequiredProof, RunWhen, TestsPolicy, VerifierConfig,
};
pub use sandbox::{ProviderName, Resources, SandboxConfig};
pub use settings::Settings;
pub use share::Share;
pub use stuck::{StuckConfig, StuckWeights, WINDOW};

use jiff::Timestamp;
use ralph_loop_protocol::id::AgentName;
use ralph_loop_protocol::money::Usd;
use serde::{Deserialize, Serialize};

/// A configuration file as written. Every key is optional.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", schemars(transform = crate::schema_parts::config_aliases))]
pub struct ConfigFile {
    /// Editor hint; ignored.
    #[serde(rename = "$schema", skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
    /// Format version; only 1 exists.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("const" = 1)))]
    pub version: Option<u32>,
    /// The agents, in the order of their definition.
    #[serde(alias = "modals", skip_serializing_if = "Option::is_none")]
    pub agents: Option<Vec<AgentConfig>>,
    /// Which agents take part and in which order; default: all, as defined.
    #[serde(alias = "modal_priority", skip_serializing_if = "Option::is_none")]
    pub agent_priority: Option<Vec<AgentName>>,
    /// How the next agent is chosen.
    #[serde(alias = "modal_selection", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = "round_robin")))]
    pub agent_selection: Option<AgentSelection>,
    /// Checks that judge the work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verifiers: Option<Vec<VerifierConfig>>,
    /// Which of them must pass; default: `["tests"]` if one of that name exists, else all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub required_verifiers: Option<Vec<String>>,
    /// Those that the configuration requires, after the settings of a task are merged.
    #[serde(skip)]
    pub own_verifiers: Vec<String>,
    /// Run the checks on the original files before the first session; default true.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = true)))]
    pub baseline: Option<bool>,
    /// What the run may do to the original tests.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = "additive")))]
    pub tests: Option<TestsPolicy>,
    /// What the dashboard and the API may do to a run: `guided` adds hints for the next session, `debug` also a fixed
    /// list of commands.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = "autonomous")))]
    pub mode: Option<Mode>,
    /// The minimum strength of the proof; anything weaker isn't done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub require_proof: Option<RequiredProof>,
    /// The word inside `<promise>…</promise>`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(regex(pattern = "^[^<>\\n]*\\S[^<>\\n]*$"), extend("default" = "COMPLETE")))]
    pub completion_promise: Option<String>,
    /// What starts the final checks.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = "promise")))]
    pub completion: Option<Completion>,
    /// Restore the files with the best number if an iteration made it worse (verifiers with a `metric`).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = false)))]
    pub keep_best: Option<bool>,
    /// Also commit each iteration on the current branch, not only on `refs/ralph/<run>/work`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkpoint_commits: Option<bool>,
    /// Let the agent commit on the run's branch (fast-forward only).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_agent_commits: Option<bool>,
    /// Commit the `.ralph/` folder as well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit_state: Option<bool>,
    /// Author name of `ralph`'s commits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit_author: Option<String>,
    /// Author email of `ralph`'s commits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit_email: Option<String>,
    /// Most iterations.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(min = 1), extend("default" = 30)))]
    pub max_iterations: Option<u32>,
    /// Most working time, in minutes; waits don't count.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("exclusiveMinimum" = 0, "default" = 120)))]
    pub max_wall_time_minutes: Option<f64>,
    /// Most money, in USD.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = 10)))]
    pub max_cost_usd_estimate: Option<Usd>,
    /// Most tokens in total.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens_total: Option<u64>,
    /// How often the run may be stuck in a row, without progress in between, before it ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = 3)))]
    pub max_consecutive_gutter: Option<u32>,
    /// Longest wait for rate limits, in minutes, summed over the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("exclusiveMinimum" = 0)))]
    pub max_limit_wait_minutes: Option<f64>,
    /// When the run must end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Timestamp>,
    /// Refuse to start if the money cap can't be enforced because an agent doesn't report its cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strict_budget: Option<bool>,
    /// Paths or globs that must stay unchanged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protected_paths: Option<Vec<String>>,
    /// Globs of more harness files; one that starts with `!` excludes files. `ralph harness` shows the matches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub harness: Option<Vec<String>>,
    /// Commands that prepare a clean checkout for its checks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub setup_commands: Option<Vec<CommandLine>>,
    /// Stuck detection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stuck_detection: Option<StuckConfig>,
    /// `loop_score` from which a run counts as stuck.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("exclusiveMinimum" = 0, "default" = 0.7)))]
    pub gutter_score: Option<f64>,
    /// What to do when every recovery step was tried.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = "pause")))]
    pub on_stuck: Option<OnStuck>,
    /// The doctor, which analyzes the record of a stuck run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub doctor: Option<DoctorConfig>,
    /// The critic, which reviews the last changes once each time the score is high.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub critic: Option<CriticConfig>,
    /// The pipeline of roles that agents take in turn, with `agent_selection` `roles`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub roles: Option<Vec<RoleConfig>>,
    /// How strongly the agent is sandboxed. `none` only works in a flag or the user's config.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = "auto")))]
    pub isolation: Option<Isolation>,
    /// Where commands run, if not on this machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxConfig>,
    /// More hosts that commands may reach. In a repo's file it needs the user's approval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed_hosts: Option<Vec<String>>,
    /// Variables of the user's environment that commands may see. In a repo's file it needs the user's approval.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(inner(regex(pattern = "^[A-Za-z0-9_]+$"))))]
    pub pass_env: Option<Vec<String>>,
    /// Which of the user's settings sandboxed agent CLIs get in addition to their login. Only works in the user's
    /// config or a flag.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share: Option<Vec<Share>>,
    /// More files and folders of the machine that sandboxed commands can read: full paths, or below `~/`. Only works in
    /// the user's config.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox_read: Option<Vec<String>>,
    /// What the agent's copy of the repo holds in addition to tracked and unignored files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace: Option<WorkspaceConfig>,
    /// Cooldown after a rate limit without a reset time.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = 900)))]
    pub default_cooldown_seconds: Option<u64>,
    /// What happens to the proven work: it stays local, its branch is pushed, or it becomes a pull request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub publish: Option<Publish>,
    /// The pull request. Templates know the names of `docs/TASKS.md`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pr: Option<PrConfig>,
    /// The git remote that names the code host.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = "origin")))]
    pub remote: Option<String>,
    /// Folder of a local code host, used instead of the remote's host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub local_forge: Option<String>,
    /// What to do if other open pull requests touch the same files.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = "warn")))]
    pub overlap: Option<Overlap>,
    /// End only when the checks of the pull request are green.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = false)))]
    pub wait_for_checks: Option<bool>,
    /// Longest wait for the first check of the pull request to appear.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(min = 0), extend("default" = 5)))]
    pub ci_appear_minutes: Option<f64>,
    /// Longest wait for the checks of the pull request.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(min = 0), extend("default" = 60)))]
    pub ci_timeout_minutes: Option<f64>,
    /// Longest wait for an approval of the pull request.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(min = 0), extend("default" = 72)))]
    pub review_timeout_hours: Option<f64>,
    /// First wait between two polls of the code host; later ones are longer.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    pub poll_seconds: Option<f64>,
    /// The message of each iteration's commit, a template.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit_template: Option<String>,
    /// Notification channels. Only works in the user's config.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notify: Option<Vec<NotifyConfig>>,
    /// How much of a repo `--clone` brings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clone: Option<CloneConfig>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn refused(text: &str) -> ConfigError {
        ConfigFile::parse(text).unwrap_err()
    }

    #[test]
    fn older_key_names_are_accepted() {
        let file = ConfigFile::parse(
            r#"{"modal_priority":["b"],"modal_selection":"priority","modals":[
                {"name":"a","command_argv":["a"]},
                {"name":"b","prompt_mode":"arg","command_argv":["b"],"timeout_seconds":300,
                 "rate_limit_detection":{"patterns":["429"],"default_cooldown_seconds":60}}],
                "verifiers":[{"name":"tests","command_argv":["true"],"run_when":"on_change"}]}"#,
        )
        .unwrap();
        let settings = file.resolve();
        assert_eq!(settings.agents.len(), 1, "only agents of the priority list take part");
        assert_eq!(settings.agents[0].name.as_str(), "b");
        assert_eq!(settings.agent_selection, AgentSelection::Priority);
        assert_eq!(settings.required_verifiers, ["tests"]);
        assert_eq!(settings.cooldown_of(&"b".into()), Duration::from_secs(60));
    }

    #[test]
    fn a_misspelt_key_is_named_with_its_line_and_the_likely_word() {
        let error = refused("{\n  \"max_iteration\": 3\n}");
        assert_eq!((error.line, error.message.as_str()), (2, "unknown field `max_iteration`"));
        assert_eq!(error.hint, "did you mean `max_iterations`?");
    }

    #[test]
    fn invalid_values_are_refused_with_their_position() {
        let error = refused("{\n\n  \"max_iterations\": 0}");
        assert_eq!(error.line, 3);
        assert!(refused("").hint.contains("ralph init"));
        assert!(refused("{\"agents\":[{\"name\":\"x\"}]}").message.contains("command_argv"));
        assert!(
            refused("{\"agents\":[{\"name\":\"../x\",\"command_argv\":[\"x\"]}]}")
                .message
                .contains("not usable")
        );
        assert!(refused("{\"max_cost_usd_estimate\": -1}").message.contains("at least 0"));
        assert!(refused("{\"agents\": [").hint.contains("ends too early"));
    }

    #[test]
    fn a_repo_changes_one_agent_and_keeps_the_users_others() {
        let user = ConfigFile::parse(r#"{"agents":[{"name":"a","command_argv":["a"]},{"name":"b","command_argv":["b"]}],"max_iterations":9}"#).unwrap();
        let repo = ConfigFile::parse(r#"{"agents":[{"name":"b","command_argv":["b2"]}]}"#).unwrap();
        let settings = user.overlaid(repo).resolve();
        let names: Vec<_> =
            settings.agents.iter().map(|a| (a.name.as_str(), a.command_argv[0].as_str())).collect();
        assert_eq!(names, [("b", "b2"), ("a", "a")]);
        assert_eq!(settings.budgets.max_iterations, 9);
    }

    #[test]
    fn a_task_adds_to_what_the_configuration_requires() {
        let config = || {
            ConfigFile::parse(
                r#"{"verifiers":[{"name":"tests","command_argv":["a"]},{"name":"lint","command_argv":["l"]}]}"#,
            )
            .unwrap()
        };
        let task = |text: &str| ConfigFile::parse(text).unwrap();
        let names =
            |file: ConfigFile| (file.clone().resolve().required_verifiers, file.resolve().own_verifiers);
        let own = r#"{"verifiers":[{"name":"C1","command_argv":["c"]}],"required_verifiers":["C1"]}"#;
        assert_eq!(
            names(config().with_task(task(own))),
            (vec!["C1".into(), "tests".into()], vec!["tests".into()])
        );
        let other = r#"{"verifiers":[{"name":"tests","command_argv":["b"]}],"required_verifiers":["tests"]}"#;
        assert_eq!(names(config().with_task(task(other))).0, ["tests", "config-tests"]);
        let same =
            r#"{"verifiers":[{"name":"verify-1","command_argv":["a"]}],"required_verifiers":["verify-1"]}"#;
        assert_eq!(names(config().with_task(task(same))).0, ["tests"], "what runs the same runs once");
        let shell = r#"{"verifiers":[{"name":"verify-1","command_argv":["sh","-c","a"]}],"required_verifiers":["verify-1"]}"#;
        assert_eq!(
            names(config().with_task(task(shell))).0,
            ["tests"],
            "a shell in between makes no difference"
        );
        let other = shell.replace("\"a\"", "\"a; b\"");
        assert_eq!(names(config().with_task(task(&other))).0, ["verify-1", "tests"]);
        assert_eq!(
            names(config().with_task(task("{}"))).0,
            ["tests"],
            "a task without checks changes nothing"
        );
        let all = config().with_task(task(own)).resolve().verifiers;
        assert_eq!(all.iter().map(|v| v.name.as_str()).collect::<Vec<_>>(), ["C1", "tests", "lint"]);
    }

    #[test]
    fn defaults_match_the_documentation() {
        let settings = ConfigFile::default().resolve();
        assert_eq!(settings.budgets.max_iterations, 30);
        assert_eq!(settings.budgets.max_wall_time, Duration::from_secs(7200));
        assert_eq!(settings.budgets.max_cost, Usd::from_dollars(10.0));
        assert_eq!(settings.completion_promise, "COMPLETE");
        assert_eq!(settings.default_cooldown, Duration::from_secs(900));
        assert_eq!(settings.isolation, Isolation::Auto);
    }

    #[test]
    fn crlf_and_a_byte_order_mark_are_fine() {
        assert!(ConfigFile::parse("\u{feff}{\r\n\"max_iterations\": 3\r\n}\r\n").is_ok());
    }
}
