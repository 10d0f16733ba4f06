//! `ralph worker`: a machine of a fleet.

use crate::drive;
use crate::error::CommandError;
use crate::output::Out;
use crate::process::signals;
use crate::progress::report::Presenter;
use crate::text::table::{Cell, Table, columns};
use ralph_loop_agents::presets;
use ralph_loop_app::{App, Environment};
use ralph_loop_fleet::drive::Held;
use ralph_loop_fleet::worker::{Told, WorkerOptions};
use ralph_loop_fleet::{Fleet, db, enrol, login, worker, workers};
use ralph_loop_protocol::id::RunId;
use serde_json::json;
use std::time::Duration;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ralph worker --labels gpu,eu --jobs 4      take runs until SIGTERM
  ralph worker --new-token                   on the server: create a token
  ralph worker --enrol URL --token rw_…      on the worker: use it
  ralph worker --once 20261115-143307-k3f9   drive one run, for Kubernetes or CI
Set RALPH_DB_URL to the Postgres and RALPH_ARTIFACTS to a shared folder or bucket.")]
pub struct WorkerArgs {
    /// Labels of this machine (repo:OWNER/NAME limits it)
    #[arg(long, value_name = "LABEL", value_delimiter = ',')]
    pub labels: Vec<String>,
    /// Active runs
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..))]
    pub jobs: u32,
    /// Name of this worker [default: the host name]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Minutes to finish iterations after SIGTERM
    #[arg(long, value_name = "MINUTES", default_value_t = 60)]
    pub drain_minutes: u64,
    /// Drive this run, then exit
    #[arg(long, value_name = "RUN", group = "what")]
    pub once: Option<String>,
    /// List the fleet's workers
    #[arg(long, group = "what")]
    pub list: bool,
    /// Create a token for one worker, valid for an hour
    #[arg(long, group = "what")]
    pub new_token: bool,
    /// Exchange a token for a login at this server
    #[arg(long, value_name = "URL", group = "what", requires = "token")]
    pub enrol: Option<String>,
    /// Token for --enrol
    #[arg(long, value_name = "TOKEN", requires = "enrol")]
    pub token: Option<String>,
    /// Revoke a worker's login
    #[arg(long, value_name = "NAME", group = "what")]
    pub revoke: Option<String>,
    /// Make a worker hand over its runs
    #[arg(long, value_name = "NAME", group = "what")]
    pub drain: Option<String>,
}

pub fn run(args: &WorkerArgs, app: &App, out: &Out) -> Result<u8, CommandError> {
    if let (Some(server), Some(token)) = (&args.enrol, &args.token) {
        let name = name(args, app.environment())?;
        login::enrol(app.environment(), server, token, &name)?;
        out.say(format!("this machine is the worker {name}; `ralph worker` takes runs"));
        return Ok(0);
    }
    let env = login::with_login(app.environment())?;
    if let Some(run) = &args.once {
        return once(run, &env, out);
    }
    if args.list || args.new_token || args.revoke.is_some() || args.drain.is_some() {
        return manage(args, &env, out);
    }
    let mut labels = args.labels.clone();
    labels.extend(found_agents(&env).into_iter().map(|agent| format!("agent:{agent}")));
    labels.sort();
    labels.dedup();
    let options = WorkerOptions {
        id: name(args, &env)?,
        labels,
        capacity: args.jobs,
        drain: Duration::from_secs(args.drain_minutes.saturating_mul(60)),
    };
    worker::work(&env, &options, &mut |told| say(&told, &options, out))?;
    out.say("the worker has ended; other workers have its runs");
    Ok(0)
}

fn say(told: &Told, options: &WorkerOptions, out: &Out) {
    if out.json {
        let (what, run) = match told {
            Told::Ready => ("ready", None),
            Told::Begun(run) => ("begun", Some(run)),
            Told::Ended(run) => ("ended", Some(run)),
            Told::Draining => ("draining", None),
        };
        return out.value(&json!({ "worker": options.id, "told": what, "run": run }));
    }
    match told {
        Told::Ready => out.say(format!("worker {} takes runs: {}", options.id, options.labels.join(" "))),
        Told::Begun(run) => out.say(format!("run {run} begins here")),
        Told::Ended(run) => out.say(format!("the process of run {run} has ended")),
        Told::Draining => {
            out.say("no further run is taken; those here are handed over after their iteration")
        }
    }
}

