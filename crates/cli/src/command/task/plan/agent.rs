//! A planning agent: asks questions until it has a plan. Each turn is a fresh session in a separate folder
//! that gets the conversation and repo facts, and changes nothing in the repo.

use super::PlanArgs;
use super::draft::PlanDraft;
use crate::confirm::{Left, answer};
use crate::error::CommandError;
use crate::output::Out;
use crate::process::signals;
use ralph_loop_agents::{BackendAsker, CliAgent, HttpModelClient, presets};
use ralph_loop_app::agents::consult;
use ralph_loop_app::agents::scratch::Scratch;
use ralph_loop_app::config::{models, settings};
use ralph_loop_app::task::project::project_commands;
use ralph_loop_app::trust::repo_file;
use ralph_loop_app::{App, Environment};
use ralph_loop_core::clock::SystemClock;
use ralph_loop_core::{CancelToken, Refusals};
use ralph_loop_domain::ports::{
    AskSink, AskTarget, AskedAgent, Asker as _, Clock as _, EarlierAnswer, Question, Sandbox as _, StopCause,
};
use ralph_loop_protocol::display::text::{head, one_line};
use ralph_loop_protocol::id::RunId;
use ralph_loop_task::config::{AgentConfig, AgentKind, Settings, join_argv};
use ralph_loop_task::dialect::plan::prd_tasks;
use ralph_loop_task::dialect::plan::prd_tasks::TasksJson;
use serde::Deserialize;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const SYSTEM: &str = include_str!("ask.md");
/// Rounds of questions.
const ROUNDS_MAX: usize = 12;
/// Consecutive unusable answers before giving up.
const UNUSABLE_MAX: usize = 3;
/// Questions per round.
const QUESTIONS_MAX: usize = 6;
/// Timeout of one turn.
const TIMEOUT: Duration = Duration::from_secs(900);
/// Size limit of a repo text.
const EXCERPT: usize = 8 * 1024;

/// One turn of the agent.
#[derive(Debug, Deserialize)]
struct Turn {
    #[serde(default)]
    questions: Vec<AgentQuestion>,
    prd: Option<String>,
    tasks: Option<serde_json::Value>,
}

#[derive(Debug, Deserialize)]
struct AgentQuestion {
    question: String,
    #[serde(default)]
    choices: Vec<String>,
    recommended: Option<String>,
}

/// The planning agent and its context.
pub struct Planner {
    env: Environment,
    agent: AgentConfig,
    model: Option<String>,
    settings: Settings,
    top: std::path::PathBuf,
    /// The user can answer.
    asks: bool,
    prompt: String,
    has_prd: bool,
    cancel: Arc<CancelToken>,
    earlier: Vec<EarlierAnswer>,
    /// The answer with the plan.
    last: String,
    /// Consecutive unusable answers.
    unusable: usize,
}

struct Cancelled<'a>(&'a CancelToken);

impl AskSink for Cancelled<'_> {
    fn poll(&mut self) -> ControlFlow<StopCause> {
        match self.0.get() {
            Some(_) => ControlFlow::Break(StopCause::Cancelled),
            None => ControlFlow::Continue(()),
        }
    }
}

impl Planner {
    /// Uses the named agent, else the first of this repo or machine.
    pub fn new(
        args: &PlanArgs,
        app: &App,
        top: &Path,
        wish: &str,
        prd: Option<String>,
    ) -> Result<Self, CommandError> {
        let env = app.environment().with_dotenv(top)?;
        let loaded = settings::load(&env, top)?;
        let known = match loaded.file.agents.clone() {
            Some(agents) if !agents.is_empty() => agents,
            _ => settings::detected_agents(&env, top),
        };
        let found = match &args.agent {
            Some(name) => known
                .iter()
                .find(|agent| agent.name.as_str() == name)
                .cloned()
                .or_else(|| presets::preset(name)),
            None => known.iter().find(|agent| agent.kind != AgentKind::Scripted).cloned(),
        };
        let mut agent = found.ok_or_else(|| {
            CommandError::environment("no agent can plan")
                .hint("`ralph doctor` shows how to install one; `ralph plan --form` needs none")
        })?;
        // A known agent starts by its path, outside the repo unless allowed.
        if let Some(found) = settings::programs(&env, top).known(&agent.command_argv) {
            if found.ask.as_ref().is_some_and(|ask| !env.grants(top).allow(ask)) {
                return Err(CommandError::needs_person(format!(
                    "`{}` is a file of this repo",
                    found.path.display()
                ))
                .hint("`ralph trust` shows it"));
            }
            agent.command_argv[0] = found.path.display().to_string();
        }
        let settings = loaded.alone(&agent, None);
        let mut planner = Self {
            agent,
            model: args.model.clone(),
            settings,
            top: top.to_owned(),
            env,
            asks: !args.yes,
            prompt: String::new(),
            has_prd: prd.is_some(),
            cancel: signals::install(),
            earlier: Vec::new(),
            last: String::new(),
            unusable: 0,
        };
        planner.prompt = planner.first_prompt(wish, prd.as_deref());
        Ok(planner)
    }

