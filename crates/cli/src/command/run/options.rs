//! The settings of a run: files, then the task, then flags; and everything that can be wrong with them, before a cent is
//! spent.

use super::{RunArgs, thinking};
use crate::error::CommandError;
use crate::models::LoadedModels;
use crate::settings::{self, Loaded};
use ralph_agents::presets;
use ralph_domain::config::{AgentKind, ConfigFile, Isolation, Settings, VerifierConfig};
use ralph_domain::dialect::ModelChoice;
use ralph_domain::id::AgentName;
use ralph_domain::money::Usd;
use ralph_domain::price::PriceTable;
use std::path::Path;

/// What the flags ask for.
pub fn asked(args: &RunArgs) -> Option<Isolation> {
    match (args.no_sandbox, args.sandbox) {
        (true, _) => Some(Isolation::None),
        (_, true) => Some(Isolation::Auto),
        _ => args.isolation,
    }
}

/// As it is written on the command line.
pub fn name(isolation: Isolation) -> &'static str {
    match isolation {
        Isolation::Auto => "auto",
        Isolation::Bwrap => "bwrap",
        Isolation::Landlock => "landlock",
        Isolation::None => "none",
    }
}

/// The fence of this run. Running without one needs the user's own word: a flag or the user's own configuration.
pub fn isolation(args: &RunArgs, loaded: &Loaded) -> Result<Isolation, CommandError> {
    let own = asked(args).or(loaded.user_isolation);
    let repo_says_none = loaded.repo_isolation == Some(Isolation::None);
    let wanted = own.or(loaded.repo_isolation.filter(|_| !repo_says_none)).unwrap_or_default();
    if wanted == Isolation::None {
        return Ok(Isolation::None);
    }
    crate::fence::settle(wanted).map_err(|error| match repo_says_none && own.is_none() {
        true => error.cause("the repo's own config says `isolation: none`, but only you can say that, by flag or in your own config"),
        false => error,
    })
}

/// Settings of this run: files, then flags; then everything that can be wrong is looked at before a cent is spent.
pub fn resolve(
    args: &RunArgs,
    loaded: Loaded,
    task: ConfigFile,
    (models, choice): (&LoadedModels, &ModelChoice),
    (isolation, top): (Isolation, &Path),
) -> Result<Settings, CommandError> {
    let mut file = loaded.file;
    if file.agents.as_ref().is_none_or(Vec::is_empty) {
        let mut found = settings::detected_agents();
        if found.is_empty() {
            found.extend(thinking::default_agent(models));
        }
        file.agents = Some(found);
    }
    let flags = ConfigFile {
        max_iterations: args.max_iterations,
        max_wall_time_minutes: args.max_seconds.map(|s| s as f64 / 60.0),
        max_cost_usd_estimate: args.max_cost.map(Usd::from_dollars),
        max_tokens_total: args.max_tokens,
        strict_budget: args.strict_budget.then_some(true),
        agent_priority: (!args.agents.is_empty())
            .then(|| args.agents.iter().map(|a| AgentName::from(a.as_str())).collect()),
        protected_paths: (!args.protect.is_empty()).then(|| args.protect.clone()),
        verifiers: (!args.verify.is_empty()).then(|| verifiers_of(&args.verify)),
        required_verifiers: (!args.verify.is_empty())
            .then(|| verifiers_of(&args.verify).into_iter().map(|v| v.name).collect()),
        isolation: Some(isolation),
        publish: args.publish,
        ..ConfigFile::default()
    };
    if args.max_iterations == Some(0) {
        return Err(CommandError::usage("`--max-iterations` must be at least 1").hint("leave it out for 30"));
    }
    let wanted = flags.agent_priority.clone().or_else(|| file.agent_priority.clone());
    let known: Vec<AgentName> = file.agents.iter().flatten().map(|a| a.name.clone()).collect();
    if let Some(unknown) = wanted.iter().flatten().find(|name| !known.contains(name)) {
        let names: Vec<&str> = known.iter().map(AgentName::as_str).collect();
        return Err(CommandError::usage(format!("there is no agent `{unknown}`")).hint(
            match names.as_slice() {
                [] => "no agent is configured or installed: `ralph doctor` shows what is missing".to_owned(),
                names => format!("configured or installed: {}", names.join(", ")),
            },
        ));
    }
    let mut settings = file.overlaid(task).overlaid(flags).resolve();
    if let Some(model) = &args.model {
        settings.agents.iter_mut().for_each(|a| a.model = Some(model.clone()));
    }
    thinking::settle(&mut settings, models, choice);
    check_settings(&settings, &models.prices, top)?;
    Ok(settings)
}

