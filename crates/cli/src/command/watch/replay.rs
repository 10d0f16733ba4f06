//! `ralph replay`: repeats a run's decisions and prompts from its record.

use crate::error::CommandError;
use crate::output::{Out, Sign};
use ralph_loop_app::App;
use ralph_loop_protocol::describe::Tone;
use ralph_loop_protocol::display::text::count;
use std::path::Path;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ralph replay            replay the latest run
  ralph replay --json     print every difference
Exits with 1 if this version decides differently.")]
pub struct ReplayArgs {
    /// Run id [default: the latest run in this folder]
    pub run: Option<String>,
}

/// Runs the command.
pub fn run(args: &ReplayArgs, app: &App, folder: &Path, out: &Out) -> Result<u8, CommandError> {
    let found = app.replay(folder, args.run.as_deref())?;
    let code = u8::from(!found.is_same());
    if out.json {
        out.value(&found);
        return Ok(code);
    }
    for one in &found.differences {
        let place = format!("event {}, iteration {}, {}", one.seq, one.iteration, one.what);
        out.line(format!("{} {place}", out.out(Tone::Attention, out.sign(Sign::Open))));
        out.line(format!("    then:  {}", one.recorded));
        out.line(format!("    today: {}", one.today));
    }
    let made = format!(
        "{} and {} of {} made again",
        count(found.decisions, "decision"),
        count(found.prompts, "prompt"),
        count(found.events, "event")
    );
    match found.differences.len() {
        0 => out.line(format!(
            "{} {made}: today's engine does the same",
            out.out(Tone::Good, out.sign(Sign::Good))
        )),
        n => out.line(format!("{made}: {}", count(n, "difference"))),
    }
    Ok(code)
}