    /// Whether turns are left.
    pub fn may_continue(&self) -> bool {
        self.earlier.len() < ROUNDS_MAX
    }

    /// Requests changes to the plan.
    pub fn change(&mut self, words: &str) {
        self.unusable = 0;
        let then =
            format!("The plan must be different: {words}\nAnswer with the whole object again, or ask.");
        self.earlier.push(EarlierAnswer { answer: std::mem::take(&mut self.last), then });
    }

    /// Requests a new plan after lint errors; fails if they persist.
    pub fn refuse(&mut self, why: &str) -> Result<(), CommandError> {
        let then = format!("The linter refuses the plan: {why}\nAnswer with the whole object again.");
        let answer = std::mem::take(&mut self.last);
        self.reject(answer, then, format!("the linter refuses its plan: {why}"))
    }

    /// Requests another answer; `why` is for the user.
    fn reject(&mut self, answer: String, then: String, why: String) -> Result<(), CommandError> {
        self.unusable += 1;
        if self.unusable < UNUSABLE_MAX {
            self.earlier.push(EarlierAnswer { answer, then });
            return Ok(());
        }
        let name = &self.agent.name;
        let message =
            format!("{name} gave {UNUSABLE_MAX} answers in a row that aren't a plan; nothing was written");
        let why = self.env.redactor(&self.top).text(&why).into_owned();
        Err(CommandError::environment(message).cause(why).hint(format!(
            "`ralph probe {name}` tries the agent; `ralph plan --agent NAME` asks another, `ralph plan --form` none"
        )))
    }

    /// Converses until there is a plan.
    pub fn talk(&mut self, out: &Out) -> Result<PlanDraft, CommandError> {
        while self.may_continue() {
            out.say(format!("{} thinks …", self.agent.name));
            let text = self.ask()?;
            let (then, why) = match turn(&text, self.has_prd) {
                Ok(Turn { tasks: Some(tasks), prd, .. }) => match stories(&tasks) {
                    Ok(tasks) => {
                        self.last = text;
                        return Ok(PlanDraft { prd: prd.unwrap_or_default(), tasks });
                    }
                    Err(why) => (
                        format!("`tasks` is invalid: {why}. Answer with the whole object again."),
                        format!("its `tasks` can't be used: {why}"),
                    ),
                },
                Ok(turn) if turn.questions.is_empty() => (
                    "Answer with `questions` or with `prd` and `tasks`.".to_owned(),
                    quoted("it answers neither with questions nor with a plan", &text),
                ),
                Ok(_) if !self.asks => (
                    "The user can't answer now. Use your recommendations and answer with the plan."
                        .to_owned(),
                    quoted("it asks although you can't answer", &text),
                ),
                Ok(turn) => {
                    let then = said(&turn.questions, out)?;
                    self.unusable = 0;
                    self.earlier.push(EarlierAnswer { answer: text, then });
                    continue;
                }
                Err(why) => (
                    format!("That isn't the JSON object ({why}). Answer with the object alone."),
                    quoted("it doesn't answer with the JSON object of a plan", &text),
                ),
            };
            self.reject(text, then, why)?;
        }
        Err(CommandError::environment(format!(
            "{} has not made a plan after {ROUNDS_MAX} turns; nothing was written",
            self.agent.name
        ))
        .hint("say more of what you want, choose another agent with `--agent`, or use `--form`"))
    }

    fn ask(&self) -> Result<String, CommandError> {
        let refusals = Refusals::default();
        let scratch = Scratch::for_agents(&self.env, "plan", &self.top, &self.settings, &refusals)?;
        let cli = CliAgent::new(self.agent.clone());
        let run = RunId::from("plan");
        // In a private folder: others could plant links in the shared temporary folder.
        let prompt_file = scratch.sandbox.root().join("question.md");
        let profile;
        let whom = if self.agent.kind.calls_model() {
            let models = models::load(&self.env, &self.top)?.models;
            let name = self.agent.profile.as_deref().unwrap_or_else(|| models.default_name());
            let found = models.get(name);
            profile =
                found.ok_or_else(|| CommandError::usage(format!("model profile `{name}` doesn't exist")))?;
            AskTarget::Profile(&profile)
        } else {
            AskTarget::Agent(AskedAgent {
                agent: &cli,
                config: &self.agent,
                model: self.model.as_deref(),
                sandbox: &scratch.sandbox,
                run: &run,
                iteration: 1,
                prompt_file: &prompt_file,
            })
        };
        let prompt = match self.agent.kind.calls_model() {
            true => self.prompt.clone(),
            false => consult::with_copy(&self.env, &self.top, &scratch, &self.prompt),
        };
        let question = Question {
            whom,
            system: SYSTEM,
            prompt: &prompt,
            earlier: &self.earlier,
            schema: None,
            max_output_tokens: Some(32_000),
            max_cost: None,
            timeout: TIMEOUT,
            stream: false,
            now: SystemClock::default().now(),
        };
        let asker = BackendAsker::new().with_client(Arc::new(HttpModelClient::new(self.env.lookup())));
        let answered = asker.ask(&question, &mut Cancelled(&self.cancel));
        if signals::came() {
            return Err(Left.into());
        }
        let redactor = self.env.redactor(&self.top);
        answered.map(|answer| answer.text).map_err(|error| {
            let hint = error.hint.clone().unwrap_or_else(|| {
                format!("`ralph probe {}` tries it; `ralph plan --form` needs no agent", self.agent.name)
            });
            CommandError::environment(format!("{} could not answer", self.agent.name))
                .cause(one_line(&redactor.text(&error.message), 400))
                .hint(hint)
        })
    }

