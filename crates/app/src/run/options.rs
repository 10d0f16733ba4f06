//! Resolves a run's settings (files, then the task, then flags) and validates them before anything costs
//! money.

use crate::assumptions::Assumptions;
use crate::config::model_access;
use crate::config::models::LoadedModels;
use crate::config::settings;
use crate::config::settings::LoadedSettings;
use crate::environment::Environment;
use crate::error::{AppError, ErrorKind};
use crate::request::{RunRequest, TaskInput, Workplace};
use crate::task::lint::checks;
use crate::task::project;
use ralph_loop_agents::presets;
use ralph_loop_domain::model::price::PriceTable;
use ralph_loop_protocol::id::AgentName;
use ralph_loop_protocol::money::Usd;
use ralph_loop_task::config::{AgentKind, ConfigFile, Isolation, Settings, join_argv};
use ralph_loop_task::dialect::ModelChoice;
use std::path::Path;

/// The run's sandbox. Turning it off takes the user's own word: a flag or their configuration.
pub fn isolation(
    env: &Environment,
    request: &RunRequest,
    loaded: &LoadedSettings,
) -> Result<Isolation, AppError> {
    let own = request.isolation.or(loaded.user_isolation);
    let repo_says_none = loaded.repo_isolation == Some(Isolation::None);
    let wanted = own.or(loaded.repo_isolation.filter(|_| !repo_says_none)).unwrap_or_default();
    if wanted == Isolation::None {
        return Ok(Isolation::None);
    }
    crate::agents::isolation::resolve(env, wanted).map_err(|error| match repo_says_none && own.is_none() {
        true => error.cause(
            "the repo's config sets `isolation: none`, which works only as a flag or in your own config",
        ),
        false => error,
    })
}

/// Resolves and validates the settings of a run.
pub fn resolve(
    env: &Environment,
    request: &RunRequest,
    loaded: LoadedSettings,
    task: ConfigFile,
    (models, choice): (&LoadedModels, &ModelChoice),
    (isolation, top): (Isolation, &Path),
) -> Result<(Settings, Assumptions), AppError> {
    let wanted = &request.overrides;
    let mut file = loaded.file;
    let by_sentence = matches!(request.task, TaskInput::Text(_));
    let mut assumptions = Assumptions { by_sentence, ..Assumptions::default() };
    assumptions.add_agents(env, top, models, &mut file, &wanted.agents);
    let mut settings = merged(env, request, file, task, (isolation, top), &mut assumptions)?;
    if let Some(model) = &wanted.model {
        settings.agents.iter_mut().for_each(|a| a.model = Some(model.clone()));
    }
    model_access::resolve(env, &mut settings, models, choice);
    // Setup runs in every workspace except the user's own folder.
    let set_up = request.place != Workplace::InPlace || isolation != Isolation::None;
    check_settings(env, &settings, &models.prices, (top, set_up))?;
    Ok((settings, assumptions))
}

/// The settings of a proof without a run: the same checks, setup and sandbox, and no agent.
pub fn for_checks(
    env: &Environment,
    request: &RunRequest,
    loaded: LoadedSettings,
    task: ConfigFile,
    (isolation, top): (Isolation, &Path),
) -> Result<Settings, AppError> {
    let file = ConfigFile { agents: Some(Vec::new()), agent_priority: None, ..loaded.file };
    let task = ConfigFile { agents: None, agent_priority: None, ..task };
    let mut settings = merged(env, request, file, task, (isolation, top), &mut Assumptions::default())?;
    settings.agents.clear();
    settings.baseline = true;
    let mut problems = check_checks(&settings, top);
    if !settings.sandbox.provider().is_elsewhere() {
        missing_verifiers(env, &settings, (top, true), &mut problems);
    }
    AppError::together(problems)?;
    Ok(settings)
}