fn name(args: &WorkerArgs, env: &Environment) -> Result<String, CommandError> {
    let own = || env.vars().filled("RALPH_WORKER");
    if let Some(name) = args.name.clone().or_else(own) {
        return match enrol::is_name(&name) {
            true => Ok(name),
            false => Err(CommandError::usage(format!("invalid worker name `{name}`"))
                .hint("small letters, digits and `-`, at most 40")),
        };
    }
    let machine = ralph_loop_journal::folder::machine::id(&env.state_home()?)?.to_string();
    Ok(machine.chars().take(12).collect())
}

/// Agents installed on this machine.
fn found_agents(env: &Environment) -> Vec<String> {
    let path = env.path();
    let found = presets::NAMES.into_iter().filter(|name| presets::find_program(name, &path).is_some());
    found.map(str::to_owned).collect()
}

/// Drives one run.
fn once(run: &str, env: &Environment, out: &Out) -> Result<u8, CommandError> {
    let run = RunId::parse(run).map_err(|_| CommandError::usage(format!("incomplete run id `{run}`")))?;
    let cancel = signals::install();
    let held = Held::take(env, &run, &cancel)?;
    let app = held.app().clone();
    let begun = match held.begin(cancel, &Presenter::new(&app, out)) {
        Ok(begun) => begun,
        Err(error) => {
            held.refused(&error)?;
            return Err(error);
        }
    };
    let (code, reason, why) = drive::finish_leased(begun, &app, out);
    held.finish(reason, why.as_deref())?;
    Ok(code)
}

fn manage(args: &WorkerArgs, env: &Environment, out: &Out) -> Result<u8, CommandError> {
    let url = db::url(env.vars())
        .ok_or_else(|| CommandError::usage("RALPH_DB_URL names no Postgres").hint(db::NO_URL))?;
    let fleet = Fleet::open(&url)?;
    let pool = fleet.pool();
    if args.new_token {
        let token = fleet.wait(enrol::new_token(pool))?;
        match out.json {
            true => out.value(&json!({ "token": token })),
            false => out.line(token),
        }
        return Ok(0);
    }
    if let Some(name) = args.revoke.as_deref().or(args.drain.as_deref()) {
        let known = fleet.wait(async {
            match args.revoke {
                Some(_) => enrol::revoke(pool, name).await,
                None => workers::drain(pool, name).await,
            }
        })?;
        if !known {
            return Err(CommandError::usage(format!("worker `{name}` doesn't exist"))
                .hint("`ralph worker --list` shows them"));
        }
        out.say(format!(
            "worker {name}: {}",
            if args.revoke.is_some() { "revoked" } else { "hands over its runs" }
        ));
        return Ok(0);
    }
    let all = fleet.wait(workers::list(pool))?;
    if out.json {
        out.value(&json!({ "workers": all }));
        return Ok(0);
    }
    let mut table = Table::new(5);
    table.row(["worker", "state", "runs", "load", "version", "labels"].map(Cell::new));
    for worker in &all {
        let state = match worker {
            w if w.revoked => "revoked".to_owned(),
            w if w.silent.is_none_or(|silent| silent > 15.0) => "silent".to_owned(),
            w if w.draining => "hands over".to_owned(),
            w => w.health.clone(),
        };
        let runs = format!("{} of {}", worker.runs, worker.capacity);
        let cells = [worker.id.clone(), state, runs, format!("{:.1}", worker.load), worker.version.clone()];
        table.row(cells.into_iter().chain([worker.labels.join(" ")]).map(Cell::new));
    }
    table.lines(columns(), out).iter().for_each(|line| out.line(line));
    Ok(0)
}
