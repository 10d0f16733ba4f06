//! Before a run: lint results, first prompt, templates, and folders in which runs may start.

use super::create::{CreateRun, is_address, place_of};
use crate::auth::Caller;
use crate::http::extract::{Answer, Body, QueryParams};
use crate::http::problem::Problem;
use crate::people::Role;
use crate::routes::record::shown_path::{refuse_private_task, shown_path};
use crate::server::Server;
use axum::Json;
use axum::extract::State;
use ralph_loop_app::config::{models, settings};
use ralph_loop_app::task::lint::checks::TaskCheck;
use ralph_loop_app::task::lint::lint_task;
use ralph_loop_app::task::task_source;
use ralph_loop_app::task::task_source::TaskSource;
use ralph_loop_app::task::task_templates;
use ralph_loop_app::trust::repo_file;
use ralph_loop_app::{Environment, SilentReporter, Unfinished};
use ralph_loop_git::Repo;
use ralph_loop_git::checkout::branch_names;
use ralph_loop_task::dialect::{Dialect, TaskTexts, detect_text};
use ralph_loop_task::lint::LintReport;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Repos listed.
const REPOS_MAX: i64 = 500;
/// Suggestions listed.
const SUGGESTED: usize = 200;
/// Replaces the project's tests in templates while the project is unknown.
const EXAMPLE_TESTS: &str = "make test";

/// A task to lint.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub(crate) struct LintBody {
    /// The repo it is for.
    repo: Option<String>,
    /// Its text.
    text: Option<String>,
    /// The same as `text`.
    task: Option<String>,
    /// A file in the repo instead.
    task_file: Option<String>,
}

/// The linter's result.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct LintAnswer {
    /// Whether a run would be accepted.
    ok: bool,
    /// The task format.
    dialect: String,
    /// The findings.
    findings: Vec<Finding>,
    /// The checks that must pass, from the task, the configuration and the repo.
    checks: Vec<LintedCheck>,
    /// The parsed task; null if it can't be parsed.
    task: Option<LintedTask>,
}

/// A check that must pass.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct LintedCheck {
    /// Its name.
    name: String,
    /// The command as typed in a shell.
    command: String,
    /// Where it is written, or which file it was detected from.
    source: String,
}

impl LintedCheck {
    fn of(check: &TaskCheck) -> Self {
        Self {
            name: check.verifier.name.clone(),
            command: check.verifier.command_line(),
            source: check.source.to_string(),
        }
    }
}

/// One finding.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Finding {
    /// `error` or `warning`.
    severity: &'static str,
    /// The rule.
    code: &'static str,
    /// The file.
    file: String,
    /// Line, from 1.
    line: usize,
    /// Column, from 1.
    column: usize,
    /// What is wrong.
    message: String,
    /// How to fix it.
    fix: String,
    /// The same as `fix`.
    hint: String,
}

/// A parsed task.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct LintedTask {
    /// Short title.
    title: String,
    /// The criteria.
    criteria: Vec<LintedCriterion>,
}

/// A criterion of a task.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct LintedCriterion {
    /// Its id.
    id: String,
    /// The text.
    text: String,
    /// How it is checked.
    check: String,
}

/// Findings of a lint report.
pub(super) fn findings(report: &LintReport) -> Vec<Finding> {
    let found = report.diagnostics.iter().map(|found| Finding {
        severity: if found.is_error() { "error" } else { "warning" },
        code: found.rule,
        file: found.file.clone(),
        line: found.line,
        column: found.column,
        message: found.message.clone(),
        fix: found.fix.clone(),
        hint: found.fix.clone(),
    });
    found.collect()
}

pub(crate) async fn lint(
    State(server): State<Arc<Server>>,
    _: Caller,
    Body(body): Body<LintBody>,
) -> Answer<Json<LintAnswer>> {
    // A URL's content is unknown before cloning, so only the text is linted.
    let named = body.repo.as_deref().map(str::trim).filter(|repo| !repo.is_empty() && !is_address(repo));
    let folder = match named {
        Some(repo) => known_repo(&server, repo).await?,
        None => server.home.path().to_owned(),
    };
    let own = server.clone();
    let answer = server
        .blocking(move || {
            let source = match (body.text.or(body.task), body.task_file) {
                (Some(text), _) => {
                    let dialect = detect_text("task.md", &text);
                    TaskSource { dialect, folder, files: TaskTexts::new(dialect.main_file(), text) }
                }
                (None, Some(file)) if shown_path(&file).is_ok() => {
                    refuse_private_task(own.app.environment(), &folder, Path::new(&file))?;
                    task_source::find(&folder, Some(Path::new(&file)))?
                }
                (None, _) => return Err(Problem::bad("no task: set `text` or `task_file`")),
            };
            let linted = lint_task(own.app.environment(), &source);
            let report = &linted.report;
            Ok(LintAnswer {
                ok: !report.refuses(),
                dialect: source.dialect.as_str().to_owned(),
                findings: findings(report),
                checks: linted.checks.iter().map(LintedCheck::of).collect(),
                task: report.task.as_ref().map(|file| LintedTask {
                    title: file.title.clone(),
                    criteria: file
                        .criteria
                        .iter()
                        .map(|c| LintedCriterion {
                            id: c.id.clone(),
                            text: c.text.clone(),
                            check: c.check.describe(),
                        })
                        .collect(),
                }),
            })
        })
        .await?;
    Ok(Json(answer))
}