/// Merges files, task and flags, with the one list of checks.
fn merged(
    env: &Environment,
    request: &RunRequest,
    file: ConfigFile,
    task: ConfigFile,
    (isolation, top): (Isolation, &Path),
    assumptions: &mut Assumptions,
) -> Result<Settings, AppError> {
    let wanted = &request.overrides;
    let flags = ConfigFile {
        max_iterations: wanted.max_iterations,
        max_wall_time_minutes: wanted.max_seconds.map(|s| s as f64 / 60.0),
        max_cost_usd_estimate: wanted.max_cost.map(Usd::from_dollars),
        max_tokens_total: wanted.max_tokens,
        strict_budget: wanted.strict_budget.then_some(true),
        agent_priority: (!wanted.agents.is_empty())
            .then(|| wanted.agents.iter().map(|a| AgentName::from(a.as_str())).collect()),
        protected_paths: (!wanted.protect.is_empty()).then(|| wanted.protect.clone()),
        verifiers: (!wanted.verify.is_empty()).then(|| checks::verifiers_of(&wanted.verify)),
        required_verifiers: (!wanted.verify.is_empty())
            .then(|| checks::verifiers_of(&wanted.verify).into_iter().map(|v| v.name).collect()),
        baseline: wanted.no_baseline.then_some(false),
        tests: wanted.tests,
        mode: wanted.mode,
        require_proof: wanted.require_proof,
        isolation: Some(isolation),
        publish: request.publish,
        allowed_hosts: added(&file.allowed_hosts, &wanted.allow_host),
        pass_env: added(&file.pass_env, &wanted.pass_env),
        share: (!wanted.share.is_empty()).then(|| wanted.share.clone()),
        ..ConfigFile::default()
    };
    if wanted.max_iterations == Some(0) {
        return Err(AppError::usage("`--max-iterations` must be at least 1").hint("leave it out for 30"));
    }
    let priority = flags.agent_priority.clone().or_else(|| file.agent_priority.clone());
    let known: Vec<AgentName> = file.agents.iter().flatten().map(|a| a.name.clone()).collect();
    if let Some(unknown) = priority.iter().flatten().find(|name| !known.contains(name)) {
        let names: Vec<&str> = known.iter().map(AgentName::as_str).collect();
        return Err(AppError::usage(format!("agent `{unknown}` doesn't exist")).hint(
            match names.as_slice() {
                [] => "no agent is configured or installed; run `ralph doctor`".to_owned(),
                names => format!("configured or installed: {}", names.join(", ")),
            },
        ));
    }
    let file = checks::join(env, (top, &request.folder), file, task, wanted, assumptions);
    let mut settings = file.overlaid(flags).resolve();
    for check in &wanted.checks {
        settings.verifiers.retain(|known| known.name != check.name);
        settings.required_verifiers.retain(|name| *name != check.name);
        settings.required_verifiers.push(check.name.clone());
        settings.verifiers.push(check.clone());
    }
    settings.setup_guessed = !assumptions.setup.is_empty() && settings.setup_commands == assumptions.setup;
    Ok(settings)
}

/// The user's configured list plus the flags.
fn added(file: &Option<Vec<String>>, flags: &[String]) -> Option<Vec<String>> {
    (!flags.is_empty()).then(|| file.iter().flatten().chain(flags).cloned().collect())
}

/// `--verify 'cd packages/web && npm test'`.
fn verify_flag(command: &str) -> String {
    join_argv(&["--verify".to_owned(), command.to_owned()])
}

/// Reports every problem at once.
fn check_settings(
    env: &Environment,
    frozen: &Settings,
    prices: &PriceTable,
    (top, set_up): (&Path, bool),
) -> Result<(), AppError> {
    let mut problems = Vec::new();
    if frozen.agents.is_empty() {
        problems.push(AppError::environment(
            "no agent: none is configured, no agent CLI is installed, and the default model has no key",
        )
        .hint("three ways out: install a CLI (`npm install -g @anthropic-ai/claude-code`); set the key of a model (`ralph models` names it), which then works by JSON actions; or name any command under `agents` in `.ralph/config.json` (`ralph init --profile command`). `ralph demo` needs none of them"));
    }
    problems.extend(check_checks(frozen, top));
    // Programs in a remote sandbox are checked once it exists.
    if !frozen.sandbox.provider().is_elsewhere() {
        missing_agents(env, frozen, top, &mut problems);
        missing_verifiers(env, frozen, (top, set_up), &mut problems);
    }
    model_access::check(env, frozen, &mut problems);
    problems.extend(strict(frozen, prices).err());
    AppError::together(problems)
}

