//! The tools and their implementation.

use crate::answers::Outcome;
use crate::desk::RunService;
use ralph_loop_app::race::RaceBy;
use ralph_loop_app::race::races;
use ralph_loop_app::read::status;
use ralph_loop_app::task::lint::checks::TaskCheck;
use ralph_loop_app::task::{lint, task_source};
use ralph_loop_app::trust::repo_file;
use ralph_loop_app::{App, AppError, RaceRequest, RunRequest, TaskInput};
use ralph_loop_core::handle::ControlOutcome;
use ralph_loop_protocol::control::Control;
use ralph_loop_protocol::display::text::one_line;
use ralph_loop_task::config::Isolation;
use rmcp::model::{Tool, ToolAnnotations};
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// How long a busy run may take to read its inbox.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
const NOTE_MAX: usize = 4000;

pub(crate) struct ToolSpec {
    pub name: &'static str,
    pub description: &'static str,
    /// Whether it is read-only.
    pub looks: bool,
    schema: fn() -> Value,
}

pub(crate) const TOOLS: &[ToolSpec] = &[
    ToolSpec {
        name: "lint_task",
        description: "Check a task file of this folder before a run: errors refuse a run, warnings name what makes loops fail. Nothing is run.",
        looks: true,
        schema: || {
            object(
                json!({"file": text("The task file, relative to the folder; the only one there if left out.")}),
                &[],
            )
        },
    },
    ToolSpec {
        name: "start_run",
        description: "Start a run in the background. Returns its id; watch it with `watch_run`. It costs money until the result is proven or a budget ends it.",
        looks: false,
        schema: || {
            object(
                json!({
                    "file": text("The task file, relative to the folder; the only one there if left out."),
                    "task": text("Instead of a file: the task itself, as a prompt with a definition of done."),
                    "max_iterations": {"type": "integer", "minimum": 1, "description": "Most sessions."},
                    "max_cost_usd": {"type": "number", "exclusiveMinimum": 0, "description": "Most money."},
                    "agents": {"type": "array", "items": {"type": "string"}, "description": "Only these agents, in this order."},
                    "verify": {"type": "array", "items": {"type": "string"}, "description": "Commands that must pass, instead of the configured ones."},
                    "worktree": {"type": "boolean", "description": "Work in a separate git worktree."},
                    "race": {"type": "array", "items": {"type": "string"}, "description": "Several runs side by side instead of one: two to eight agents or models, or one number (`[\"3\"]`: three of the same). The first proven result wins, the others are stopped; they share the money."},
                    "best": {"type": "string", "enum": ["metric", "diff", "cost"], "description": "With `race`: all may end, and the best proven result wins: by the task's number, the smallest diff or the lowest cost."},
                }),
                &[],
            )
        },
    },
    ToolSpec {
        name: "list_runs",
        description: "List the runs of this folder, or of every folder on this machine, oldest first.",
        looks: true,
        schema: || {
            object(json!({"everywhere": {"type": "boolean", "description": "Runs of every folder."}}), &[])
        },
    },
    ToolSpec {
        name: "run_status",
        description: "The state of a run: status, iteration, checks with reasons, cost, and what it needs from the user.",
        looks: true,
        schema: || object(json!({"run": run_id()}), &[]),
    },
    ToolSpec {
        name: "watch_run",
        description: "Wait for a run and report events as progress notifications. Returns its status when it ends, needs the user, or the time is up.",
        looks: true,
        schema: || {
            object(
                json!({
                    "run": run_id(),
                    "seconds": {"type": "integer", "minimum": 1, "maximum": 3600, "description": "Longest wait; 60 if left out."},
                }),
                &[],
            )
        },
    },
    ToolSpec {
        name: "run_result",
        description: "The result of a run and the proof of it: which checks passed where, on which commit, and what changed.",
        looks: true,
        schema: || object(json!({"run": run_id()}), &[]),
    },
    ToolSpec {
        name: "note",
        description: "Add a fact to every following prompt of a run.",
        looks: false,
        schema: || object(json!({"run": run_id(), "text": text("The fact.")}), &["text"]),
    },
    ToolSpec {
        name: "nudge",
        description: "Give a hint to the next session of a run only.",
        looks: false,
        schema: || object(json!({"run": run_id(), "text": text("The hint.")}), &["text"]),
    },
    ToolSpec {
        name: "pause_run",
        description: "Let a run wait after its current session.",
        looks: false,
        schema: || object(json!({"run": run_id()}), &[]),
    },
    ToolSpec {
        name: "resume_run",
        description: "Resume a paused run.",
        looks: false,
        schema: || object(json!({"run": run_id()}), &[]),
    },
    ToolSpec {
        name: "stop_run",
        description: "End a run after its current session; with `now`, at once.",
        looks: false,
        schema: || {
            object(
                json!({"run": run_id(), "now": {"type": "boolean", "description": "Do not wait for the session."}}),
                &[],
            )
        },
    },
];

