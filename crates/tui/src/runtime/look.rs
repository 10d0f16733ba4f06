//! Reads the repo, its files, its runs and the available agents.

use super::perform::World;
use crate::data::{AgentFact, AgentState, Problem, RepoFacts, RunRow};
use crate::msg::Msg;
use ralph_loop_app::agents::{consult, isolation};
use ralph_loop_app::config::settings;
use ralph_loop_app::task::{project, task_source};
use ralph_loop_app::trust::repo_file;
use ralph_loop_app::{AppError, Environment};
use ralph_loop_git::{Git, Repo, RepoError};
use ralph_loop_journal::folder::layout::RalphDir;
use ralph_loop_protocol::display::sanitize;
use ralph_loop_protocol::display::text::one_line;
use ralph_loop_task::config::{AgentSelection, Isolation, join_argv};
use std::path::Path;

/// Files offered after `@`.
const FILES_MAX: usize = 20_000;

/// A path shortened for display.
pub fn shown_path(env: &Environment, path: &Path) -> String {
    let short = env.vars().home().and_then(|home| path.strip_prefix(home).ok());
    let shown = short.map_or_else(|| path.display().to_string(), |rest| format!("~/{}", rest.display()));
    one_line(shown.trim_end_matches('/'), 200)
}

pub fn repo(world: &World) -> RepoFacts {
    let (env, top) = (world.env(), world.top());
    let mut facts = RepoFacts { path: shown_path(env, &top), ..RepoFacts::default() };
    match Repo::discover(env.vars(), &top) {
        Ok(repo) => {
            facts.has_commit = true;
            facts.branch = one_line(repo.branch.as_deref().unwrap_or("no branch"), 100);
            facts.changed = changed(env, &top);
        }
        Err(RepoError::NoCommits(_)) => {}
        Err(error) => {
            let fix = error.hint().unwrap_or_else(|| "`ralph doctor` looks closer".to_owned());
            facts.problem = Some(Problem::new(error.to_string(), fix));
        }
    }
    facts.configured = repo_file::is_file(&RalphDir::of(&top).config());
    configured(env, &top, &mut facts);
    agents(world, &mut facts);
    facts.tasks = task_source::candidates(&top).iter().map(|task| task.main_file().to_owned()).collect();
    facts.tests =
        project::test_commands(&top).iter().map(|test| one_line(&join_argv(&test.argv), 200)).collect();
    facts
}

fn changed(env: &Environment, top: &Path) -> Option<usize> {
    let repo = Repo::discover(env.vars(), top).ok()?;
    let status = repo.git().call(["status", "--porcelain", "-z"]).run().ok()?;
    Some(status.text().split('\0').filter(|entry| entry.len() > 3).count())
}

fn configured(env: &Environment, top: &Path, facts: &mut RepoFacts) {
    let loaded = match settings::load(env, top) {
        Ok(loaded) => loaded,
        Err(error) => {
            facts.problem = Some(error.into());
            return;
        }
    };
    let wanted = loaded.user_isolation.unwrap_or_default();
    (facts.sandboxed, facts.isolation) = match isolation::resolve(env, wanted) {
        Ok(Isolation::None) => (false, "none: agents have all your rights".to_owned()),
        Ok(Isolation::Landlock) => (true, "sandboxed (Landlock), network: allowlist".to_owned()),
        Ok(_) => (true, "sandboxed (bubblewrap), network: allowlist".to_owned()),
        Err(error) => (false, format!("cannot sandbox here: {}", one_line(&error.message, 120))),
    };
    let has_verifiers = loaded.file.verifiers.as_ref().is_some_and(|list| !list.is_empty());
    let resolved = loaded.file.resolve();
    if has_verifiers {
        facts.verifiers = resolved.verifiers.iter().map(|one| one_line(&one.command_line(), 200)).collect();
    }
    facts.promise = one_line(&resolved.completion_promise, 80);
    facts.selection = match resolved.agent_selection {
        AgentSelection::RoundRobin => "each in turn (round_robin)",
        AgentSelection::Priority => "the first that is free (priority)",
        AgentSelection::Roles => "by their roles",
    }
    .to_owned();
    let budgets = &resolved.budgets;
    facts.limits =
        (budgets.max_iterations, budgets.max_wall_time.as_secs() / 60, budgets.max_cost.to_string());
}

fn agents(world: &World, facts: &mut RepoFacts) {
    let here = consult::agents(world.env(), &world.folder).unwrap_or_default();
    let missing = consult::not_installed(world.env(), &world.folder);
    for agent in &here {
        let name = agent.name.to_string();
        let gone = missing.iter().any(|(known, _)| *known == name) && !agent.kind.calls_model();
        let is_preset = agent.command_argv.first().is_some_and(|program| *program == name);
        let detail = match (agent.kind.calls_model(), agent.command_argv.first()) {
            (true, _) => "a model, called from here".to_owned(),
            (false, Some(program)) => one_line(program, 80),
            (false, None) => "plays a script".to_owned(),
        };
        let state = if gone && is_preset { AgentState::Missing } else { AgentState::Found };
        facts.agents.push(AgentFact { name, state, detail });
    }
    for (name, install) in missing {
        if !facts.agents.iter().any(|agent| agent.name == name) {
            let (name, detail) = (name.to_owned(), install.to_owned());
            facts.agents.push(AgentFact { name, state: AgentState::Missing, detail });
        }
    }
}

pub fn runs(world: &World) -> Result<Vec<RunRow>, AppError> {
    let top = world.top();
    // What a run changed in this folder is committed once nothing is left to commit.
    let clean = std::cell::LazyCell::new(|| changed(world.env(), &top) == Some(0));
    let rows = world.app.list(&world.folder, true)?.into_iter().map(|run| RunRow {
        waits: run.untaken && !(run.workspace == top && *clean),
        here: run.folder == top || run.workspace == top,
        title: one_line(&run.title, 200),
        driven: run.driven,
        iteration: match (run.iteration, run.max_iterations) {
            (Some(now), Some(most)) => format!("{now}/{most}"),
            _ => "–".to_owned(),
        },
        cost: run.cost.to_string(),
        at: run.active_at.unwrap_or(run.created_at),
        id: run.run_id,
        status: run.status,
        folder: run.folder,
    });
    Ok(rows.collect())
}

/// Files tracked by git.
pub fn files(world: &World) -> Vec<String> {
    let git = Git::in_folder(world.env().vars(), world.top());
    let listed = git.call(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]).run();
    let text = listed.map(|listed| listed.text()).unwrap_or_default();
    let clean = text.split('\0').filter(|name| !name.is_empty() && sanitize::line(name) == *name);
    clean.take(FILES_MAX).map(str::to_owned).collect()
}

/// Creates an empty first commit; committing the folder's files is up to the user.
pub fn first_commit(world: &World) -> Result<(), AppError> {
    let git = Git::in_folder(world.env().vars(), world.top());
    git.call(["commit", "--quiet", "--allow-empty", "--message", "start"]).run().map_err(|error| {
        AppError::usage("git did not make the first commit")
            .cause(error.to_string())
            .hint("git config --global user.name \"…\" and user.email, then try again")
    })?;
    world.tell(Msg::Done("the first commit is made; it is empty, your files are yours to commit".into()));
    world.tell(Msg::Repo(Box::new(repo(world))));
    Ok(())
}