/// Problems of the checks and the sandbox.
fn check_checks(frozen: &Settings, top: &Path) -> Vec<AppError> {
    let mut problems = Vec::new();
    for name in &frozen.required_verifiers {
        if !frozen.verifiers.iter().any(|v| v.name == *name) {
            problems.push(
                AppError::usage(format!("`required_verifiers` names the unknown verifier `{name}`"))
                    .hint("define it under `verifiers`, or take it out of `required_verifiers`"),
            );
        }
    }
    if frozen.required_verifiers.is_empty() {
        let error = AppError::usage("nothing checks the result: no required verifier");
        problems.push(
            AppError { kind: ErrorKind::NothingChecks, ..error }.hint(
                match project::proposed_tests(top).as_slice() {
                    [] => {
                        "give one with `--verify 'cargo test'`, or under `verifiers` in `.ralph/config.json`"
                            .to_owned()
                    }
                    found => {
                        let flags: Vec<String> =
                            found.iter().map(|command| format!("`{}`", verify_flag(command))).collect();
                        format!("no tests at the top of the repo, but below it: {}", flags.join(" or "))
                    }
                },
            ),
        );
    }
    problems.extend(crate::agents::isolation::check(frozen).err());
    problems
}

/// Agent programs missing on this machine.
fn missing_agents(env: &Environment, frozen: &Settings, top: &Path, problems: &mut Vec<AppError>) {
    let (path, programs) = (env.path(), settings::programs(env, top));
    for agent in frozen.agents.iter().filter(|a| a.kind == AgentKind::Cli) {
        let program = &agent.command_argv[0];
        let known = presets::preset_of(&agent.command_argv).is_some();
        let found =
            if known { programs.known(&agent.command_argv).is_some() } else { exists(program, &path, top) };
        if !found {
            let install = presets::preset_of(&agent.command_argv).and_then(presets::install_hint);
            let message = format!(
                "the command `{program}` of agent `{}` doesn't exist or isn't executable",
                agent.name
            );
            problems.push(AppError::environment(message).hint(install.map_or_else(
                || "install it, or correct `command_argv` in `.ralph/config.json`".to_owned(),
                str::to_owned,
            )));
        }
    }
}

/// Verifier programs missing on this machine.
fn missing_verifiers(
    env: &Environment,
    frozen: &Settings,
    (top, set_up): (&Path, bool),
    problems: &mut Vec<AppError>,
) {
    let path = env.path();
    for verifier in &frozen.verifiers {
        let Some(program) = verifier.command_argv.first() else { continue };
        // Setup may create programs inside the repo.
        let setup =
            frozen.setup_commands.first().filter(|_| program.contains('/') && !program.starts_with('/'));
        if exists(program, &path, top) || (set_up && setup.is_some()) {
            continue;
        }
        let make = setup.map(|setup| format!("`{}` makes it; or ", setup.display())).unwrap_or_default();
        problems.push(
            AppError::usage(format!(
                "the command `{program}` of verifier `{}` doesn't exist or isn't executable",
                verifier.name
            ))
            .hint(format!("{make}install it, correct `command_argv` in `.ralph/config.json`, or pass another command with `--verify CMD`")),
        );
    }
}

fn strict(settings: &Settings, prices: &PriceTable) -> Result<(), AppError> {
    if settings.strict_budget
        && let Some(blind) = model_access::unpriced(settings, prices).first()
    {
        return Err(AppError::environment(format!(
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