    /// The idea and repo facts.
    fn first_prompt(&self, wish: &str, prd: Option<&str>) -> String {
        let mut text = String::new();
        if !wish.is_empty() {
            text.push_str(&format!("# Feature\n\n{wish}\n\n"));
        }
        if let Some(prd) = prd {
            text.push_str(&format!("# Requirements\n\nDerive the stories from this; leave `prd` out. Ask only if it is ambiguous or incomplete.\n\n{}\n\n", head(prd, 64 * 1024)));
        }
        if !self.asks {
            text.push_str("Decide open questions yourself, list them under Open Questions, and answer with the plan.\n\n");
        }
        let commands = project_commands(&self.top);
        let tests: Vec<String> = commands
            .tests
            .iter()
            .chain(&commands.lints)
            .chain(&commands.typechecks)
            .map(|one| format!("`{}`", join_argv(&one.argv)))
            .collect();
        text.push_str(&format!(
            "# Repository\n\nIts commands: {}\n",
            if tests.is_empty() { "none found".to_owned() } else { tests.join(", ") }
        ));
        for name in ["README.md", "AGENTS.md", "CLAUDE.md"] {
            if let Ok(file) = repo_file::read_text(&self.top.join(name)) {
                text.push_str(&format!("\n## {name}\n\n{}\n", head(&file, EXCERPT)));
            }
        }
        if let Ok(repo) = ralph_loop_git::Repo::discover(self.env.vars(), &self.top)
            && let Ok(files) = repo.git().call(["ls-files"]).run()
        {
            text.push_str(&format!("\n## Files\n\n{}\n", head(&files.text(), EXCERPT)));
        }
        text
    }
}

/// Asks the user and formats the answers.
fn said(questions: &[AgentQuestion], out: &Out) -> Result<String, Left> {
    let mut then = String::from("The user's answers:\n");
    for asked in questions.iter().take(QUESTIONS_MAX) {
        out.line(one_line(&asked.question, 500));
        for (number, choice) in asked.choices.iter().take(9).enumerate() {
            out.line(format!("  {} {}", number + 1, one_line(choice, 200)));
        }
        let recommended = asked.recommended.as_deref().map(|text| one_line(text, 200));
        let hint = recommended.as_deref().map(|text| format!(" (empty: {text})")).unwrap_or_default();
        let given = answer(&format!("answer{hint}: "), out)?;
        let chosen = given
            .as_deref()
            .and_then(|text| text.parse::<usize>().ok())
            .and_then(|at| asked.choices.get(at.checked_sub(1)?).cloned());
        let words = chosen.or(given).or(recommended).unwrap_or_else(|| "decide yourself".to_owned());
        then.push_str(&format!("- {}: {words}\n", one_line(&asked.question, 500)));
    }
    Ok(then)
}

/// What is wrong with an answer, and how it starts.
fn quoted(what: &str, answer: &str) -> String {
    format!("{what}: \"{}\"", one_line(answer, 300))
}

/// The JSON object in an answer, ignoring surrounding text.
fn turn(text: &str, has_prd: bool) -> Result<Turn, String> {
    let (start, end) = (text.find('{').ok_or("no object")?, text.rfind('}').ok_or("no object")?);
    let turn: Turn =
        serde_json::from_str(text.get(start..=end).ok_or("no object")?).map_err(|e| e.to_string())?;
    match turn.tasks.is_some() && turn.prd.is_none() && !has_prd {
        true => Err("`prd` is missing".to_owned()),
        false => Ok(turn),
    }
}

fn stories(tasks: &serde_json::Value) -> Result<TasksJson, String> {
    prd_tasks::parse_text(&serde_json::to_string_pretty(tasks).unwrap_or_default())
}
