//! One question to an agent outside any run: a fresh session in a sandboxed folder with a throwaway copy of the repo's
//! committed files, or one model call. It can't touch the repo.

use crate::agents::scratch::Scratch;
use crate::config::{model_access, models, settings};
use crate::environment::Environment;
use crate::error::AppError;
use crate::read::find;
use ralph_loop_agents::{BackendAsker, CliAgent, HttpModelClient, presets};
use ralph_loop_core::Refusals;
use ralph_loop_core::clock::SystemClock;
use ralph_loop_domain::ports::{
    AskAnswer, AskError, AskSink, AskTarget, AskedAgent, Asker as _, Clock as _, Question, Sandbox as _,
};
use ralph_loop_git::Repo;
use ralph_loop_protocol::id::RunId;
use ralph_loop_task::config::{AgentConfig, AgentKind};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Question file in the agent's folder.
const QUESTION_FILE: &str = ".ralph-question.md";
/// The folder with the copy of the repo, and what a question says about it.
const COPY: &str = "repo";
const ABOUT_COPY: &str =
    "The repository's committed files are in `repo/`. Read what you need; changes there are thrown away.";
/// Limit for a model's answer.
const TOKENS_MAX: u64 = 8192;

#[derive(Debug, Clone, Copy)]
pub struct Consultation<'a> {
    /// Role and answer format.
    pub system: &'a str,
    pub prompt: &'a str,
    /// Longest wait for the answer.
    pub timeout: Duration,
}

/// The agents of a run in this folder, in order, without those whose program is an unapproved file of the
/// repo.
pub fn agents(env: &Environment, folder: &Path) -> Result<Vec<AgentConfig>, AppError> {
    let top = find::top(folder);
    let env = &env.with_dotenv(&top)?;
    let file = settings::load(env, &top)?.file;
    let mut all = match file.agents {
        Some(agents) if !agents.is_empty() => agents,
        _ => settings::detected_agents(env, &top),
    };
    if all.is_empty() {
        all.extend(model_access::default_agent(env, &models::load(env, &top)?));
    }
    if let Some(order) = file.agent_priority {
        all = order.iter().filter_map(|name| all.iter().find(|agent| agent.name == *name).cloned()).collect();
    }
    let (programs, grants) = (settings::programs(env, &top), env.grants(&top));
    all.retain_mut(|agent| match programs.known(&agent.command_argv) {
        Some(found) if found.ask.as_ref().is_some_and(|ask| !grants.allow(ask)) => false,
        Some(found) => {
            agent.command_argv[0] = found.path.display().to_string();
            true
        }
        None => true,
    });
    Ok(all)
}

/// Known agents that aren't installed, with the command that installs each.
pub fn not_installed(env: &Environment, folder: &Path) -> Vec<(&'static str, &'static str)> {
    let installed = settings::programs(env, &find::top(folder)).installed();
    let missing = presets::NAMES.into_iter().filter(|name| !installed.contains(name));
    missing.map(|name| (name, presets::install_hint(name).unwrap_or_default())).collect()
}

/// Asks one of [`agents`].
pub fn ask(
    env: &Environment,
    folder: &Path,
    agent: &AgentConfig,
    question: &Consultation<'_>,
    sink: &mut dyn AskSink,
) -> Result<AskAnswer, AppError> {
    let top = find::top(folder);
    let env = &env.with_dotenv(&top)?;
    let asking = |whom, prompt| Question {
        whom,
        system: question.system,
        prompt,
        earlier: &[],
        schema: None,
        max_output_tokens: Some(TOKENS_MAX),
        max_cost: None,
        timeout: question.timeout,
        stream: true,
        now: SystemClock::default().now(),
    };
    let refused = |error: AskError| refused(env, &top, agent, &error);
    if agent.kind.calls_model() {
        let loaded = models::load(env, &top)?;
        let name = model_access::profile_name(agent, &loaded.models);
        let Some(profile) = loaded.models.get(name) else {
            return Err(AppError::usage(format!("model profile `{name}` doesn't exist"))
                .hint("`ralph models` shows the profiles"));
        };
        let asker = BackendAsker::new().with_client(Arc::new(HttpModelClient::new(env.lookup())));
        return asker.ask(&asking(AskTarget::Profile(&profile), question.prompt), sink).map_err(refused);
    }
    if agent.kind == AgentKind::Scripted {
        return Err(AppError::usage(format!("`{}` plays a script and can't answer", agent.name))
            .hint("choose another agent, or write the task yourself"));
    }
    let settings = settings::load(env, &top)?.alone(agent, None);
    let scratch = Scratch::for_agents(env, "ask", &top, &settings, &Refusals::default())?;
    let (run, cli) = (RunId::from("ask"), CliAgent::new(agent.clone()));
    let prompt_file = scratch.sandbox.root().join(QUESTION_FILE);
    let asked = AskedAgent {
        agent: &cli,
        config: agent,
        model: agent.model.as_deref(),
        sandbox: &scratch.sandbox,
        run: &run,
        iteration: 1,
        prompt_file: &prompt_file,
    };
    let prompt = with_copy(env, &top, &scratch, question.prompt);
    BackendAsker::new().ask(&asking(AskTarget::Agent(asked), &prompt), sink).map_err(refused)
}

/// The prompt for an agent in this sandbox, which gets a copy of the repo.
pub fn with_copy(env: &Environment, top: &Path, scratch: &Scratch, prompt: &str) -> String {
    match copy_repo(env, top, scratch) {
        true => format!("{ABOUT_COPY}\n\n{prompt}"),
        false => prompt.to_owned(),
    }
}

/// Copies the repo's committed files into the sandbox; `false` if there are none. An answer without them is better
/// than none.
fn copy_repo(env: &Environment, top: &Path, scratch: &Scratch) -> bool {
    let into = scratch.sandbox.root().join(COPY);
    let Ok(repo) = Repo::discover(env.vars(), top) else { return false };
    match ralph_loop_git::checkout::separate(&repo, &repo.head, &into) {
        Ok(_) => {
            let _ = ralph_loop_safe_fs::remove_tree(into.join(".git"));
            true
        }
        Err(error) => {
            tracing::warn!(%error, "the repo could not be copied for the question");
            let _ = ralph_loop_safe_fs::remove_tree(&into);
            false
        }
    }
}

/// Why there is no answer, redacted: agents may quote a key.
fn refused(env: &Environment, top: &Path, agent: &AgentConfig, error: &AskError) -> AppError {
    let said = env.redactor(top).text(&error.message).into_owned();
    let hint = error.hint.clone().unwrap_or_else(|| {
        format!("`ralph probe {}` tries it; another agent can be asked instead", agent.name)
    });
    AppError::environment(format!("{} did not answer", agent.name)).cause(said).hint(hint)
}
