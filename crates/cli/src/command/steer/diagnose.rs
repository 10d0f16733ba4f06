//! `ralph diagnose`: a doctor reads a run's record; `--apply` sends its suggestions to the run.

use crate::error::CommandError;
use crate::output::Out;
use crate::process::signals;
use crate::progress::report::Presenter;
use ralph_loop_app::steering::diagnosis;
use ralph_loop_app::trust::repo_file;
use ralph_loop_app::{App, Doctor};
use ralph_loop_core::clock::SystemClock;
use ralph_loop_core::handle::RunHandle;
use ralph_loop_core::help::Report;
use ralph_loop_domain::ports::Clock as _;
use ralph_loop_domain::state::RunState;
use ralph_loop_journal::folder::registry::Registration;
use ralph_loop_protocol::control::Control;
use ralph_loop_protocol::event::EventBody;
use ralph_loop_protocol::id::Seq;
use ralph_loop_protocol::money::Usage;
use std::path::Path;
use std::time::Duration;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ralph diagnose                    diagnose the latest run
  ralph diagnose --apply            apply the suggestions
  ralph diagnose k3f9 --rules       diagnose without a model
The report is appended to `.ralph/diagnostics.md`.")]
pub struct DiagnoseArgs {
    /// Run id [default: the latest run in this folder]
    pub run: Option<String>,
    /// Send the suggestions to the run
    #[arg(long)]
    pub apply: bool,
    /// Model profile to use
    #[arg(long, value_name = "NAME", conflicts_with = "rules")]
    pub profile: Option<String>,
    /// Use built-in rules instead of a model
    #[arg(long)]
    pub rules: bool,
    /// Don't wait for the current session to end
    #[arg(long)]
    pub no_wait: bool,
}

pub fn run(args: DiagnoseArgs, app: &App, folder: &Path, out: &Out) -> Result<u8, CommandError> {
    let ralph_loop_app::OpenRun { entry, handle } = app.open(folder, args.run.as_deref())?;
    if handle.is_driven() {
        let from = handle.state().map_or(Seq(0), |s| s.seq);
        handle.send(Control::Diagnose)?;
        if args.no_wait {
            out.say(format!("run {} is read after its current session", entry.run_id));
            if out.json {
                out.value(&serde_json::json!({ "run_id": entry.run_id, "sent": ["diagnose"] }));
            }
            return Ok(0);
        }
        out.say("the doctor runs after the current session (Ctrl-C stops waiting, not the run)");
        if !wait(&handle, from) {
            return Err(CommandError::environment(format!(
                "run {} ended before the doctor could look at it",
                entry.run_id
            ))
            .hint(format!("`ralph diagnose {}` reads it now", entry.run_id)));
        }
    } else {
        read_now(&args, app, &entry, out)?;
    }
    print_report(&args, app, &entry, &handle, out)
}

/// Diagnoses a stopped run under its lock, so that the cost is journaled.
fn read_now(args: &DiagnoseArgs, app: &App, entry: &Registration, out: &Out) -> Result<(), CommandError> {
    let doctor = match &args.profile {
        Some(name) => Doctor::Profile(name),
        None if args.rules => Doctor::Rules,
        None => Doctor::Configured,
    };
    app.diagnose(entry, doctor, signals::install(), &Presenter::new(app, out))
}

fn wait(handle: &RunHandle, from: Seq) -> bool {
    let clock = SystemClock::default();
    let mut follower = handle.follow(from);
    loop {
        let driven = handle.is_driven();
        let events = follower.poll().unwrap_or_default();
        if events.iter().any(|e| matches!(e.body, EventBody::Diagnosed(_))) {
            return true;
        }
        if !driven {
            return false;
        }
        clock.pause(Duration::from_millis(100));
    }
}

fn print_report(
    args: &DiagnoseArgs,
    app: &App,
    entry: &Registration,
    handle: &RunHandle,
    out: &Out,
) -> Result<u8, CommandError> {
    let state = handle.state()?;
    let at = state.stuck.diagnosed_at.unwrap_or(state.iterations.count);
    let path = entry.run_dir().path().join(format!("diagnosis-{at}.json"));
    let text = repo_file::read_record(&path).map_err(|e| {
        CommandError::environment(format!("cannot read the report `{}`: {e}", path.display()))
    })?;
    let report: Report = serde_json::from_slice(&text).map_err(|e| {
        CommandError::environment(format!("the report `{}` is damaged: {e}", path.display()))
            .hint("`ralph diagnose` writes a new one")
    })?;
    let (by, usage) = last_word(handle);
    let sent = if args.apply { apply(app, handle, entry, &state, &report)? } else { Vec::new() };
    if out.json {
        out.value(&serde_json::json!({
            "run_id": entry.run_id,
            "by": by,
            "report": report,
            "cost_usd": usage.cost,
            "cost_basis": usage.basis,
            "sent": sent,
        }));
        return Ok(0);
    }
    let cost = usage.cost.map_or_else(String::new, |cost| format!(", {cost}"));
    let heading = format!("Run {} after {at} iterations, by {by}{cost}.", entry.run_id);
    out.block(report.markdown(&heading).trim_end());
    out.line("");
    if !args.apply {
        out.say(format!("`ralph diagnose {} --apply` adds this to the run", entry.run_id));
    } else if sent.is_empty() {
        out.say("the run is over: there is nothing to add to it");
    } else {
        out.say(format!("sent to run {}: {}", entry.run_id, sent.join(", ")));
    }
    Ok(0)
}

fn last_word(handle: &RunHandle) -> (String, Usage) {
    let events = handle.follow(Seq(0)).poll().unwrap_or_default();
    let last = events.into_iter().rev().find_map(|event| match event.body {
        EventBody::Diagnosed(news) => Some((news.by, news.usage)),
        _ => None,
    });
    last.unwrap_or_else(|| ("rules".into(), Usage::free()))
}

fn apply(
    app: &App,
    handle: &RunHandle,
    entry: &Registration,
    state: &RunState,
    report: &Report,
) -> Result<Vec<&'static str>, CommandError> {
    if state.result.finished.is_some() {
        return Ok(Vec::new());
    }
    let from = format!("doctor, applied by {}", app.environment().actor());
    Ok(diagnosis::apply(handle, app, entry, state, report, &from)?.sent)
}