/// The first prompt of a run.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct PreviewAnswer {
    /// The prompt, redacted.
    prompt: String,
    /// The agents in order.
    agents: Vec<String>,
    /// The checks.
    checks: Vec<String>,
}

pub(crate) async fn preview(
    State(server): State<Arc<Server>>,
    caller: Caller,
    Body(body): Body<CreateRun>,
) -> Answer<Json<PreviewAnswer>> {
    caller.may(Role::Operator)?;
    let place = place_of(&server, &body).await?;
    if place.is_address {
        return Err(Problem::refused("the first prompt of a clone is not known before it is made")
            .hint("start the run, or name a folder of this machine"));
    }
    let own = server.clone();
    let answer = server
        .apart(move || {
            let mut request = body.request(&place, &caller)?;
            if let Some(file) = request.file() {
                refuse_private_task(own.app.environment(), &place.folder, file)?;
            }
            request.unfinished = Unfinished::StartAnew;
            let plan = own.app.prepare(&request, &SilentReporter)?;
            Ok(PreviewAnswer {
                prompt: plan.first_prompt()?,
                agents: plan.settings().agents.iter().map(|agent| agent.name.to_string()).collect(),
                checks: plan.checks().iter().map(TaskCheck::line).collect(),
            })
        })
        .await?;
    Ok(Json(answer))
}

/// A task template.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Template {
    /// Its name.
    name: &'static str,
    /// Display title.
    title: &'static str,
    /// The text to fill in.
    text: String,
}

pub(crate) async fn templates(_: Caller) -> Json<Vec<Template>> {
    let all = task_templates::ALL.iter().map(|one| Template {
        name: one.name,
        title: one.title,
        text: one.text(None, EXAMPLE_TESTS),
    });
    Json(all.collect())
}

/// A folder in which runs may start.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct RepoInfo {
    /// Its path.
    path: String,
    /// Its name.
    name: String,
}

/// Folders in which runs may start: those given to the server, and those with runs.
pub(super) async fn repos_of(server: &Server) -> Result<Vec<String>, Problem> {
    let mut all: Vec<String> = server.repos.iter().map(|path| path.display().to_string()).collect();
    for path in server.index.repos(REPOS_MAX).await? {
        if !all.contains(&path) && Path::new(&path).join(".git").exists() {
            all.push(path);
        }
    }
    Ok(all)
}

pub(crate) async fn repos(State(server): State<Arc<Server>>, _: Caller) -> Answer<Json<Vec<RepoInfo>>> {
    let name = |path: &str| {
        Path::new(path).file_name().map_or(path.to_owned(), |n| n.to_string_lossy().into_owned())
    };
    let all = repos_of(&server).await?;
    Ok(Json(all.into_iter().map(|path| RepoInfo { name: name(&path), path }).collect()))
}

/// The repo of the suggestions.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub(crate) struct SuggestionsQuery {
    /// A folder of `GET /repos`.
    repo: String,
}

/// Choices for a new run in a repo.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Suggestions {
    /// Branches, most recent commits first.
    branches: Vec<String>,
    /// The branch that is checked out.
    branch: Option<String>,
    /// Configured agents, else the installed ones.
    agents: Vec<String>,
    /// Model profiles.
    profiles: Vec<String>,
    /// Existing task files.
    task_files: Vec<String>,
}

pub(crate) async fn suggestions(
    State(server): State<Arc<Server>>,
    _: Caller,
    QueryParams(query): QueryParams<SuggestionsQuery>,
) -> Answer<Json<Suggestions>> {
    let folder = known_repo(&server, query.repo.trim()).await?;
    let own = server.clone();
    Ok(Json(server.blocking(move || Ok(suggest(own.app.environment(), &folder))).await?))
}

/// What can't be read isn't suggested; the run itself reports the problem.
fn suggest(env: &Environment, folder: &Path) -> Suggestions {
    let repo = Repo::discover(env.vars(), folder).ok();
    let branches = repo.as_ref().and_then(|repo| branch_names(repo, SUGGESTED).ok());
    let configured = settings::load(env, folder).map(|loaded| loaded.file.resolve().agents);
    let mut agents = configured.unwrap_or_default();
    if agents.is_empty() {
        agents = settings::detected_agents(env, folder);
    }
    let profiles = models::load(env, folder).map(|loaded| loaded.models.profiles.into_keys().collect());
    let is_there = |file: &&str| repo_file::read(&folder.join(file)).is_ok();
    let files: Vec<&str> = Dialect::ALL.iter().map(|dialect| dialect.main_file()).filter(is_there).collect();
    Suggestions {
        branch: repo.and_then(|repo| repo.current_branch().ok().flatten()),
        branches: branches.unwrap_or_default(),
        agents: agents.into_iter().map(|agent| agent.name.to_string()).take(SUGGESTED).collect(),
        profiles: profiles.unwrap_or_default(),
        task_files: files.into_iter().map(str::to_owned).collect(),
    }
}

/// A folder in which runs may start; others aren't read.
pub(super) async fn known_repo(server: &Server, repo: &str) -> Result<PathBuf, Problem> {
    let wanted = Path::new(repo);
    let real = wanted.canonicalize().unwrap_or_else(|_| wanted.to_owned());
    let known = repos_of(server).await?;
    let found = known.iter().map(PathBuf::from).find(|path| *path == wanted || *path == real);
    found.ok_or_else(|| {
        let shown = ralph_loop_protocol::display::text::one_line(repo, 120);
        Problem::forbidden(format!("runs are not started in `{shown}` from here"))
            .hint("start the server with `--repo DIR`, or start a run in the folder first")
    })
}