fn verifiers_of(commands: &[String]) -> Vec<VerifierConfig> {
    commands
        .iter()
        .enumerate()
        .map(|(n, command)| VerifierConfig {
            name: if n == 0 { "tests".into() } else { format!("check-{}", n + 1) },
            command_argv: vec!["sh".into(), "-c".into(), command.clone()],
            expect: None,
            run_when: ralph_domain::config::RunWhen::OnChange,
            timeout_seconds: 1800,
        })
        .collect()
}

fn check_settings(settings: &Settings, prices: &PriceTable, top: &Path) -> Result<(), CommandError> {
    if settings.agents.is_empty() {
        return Err(CommandError::environment(
            "no agent: none is configured, no agent CLI is installed, and the default model has no key",
        )
        .hint("three ways out: install a CLI (`npm install -g @anthropic-ai/claude-code`); set the key of a model (`ralph models` names it), which then works by JSON actions; or name any command under `agents` in `.ralph/config.json` (`ralph init --profile command`). `ralph demo` needs none of them"));
    }
    for name in &settings.required_verifiers {
        if !settings.verifiers.iter().any(|v| v.name == *name) {
            return Err(CommandError::usage(format!(
                "`required_verifiers` names `{name}`, but there is no such verifier"
            ))
            .hint("define it under `verifiers`, or take it out of `required_verifiers`"));
        }
    }
    if settings.required_verifiers.is_empty() {
        return Err(CommandError::usage("nothing checks the result: there is no required verifier")
            .hint("give one with `--verify 'cargo test'`, or under `verifiers` in `.ralph/config.json` (`ralph init` finds the usual ones)"));
    }
    let path = std::env::var("PATH").unwrap_or_default();
    for agent in settings.agents.iter().filter(|a| a.kind == AgentKind::Cli) {
        let program = &agent.command_argv[0];
        if !exists(program, &path, top) {
            let install = presets::preset_of(&agent.command_argv).and_then(presets::install_hint);
            return Err(CommandError::environment(format!(
                "the command `{program}` of agent `{}` does not exist or cannot be run",
                agent.name
            ))
            .hint(install.map_or_else(
                || "install it, or correct `command_argv` in `.ralph/config.json`".to_owned(),
                str::to_owned,
            )));
        }
    }
    for verifier in &settings.verifiers {
        let Some(program) = verifier.command_argv.first() else { continue };
        if !exists(program, &path, top) {
            return Err(CommandError::usage(format!(
                "the command `{program}` of verifier `{}` does not exist or cannot be run",
                verifier.name
            ))
            .hint("install it, or correct `command_argv` in `.ralph/config.json`"));
        }
    }
    thinking::check(settings)?;
    if settings.strict_budget
        && let Some(blind) = thinking::blind(settings, prices).first()
    {
        return Err(CommandError::environment(format!(
            "agent `{}` does not report its cost and has no known price, so the cap of {} cannot hold",
            blind.name, settings.budgets.max_cost
        ))
        .hint("leave it out with `--agents`, or start without `--strict-budget`"));
    }
    Ok(())
}

fn exists(program: &str, path: &str, top: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    let can_run =
        |path: &Path| path.metadata().is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0);
    if program.contains('/') {
        can_run(&top.join(program))
    } else {
        presets::find_program(program, path).is_some()
    }
}