impl ToolSpec {
    pub(crate) fn listed(&self, here: bool) -> Tool {
        let schema = match self.schema(here) {
            Value::Object(map) => map,
            _ => Map::new(),
        };
        let annotations = ToolAnnotations::new()
            .read_only(self.looks)
            .destructive(self.name == "stop_run")
            .open_world(false);
        Tool::new(self.name, self.description, Arc::new(schema)).with_annotations(annotations)
    }

    /// Its arguments. With several folders, one can be named.
    fn schema(&self, here: bool) -> Value {
        let mut schema = (self.schema)();
        if !here && ["lint_task", "start_run"].contains(&self.name) {
            schema["properties"]["folder"] =
                text("The folder of the task, one that this server knows; the only one if left out.");
        }
        schema
    }
}

fn object(properties: Value, required: &[&str]) -> Value {
    json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
}

fn text(description: &str) -> Value {
    json!({"type": "string", "description": description})
}

fn run_id() -> Value {
    text("The run's id, or the beginning or end of one; the latest of this folder if left out.")
}

pub(crate) struct Arguments(Map<String, Value>);

impl Arguments {
    /// Checks a tool's arguments; an unknown one is an error.
    pub(crate) fn of(tool: &ToolSpec, given: Option<Map<String, Value>>, here: bool) -> Result<Self, String> {
        let given = given.unwrap_or_default();
        let schema = tool.schema(here);
        let known = &schema["properties"];
        for (name, value) in &given {
            let wanted = known[name]["type"]
                .as_str()
                .ok_or_else(|| format!("`{}` has no argument `{name}`", tool.name))?;
            let fits = match wanted {
                "string" => value.is_string(),
                "boolean" => value.is_boolean(),
                "integer" => value.is_u64(),
                "number" => value.is_number(),
                "array" => value.as_array().is_some_and(|list| list.iter().all(Value::is_string)),
                _ => false,
            };
            if !fits {
                return Err(format!("`{name}` of `{}` must be of type {wanted}", tool.name));
            }
        }
        let missing = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
        match missing.into_iter().find(|name| !given.contains_key(*name)) {
            Some(name) => Err(format!("`{}` needs `{name}`", tool.name)),
            None => Ok(Self(given)),
        }
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.as_str().filter(|text| !text.trim().is_empty())
    }

    pub(crate) fn folder(&self) -> Option<String> {
        self.text("folder").map(str::to_owned)
    }

    pub(crate) fn run(&self) -> Option<&str> {
        self.text("run")
    }

    fn flag(&self, name: &str) -> bool {
        self.0.get(name).and_then(Value::as_bool).unwrap_or_default()
    }

    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        self.0.get(name)?.as_u64()
    }

    fn texts(&self, name: &str) -> Vec<String> {
        let list = self.0.get(name).and_then(Value::as_array).cloned().unwrap_or_default();
        list.iter().filter_map(|one| one.as_str().map(str::to_owned)).collect()
    }
}

pub(crate) struct Here {
    pub app: App,
    pub folder: PathBuf,
    pub desk: Option<Arc<dyn RunService>>,
}

/// Calls a tool. Blocks: a start waits until the run has begun.
pub(crate) fn call(here: &Here, tool: &str, args: &Arguments) -> Outcome {
    let (app, folder) = (&here.app, here.folder.as_path());
    match tool {
        "lint_task" => lint_task(app, folder, args),
        "start_run" => match &here.desk {
            Some(desk) => desk.start(&args.0),
            None => start_run(app, folder, args),
        },
        "list_runs" => {
            let everywhere = here.desk.is_some() || args.flag("everywhere");
            Ok(serde_json::to_value(app.list(folder, everywhere)?).unwrap_or_default())
        }
        "run_status" => Ok(status::with_race(app.environment(), &app.facts(folder, args.run())?)),
        "run_result" => run_result(app, folder, args),
        "note" => steer(here, args, Control::Note { text: note(args)? }),
        "nudge" => steer(here, args, Control::Nudge { text: note(args)? }),
        "pause_run" => steer(here, args, Control::Pause),
        "resume_run" => steer(here, args, Control::Resume),
        "stop_run" => steer(here, args, if args.flag("now") { Control::Cancel } else { Control::Stop }),
        other => Err(AppError::usage(format!("unknown tool `{}`", one_line(other, 80)))),
    }
}

fn note(args: &Arguments) -> Result<String, AppError> {
    let text = args.text("text").unwrap_or_default();
    match text.chars().count() {
        0 => Err(AppError::usage("the text is empty").hint("say in `text` what the agents should know")),
        n if n > NOTE_MAX => {
            Err(AppError::usage(format!("the text has {n} characters, at most {NOTE_MAX} are taken"))
                .hint("put the rest into a file of the repo and name it"))
        }
        _ => Ok(text.to_owned()),
    }
}

