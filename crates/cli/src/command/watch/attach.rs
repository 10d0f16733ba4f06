//! `ralph attach`: shows a run driven by another process as if it ran here.

mod server;

use crate::error::CommandError;
use crate::output::Out;
use crate::progress::follow::{FollowTimer, Printer, SessionDetail};
use crate::terminal_ui;
use ralph_loop_app::App;
use ralph_loop_domain::state::RunState;
use ralph_loop_journal::folder::registry::Registration;
use ralph_loop_journal::live::stream::{RunStream, StreamItem, StreamStart};
use ralph_loop_protocol::describe::Tone;
use ralph_loop_protocol::event::EventBody;
use std::path::{Path, PathBuf};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ralph attach k3f9       watch a run until it ends
  ralph attach --json     print raw events, one JSON object per line
  ralph attach k3f9 --server https://ralph.example.com
Exit codes: those of the run, 130 if you leave first, 1 if no process drives it.")]
pub struct AttachArgs {
    /// Run id [default: the active run in this folder]
    pub run: Option<String>,
    /// Print lines instead of opening the terminal UI
    #[arg(long)]
    pub plain: bool,
    /// Attach to a run on this server
    #[arg(long, value_name = "URL")]
    pub server: Option<String>,
    /// File with the server's token [env: RALPH_SERVER_TOKEN]
    #[arg(long, value_name = "FILE", requires = "server")]
    pub token_file: Option<PathBuf>,
    /// Allow sending the token without TLS
    #[arg(long, requires = "server")]
    pub unencrypted: bool,
}

pub fn run(args: AttachArgs, app: &App, folder: &Path, out: &Out) -> Result<u8, CommandError> {
    if let Some(url) = &args.server {
        return server::run(&args, url, app, folder, out);
    }
    let facts = app.facts(folder, args.run.as_deref())?;
    let entry = facts.entry;
    if !args.plain && terminal_ui::fits(app, out) {
        terminal_ui::open(app, folder, Some(entry.run_id.as_str()), out)?;
        return left(app, &entry);
    }
    let mut stream = RunStream::open(&entry.run_dir(), StreamStart::Beginning)?;
    let mut over = false;
    let mut printer = Printer::new(out.json, SessionDetail::Lines);
    let mut watch = FollowTimer::new(app, &entry);
    loop {
        // Query this first, so that everything the last driver wrote is seen.
        let driven = watch.is_driven();
        loop {
            let items = stream.poll()?;
            for item in &items {
                over |= matches!(item, StreamItem::Event(line) if matches!(line.event.body, EventBody::Finished { .. }));
                printer.item(item, out);
            }
            if items.is_empty() {
                break;
            }
        }
        if over || !driven {
            printer.end(out);
            return code(app, &entry, out);
        }
        if watch.wait() {
            printer.end(out);
            out.say(format!(
                "run {} continues; run `ralph attach {}` to watch it again",
                entry.run_id, entry.run_id
            ));
            return Ok(130);
        }
    }
}

/// How the run ended, or that the user left first.
fn left(app: &App, entry: &Registration) -> Result<u8, CommandError> {
    let state = app.handle(entry).state()?;
    Ok(match (&state.result.finished, &state.people.needs_human) {
        (Some(end), _) => end.reason.exit_code(),
        (None, Some(_)) => 3,
        (None, None) => 130,
    })
}

/// Reports where the result is and what comes next.
fn report_result(state: &RunState, out: &Out) {
    let Some(place) = ralph_loop_domain::view::work_ref(state) else { return };
    let (run, folder) = (&state.spec.run_id, state.spec.home().display());
    match (place.strip_prefix("refs/heads/"), &state.handover.pr) {
        (_, Some(pr)) => out.say(format!("the result is {}", pr.url)),
        (Some(branch), None) => out.say(format!("the result is on the branch {branch} in {folder}")),
        (None, None) => out.say(format!("the result is in {folder}, not committed")),
    }
    out.say(format!(
        "{} `ralph diff {run}` shows the changes, `ralph show {run}` how it went",
        out.err(Tone::Plain, "next:")
    ));
}

/// The exit code for the run's end or current state.
fn code(app: &App, entry: &Registration, out: &Out) -> Result<u8, CommandError> {
    let state = app.handle(entry).state()?;
    if let Some(end) = &state.result.finished {
        if !out.json {
            report_result(&state, out);
        }
        return Ok(end.reason.exit_code());
    }
    if let Some(need) = &state.people.needs_human {
        out.say(format!("needs you: {}; {}", need.message, need.answer(entry.run_id.as_str())));
        return Ok(3);
    }
    out.say(format!("not running; run `ralph resume {}` to continue it", entry.run_id));
    Ok(if state.people.suspended_by.is_some() { 130 } else { 1 })
}