/// A path inside the folder; anything outside is refused.
fn inside(folder: &Path, file: Option<&str>) -> Result<Option<PathBuf>, AppError> {
    let Some(file) = file else { return Ok(None) };
    let path = Path::new(file);
    let plain = path.is_relative()
        && path
            .components()
            .all(|part| matches!(part, std::path::Component::Normal(_) | std::path::Component::CurDir));
    match plain && repo_file::read(&folder.join(path)).is_ok() {
        true => Ok(Some(path.to_owned())),
        false => Err(AppError::usage(format!("can't read `{}` in this folder", one_line(file, 200)))
            .hint("name a task file relative to the folder, without `..`")),
    }
}

fn lint_task(app: &App, folder: &Path, args: &Arguments) -> Outcome {
    let file = inside(folder, args.text("file"))?;
    let source = task_source::find(folder, file.as_deref())?;
    let linted = lint::lint_task(app.environment(), &source);
    let report = linted.report;
    Ok(json!({
        "file": source.files.name(),
        "ok": !report.refuses(),
        "title": report.task.as_ref().map(|task| &task.title),
        "checks": linted.checks.iter().map(TaskCheck::line).collect::<Vec<_>>(),
        "findings": report.diagnostics,
    }))
}

fn start_run(app: &App, folder: &Path, args: &Arguments) -> Outcome {
    let task = match (inside(folder, args.text("file"))?, args.text("task")) {
        (Some(_), Some(_)) => {
            return Err(AppError::usage("both `file` and `task` are given").hint("give one of them"));
        }
        (Some(file), None) => TaskInput::File(file),
        (None, Some(text)) => TaskInput::Text(text.to_owned()),
        (None, None) => TaskInput::Found,
    };
    let mut request = RunRequest { task, ..RunRequest::in_folder(folder) };
    request.overrides.max_iterations = args.number("max_iterations").and_then(|n| u32::try_from(n).ok());
    request.overrides.max_cost = args.0.get("max_cost_usd").and_then(Value::as_f64);
    request.overrides.agents = args.texts("agents");
    request.overrides.verify = args.texts("verify");
    if args.flag("worktree") {
        request.place = ralph_loop_app::Workplace::Worktree;
    }
    let race = args.texts("race");
    match (race.is_empty(), args.text("best").map(RaceBy::parse).transpose()) {
        (_, Err(why)) => return Err(AppError::usage("invalid `best`").cause(why)),
        (true, Ok(None)) => {}
        (true, Ok(Some(_))) => {
            return Err(AppError::usage("`best` is for a race").hint("name in `race` who races"));
        }
        (false, Ok(by)) => {
            request.race = Some(RaceRequest { who: race, by: by.unwrap_or_default(), runs: Vec::new() });
        }
    }
    // Without isolation an agent has all the user's rights; only the user may choose that, in their configuration.
    request.isolation = None::<Isolation>;
    let run = app.spawn(&request)?;
    let mut answer =
        json!({"run_id": run, "next": "call watch_run to follow it, or run_status for its state"});
    if let Some(race) = races::of_run(app.environment(), &run)? {
        answer["race"] =
            race.runs.iter().map(|one| json!({"name": one.name, "run_id": one.run_id})).collect();
    }
    Ok(answer)
}

fn run_result(app: &App, folder: &Path, args: &Arguments) -> Outcome {
    let facts = app.facts(folder, args.run())?;
    let view = facts.view();
    let record = facts.entry.run_dir();
    let proof = ralph_loop_journal::folder::plain::read_text(&record.path().join("proof.json"), 1024 * 1024);
    let proof: Option<Value> = serde_json::from_str(&proof).ok();
    Ok(json!({
        "run_id": facts.entry.run_id,
        "status": facts.status().to_string(),
        "finished": view.finished,
        "branch": facts.branch(),
        "checks": view.checks,
        "spent": view.spent,
        "proof": proof,
    }))
}

/// Puts a letter into a run's inbox and returns the result.
fn steer(here: &Here, args: &Arguments, control: Control) -> Outcome {
    let open = here.app.open(&here.folder, args.run())?;
    if let Some(desk) = &here.desk {
        return desk.steer(&open.entry.run_id, control.name(), args.text("text"));
    }
    let state = open.handle.state()?;
    if state.result.finished.is_some() {
        return Err(AppError::usage(format!("run {} is over", open.entry.run_id))
            .hint("`start_run` starts another one"));
    }
    let id = open.handle.send(control)?;
    let outcome = match open.handle.wait_for_outcome(&id, ANSWER_TIMEOUT)? {
        ControlOutcome::Received => json!("received"),
        ControlOutcome::Refused(why) => return Err(AppError::usage(format!("the run refuses it: {why}"))),
        ControlOutcome::NotYet => {
            json!("in the inbox; the run reads it when it resumes (`ralph resume` in a terminal)")
        }
    };
    Ok(json!({"run_id": open.entry.run_id, "outcome": outcome}))
}
